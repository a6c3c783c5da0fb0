import { existsSync, readdirSync, readFileSync } from "node:fs";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { auditRecord, type AuditRecord } from "../../src/core/record.ts";
import { sweepReport, type SweepReport } from "../../src/core/report.ts";
import { runCommand, type CommandResult } from "./command.ts";
import { runInProcess } from "./in-process.ts";
import { Workspace } from "./snapshot-files.ts";

let workspace: Workspace;
beforeEach(() => {
  workspace = new Workspace();
});
afterEach(() => workspace.remove());

/** `unlock` with everything that a removal wants stated, unless told otherwise. */
async function unlock(lock: string, ...words: readonly string[]): Promise<CommandResult> {
  const [, ...parts] = workspace.sweepWords(...words);
  return await runCommand(["unlock", lock, ...parts]);
}

const STATED = ["--yes", "--exclusive", "--output", "json"] as const;

function readReport({ stdout, stderr }: CommandResult): SweepReport {
  if (stdout === "") throw new Error(`no report: ${stderr}`);
  return sweepReport.parse(JSON.parse(stdout));
}

function readRecords(): readonly AuditRecord[] {
  const folder = workspace.path(".pulumi-lock-janitor/audit");
  return existsSync(folder)
    ? readdirSync(folder)
        .toSorted()
        .map((name) => auditRecord.parse(JSON.parse(readFileSync(`${folder}/${name}`, "utf8"))))
    : [];
}

describe("unlock removes a stale lock and no other", () => {
  it.each([
    ["its id", (key: string) => key.slice(key.lastIndexOf("/") + 1).replace(".json", "")],
    ["its key", (key: string) => key],
    ["its URL", (key: string) => `${workspace.backend}/${key}?no_tmp_dir=true`],
    [
      "the line that Pulumi printed",
      (key: string) => `  ${workspace.backend}/${key}?no_tmp_dir=true: created by pulumi@iac-runner-gone (pid 7) at ${workspace.ago(60)}`,
    ],
  ])("named by %s", async (_what, nameOf) => {
    const key = workspace.addLock("iac-runner-gone");
    const other = workspace.addLock("iac-runner-gone-too");
    const result = await unlock(nameOf(key), ...STATED);
    expect(result.exitCode, result.stderr).toBe(0);
    const report = readReport(result);
    expect(report.locks.map((lock) => [lock.key, lock.verdict, lock.action])).toEqual([[key, "stale", "deleted"]]);
    expect([existsSync(workspace.path(key)), existsSync(workspace.path(other))]).toEqual([false, true]);
    expect(readRecords().map(({ event, key: recorded }) => `${event} ${recorded}`)).toEqual([`intent ${key}`, `outcome ${key}`]);
  });
});

describe("unlock refuses, and nothing is removed", () => {
  it.each([
    ["held", "iac-runner-here"],
    ["foreign", "laptop.local"],
  ])("a %s lock: exit 4, and --force is named", async (verdict, hostname) => {
    workspace.addPod("iac-runner-here");
    const key = workspace.addLock(hostname);
    const result = await unlock(key, ...STATED);
    expect(result.exitCode).toBe(4);
    const report = readReport(result);
    expect(report.locks.map((lock) => [lock.verdict, lock.action])).toEqual([[verdict, "keep"]]);
    expect(report.refusals.join()).toContain("--force");
    expect(existsSync(workspace.path(key))).toBe(true);
    expect(readRecords()).toEqual([]);
  });

  it("a lock that another owner has taken since the line was printed: exit 4", async () => {
    const key = workspace.addLock("iac-runner-gone");
    const { exitCode, stderr } = await unlock(`${workspace.backend}/${key}: created by pulumi@iac-runner-other (pid 9) at ${workspace.ago(60)}`, ...STATED);
    expect({ exitCode, there: existsSync(workspace.path(key)) }).toEqual({ exitCode: 4, there: true });
    expect(stderr).toContain("iac-runner-gone");
  });

  it.each<readonly [what: string, exitCode: number, lock: string, words: readonly string[], says: string]>([
    ["a lock that is not there", 1, "no-such-lock", STATED, "there is no lock"],
    ["what names no lock", 2, "two words", STATED, "no lock's id"],
    ["without --yes where nobody can be asked", 2, "lock-of-iac-runner-gone", ["--exclusive"], "--yes"],
    ["without --exclusive where nobody can be asked", 2, "lock-of-iac-runner-gone", ["--yes"], "--exclusive"],
    ["an unknown flag", 2, "lock-of-iac-runner-gone", ["--delete"], "unknown option"],
  ])("%s: exit %i", async (_what, expected, lock, words, says) => {
    const key = workspace.addLock("iac-runner-gone");
    const { exitCode, stderr } = await unlock(lock, ...words);
    expect({ exitCode, there: existsSync(workspace.path(key)) }).toEqual({ exitCode: expected, there: true });
    expect(stderr).toContain(says);
  });

  it("an id that two stacks have: exit 2, and both are named", async () => {
    workspace.addLock("iac-runner-gone", { id: "manual", stack: "organization/shop/dev" });
    workspace.addLock("iac-runner-gone", { id: "manual", stack: "organization/shop/prod" });
    const { exitCode, stderr } = await unlock("manual", ...STATED);
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/shop\/dev\/manual.*shop\/prod\/manual/);
  });
});

