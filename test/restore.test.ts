import { describe, expect, it } from "vitest";

import { JanitorError } from "../src/errors.ts";
import { findRemoval, restoreLock } from "../src/restore.ts";
import { onlyLock, SweepWorld } from "./sweep-world.ts";

const never = new AbortController().signal;

async function removeOne(): Promise<{ readonly world: SweepWorld; readonly key: string; readonly body: Uint8Array; readonly id: string }> {
  const world = new SweepWorld();
  const key = world.addLock("iac-runner-a");
  const body = world.backend.objects.get(key)?.bytes ?? new Uint8Array();
  const id = onlyLock(await world.sweep()).record ?? "";
  return { world, key, body, id };
}

async function restore(world: SweepWorld, id: string, audit = world.audit): Promise<string | undefined> {
  const remover = { runId: "run-9", janitor: { version: "0.0.0-test", hostname: "test" }, overrides: [], now: () => world.now };
  return await restoreLock(world.backend, audit, await findRemoval(audit, id, never), remover, never);
}

/** Lets the next call of a kind fail. */
function failOnce(world: SweepWorld, what: string, error: Error): void {
  world.backend.before = (call) => {
    if (!call.startsWith(`${what} `)) return;
    world.backend.before = () => undefined;
    throw error;
  };
}

/** Runs right before the lock is written. */
function whenCreating(world: SweepWorld, happens: () => void): void {
  world.backend.before = (call) => {
    if (call.startsWith("create ")) happens();
  };
}

describe("restore", () => {
  it("puts the lock back byte for byte, once", async () => {
    const { world, key, body, id } = await removeOne();
    await restore(world, id);
    expect(world.backend.objects.get(key)?.bytes).toEqual(Buffer.from(body));
    await expect(restore(world, id)).rejects.toMatchObject({ code: "restore-refused", message: expect.stringContaining("put back already") });
  });

  it("makes the next sweep hold it for a person", async () => {
    const { world, key, id } = await removeOne();
    await restore(world, id);
    expect(onlyLock(await world.sweep())).toMatchObject({ verdict: "held", reason: "restored", action: "keep" });
    expect(world.backend.objects.has(key)).toBe(true);
  });

  it("is recorded before the lock is there", async () => {
    const { world, key, id } = await removeOne();
    const { length } = world.backend.calls;
    await restore(world, id);
    expect(world.backend.calls.slice(length).filter((call) => /^(record|create)/.test(call))).toEqual([`record ${id}.restored.json`, `create ${key}`]);
  });

  it.each(["list", "record", "create"])("is left alone by a sweep that comes right before its %s, and by one after all", async (step) => {
    const { world, key, id } = await removeOne();
    world.backend.before = async (call) => {
      if (!call.startsWith(`${step} `) && call !== step) return;
      world.backend.before = () => undefined;
      await world.sweep();
    };
    await restore(world, id);
    await world.sweep();
    expect(world.backend.objects.has(key)).toBe(true);
  });

  it("puts nothing back where it cannot be recorded", async () => {
    const { world, id } = await removeOne();
    failOnce(world, "record", new JanitorError("backend-denied", "memory: may not write"));
    await expect(restore(world, id)).rejects.toMatchObject({ code: "record-failed", exitCode: 1, message: expect.stringContaining("was not put back") });
    expect(world.backend.objects.size).toBe(0);
  });

  it("puts nothing back where the store says that it is recorded, and it is not", async () => {
    const { world, id } = await removeOne();
    const audit = { ...world.audit, append: () => Promise.resolve("exists" as const) };
    await expect(restore(world, id, audit)).rejects.toMatchObject({ code: "record-failed" });
    expect(world.backend.objects.size).toBe(0);
  });

  it("that failed after its record can be tried again, and that record keeps no other lock", async () => {
    const { world, key, id } = await removeOne();
    failOnce(world, "create", new JanitorError("backend-unreachable", "memory: no answer"));
    await expect(restore(world, id)).rejects.toMatchObject({ code: "backend-unreachable" });
    const other = world.addLock("iac-runner-b");
    expect(onlyLock(await world.sweep())).toMatchObject({ key: other, action: "deleted" });
    await restore(world, id);
    expect(onlyLock(await world.sweep())).toMatchObject({ key, reason: "restored", action: "keep" });
  });

  it("whose answer was lost, and that was sent again, is told as what it is: put back", async () => {
    const { world, key, body, id } = await removeOne();
    whenCreating(world, () => world.backend.put(key, body, 0n));
    expect(await restore(world, id)).toContain("with the same content");
    expect(onlyLock(await world.sweep())).toMatchObject({ reason: "restored", action: "keep" });
  });

  it("refuses where another lock of that name came in between", async () => {
    const { world, key, id } = await removeOne();
    whenCreating(world, () => world.backend.put(key, "{}", world.now));
    await expect(restore(world, id)).rejects.toMatchObject({ code: "restore-refused", message: expect.stringContaining("a lock of that name is there") });
    expect(Buffer.from(world.backend.objects.get(key)?.bytes ?? "").toString()).toBe("{}");
  });

  it("refuses while any lock is in the stack's folder", async () => {
    const { world, id } = await removeOne();
    world.addLock("iac-runner-b");
    await expect(restore(world, id)).rejects.toMatchObject({ code: "restore-refused", message: expect.stringContaining("has a lock already") });
  });

  it("does not mind a lock of another stack", async () => {
    const { world, key, id } = await removeOne();
    world.addLock("iac-runner-b", { stack: "organization/shop/production" });
    await restore(world, id);
    expect(world.backend.objects.has(key)).toBe(true);
  });

  it.each(["vanished", "changed", "deleted-unconfirmed", "failed"] as const)(
    "refuses a record that ends in %s: its owner may have released the lock",
    async (action) => {
      const { world, id } = await removeOne();
      for (const [name, bytes] of world.backend.recordObjects) {
        if (name.endsWith(".outcome.json"))
          world.backend.recordObjects.set(name, Buffer.from(Buffer.from(bytes).toString().replace('"action": "deleted"', `"action": "${action}"`)));
      }
      await expect(restore(world, id)).rejects.toMatchObject({ code: "restore-refused" });
      expect(world.backend.objects.size).toBe(0);
    },
  );

  it("names an id that is not in the log", async () => {
    const { world } = await removeOne();
    await expect(restore(world, "nothing")).rejects.toMatchObject({ code: "record-invalid" });
  });
});
