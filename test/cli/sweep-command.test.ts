import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { checkReport } from "../../src/core/check-report.ts";
import { sweepReport, type SweepReport } from "../../src/core/report.ts";
import { runCommand, type CommandResult } from "./command.ts";
import { Workspace } from "./snapshot-files.ts";

let workspace: Workspace;
beforeEach(() => {
  workspace = new Workspace();
});
afterEach(() => workspace.remove());

async function sweep(...words: readonly string[]): Promise<CommandResult> {
  return await runCommand(workspace.sweepWords(...words));
}

async function sweepToJson(...words: readonly string[]): Promise<SweepReport> {
  const { stdout, stderr } = await sweep("--output", "json", ...words);
  if (stdout === "") throw new Error(`no report: ${stderr}`);
  return sweepReport.parse(JSON.parse(stdout));
}

/** Every file and folder below the backend, with its bytes and its times. */
function photograph(): readonly string[] {
  return readdirSync(workspace.path(), { recursive: true, withFileTypes: true })
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const { mtimeMs, ctimeMs, size } = statSync(path);
      return `${path} ${mtimeMs} ${ctimeMs} ${size} ${entry.isFile() ? readFileSync(path, "base64") : ""}`;
    })
    .toSorted();
}

describe("a dry run", () => {
  it("P4: has something to remove, and leaves bytes and times of the whole tree as they were", async () => {
    workspace.addLock("iac-runner-gone");
    workspace.addLock("laptop.local", { stack: "organization/shop/dev" });
    workspace.addLock("x", { body: "{", stack: "organization/shop/test" });
    const before = photograph();
    const report = await sweepToJson();
    expect(report.summary.wouldRemove).toBe(1);
    expect(photograph()).toEqual(before);
  });

  it("P4: decides as the real run does", async () => {
    workspace.addLock("iac-runner-gone");
    workspace.addLock("iac-runner-here");
    workspace.addPod("iac-runner-here");
    workspace.addLock("laptop.local");
    const dry = await sweepToJson();
    const real = await sweepToJson("--delete", "--exclusive");
    expect(real.locks.map(({ key, verdict, reason }) => ({ key, verdict, reason }))).toEqual(
      dry.locks.map(({ key, verdict, reason }) => ({ key, verdict, reason })),
    );
    expect(real.locks.filter(({ action }) => action === "deleted").map(({ key }) => key)).toEqual(
      dry.locks.filter(({ action }) => action === "would-delete").map(({ key }) => key),
    );
  });
});

