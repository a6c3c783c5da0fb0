import { readdirSync, readFileSync } from "node:fs";

import { beforeEach, describe, expect, it } from "vitest";

import { readAuditQuestion } from "../src/audit-filter.ts";
import { findInLogs, listRemovals } from "../src/audit.ts";
import type { AuditReport } from "../src/core/audit-entry.ts";
import { MINUTE } from "../src/core/time.ts";
import { JanitorError } from "../src/errors.ts";
import { openBackendAuditLog } from "../src/output/backend-audit-log.ts";
import { findRemoval, restoreLock } from "../src/restore.ts";
import { MemoryBackend } from "./memory-backend.ts";
import { SweepWorld } from "./sweep-world.ts";

const never = new AbortController().signal;

let world: SweepWorld;
beforeEach(() => {
  world = new SweepWorld();
});

/** Removes a lock and lets a minute pass. */
async function removeOne(hostname: string, stack = "organization/shop/prod"): Promise<string> {
  world.addLock(hostname, { stack });
  const report = await world.sweep({}, { runId: `run-of-${hostname}` });
  world.now += MINUTE;
  return report.locks.find(({ owner }) => owner?.hostname === hostname)?.record ?? "";
}

async function list(flags: Readonly<Record<string, unknown>> = {}, selection = {}): Promise<AuditReport> {
  const { filter, limit } = readAuditQuestion(flags, { projects: [], stacks: [], ...selection }, world.now);
  return await listRemovals([{ name: "state", log: world.audit }], filter, limit, never);
}

describe("audit list", () => {
  it("tells the removals, the newest first, and writes nothing", async () => {
    const ids = [await removeOne("iac-runner-a"), await removeOne("iac-runner-b"), await removeOne("iac-runner-c")];
    const { length } = world.backend.calls;
    const report = await list();
    expect(report).toMatchObject({ exitCode: 0, more: false, unreadable: [], errors: [] });
    expect(report.removals.map(({ id, outcome }) => [id, outcome])).toEqual(ids.toReversed().map((id) => [id, "deleted"]));
    expect(world.backend.calls.slice(length).filter((call) => !/^(list-records|read-record)/.test(call))).toEqual([]);
  });

  it.each<readonly [what: string, flags: Readonly<Record<string, unknown>>, selection: object, hosts: readonly string[]]>([
    ["a stack", {}, { stacks: ["organization/shop/dev"] }, ["iac-runner-b"]],
    ["a project", {}, { projects: ["dns"] }, ["iac-runner-c"]],
    ["a run", { runs: ["run-of-iac-runner-a"] }, {}, ["iac-runner-a"]],
    ["two runs", { runs: ["run-of-iac-runner-a", "run-of-iac-runner-c"] }, {}, ["iac-runner-c", "iac-runner-a"]],
    ["a time since", { since: "90s" }, {}, ["iac-runner-c"]],
    ["a time until", { until: "2026-03-10T12:01:30Z" }, {}, ["iac-runner-b", "iac-runner-a"]],
    ["both", { since: "2026-03-10T12:00:30Z", until: "2m" }, {}, ["iac-runner-b"]],
    ["an outcome", { outcomes: ["deleted"] }, {}, ["iac-runner-c", "iac-runner-b", "iac-runner-a"]],
    ["another outcome", { outcomes: ["failed", "open"] }, {}, []],
    ["the newest", { limit: "2" }, {}, ["iac-runner-c", "iac-runner-b"]],
  ])("asked for %s", async (_what, flags, selection, hosts) => {
    await removeOne("iac-runner-a");
    await removeOne("iac-runner-b", "organization/shop/dev");
    await removeOne("iac-runner-c", "organization/dns/prod");
    const report = await list(flags, selection);
    expect(report.removals.map(({ owner }) => owner?.hostname)).toEqual(hosts);
    expect(report.more).toBe("limit" in flags);
  });

  it("tells a removal without an outcome as open, and one that was put back as restored", async () => {
    const [open, restored] = [await removeOne("iac-runner-a"), await removeOne("iac-runner-b")];
    const remover = { runId: "run-9", janitor: { version: "0", hostname: "test" }, overrides: [], now: () => world.now };
    await restoreLock(world.backend, world.audit, await findRemoval(world.audit, restored, never), remover, never);
    world.backend.recordObjects.delete(`${open}.outcome.json`);
    expect((await list()).removals.map(({ id, outcome }) => [id, outcome])).toEqual([
      [restored, "restored"],
      [open, "open"],
    ]);
  });

  it.each<readonly [what: string, spoil: (id: string) => void, says: string]>([
    ["cut off", (id) => void world.backend.recordObjects.set(`${id}.intent.json`, Buffer.from('{"version":1,')), "is no record"],
    [
      "of a later version",
      (id) => void world.backend.recordObjects.set(`${id}.intent.json`, Buffer.from('{"version":2}')),
      "version 2, which a later janitor wrote",
    ],
    [
      "of another name",
      (id) => void world.backend.recordObjects.set("other.intent.json", world.backend.recordObjects.get(`${id}.intent.json`) ?? Buffer.from("")),
      "it holds the record",
    ],
    ["without its intent", (id) => void world.backend.recordObjects.delete(`${id}.intent.json`), "its intent is missing"],
  ])("P5: tells a record that is %s, and all others: exit 3", async (_what, spoil, says) => {
    const id = await removeOne("iac-runner-a");
    await removeOne("iac-runner-b");
    spoil(id);
    const report = await list();
    expect(report.removals.map(({ owner }) => owner?.hostname)).toContain("iac-runner-b");
    expect(report).toMatchObject({ exitCode: 3, unreadable: [{ message: expect.stringContaining(says) }] });
  });

  it("P5: a backend that cannot be listed is an error, beside what another one has: exit 1", async () => {
    const id = await removeOne("iac-runner-a");
    const closed = new MemoryBackend("closed");
    closed.before = () => {
      throw new JanitorError("backend-denied", "gs://closed: may not list");
    };
    const { filter, limit } = readAuditQuestion({}, { projects: [], stacks: [] }, world.now);
    const logs = [
      { name: "closed", log: openBackendAuditLog(closed.records) },
      { name: "state", log: world.audit },
    ];
    const report = await listRemovals(logs, filter, limit, never);
    expect(report).toMatchObject({ exitCode: 1, removals: [{ id }], errors: [{ backend: "closed", code: "backend-denied" }] });
    expect((await findInLogs(logs, id, never)).removals).toHaveLength(1);
    await expect(findInLogs(logs, "nothing", never)).rejects.toMatchObject({ code: "record-invalid", message: expect.stringContaining("may not list") });
  });

  it("reads thousands of records a page at a time, few at once, and no older page than it needs", async () => {
    const [id, template] = [await removeOne("iac-runner-a"), "20260101T"];
    const [intent = Buffer.from(""), outcome = Buffer.from("")] = ["intent", "outcome"].map((kind) => world.backend.recordObjects.get(`${id}.${kind}.json`));
    for (let index = 0; index < 3_000; index += 1) {
      const name = `${template}${String(index).padStart(6, "0")}Z-0-0`;
      for (const [kind, bytes] of [["intent", intent] as const, ["outcome", outcome] as const])
        world.backend.recordObjects.set(`${name}.${kind}.json`, Buffer.from(Buffer.from(bytes).toString().replaceAll(id, name)));
    }
    let [now, most] = [0, 0];
    world.backend.before = async () => {
      most = Math.max(most, ++now);
      await Promise.resolve();
      now -= 1;
    };
    world.backend.calls.length = 0;
    expect((await list({ limit: "50" })).removals).toHaveLength(50);
    expect(world.backend.calls.length).toBeLessThanOrEqual(1 + 2 * 100);
    expect((await list({ limit: "5000" })).removals).toHaveLength(3_001);
    expect(most).toBeLessThanOrEqual(16);
  });
});

