import { describe, expect, it } from "vitest";

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

async function restore(world: SweepWorld, id: string): Promise<string | undefined> {
  const remover = { runId: "run-9", janitor: { version: "0.0.0-test", hostname: "test" }, overrides: [], now: () => world.now };
  return await restoreLock(world.backend, world.audit, await findRemoval(world.audit, id, never), remover, never);
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