describe("a removal", () => {
  it("takes the lock and its attributes, and leaves its record", async () => {
    const key = workspace.addLock("iac-runner-gone");
    const body = readFileSync(workspace.path(key), "base64");
    const { exitCode, stdout } = await sweep("--delete", "--exclusive");
    expect({ exitCode, lock: existsSync(workspace.path(key)), attributes: existsSync(workspace.path(`${key}.attrs`)) }).toEqual({
      exitCode: 0,
      lock: false,
      attributes: false,
    });
    expect(stdout).toContain("1 removed");
    const audit = workspace.path(".pulumi-lock-janitor/audit");
    const intent = readdirSync(audit).find((name) => name.endsWith(".intent.json")) ?? "";
    expect(JSON.parse(readFileSync(join(audit, intent), "utf8"))).toMatchObject({
      body,
      reason: "pod-not-found",
      overrides: expect.arrayContaining([{ option: "--exclusive", value: "" }]),
    });
    expect(readdirSync(workspace.path(".pulumi/locks/organization/shop/prod"))).toEqual([]);
  });

  it("P1: every word of a person that a verdict may rest on is in the report", async () => {
    workspace.addLock("iac-runner-gone");
    const words = ["--exclusive", "--require-stack=no", "--unreachable-nodes=ignore:node-9", "--min-age", "0s", "--settle", "30s", "--clock-skew", "1s"];
    const { overrides } = await sweepToJson(...words);
    expect(overrides.map(({ option, value }) => `${option} ${value}`.trim())).toEqual([
      "--exclusive",
      "--owner iac-runner-*",
      "--require-stack no",
      "--unreachable-nodes ignore:node-9",
      "--min-age 0 s",
      "--clock-skew 1 s",
      "--confirm-delay 0 s",
      expect.stringMatching(/^--pods-taken-at 20/),
    ]);
  });

  it("is put back by restore, once", async () => {
    const key = workspace.addLock("iac-runner-gone");
    const body = readFileSync(workspace.path(key), "utf8");
    const report = await sweepToJson("--delete", "--exclusive");
    const restore = ["restore", report.locks[0]?.record ?? "", "--backend", workspace.backend];
    expect(await runCommand(restore)).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("was put back") });
    expect(readFileSync(workspace.path(key), "utf8")).toBe(body);
    expect(await runCommand(restore)).toMatchObject({ exitCode: 4, stderr: expect.stringContaining("restore-refused") });
    workspace.setAge(key, 60);
    expect((await sweepToJson("--delete", "--exclusive")).locks[0]).toMatchObject({ verdict: "held", reason: "restored" });
  });

  it("can be recorded in a file instead", async () => {
    workspace.addLock("iac-runner-gone");
    const log = join(workspace.folder, "audit.ndjson");
    const report = await sweepToJson("--delete", "--exclusive", "--audit-log", log);
    expect(readFileSync(log, "utf8").trimEnd().split("\n")).toHaveLength(2);
    expect(existsSync(workspace.path(".pulumi-lock-janitor/audit"))).toBe(false);
    expect((await runCommand(["restore", report.locks[0]?.record ?? "", "--backend", workspace.backend, "--audit-log", log])).exitCode).toBe(0);
  });

  it("counts every object in the folder as Pulumi does: a stranded .tmp is judged, an orphan .attrs is none (C27)", async () => {
    const key = workspace.addLock("iac-runner-gone");
    const body = readFileSync(workspace.path(key), "utf8");
    writeFileSync(workspace.path(`${key}.189c2f4e6b1d3a00.tmp`), body);
    workspace.setAge(`${key}.189c2f4e6b1d3a00.tmp`, 60);
    writeFileSync(workspace.path(".pulumi/locks/organization/shop/prod/orphan.json.attrs"), "{}");
    const report = await sweepToJson();
    expect(report.locks.map(({ key: found, verdict }) => [found, verdict])).toEqual([
      [key, "stale"],
      [`${key}.189c2f4e6b1d3a00.tmp`, "stale"],
    ]);
  });

  it("works with a legacy layout and both side by side (C25)", async () => {
    workspace.addLock("iac-runner-gone", { stack: "shop-cache-prod" });
    workspace.addLock("iac-runner-gone", { stack: "organization" });
    workspace.addLock("iac-runner-gone", { stack: "organization/shop/prod" });
    const report = await sweepToJson("--delete", "--exclusive");
    expect(report.locks.map(({ stack, action }) => [stack, action])).toEqual([
      ["organization", "deleted"],
      ["organization/shop/prod", "deleted"],
      ["shop-cache-prod", "deleted"],
    ]);
  });
});

