import { readdirSync, readFileSync, existsSync } from "node:fs";
import { join, resolve } from "node:path";

import pLimit from "p-limit";
import { expect, it } from "vitest";

import { sweepReport } from "../../src/core/report.ts";
import { parseRecord, sortHistories } from "../../src/output/audit-log.ts";
import { runCommand, type CommandResult } from "./command.ts";
import { Workspace } from "./snapshot-files.ts";

const PRELOAD = resolve("test/cli/kill-at-step.ts");

async function sweepWith(workspace: Workspace, env: Readonly<Record<string, string>>): Promise<CommandResult> {
  return await runCommand(workspace.sweepWords("--delete", "--exclusive"), { env, nodeArguments: ["--import", PRELOAD] });
}

function readAudit(workspace: Workspace): ReturnType<typeof sortHistories> {
  const folder = workspace.path(".pulumi-lock-janitor/audit");
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];
  return sortHistories(names.map((name) => parseRecord(readFileSync(join(folder, name), "utf8"), name)));
}

function listAside(workspace: Workspace): readonly string[] {
  const folder = workspace.path(".pulumi-lock-janitor/aside");
  return existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) => (entry.isFile() ? [entry.name] : [])) : [];
}

async function countSteps(): Promise<number> {
  const workspace = new Workspace();
  workspace.addLock("iac-runner-a");
  const file = join(workspace.folder, "steps");
  await sweepWith(workspace, { COUNT_STEPS_TO: file });
  const steps = Number(readFileSync(file, "utf8"));
  workspace.remove();
  return steps;
}

/** Kills a removal before one of its steps, checks what is left, and lets the next run end it. */
async function crashAt(step: number): Promise<void> {
  const workspace = new Workspace();
  const key = workspace.addLock("iac-runner-a");
  const body = readFileSync(workspace.path(key));
  const crashed = await sweepWith(workspace, { KILL_AT_STEP: String(step) });
  expect(crashed.signal, `step ${step}`).toBe("SIGKILL");

  // Where the lock is gone, a record must hold its body.
  const bodies = existsSync(workspace.path(key))
    ? [readFileSync(workspace.path(key))]
    : readAudit(workspace).map(({ intent }) => Buffer.from(intent.body, "base64"));
  expect(bodies, `step ${step}: the lock, or its record`).toEqual([body]);

  const next = await sweepWith(workspace, {});
  expect(next.exitCode, `step ${step}: ${next.stderr}`).toBe(0);
  expect(existsSync(workspace.path(key)), `step ${step}`).toBe(false);
  expect(existsSync(workspace.path(`${key}.attrs`)), `step ${step}: its attributes`).toBe(false);
  expect(listAside(workspace), `step ${step}`).toEqual([]);
  const histories = readAudit(workspace);
  expect(
    histories.every(({ outcome }) => outcome !== undefined),
    `step ${step}: every record has its outcome`,
  ).toBe(true);
  const removals = histories.filter(({ outcome }) => outcome?.action === "deleted" || outcome?.action === "deleted-unconfirmed");
  expect(removals, `step ${step}: one removal, one record of it`).toHaveLength(1);
  workspace.remove();
}

it("P6: kill -9 before every step of a removal on file:// leaves the lock, or its record and no lock; the next run ends clean", async () => {
  const steps = await countSteps();
  process.stdout.write(`a removal on file:// has ${steps} steps, each of which was a place to die\n`);
  expect(steps).toBeGreaterThan(15);
  const limit = pLimit(2);
  await Promise.all(Array.from({ length: steps }, (_, index) => limit(() => crashAt(index + 1))));
}, 120_000);

it.each(["SIGTERM", "SIGINT"] as const)(
  "%s in the middle of many removals: those in hand are finished, no other is begun, and the records say so",
  async (signal) => {
    const workspace = new Workspace();
    for (let number = 0; number < 300; number += 1) workspace.addLock(`iac-runner-${number}`);
    const stop = new AbortController();
    const audit = workspace.path(".pulumi-lock-janitor/audit");
    const timer = setInterval(() => {
      if (existsSync(audit) && readdirSync(audit).some((name) => name.endsWith(".outcome.json"))) stop.abort();
    }, 1);
    const { exitCode, stdout } = await runCommand(workspace.sweepWords("--delete", "--exclusive", "--max-deletions", "500", "--output", "json"), {
      stop: { when: stop.signal, signal },
    });
    clearInterval(timer);
    const report = sweepReport.parse(JSON.parse(stdout));
    expect(exitCode).toBe(3);
    expect(report.summary.removed).toBeGreaterThan(0);
    expect(report.summary.removed).toBeLessThan(300);
    const histories = readAudit(workspace);
    expect(histories.map(({ outcome }) => outcome?.action)).toEqual(Array.from({ length: report.summary.removed }, () => "deleted"));
    expect(listAside(workspace)).toEqual([]);
    expect(report.locks.filter(({ action, key }) => (action === "deleted") === existsSync(workspace.path(key)))).toEqual([]);
    workspace.remove();
  },
  60_000,
);
