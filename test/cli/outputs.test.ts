// Where reports go: to stdout, to files, to a step's summary, and what is refused before anything is removed.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

import formats from "ajv-formats";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { sweepReport } from "../../src/core/report.ts";
import { findXsdProblems, JUNIT_SCHEMAS } from "../output/xsd.ts";
import { runCommand, type CommandResult } from "./command.ts";
import { Workspace } from "./snapshot-files.ts";

let workspace: Workspace;
let key: string;
beforeEach(() => {
  workspace = new Workspace();
  key = workspace.addLock("iac-runner-gone");
});
afterEach(() => workspace.remove());

async function sweep(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<CommandResult> {
  return await runCommand(workspace.sweepWords(...words), { env });
}

const FORMATS = ["table", "json", "markdown", "junit"] as const;

/** Which of the formats a text is in. */
function recognize(text: string): (typeof FORMATS)[number] | "none" {
  if (text.startsWith("Dry run of")) return "table";
  if (text.startsWith("### Pulumi locks: 1 stale")) return "markdown";
  if (text.startsWith("<?xml")) return Object.values(JUNIT_SCHEMAS).every((schema) => findXsdProblems(text, schema).length === 0) ? "junit" : "none";
  return text.startsWith("{") && sweepReport.safeParse(JSON.parse(text)).success ? "json" : "none";
}

describe("several outputs", () => {
  const subsets = Array.from({ length: 2 ** FORMATS.length - 1 }, (_, index) => FORMATS.filter((_format, bit) => ((index + 1) & (1 << bit)) !== 0));

  it.each(subsets)("%s %s %s %s: to files, the first of them to stdout", async (...some) => {
    const [first = "table", ...rest] = some.filter((format) => format !== undefined);
    const words = [first, ...rest.map((format) => `${format}=${join(workspace.folder, `report.${format}`)}`)];
    const { stdout, exitCode, stderr } = await sweep(words.flatMap((word) => ["--output", word]));
    expect(exitCode, stderr).toBe(0);
    expect([recognize(stdout), ...rest.map((format) => recognize(readFileSync(join(workspace.folder, `report.${format}`), "utf8")))]).toEqual([first, ...rest]);
  });

  it("all to files: nothing on stdout", async () => {
    const { stdout } = await sweep(FORMATS.flatMap((format) => ["--output", `${format}=${join(workspace.folder, format)}`]));
    expect([stdout, ...FORMATS.map((format) => recognize(readFileSync(join(workspace.folder, format), "utf8")))]).toEqual(["", ...FORMATS]);
  });

  it("one format to two files", async () => {
    const files = ["a.json", "b.json"].map((name) => join(workspace.folder, name));
    await sweep(files.flatMap((file) => ["--output", `json=${file}`]));
    expect(files.map((file) => recognize(readFileSync(file, "utf8")))).toEqual(["json", "json"]);
  });
});

describe("JSON, by the published schemas and a validator that knows nothing of ours", () => {
  const validatorOf = (file: string): ReturnType<typeof Ajv2020.prototype.compile> => {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    formats.default(ajv);
    const schema: object = JSON.parse(readFileSync(file, "utf8"));
    return ajv.compile(schema);
  };

  it("a report with every kind of verdict", async () => {
    workspace.addLock("iac-runner-here", { stack: "organization/shop/a" });
    workspace.addPod("iac-runner-here");
    workspace.addLock("laptop.local", { stack: "organization/shop/b" });
    workspace.addLock("x", { body: "{", stack: "organization/shop/c" });
    workspace.addLock("iac-runner-young", { minutes: 0, stack: "organization/shop/d" });
    const { stdout } = await sweep(["--output", "json", "--backend", "file:///nonexistent/folder"]);
    const validate = validatorOf("schemas/report.schema.json");
    const report: unknown = JSON.parse(stdout);
    expect([validate(report), validate.errors]).toEqual([true, null]);
    expect(new Set(sweepReport.parse(report).locks.map(({ verdict }) => verdict)).size).toBe(5);
    expect(validate({ ...sweepReport.parse(report), version: 2 })).toBe(false);
  });

  it("the records of a removal", async () => {
    await sweep(["--delete", "--exclusive"]);
    const validate = validatorOf("schemas/record.schema.json");
    const folder = workspace.path(".pulumi-lock-janitor/audit");
    const records = readdirSync(folder).map((name): unknown => JSON.parse(readFileSync(join(folder, name), "utf8")));
    expect(records.map((record) => [validate(record), validate.errors])).toEqual([
      [true, null],
      [true, null],
    ]);
  });
});

describe("P3: what cannot be written is refused before anything is removed", () => {
  const removing = ["--delete", "--exclusive"] as const;

  it.each<readonly [what: string, outputs: readonly string[], exitCode: number, says: string]>([
    ["a folder that is not there", ["json=no/such/report.json"], 1, "the report could not be written to no/such/report.json: ENOENT"],
    ["a folder in place of a file", ["junit=."], 1, "it is a folder"],
    ["a file in place of a folder", ["markdown=pods.json/report.md"], 1, "ENOTDIR"],
    ["two to stdout", ["table", "json"], 2, "only one output goes to stdout"],
    ["two to one file", ["json=r", "junit=./r"], 2, "two outputs go to the same file"],
    ["no such format", ["xml"], 2, "an output is table, json, markdown or junit"],
    ["a file without a name", ["junit="], 2, "an output is table, json, markdown or junit"],
  ])("%s", async (_what, outputs, exitCode, says) => {
    const words = outputs.flatMap((output) => ["--output", output]);
    const result = await runCommand(workspace.sweepWords(...removing, ...words), { cwd: workspace.folder });
    expect(result).toMatchObject({ exitCode, stdout: "", stderr: expect.stringContaining(says) });
    expect([existsSync(workspace.path(key)), existsSync(workspace.path(".pulumi-lock-janitor"))]).toEqual([true, false]);
  });

  it("by unlock and check too", async () => {
    const [, ...where] = workspace.sweepWords("--exclusive", "--yes", "--output", `json=${workspace.folder}`);
    expect(await runCommand(["unlock", key, ...where])).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("it is a folder") });
    expect(existsSync(workspace.path(key))).toBe(true);
    const check = ["check", "--backend", workspace.backend, "--pods-from", workspace.snapshot, "--output"];
    expect(await runCommand([...check, `json=${workspace.folder}`])).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("it is a folder") });
    expect(await runCommand([...check, "junit"])).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("check has no junit output") });
  });
});