describe("what is asked is checked", () => {
  it.each<readonly [Readonly<Record<string, unknown>>, string]>([
    [{ since: "yesterday" }, '--since "yesterday": this is no time'],
    [{ until: "60" }, "--until"],
    [{ outcomes: ["gone"] }, "--outcome: an outcome is one of deleted"],
    [{ limit: "0" }, "--limit"],
    [{ since: "1h", until: "2h" }, "--since is later than --until"],
  ])("%o", (flags, message) => {
    expect(() => readAuditQuestion(flags, { projects: [], stacks: [] }, world.now)).toThrow(
      expect.objectContaining({ exitCode: 2, message: expect.stringContaining(message) }),
    );
  });
});

describe("records of version 1", () => {
  const folder = "test/fixtures/records-v1";
  const [file = ""] = readdirSync(folder);
  const id = file.slice(0, file.indexOf("."));
  beforeEach(() => {
    for (const name of readdirSync(folder)) world.backend.recordObjects.set(name, readFileSync(`${folder}/${name}`));
  });

  it("are listed and found", async () => {
    expect((await list()).removals).toMatchObject([{ id, stack: "organization/network/dev", outcome: "deleted", outcomeAt: "2026-03-10T12:00:01Z" }]);
    expect((await findInLogs([{ name: "state", log: world.audit }], id, never)).removals).toMatchObject([{ id, intent: { verdict: "stale" } }]);
  });

  it("P3: put their lock back, byte for byte", async () => {
    const remover = { runId: "run-9", janitor: { version: "9", hostname: "test" }, overrides: [], now: () => world.now };
    await restoreLock(world.backend, world.audit, await findRemoval(world.audit, id, never), remover, never);
    expect(Array.from(world.backend.objects, ([key, { bytes }]) => [key, Buffer.from(bytes).toString()])).toEqual([
      [
        ".pulumi/locks/organization/network/dev/0b9f3f1e-4a44-4a3e-9d2a-9c1d5b7a2e61.json",
        '{"pid":211,"username":"pulumi","hostname":"network-dev-workspace-0","timestamp":"2026-03-10T09:02:11.482915027Z"}',
      ],
    ]);
  });
});
