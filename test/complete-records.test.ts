import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { describe, expect, it } from "vitest";

import { check } from "../src/check.ts";
import { JanitorError } from "../src/errors.ts";
import { openFileAuditLog } from "../src/output/file-audit-log.ts";
import { onlyLock, RULES, SweepWorld } from "./sweep-world.ts";

/** A world in which runs have ended before they wrote what became of two locks. */
async function leaveTwoOpen(): Promise<{ readonly world: SweepWorld; readonly first: string; readonly second: string }> {
  const world = new SweepWorld();
  const ids: string[] = [];
  for (const hostname of ["iac-runner-a", "iac-runner-b"]) {
    world.addLock(hostname);
    ids.push(onlyLock(await world.sweep()).record ?? "");
  }
  const [first = "", second = ""] = ids;
  for (const id of ids) world.backend.recordObjects.delete(`${id}.outcome.json`);
  return { world, first, second };
}

function namesOf(world: SweepWorld, kind: string): readonly string[] {
  return Array.from(world.backend.recordObjects.keys()).filter((name) => name.endsWith(`.${kind}.json`));
}

describe("a record that cannot be read", () => {
  it.each<readonly [what: string, spoil: (world: SweepWorld, name: string) => void, says: string]>([
    ["of a later version", (world, name) => void world.backend.recordObjects.set(name, Buffer.from('{"version":2}')), "which a later janitor wrote"],
    ["cut off", (world, name) => void world.backend.recordObjects.set(name, Buffer.from('{"version":1,')), "is no record"],
    ["closed to us", (world, name) => denyReading(world, name), "may not read"],
  ])("%s is told once with its place, and stops no other", async (_what, spoil, says) => {
    const { world, first, second } = await leaveTwoOpen();
    spoil(world, `${first}.intent.json`);
    world.addLock("iac-runner-c");
    const report = await world.sweep({}, { runId: "run-2" });
    expect(report.warnings.filter((warning) => warning.includes(`memory/audit/${first}.intent.json`))).toEqual([expect.stringContaining(says)]);
    expect(namesOf(world, "completed")).toEqual([`${second}.completed.json`]);
    expect(onlyLock(report).action).toBe("deleted");
  });

  it("vouches for no lock that a run had moved aside, and keeps no other from being recovered", async () => {
    const { world, first, second } = await leaveTwoOpen();
    const intents = (await world.readRecords()).map(({ intent }) => intent);
    world.backend.recordObjects.set(`${first}.intent.json`, Buffer.from('{"version":2}'));
    const asked: (readonly [id: string, hasIntent: boolean])[] = [];
    const backend = Object.assign(world.backend, {
      recover: (hasIntent: (key: string, version: string) => boolean) => {
        asked.push(...intents.map(({ id, key, lockVersion }) => [id, hasIntent(key, lockVersion)] as const));
        return Promise.resolve([]);
      },
    });
    await world.sweep({}, { backends: [{ kind: "open", backend, audit: world.audit }] });
    expect(new Map(asked)).toEqual(
      new Map([
        [first, false],
        [second, true],
      ]),
    );
  });

  it("is told by check as unknown, beside how many are open", async () => {
    const { world, first } = await leaveTwoOpen();
    world.backend.recordObjects.set(`${first}.intent.json`, Buffer.from('{"version":2}'));
    const backends = [{ name: "memory", backend: world.backend, audit: world.audit }];
    const { items } = await check({ backends, clusters: [], owners: RULES.owners, signal: world.stop.signal });
    expect(items.find(({ name }) => name === "list records")).toMatchObject({
      status: "unknown",
      message: "1 without an outcome in memory/audit/, and 1 that cannot be read: 'audit list' names them",
    });
  });

  it("in a file leaves the removals of others possible", async () => {
    const folder = mkdtempSync(join(tmpdir(), "audit-log-"));
    const path = join(folder, "audit.ndjson");
    appendFileSync(path, '{"version":2}\n');
    const world = new SweepWorld();
    world.addLock("iac-runner-a");
    const audit = openFileAuditLog(path, world.backend.identity);
    const report = await world.sweep({}, { backends: [{ kind: "open", backend: world.backend, audit }] });
    expect(onlyLock(report)).toMatchObject({ action: "deleted" });
    expect(report.warnings).toEqual([expect.stringContaining(`${path}, line 1, is a record of version 2`)]);
    rmSync(folder, { recursive: true });
  });
});

function denyReading(world: SweepWorld, name: string): void {
  world.backend.before = (call) => {
    if (call === `read-record ${name}`) throw new JanitorError("backend-denied", "memory: may not read");
  };
}
