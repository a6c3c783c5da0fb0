import { gzipSync, zstdCompressSync } from "node:zlib";

import { describe, expect, it } from "vitest";

import { check } from "../src/check.ts";
import type { SweepReport } from "../src/core/report.ts";
import { openBackendAuditLog } from "../src/output/backend-audit-log.ts";
import type { SweepParts, SweepSettings } from "../src/sweep.ts";
import type { AfterUnlockSettings } from "../src/tell-stacks.ts";
import { forceUnlock, unlock } from "../src/unlock.ts";
import { aStack } from "./core/builders.ts";
import { MemoryBackend } from "./memory-backend.ts";
import { MemoryCluster } from "./memory-cluster.ts";
import { onlyLock, RULES, SweepWorld } from "./sweep-world.ts";

const CHECKPOINT = ".pulumi/stacks/shop/prod.json";
const ALL: AfterUnlockSettings = { requeueStacks: true, stackEvents: true, checkPending: true };

function aCheckpoint(pending: number): Uint8Array {
  const latest = { resources: [], pending_operations: Array.from({ length: pending }, () => ({ type: "creating" })) };
  return Buffer.from(JSON.stringify({ version: 3, checkpoint: { stack: "organization/shop/prod", latest } }));
}

/** A world with one stale lock, and the Stack that it blocks. */
class BlockedWorld extends SweepWorld {
  readonly key = this.addLock("iac-runner-gone");

  constructor() {
    super();
    this.cluster.stacks = [aStack({ name: "shop", backend: "gs://state", uid: "uid-of-shop" }), aStack({ name: "other", stacks: ["organization/other/prod"] })];
  }

  async run(afterUnlock: Partial<AfterUnlockSettings> = {}, settings: Partial<SweepSettings> = {}, parts: Partial<SweepParts> = {}): Promise<SweepReport> {
    const off = { requeueStacks: false, stackEvents: false, checkPending: false };
    return await this.sweep({ afterUnlock: { ...off, ...afterUnlock }, ...settings }, parts);
  }
}

