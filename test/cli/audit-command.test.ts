import { appendFileSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { auditReport, type AuditReport } from "../../src/core/audit-entry.ts";
import { runCommand, type CommandResult } from "./command.ts";
import { Workspace } from "./snapshot-files.ts";

let workspace: Workspace;
beforeEach(() => {
  workspace = new Workspace();
});
afterEach(() => workspace.remove());

async function audit(...words: readonly string[]): Promise<CommandResult> {
  return await runCommand(["audit", ...words]);
}

function readList({ stdout, stderr }: CommandResult): AuditReport {
  if (stdout === "") throw new Error(`no report: ${stderr}`);
  return auditReport.parse(JSON.parse(stdout));
}

/** Every file of the workspace with its content and time. */
function takeStock(): readonly string[] {
  return readdirSync(workspace.folder, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
    .map((path) => `${path} ${statSync(path).mtimeMs} ${statSync(path).isFile() ? readFileSync(path, "utf8") : ""}`);
}

describe.each([
  ["the backend", (): readonly string[] => ["--backend", workspace.backend], (): readonly string[] => []],
  [
    "a file",
    (): readonly string[] => ["--audit-log", join(workspace.folder, "removals.ndjson")],
    (): readonly string[] => ["--audit-log", join(workspace.folder, "removals.ndjson")],
  ],
])("records in %s", (_where, source, sweepWords) => {
  it("are listed and shown, and nothing is written", async () => {
    workspace.addLock("iac-runner-gone");
    workspace.addLock("iac-runner-gone-too", { stack: "organization/dns/dev" });
    const swept = await runCommand(workspace.sweepWords("--delete", "--exclusive", ...sweepWords()));
    expect(swept.exitCode, swept.stderr).toBe(0);
    const before = takeStock();
    const listed = readList(await audit("list", ...source(), "--stack", "organization/dns/dev", "--since", "1h", "--output", "json"));
    expect(listed).toMatchObject({ exitCode: 0, removals: [{ stack: "organization/dns/dev", outcome: "deleted" }] });
    const id = listed.removals[0]?.id ?? "";
    const shown = await audit("show", id, ...source());
    expect([shown.exitCode, shown.stderr]).toEqual([0, ""]);
    expect(shown.stdout).toContain(`restore ${id} puts it back`);
    expect(JSON.parse((await audit("show", id, ...source(), "--output", "json")).stdout)).toMatchObject({
      version: 1,
      id,
      intent: { id },
      outcome: { action: "deleted" },
    });
    expect((await audit("list", ...source())).stdout).toContain("2 removals.");
    expect(takeStock()).toEqual(before);
  });
});

describe("what goes wrong is said", () => {
  it("a line of the file that a crash has cut: it is told, and the others are shown", async () => {
    const file = join(workspace.folder, "removals.ndjson");
    workspace.addLock("iac-runner-gone");
    await runCommand(workspace.sweepWords("--delete", "--exclusive", "--audit-log", file));
    appendFileSync(file, '{"version":1,"event":"outc');
    const { exitCode, stdout } = await audit("list", "--audit-log", file);
    expect(exitCode).toBe(3);
    expect(stdout).toMatch(/unreadable: .*line 3, is no record/);
    expect(stdout).toContain("1 removal.");
  });

  it.each<readonly [what: string, exitCode: number, words: readonly string[], says: string]>([
    ["no backend", 2, ["list"], "no backend was given"],
    ["a file that is not there", 1, ["list", "--audit-log", "/nonexistent/x.ndjson"], "could not be read"],
    ["a record that is not there", 1, ["show", "nothing"], "there is no record"],
    ["an id that leads out of the folder", 1, ["show", "../../secret"], "there is no record"],
    ["another output", 2, ["list", "--output", "markdown"], "--output json"],
    ["no time", 2, ["list", "--since", "yesterday"], "RFC 3339"],
  ])("%s: exit %i", async (what, expected, words, says) => {
    const backend = what === "no backend" || words.includes("--audit-log") ? [] : ["--backend", workspace.backend];
    const { exitCode, stdout, stderr } = await audit(...words, ...backend);
    expect(exitCode, stderr).toBe(expected);
    expect(`${stdout}${stderr}`).toContain(says);
  });
});