describe("GITHUB_STEP_SUMMARY", () => {
  const summary = (): string => join(workspace.folder, "summary.md");

  it("gets the report beside the other outputs, of sweep and of unlock", async () => {
    const { stdout } = await sweep([], { GITHUB_STEP_SUMMARY: summary() });
    expect([recognize(stdout), recognize(readFileSync(summary(), "utf8"))]).toEqual(["table", "markdown"]);
    rmSync(summary());
    const [, ...where] = workspace.sweepWords("--exclusive", "--yes");
    await runCommand(["unlock", key, ...where], { env: { GITHUB_STEP_SUMMARY: summary() } });
    expect(readFileSync(summary(), "utf8")).toContain("1 removed");
  });

  it.each<readonly [what: string, words: readonly string[], env: Readonly<Record<string, string>>]>([
    ["--no-step-summary", ["--no-step-summary"], {}],
    ["its variable", [], { PULUMI_LOCK_JANITOR_STEP_SUMMARY: "false" }],
  ])("is left alone with %s", async (_what, words, env) => {
    await sweep(words, { GITHUB_STEP_SUMMARY: summary(), ...env });
    expect(existsSync(summary())).toBe(false);
  });

  it("that cannot be written is a warning: the sweep removes and ends with 0", async () => {
    mkdirSync(summary());
    const result = await sweep(["--delete", "--exclusive"], { GITHUB_STEP_SUMMARY: summary() });
    expect(result).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("could not be added to the step's summary") });
    expect(existsSync(workspace.path(key))).toBe(false);
  });
});