describe("--requeue-stacks and --stack-events", () => {
  it("tell the lock's Stack after the lock is gone, and no other", async () => {
    const world = new BlockedWorld();
    let there: boolean | undefined;
    world.cluster.before = (call) => {
      if (call.startsWith("requeue")) there = world.backend.objects.has(world.key);
    };
    const report = await world.run({ requeueStacks: true, stackEvents: true });
    expect(there).toBe(false);
    expect(Array.from(world.cluster.requeued.keys())).toEqual(["iac/shop"]);
    expect(world.cluster.requeued.get("iac/shop")).toMatch(/^2026-03-10T12:00:03/);
    expect(world.cluster.events).toEqual([expect.objectContaining({ stack: "iac/shop", type: "Normal", message: expect.stringContaining("iac-runner-gone") })]);
    const afterUnlock = { stacks: [{ cluster: "test", namespace: "iac", name: "shop", requeued: true, event: true }] };
    expect(onlyLock(report)).toMatchObject({ action: "deleted", afterUnlock });
    expect([report.exitCode, report.warnings]).toEqual([0, []]);
  });

  it("each for itself", async () => {
    const requeuing = new BlockedWorld();
    expect(onlyLock(await requeuing.run({ requeueStacks: true })).afterUnlock?.stacks).toEqual([
      { cluster: "test", namespace: "iac", name: "shop", requeued: true },
    ]);
    expect(requeuing.cluster.events).toEqual([]);
    const telling = new BlockedWorld();
    expect(onlyLock(await telling.run({ stackEvents: true })).afterUnlock?.stacks).toEqual([{ cluster: "test", namespace: "iac", name: "shop", event: true }]);
    expect(telling.cluster.requeued.size).toBe(0);
    const silent = new BlockedWorld();
    expect(onlyLock(await silent.run())).not.toHaveProperty("afterUnlock");
  });

  it("ask the cluster nothing that the sweep has not asked already", async () => {
    const world = new BlockedWorld();
    await world.run({ requeueStacks: true });
    expect(world.cluster.calls).toEqual(["namesakes iac-runner-gone", "observe", "namesakes iac-runner-gone", "observe", "requeue iac/shop"]);
  });

  it("a Stack of several locks is told to try again once, when all of them are gone", async () => {
    const world = new BlockedWorld();
    world.addLock("iac-runner-gone", { pid: 8 });
    let left: number | undefined;
    world.cluster.before = (call) => {
      if (call.startsWith("requeue")) left = world.backend.objects.size;
    };
    const report = await world.run({ requeueStacks: true, stackEvents: true });
    expect(world.cluster.calls.filter((call) => call.startsWith("requeue"))).toEqual(["requeue iac/shop"]);
    expect([left, world.cluster.events.length]).toEqual([0, 2]);
    expect(report.locks.map(({ afterUnlock }) => afterUnlock?.stacks[0]?.requeued)).toEqual([true, true]);
  });

  it("P4: a dry run tells nobody anything", async () => {
    const world = new BlockedWorld();
    await world.run(ALL, { delete: false });
    expect([world.cluster.requeued.size, world.cluster.events]).toEqual([0, []]);
  });

  it.each<readonly [what: string, before: (world: BlockedWorld) => void]>([
    ["vanished", (world) => world.backend.objects.clear()],
    ["changed", (world) => world.backend.put(world.key, "{}", 0n)],
    [
      "failed",
      () => {
        throw new Error("no");
      },
    ],
  ])("a lock that %s: nobody is told", async (action, before) => {
    const world = new BlockedWorld();
    world.backend.before = (call) => {
      if (call.startsWith("delete")) before(world);
    };
    expect(onlyLock(await world.run(ALL)).action).toBe(action);
    expect([world.cluster.requeued.size, world.cluster.events]).toEqual([0, []]);
  });

  it("a delete that is not confirmed: nobody is told", async () => {
    const world = new BlockedWorld();
    world.backend.deleteLock = () => Promise.resolve({ kind: "deleted-unconfirmed" });
    const report = await world.run(ALL);
    expect(onlyLock(report).action).toBe("deleted-unconfirmed");
    expect([world.cluster.requeued.size, world.cluster.events]).toEqual([0, []]);
  });

  it("what cannot be told is a warning: the lock is removed, and the exit code is that of the removal", async () => {
    const world = new BlockedWorld();
    world.cluster.tellingProblem = 'the verb "patch" on stacks.pulumi.com is not allowed (403)';
    const report = await world.run({ requeueStacks: true });
    expect(onlyLock(report)).toMatchObject({ action: "deleted", afterUnlock: { stacks: [{ requeued: false, problem: world.cluster.tellingProblem }] } });
    expect(report.warnings).toEqual([`Stack "iac/shop" could not be told of its lock's removal: ${world.cluster.tellingProblem}`]);
    expect(report.exitCode).toBe(0);
  });

  it("a cluster that throws is a warning, too", async () => {
    const world = new BlockedWorld();
    world.cluster.before = (call) => {
      if (call.startsWith("requeue")) throw new Error("socket hang up");
    };
    const report = await world.run({ requeueStacks: true });
    expect([report.exitCode, report.warnings]).toEqual([0, [expect.stringContaining("socket hang up")]]);
  });

  it("Stacks that cannot be listed are a warning", async () => {
    const world = new BlockedWorld();
    world.cluster.stacksProblem = 'the verb "list" on stacks.pulumi.com is not allowed (403)';
    const report = await world.run({ requeueStacks: true });
    expect(onlyLock(report)).toMatchObject({ action: "deleted", afterUnlock: { stacks: [] } });
    expect(report.warnings).toEqual([expect.stringContaining('the verb "list" on stacks.pulumi.com')]);
  });

  it("of very many Stacks that claim one lock only some are told", async () => {
    const world = new BlockedWorld();
    world.cluster.stacks = Array.from({ length: 50 }, (_, number) => aStack({ name: `claim-${number}` }));
    const report = await world.run({ requeueStacks: true });
    expect([world.cluster.requeued.size, report.warnings]).toEqual([20, [expect.stringContaining("50 Stacks account for one lock")]]);
  });

  it("the signal that stops a sweep does not stop what follows a removal that was made", async () => {
    const world = new BlockedWorld();
    world.backend.before = (call) => {
      if (call.startsWith("delete")) world.stop.abort();
    };
    const report = await world.run({ requeueStacks: true });
    expect([onlyLock(report).action, world.cluster.requeued.size]).toEqual(["deleted", 1]);
  });

  it("in several clusters: every Stack of every cluster", async () => {
    const world = new BlockedWorld();
    const second = new MemoryCluster("second");
    second.nodes = world.cluster.nodes;
    second.stacks = world.cluster.stacks;
    const report = await world.run({ requeueStacks: true }, {}, { clusters: [world.cluster, second] });
    expect(onlyLock(report).afterUnlock?.stacks.map(({ cluster, name }) => `${cluster} ${name}`)).toEqual(["test shop", "second shop"]);
    expect(second.requeued.size).toBe(1);
  });
});