describe("wrong usage ends with 2, a clear message and nothing deleted", () => {
  it.each([
    [["--delete"], "--delete wants --exclusive"],
    [["--dellete"], "--delete"],
    [["--min-age", "60"], "a duration needs its unit"],
    [["--owner", "*"], "Docker container"],
    [["--probe-processes"], "--probe-processes does not go with --pods-from"],
    [["--probe-after", "10"], "a duration needs its unit"],
    [["--kubeconfig", "x"], "--pods-from takes the place of a cluster"],
    [["--config", "/nonexistent.yaml"], "could not be read"],
    [["--backend", "https://api.pulumi.com"], "keeps its locks itself"],
    [["--backend", "ftp://x"], "there is no backend"],
    [["--backend", "state"], "is no backend URL"],
    [["--backend", "file:///srv?unknown=1"], "no parameter"],
    [["--backend", "azblob://state/.pulumi/locks/organization/shop/prod/1.json"], "URL of a lock"],
  ])("%j", async (words, message) => {
    const key = workspace.addLock("iac-runner-gone");
    const { exitCode, stderr, stdout } = await sweep(...words);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(existsSync(workspace.path(key))).toBe(true);
  });

  it("a snapshot without a stated time is good for a report only", async () => {
    const key = workspace.addLock("iac-runner-gone");
    const { exitCode, stderr } = await runCommand([
      "sweep",
      "--backend",
      workspace.backend,
      "--pods-from",
      workspace.snapshot,
      "--owner",
      "iac-runner-*",
      "--delete",
      "--exclusive",
    ]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("--pods-taken-at");
    expect(existsSync(workspace.path(key))).toBe(true);
  });

  it("P7: no password of a URL is printed", async () => {
    const { stderr, exitCode } = await runCommand(["sweep", "--backend", "foo://user:hunter2@host/db?token=hunter3", "--pods-from", workspace.snapshot]);
    expect(exitCode).toBe(2);
    expect(stderr).not.toMatch(/hunter[23]/);
  });
});

describe("P1: a --no- flag that is absent leaves variable and file their say", () => {
  it.each<readonly [what: string, words: readonly string[], env: Readonly<Record<string, string>>, verdict: string]>([
    ["neither", [], {}, "stale"],
    ["the flag", ["--no-builtin-owners"], {}, "foreign"],
    ["the variable", [], { PULUMI_LOCK_JANITOR_BUILTIN_OWNERS: "false" }, "foreign"],
    ["the file", ["--config", "config.yaml"], {}, "foreign"],
    ["the variable against the file", ["--config", "config.yaml"], { PULUMI_LOCK_JANITOR_BUILTIN_OWNERS: "true" }, "stale"],
  ])("%s: %s", async (_what, words, env, verdict) => {
    workspace.addLock("shop-workspace-0");
    workspace.addConfig({ builtinOwners: false });
    const base = workspace.sweepWords("--require-stack=no", "--output", "json");
    const { stdout } = await runCommand([...base, ...words], { env, cwd: workspace.folder });
    expect(sweepReport.parse(JSON.parse(stdout)).locks.map((lock) => lock.verdict)).toEqual([verdict]);
  });
});

describe("what cannot be read is an error, never empty", () => {
  it("a folder that is not there", async () => {
    rmSync(workspace.path(), { recursive: true });
    expect(await sweep()).toMatchObject({ exitCode: 1, stdout: expect.stringContaining("there is no such folder") });
  });

  it("a truncated snapshot", async () => {
    writeFileSync(workspace.snapshot, '{"kind":"List","items":[');
    workspace.addLock("iac-runner-gone");
    const { exitCode, stderr } = await sweep("--delete", "--exclusive");
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining("pods.json") });
  });

  it("one backend of two: the other is swept, the whole fails", async () => {
    workspace.addLock("iac-runner-gone");
    const report = await sweepToJson("--backend", "file:///nonexistent/folder");
    expect(report.exitCode).toBe(1);
    expect(report.backends.map(({ error }) => error?.code)).toEqual([undefined, "backend-missing"]);
    expect(report.summary.wouldRemove).toBe(1);
  });
});

describe("exit codes and outputs", () => {
  it("--fail-on stale gives 5 in a dry run, 0 once they are removed", async () => {
    workspace.addLock("iac-runner-gone");
    expect((await sweep("--fail-on", "stale")).exitCode).toBe(5);
    expect((await sweep("--fail-on", "stale", "--delete", "--exclusive")).exitCode).toBe(0);
  });

  it.each([
    [[], 3],
    [["--fail-on", "none"], 0],
    [["--fail-on", "undetermined"], 0],
    [["--fail-on", "stale,unreadable"], 3],
  ])("an unreadable lock with %j gives %i", async (words, code) => {
    workspace.addLock("x", { body: "{" });
    expect((await sweep(...words)).exitCode).toBe(code);
  });

  it("the valve gives 4, in a dry run too", async () => {
    workspace.addLock("iac-runner-a");
    workspace.addLock("iac-runner-b");
    expect(await sweep("--max-deletions", "1")).toMatchObject({ exitCode: 4, stdout: expect.stringContaining("--max-deletions 2") });
  });

  it("writes several outputs at once, plain where there is no terminal", async () => {
    workspace.addLock("iac-runner-gone");
    const file = join(workspace.folder, "report.json");
    const { stdout } = await sweep("--output", "table", "--output", `json=${file}`);
    // oxlint-disable-next-line eslint/no-control-regex -- that is what must not be there.
    expect(stdout).not.toMatch(/\u001b/);
    expect(sweepReport.parse(JSON.parse(readFileSync(file, "utf8"))).summary.stale).toBe(1);
  });

  it("--verbose shows the rules that were tried", async () => {
    workspace.addLock("iac-runner-gone");
    expect((await sweep("--verbose")).stdout).toContain("=> rule 5 candidates");
  });

  it("--version and --help answer with 0; no command, or an unknown one, with 2", async () => {
    expect(await runCommand(["--version"])).toMatchObject({ exitCode: 0, stdout: "0.1.0\n" });
    expect(await runCommand(["sweep", "--help"])).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("--pods-taken-at") });
    expect((await runCommand([])).exitCode).toBe(2);
    expect((await runCommand(["sweeep"])).exitCode).toBe(2);
  });

  it("a lock whose owner is hostile text is shown escaped", async () => {
    workspace.addLock("x", { body: JSON.stringify({ pid: 1, username: "\u001b[2J", hostname: "a\u202eb\nc", timestamp: workspace.ago(60) }) });
    const { stdout } = await sweep();
    expect(stdout).toContain("\\u{1b}[2J@a\\u{202e}b\\u{a}c");
  });
});

