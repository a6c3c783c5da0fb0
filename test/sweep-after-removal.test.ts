import { gzipSync } from "node:zlib";

import { beforeEach, describe, expect, it } from "vitest";

import type { AfterRemoval } from "../src/core/after-removal.ts";
import type { StackResource } from "../src/core/cluster.ts";
import type { SweepReport } from "../src/core/report.ts";
import { MINUTE } from "../src/core/time.ts";
import { onlyLock, SweepWorld } from "./sweep-world.ts";

const REQUEUE: AfterRemoval = { requeueStacks: true, stackEvents: false, checkPending: false };
const EVENTS: AfterRemoval = { requeueStacks: false, stackEvents: true, checkPending: false };
const CAREFUL: AfterRemoval = { ...REQUEUE, checkPending: true };
const CHECKPOINT = ".pulumi/stacks/shop/prod.json";

const stack: StackResource = { kind: "Stack", namespace: "iac", name: "shop", stacks: ["organization/shop/prod"] };

let world: SweepWorld;
beforeEach(() => {
  world = new SweepWorld();
  world.cluster.stacks = [stack];
  world.addLock("iac-runner-a");
});

const sweep = async (after: AfterRemoval, settings: Partial<Parameters<SweepWorld["sweep"]>[0]> = {}): Promise<SweepReport> =>
  await world.sweep({ after, ...settings });

/** What was written to the cluster. */
const writes = (): readonly string[] => world.cluster.calls.filter((call) => /^(requeue|event)/.test(call));

const putCheckpoint = (pending: number, key = CHECKPOINT): void => {
  const text = JSON.stringify({ version: 3, checkpoint: { latest: { pending_operations: Array.from({ length: pending }, () => ({ type: "creating" })) } } });
  world.backend.put(key, key.endsWith(".gz") ? gzipSync(text) : text, world.now);
};

describe("--requeue-stacks", () => {
  it("asks the operator for the Stack of each lock that was removed, with a request that no other run makes", async () => {
    const report = await sweep(REQUEUE);
    expect(writes()).toEqual(["requeue iac/shop"]);
    expect(world.cluster.requests).toEqual([expect.stringMatching(/^2026-03-10T12:00:03.*run-1$/)]);
    expect(report.toldStacks).toEqual([{ cluster: "test", namespace: "iac", name: "shop", locks: [onlyLock(report).key], requeued: true, notes: [] }]);
    expect(report.exitCode).toBe(0);
  });

  it("asks once for a Stack with two locks", async () => {
    world.addLock("iac-runner-b");
    const report = await sweep(REQUEUE);
    expect(writes()).toEqual(["requeue iac/shop"]);
    expect(report.toldStacks?.[0]?.locks).toHaveLength(2);
  });

  it.each<[string, Partial<StackResource>]>([
    ["another stack", { stacks: ["organization/shop/dev"] }],
    ["another backend", { backend: "s3://elsewhere" }],
    ["a Workspace", { kind: "Workspace" }],
  ])("leaves alone %s", async (_, words) => {
    world.cluster.stacks = [{ ...stack, ...words }];
    expect((await sweep(REQUEUE)).toldStacks).toEqual([]);
    expect(writes()).toEqual([]);
  });

  it.each<[string, Partial<Parameters<SweepWorld["sweep"]>[0]>, (given: SweepWorld) => void]>([
    ["P4: in a dry run", { delete: false }, () => undefined],
    ["of a lock that is held", {}, (given) => given.addHolder("iac-runner-a")],
    ["of a lock that changed since", {}, (given) => (given.whileWaiting = () => given.addLock("iac-runner-a", { age: MINUTE }))],
    ["of a lock whose delete nobody confirmed", {}, (given) => (given.backend.deleteLock = () => Promise.resolve({ kind: "deleted-unconfirmed" }))],
    ["of a lock that could not be removed", {}, (given) => (given.backend.deleteLock = () => Promise.reject(new Error("no")))],
  ])("asks nothing %s", async (_, settings, prepare) => {
    prepare(world);
    await sweep(REQUEUE, settings);
    expect(writes()).toEqual([]);
  });

  it("a refusal is a warning, and the lock is removed all the same", async () => {
    world.cluster.refusedWrite = 'the verb "patch" on stacks.pulumi.com is not allowed';
    const report = await sweep(REQUEUE);
    expect(onlyLock(report).action).toBe("deleted");
    expect(report).toMatchObject({ exitCode: 0, toldStacks: [{ requeued: false }] });
    expect(report.warnings).toEqual([
      'Stack "iac/shop": it was not requeued, so the operator tries it when its own pause ends: the verb "patch" on stacks.pulumi.com is not allowed',
    ]);
  });

  it("so is a cluster whose Stacks are not known", async () => {
    world.cluster.stacksProblem = "403 Forbidden";
    const report = await sweep(REQUEUE);
    expect(report.warnings).toEqual([expect.stringContaining("none there was told of a removed lock: 403 Forbidden")]);
  });

  it("nothing is said of Stacks without the option", async () => {
    const report = await world.sweep();
    expect([report.toldStacks, writes()]).toEqual([undefined, []]);
  });
});