describe("--check-pending", () => {
  it.each<readonly [what: string, statesOf: () => Readonly<Record<string, Uint8Array>>, expected: object, requeued: number]>([
    ["none", () => ({ [CHECKPOINT]: aCheckpoint(0) }), { kind: "none" }, 1],
    ["two", () => ({ [CHECKPOINT]: aCheckpoint(2) }), { kind: "some", count: 2 }, 0],
    ["none, gzip", () => ({ [`${CHECKPOINT}.gz`]: gzipSync(aCheckpoint(0)) }), { kind: "none" }, 1],
    ["two, gzip", () => ({ [`${CHECKPOINT}.gz`]: gzipSync(aCheckpoint(2)) }), { kind: "some", count: 2 }, 0],
    ["two, zstd", () => ({ [`${CHECKPOINT}.zst`]: zstdCompressSync(aCheckpoint(2)) }), { kind: "some", count: 2 }, 0],
    [
      "none in one form, two in the other",
      () => ({ [CHECKPOINT]: aCheckpoint(0), [`${CHECKPOINT}.gz`]: gzipSync(aCheckpoint(2)) }),
      { kind: "some", count: 2 },
      0,
    ],
    ["no checkpoint", () => ({}), { kind: "unknown", problem: "it has no checkpoint" }, 0],
    [
      "a gzip that is cut off",
      () => ({ [CHECKPOINT]: gzipSync(aCheckpoint(0)).subarray(0, 30) }),
      { kind: "unknown", problem: expect.stringContaining("cut off") },
      0,
    ],
    [
      "a gzip bomb",
      () => ({ [CHECKPOINT]: gzipSync(Buffer.alloc(64 * 1_024 * 1_024)) }),
      { kind: "unknown", problem: expect.stringContaining("larger than the 32 MiB") },
      0,
    ],
    [
      "a zstd bomb",
      () => ({ [CHECKPOINT]: zstdCompressSync(Buffer.alloc(64 * 1_024 * 1_024)) }),
      { kind: "unknown", problem: expect.stringContaining("larger than") },
      0,
    ],
    ["too large", () => ({ [CHECKPOINT]: Buffer.alloc(33 * 1_024 * 1_024, " ") }), { kind: "unknown", problem: expect.stringContaining("larger than") }, 0],
    ["no text", () => ({ [CHECKPOINT]: Buffer.from([0x7b, 0xff, 0xfe]) }), { kind: "unknown", problem: expect.stringContaining("no text") }, 0],
  ])("%s", async (_what, statesOf, expected, requeued) => {
    const world = new BlockedWorld();
    for (const [key, bytes] of Object.entries(statesOf())) world.backend.states.set(key, bytes);
    const report = await world.run(ALL);
    expect(onlyLock(report)).toMatchObject({
      action: "deleted",
      pendingOperations: expected,
      afterUnlock: { stacks: [{ requeued: requeued === 1, event: true }] },
    });
    expect([world.cluster.requeued.size, report.exitCode, report.warnings.length]).toEqual([requeued, 0, requeued === 1 ? 0 : 1]);
  });

  it("a denied checkpoint is not known, and the lock is removed all the same", async () => {
    const world = new BlockedWorld();
    world.backend.before = (call) => {
      if (call.startsWith("state")) throw new Error("403");
    };
    expect(onlyLock(await world.run(ALL))).toMatchObject({ action: "deleted", pendingOperations: { kind: "unknown", problem: "403" } });
    expect(world.cluster.requeued.size).toBe(0);
  });

  it("reads the checkpoints of stale locks alone, before anybody is asked, in a dry run too", async () => {
    const world = new BlockedWorld();
    world.addHolder("iac-runner-here");
    world.addLock("iac-runner-here", { stack: "organization/held/prod" });
    world.backend.states.set(CHECKPOINT, aCheckpoint(3));
    let plan: SweepReport | undefined;
    const confirm: SweepParts["confirm"] = (asked) => {
      plan = asked;
      return Promise.resolve({ kind: "no" });
    };
    await world.run({ checkPending: true }, {}, { confirm });
    expect(plan?.warnings).toEqual([expect.stringContaining("pending operations")]);
    const report = await world.run({ checkPending: true }, { delete: false });
    expect(report.locks.map(({ pendingOperations }) => pendingOperations)).toEqual([undefined, { kind: "some", count: 3 }]);
    expect(world.backend.calls.filter((call) => call.startsWith("state")).every((call) => call.includes("shop/prod"))).toBe(true);
  });

  it("without the option no checkpoint is read", async () => {
    const world = new BlockedWorld();
    await world.run({ requeueStacks: true, stackEvents: true });
    expect(world.backend.calls.filter((call) => call.startsWith("state"))).toEqual([]);
  });

  it("a Stack one of whose locks has pending operations is not told to try again", async () => {
    const world = new BlockedWorld();
    const second = new MemoryBackend("second");
    second.put(world.key, world.backend.objects.get(world.key)?.bytes ?? "", 0n);
    second.states.set(CHECKPOINT, aCheckpoint(1));
    world.backend.states.set(CHECKPOINT, aCheckpoint(0));
    world.cluster.stacks = [aStack({ name: "anywhere" })];
    const backends = [world.backend, second].map((backend) => ({ kind: "open" as const, backend, audit: openBackendAuditLog(backend.records) }));
    const report = await world.run(ALL, {}, { backends });
    expect(report.summary.removed).toBe(2);
    expect(world.cluster.requeued.size).toBe(0);
  });
});