describe("check", () => {
  const check = async (...words: readonly string[]): Promise<CommandResult> =>
    await runCommand(["check", "--backend", workspace.backend, "--pods-from", workspace.snapshot, ...words]);

  it("P4: tells rights, proofs and which patterns match living pods, and writes nothing", async () => {
    workspace.addLock("shop-workspace-0");
    workspace.addPod("shop-workspace-0");
    workspace.addStack("shop", "organization/shop/prod");
    const before = photograph();
    const { exitCode, stdout } = await check();
    expect(exitCode).toBe(0);
    for (const line of [
      /ok +list locks +1 found/,
      /ok +read locks/,
      /ok +remove locks/,
      /ok +write records/,
      /ok +list nodes +1 seen/,
      /ok +proof pod-not-found/,
      /ok +--owner \*-workspace-0 +matches 1 pod/,
      /Everything/,
    ])
      expect(stdout).toMatch(line);
    expect(photograph()).toEqual(before);
  });

  it("names what is missing, and fails", async () => {
    rmSync(workspace.path(), { recursive: true });
    const { exitCode, stdout } = await check("--output", "json");
    const report = checkReport.parse(JSON.parse(stdout));
    expect({ exitCode, denied: report.items.filter(({ status }) => status === "denied").map(({ name }) => name) }).toEqual({ exitCode: 1, denied: ["open"] });
  });
});

it("an empty backend is no error", async () => {
  mkdirSync(workspace.path(), { recursive: true });
  expect(await sweep()).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("no locks") });
});

describe("a sweep of some locks", () => {
  it.each([
    ["--project", "shop"],
    ["--stack", "organization/shop/dev"],
    ["--stack", "dev"],
    ["--lock", "lock-of-iac-runner-a"],
  ])("%s %s: only those are read, judged and removed, and the others are counted", async (flag, value) => {
    const wanted = workspace.addLock("iac-runner-a", { stack: "organization/shop/dev" });
    const others = [workspace.addLock("iac-runner-b", { stack: "organization/other/prod" }), workspace.addLock("iac-runner-c", { stack: "legacy" })];
    const report = await sweepToJson("--delete", "--exclusive", flag, value);
    expect(report.locks.map(({ key, action }) => [key, action])).toEqual([[wanted, "deleted"]]);
    expect(others.map((key) => existsSync(workspace.path(key)))).toEqual([true, true]);
    expect(report.warnings).toEqual(["2 other locks there were not looked at"]);
  });

  it("project and stack in one is organization and stack to Pulumi: refused", async () => {
    const { exitCode, stderr } = await sweep("--stack", "shop/prod");
    expect({ exitCode, says: stderr.includes("--project") }).toEqual({ exitCode: 2, says: true });
  });
});

describe("C19 an old lock of a living pod", () => {
  it("is held, and told about", async () => {
    workspace.addPod("iac-runner-here");
    workspace.addLock("iac-runner-here", { minutes: 4_000, stack: "organization/ops/team-otter" });
    const report = await sweepToJson();
    expect(report.locks.map(({ verdict }) => verdict)).toEqual(["held"]);
    expect(report.warnings).toEqual([
      "1 lock held for longer than 2 h, whose update may hang or have died unseen: organization/ops/team-otter by iac-runner-here for 2 d 18 h",
    ]);
  });

  it.each([
    ["2h", "--warn-held-after", "1000h"],
    ["a younger one", "--warn-held-after", "2h"],
  ])("is not, where it is younger than asked for: %s", async (what, ...words) => {
    workspace.addPod("iac-runner-here");
    workspace.addLock("iac-runner-here", { minutes: what === "2h" ? 4_000 : 100 });
    expect((await sweepToJson(...words)).warnings).toEqual([]);
  });
});