describe("--stack-events", () => {
  it("tells whose lock went, and why", async () => {
    const report = await sweep(EVENTS);
    expect(writes()).toEqual([`event on iac/shop: removed the lock lock-of-iac-runner-a-7 of "iac-runner-a": no pod of that name is left`]);
    expect(report.toldStacks).toMatchObject([{ event: true, notes: [] }]);
  });

  it("P7: a hostile host is quoted and cut short", async () => {
    world.backend.objects.clear();
    world.addLock(`iac-runner-\u202e\n${"x".repeat(3_000)}`);
    await sweep(EVENTS);
    const [event = ""] = writes();
    expect(event.length).toBeLessThan(1_100);
    expect(event).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });
});

describe("--check-pending", () => {
  it.each([CHECKPOINT, `${CHECKPOINT}.gz`])("an update that never ended is told, and its Stack is not requeued: %s", async (key) => {
    putCheckpoint(2, key);
    const report = await sweep({ ...CAREFUL, stackEvents: true });
    expect(onlyLock(report)).toMatchObject({ action: "deleted", pendingOperations: 2 });
    expect(report.toldStacks).toMatchObject([{ requeued: false, event: true }]);
    expect(report.warnings.join("\n")).toContain("the checkpoint of organization/shop/prod holds 2 pending operations of an update that never ended");
    expect(writes()).toEqual([expect.stringContaining("not tried again: its checkpoint holds 2 pending operations")]);
  });

  it("one without any is requeued, and so is a stack that has no checkpoint", async () => {
    putCheckpoint(0);
    expect(onlyLock(await sweep(CAREFUL))).toMatchObject({ pendingOperations: 0 });
    world.addLock("iac-runner-b", { stack: "organization/shop/prod" });
    world.backend.objects.delete(CHECKPOINT);
    await sweep(CAREFUL);
    expect(writes()).toEqual(["requeue iac/shop", "requeue iac/shop"]);
  });

  it.each<[string, () => void, string]>([
    ["is no JSON", () => world.backend.put(CHECKPOINT, "{", world.now), "no JSON"],
    ["is no gzip", () => world.backend.put(`${CHECKPOINT}.gz`, "{", world.now), "could not be unpacked"],
    [
      "unpacks to more than is read",
      () => world.backend.put(`${CHECKPOINT}.gz`, gzipSync(Buffer.alloc(65 * 1_024 * 1_024)), world.now),
      "could not be unpacked",
    ],
    ["is too large", () => world.backend.put(CHECKPOINT, Buffer.alloc(65 * 1_024 * 1_024), world.now), "larger than 64 MiB"],
    ["may not be read", () => void (world.backend.readObject = () => Promise.reject(new Error("403"))), "403"],
  ])("where the checkpoint %s, that is said, and its Stack is not requeued", async (_, prepare, problem) => {
    prepare();
    const report = await sweep(CAREFUL);
    expect(onlyLock(report).pendingOperations).toBeUndefined();
    expect(report.warnings.join("\n")).toContain(problem);
    expect([onlyLock(report).action, writes()]).toEqual(["deleted", []]);
  });

  it("P4: a dry run reads it and tells of it; a lock that stays is not looked into", async () => {
    putCheckpoint(1);
    expect(onlyLock(await sweep(CAREFUL, { delete: false }))).toMatchObject({ action: "would-delete", pendingOperations: 1 });
    world.addHolder("iac-runner-a");
    world.backend.calls.length = 0;
    expect(onlyLock(await sweep(CAREFUL))).toMatchObject({ action: "keep" });
    expect(world.backend.calls.filter((call) => call.startsWith("read object"))).toEqual([]);
  });
});
