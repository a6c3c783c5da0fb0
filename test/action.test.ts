// The steps of action.yml as plain commands.
import { existsSync } from "node:fs";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { sweepReport } from "../src/core/report.ts";
import { ACTION, ActionRunner, readReport } from "./action-steps.ts";
import { Workspace } from "./cli/snapshot-files.ts";
import { findXsdProblems, JUNIT_SCHEMAS } from "./output/xsd.ts";

let workspace: Workspace;
let runner: ActionRunner;
beforeEach(() => {
  workspace = new Workspace();
  runner = new ActionRunner(false);
});
afterEach(() => {
  runner.remove();
  workspace.remove();
});

/** The inputs that every use below has. */
function inputs(more: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  return { backends: workspace.backend, "pods-from": "pods.json", "pods-taken-at": workspace.ago(0), owners: "iac-runner-*\nci-job-?????", ...more };
}

describe("the file", () => {
  it("lets no expression into a script, and uses every input and output", () => {
    for (const { run } of ACTION.runs.steps) expect(run).not.toContain("${{");
    const used = ACTION.runs.steps.flatMap(({ env = {} }) => Object.values(env));
    expect(used.toSorted()).toEqual(
      Object.keys(ACTION.inputs)
        .map((name) => `\${{ inputs.${name} }}`)
        .toSorted(),
    );
    expect(Object.entries(ACTION.outputs).filter(([name, { value }]) => value !== `\${{ steps.report.outputs.${name} }}`)).toEqual([]);
  });
});

describe("a use of the action", () => {
  it("installs its own dependencies beside itself, reports, counts, and adds to the job's summary", () => {
    workspace.addLock("iac-runner-gone");
    workspace.addLock("iac-runner-here");
    workspace.addPod("iac-runner-here");
    const result = runner.use(inputs(), workspace.folder);
    expect(result.exitCode, result.log).toBe(0);
    expect(runner.npmWords).toEqual(["ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", "$GITHUB_ACTION_PATH"]);
    expect(Object.keys(result.outputs).toSorted()).toEqual(Object.keys(ACTION.outputs).toSorted());
    expect(result.outputs).toMatchObject({ locks: "2", stale: "1", held: "1", undetermined: "0", unreadable: "0", "exit-code": "0" });
    expect(sweepReport.parse(JSON.parse(readReport(result, "json"))).dryRun).toBe(true);
    expect(readReport(result, "markdown")).toBe(result.summary);
    expect(result.summary).toContain("### Pulumi locks: 1 stale, 1 held");
    expect(Object.values(JUNIT_SCHEMAS).flatMap((schema) => findXsdProblems(readReport(result, "junit"), schema))).toEqual([]);
    expect(result.log).toContain("Dry run of");
  });

  it.each<readonly [what: string, more: Readonly<Record<string, string>>, exitCode: number, stale: string | undefined]>([
    ["fail-on", { "fail-on": "stale" }, 5, "1"],
    ["a backend that is not there, beside one that is", { backends: "file:///nonexistent/folder\n\n  BACKEND  \n" }, 1, "1"],
    ["wrong usage: no counts", { "fail-on": "everything" }, 2, undefined],
    ["a configuration file", { config: "config.yaml", owners: "" }, 0, "1"],
    ["a context with a file", { context: "prod" }, 2, undefined],
  ])("%s: the exit code is the step's, after its outputs", (_what, more, exitCode, stale) => {
    workspace.addLock("iac-runner-gone");
    workspace.addConfig({ owners: ["iac-runner-*"] });
    const given = inputs({ ...more, backends: more["backends"]?.replace("BACKEND", workspace.backend) ?? workspace.backend });
    const result = runner.use(given, workspace.folder);
    expect([result.exitCode, result.outputs["exit-code"], result.outputs["stale"]], result.log).toEqual([exitCode, String(exitCode), stale]);
  });

  it("output adds files, summary leaves the job's alone", () => {
    const result = runner.use(inputs({ output: "json=more.json\nmarkdown=more.md", summary: "false" }), workspace.folder);
    expect([result.exitCode, result.summary, existsSync(join(workspace.folder, "more.json")), existsSync(join(workspace.folder, "more.md"))]).toEqual([
      0,
      "",
      true,
      true,
    ]);
  });

  it("P4: removes nothing, whatever file and variables ask for", () => {
    const key = workspace.addLock("iac-runner-gone");
    workspace.addConfig({ delete: true, exclusive: true, owners: ["iac-runner-*"] });
    const result = runner.use(inputs({ config: "config.yaml" }), workspace.folder, { PULUMI_LOCK_JANITOR_DELETE: "true" });
    expect([result.exitCode, result.outputs["stale"], existsSync(workspace.path(key))], result.log).toEqual([0, "1", true]);
  });
});

describe("P7: text of an input is no part of a script", () => {
  const HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    '"; touch pwned; "',
    "'; touch pwned; '",
    "x\ntouch pwned",
    "--delete\n--exclusive\n--yes",
    "a<<EOF\nstale=9\nEOF",
  ];

  const cases: readonly (readonly [what: string, hostile: Readonly<Record<string, string>>])[] = [
    ...HOSTILE.map((text) => [`every input is ${JSON.stringify(text)}`, Object.fromEntries(Object.keys(ACTION.inputs).map((name) => [name, text]))] as const),
    // Each alone with all of them: the others let the report be made.
    ...Object.keys(ACTION.inputs).map((name) => [name, { [name]: HOSTILE.join("\n") }] as const),
  ];

  it.each(cases)("%s", (_what, hostile) => {
    const key = workspace.addLock("iac-runner-gone");
    const { outputs } = runner.use(inputs(hostile), workspace.folder);
    expect([existsSync(join(workspace.folder, "pwned")), existsSync(workspace.path(key)), outputs["stale"] === "9"]).toEqual([false, true, false]);
  });
});