describe("unlock", () => {
  const settingsOf = (afterUnlock: AfterUnlockSettings): Parameters<typeof unlock>[1] => ({
    delete: true,
    rules: RULES,
    confirmDelay: 0,
    maxDeletions: 50,
    overrides: [],
    warnHeldAfter: 0n,
    afterUnlock,
  });
  const remove = async (world: BlockedWorld, how: typeof unlock, key = world.key): Promise<SweepReport> => {
    const stored = world.backend.objects.get(key);
    const read = await world.backend.readLock(key);
    if (stored === undefined || read.kind === "gone") throw new Error("the lock is not there");
    const opened = { kind: "open", backend: world.backend, audit: world.audit } as const;
    return await how({ opened, lock: { key, version: read.version, content: read.content, storedAt: world.now - 3_600_000_000_000n } }, settingsOf(ALL), {
      clusters: [world.cluster],
      now: () => world.now,
      sleep: () => Promise.resolve(),
      runId: "run-1",
      janitor: { version: "0.0.0-test", hostname: "test" },
      deadline: new AbortController().signal,
      stop: world.stop.signal,
      onProgress: () => undefined,
    });
  };

  it("of a stale lock tells its Stack", async () => {
    const world = new BlockedWorld();
    world.backend.states.set(CHECKPOINT, aCheckpoint(0));
    expect(onlyLock(await remove(world, unlock))).toMatchObject({ action: "deleted", afterUnlock: { stacks: [{ requeued: true, event: true }] } });
  });

  it("--force of a lock for which the Stacks did not matter lists them, and tells the one that names the backend", async () => {
    const world = new BlockedWorld();
    world.backend.objects.clear();
    const key = world.addLock("laptop.local");
    world.backend.states.set(CHECKPOINT, aCheckpoint(0));
    world.cluster.stacks = [...world.cluster.stacks, aStack({ name: "silent" })];
    const report = await remove(world, forceUnlock, key);
    expect(onlyLock(report)).toMatchObject({ verdict: "foreign", action: "deleted", pendingOperations: { kind: "none" } });
    expect(onlyLock(report).afterUnlock?.stacks).toMatchObject([{ name: "shop", requeued: true, event: true }]);
    expect(world.cluster.events[0]?.message).toContain("on a person's word");
  });
});

describe("check", () => {
  const rowsOf = async (world: BlockedWorld, afterUnlock: AfterUnlockSettings): Promise<readonly string[]> => {
    const { items } = await check({
      backends: [{ name: "state", backend: world.backend }],
      clusters: [world.cluster],
      owners: RULES.owners,
      afterUnlock,
      signal: new AbortController().signal,
    });
    return items
      .filter(({ name }) => ["read checkpoints", "requeue Stacks", "write Events"].includes(name))
      .map(({ status, message }) => `${status}: ${message}`);
  };

  it("tells whether the rights are there, for what is on alone", async () => {
    const world = new BlockedWorld();
    world.cluster.missingRights.set("patch stacks.pulumi.com", []);
    world.cluster.missingRights.set("create events", ["namespace iac"]);
    expect(await rowsOf(world, ALL)).toEqual([
      "ok: tried on one that is not there",
      "ok: patch stacks.pulumi.com",
      'denied: the verb "create" on events is not allowed in namespace iac',
    ]);
    expect(await rowsOf(world, { requeueStacks: false, stackEvents: false, checkPending: false })).toEqual([]);
  });

  it("does not guess where nothing is told", async () => {
    const world = new BlockedWorld();
    world.backend.before = (call) => {
      if (call.startsWith("state")) throw new Error("403");
    };
    expect(await rowsOf(world, ALL)).toEqual(["denied: 403", "unknown: the API server does not tell", "unknown: the API server does not tell"]);
  });
});