describe("unlock --force", () => {
  it.each([
    ["held", "iac-runner-here", ""],
    ["foreign", "laptop.local", ""],
    ["unreadable", "x", '{"pid":61,"username":"pulumi","hostn'],
  ])("P1: removes a %s lock on a person's word, and the record says so", async (verdict, hostname, body) => {
    workspace.addPod("iac-runner-here");
    const key = workspace.addLock(hostname, { body });
    const before = readFileSync(workspace.path(key));
    const result = await unlock(key, "--force", "--yes", "--output", "json");
    expect(result.exitCode, result.stderr).toBe(0);
    const report = readReport(result);
    expect(report.locks.map((lock) => [lock.verdict, lock.action])).toEqual([[verdict, "deleted"]]);
    expect(report.overrides[0]).toEqual({ option: "--force", value: "" });
    expect(existsSync(workspace.path(key))).toBe(false);
    const [intent, outcome] = readRecords();
    expect({ verdict: intent?.verdict, overrides: intent?.overrides[0]?.option, action: outcome?.action }).toEqual({
      verdict,
      overrides: "--force",
      action: "deleted",
    });
    expect(Buffer.from(intent?.body ?? "", "base64")).toEqual(before);
  });

  it("what was removed so can be put back", async () => {
    const key = workspace.addLock("laptop.local");
    const before = readFileSync(workspace.path(key), "utf8");
    const [lock] = readReport(await unlock(key, "--force", "--yes", "--output", "json")).locks;
    const { exitCode, stderr } = await runCommand(["restore", lock?.record ?? "", "--backend", workspace.backend]);
    expect(exitCode, stderr).toBe(0);
    expect(readFileSync(workspace.path(key), "utf8")).toBe(before);
  });

  it("needs no cluster", async () => {
    const key = workspace.addLock("laptop.local");
    const { exitCode, stderr } = await runCommand(["unlock", key, "--backend", workspace.backend, "--force", "--yes"]);
    expect({ exitCode, stderr, there: existsSync(workspace.path(key)) }).toEqual({ exitCode: 0, stderr: "", there: false });
  });

  it("is a flag only", async () => {
    const key = workspace.addLock("laptop.local");
    const { exitCode } = await runCommand(["unlock", key, "--backend", workspace.backend, "--yes"], { env: { PULUMI_LOCK_JANITOR_FORCE: "true" } });
    expect({ exitCode, there: existsSync(workspace.path(key)) }).toEqual({ exitCode: 2, there: true });
  });
});

it("on a terminal too, a file of unknown age is good for a report only: exit 2, and nothing is asked", async () => {
  const key = workspace.addLock("iac-runner-gone");
  const words = ["unlock", key, "--backend", workspace.backend, "--pods-from", workspace.snapshot, "--owner", "iac-runner-*"];
  const { exitCode, stderr } = await runInProcess(words, { interactive: true, stopAfter: 3_000 });
  expect({ exitCode, says: stderr.includes("--pods-taken-at"), there: existsSync(workspace.path(key)) }).toEqual({ exitCode: 2, says: true, there: true });
});
