import { describe, expect, it } from "vitest";

import { HOUR, SECOND } from "../src/core/time.ts";
import { JanitorError } from "../src/errors.ts";
import { onlyLock, RULES, SweepWorld } from "./sweep-world.ts";

describe("what a sweep asks for", () => {
  it("without a lock lists once, and asks nothing of the cluster", async () => {
    const world = new SweepWorld();
    const report = await world.sweep({ delete: false });
    expect({ backend: world.backend.calls, cluster: world.cluster.calls, exitCode: report.exitCode }).toEqual({ backend: ["list"], cluster: [], exitCode: 0 });
  });

  it("finds a holder by its name, without the whole list", async () => {
    const world = new SweepWorld();
    world.addHolder("iac-runner-a");
    world.addLock("iac-runner-a");
    world.addLock("iac-runner-a", { pid: 8 });
    const report = await world.sweep({ delete: false });
    expect(report.locks.map(({ verdict, reason }) => `${verdict} ${reason}`)).toEqual(["held container-running", "held container-running"]);
    expect(world.cluster.calls).toEqual(["namesakes iac-runner-a"]);
  });

  it("asks for the whole list once, for all owners that were not found", async () => {
    const world = new SweepWorld();
    for (const name of ["a", "b", "c"]) world.addLock(`iac-runner-${name}`);
    await world.sweep({ delete: false, confirmDelay: 0 });
    expect(world.cluster.calls.filter((call) => call === "observe")).toHaveLength(2);
  });

  it("leaves foreign and young locks alone without asking the cluster", async () => {
    const world = new SweepWorld();
    world.addLock("laptop.local");
    world.addLock("iac-runner-a", { age: 10n * SECOND });
    const report = await world.sweep();
    expect(report.locks.map(({ verdict }) => verdict).toSorted()).toEqual(["foreign", "too-young"]);
    expect(world.cluster.calls).toEqual([]);
  });
});

describe("a removal", () => {
  it("removes exactly the stale lock and leaves the live one of the same stack (C18)", async () => {
    const world = new SweepWorld();
    const stale = world.addLock("iac-runner-aaaaa");
    const live = world.addLock("iac-runner-bbbbb");
    world.addHolder("iac-runner-bbbbb");
    const report = await world.sweep();
    expect(report.locks.map(({ key, action }) => [key, action])).toEqual([
      [stale, "deleted"],
      [live, "keep"],
    ]);
    expect(Array.from(world.backend.objects.keys())).toEqual([live]);
  });

  it("P3: writes the intent with the whole body before the delete, and the outcome after", async () => {
    const world = new SweepWorld();
    const key = world.addLock("iac-runner-a");
    const body = world.backend.objects.get(key)?.bytes ?? new Uint8Array();
    const report = await world.sweep();
    const steps = world.backend.calls.filter((call) => /^(record|delete)/.test(call)).map((call) => call.replace(/record .*\.(\w+)\.json/, "record $1"));
    expect(steps).toEqual(["record intent", `delete ${key}`, "record outcome"]);
    const [history] = await world.readRecords();
    expect(Buffer.from(history?.intent.body ?? "", "base64")).toEqual(Buffer.from(body));
    expect(history?.outcome?.action).toBe("deleted");
    expect(history?.intent).toMatchObject({
      event: "intent",
      runId: "run-1",
      key,
      verdict: "stale",
      reason: "pod-not-found",
      overrides: [{ option: "--exclusive" }],
      clusters: [{ uid: "uid-of-test" }],
    });
    expect(onlyLock(report).record).toBe(history?.id);
  });

  it("P3: deletes nothing when no record can be written", async () => {
    const world = new SweepWorld();
    const key = world.addLock("iac-runner-a");
    world.backend.before = (call) => {
      if (call.startsWith("record ")) throw new JanitorError("backend-denied", "memory: may not write records");
    };
    const report = await world.sweep();
    expect(onlyLock(report)).toMatchObject({ action: "failed", note: expect.stringContaining("no record could be written") });
    expect(report.exitCode).toBe(1);
    expect(world.backend.objects.has(key)).toBe(true);
  });

  it("goes on with the others when one delete is refused, and fails at the end (C32b)", async () => {
    const world = new SweepWorld();
    const denied = world.addLock("iac-runner-a");
    world.addLock("iac-runner-b");
    world.addLock("iac-runner-c");
    world.backend.before = (call) => {
      if (call === `delete ${denied}`) throw new JanitorError("backend-denied", "memory: may not delete");
    };
    const report = await world.sweep();
    expect(report.locks.map(({ action }) => action)).toEqual(["failed", "deleted", "deleted"]);
    expect(report.exitCode).toBe(1);
    expect((await world.readRecords()).map(({ outcome }) => outcome?.action ?? "").toSorted()).toEqual(["deleted", "deleted", "failed"]);
  });

  it("P4: a dry run decides the same and writes nothing", async () => {
    const world = new SweepWorld();
    world.addLock("iac-runner-a");
    const report = await world.sweep({ delete: false });
    expect(onlyLock(report)).toMatchObject({ verdict: "stale", action: "would-delete" });
    expect(world.backend.calls.filter((call) => /^(record|delete|create)/.test(call))).toEqual([]);
  });
});

describe("the second look", () => {
  it("P1: keeps a lock whose pod appears in between", async () => {
    const world = new SweepWorld();
    const key = world.addLock("iac-runner-a");
    world.whileWaiting = () => world.addHolder("iac-runner-a");
    const report = await world.sweep();
    expect(onlyLock(report)).toMatchObject({ verdict: "held", action: "keep", note: expect.stringContaining("second") });
    expect(world.backend.objects.has(key)).toBe(true);
  });

  it("P2: keeps a lock that was replaced in between", async () => {
    const world = new SweepWorld();
    const key = world.addLock("iac-runner-a");
    world.whileWaiting = () => world.addLock("iac-runner-a");
    expect(onlyLock(await world.sweep())).toMatchObject({ action: "changed" });
    expect(world.backend.objects.has(key)).toBe(true);
  });

  it("P2: keeps a lock that is replaced right before the delete", async () => {
    const world = new SweepWorld();
    const key = world.addLock("iac-runner-a");
    world.backend.before = (call) => {
      if (call.startsWith("delete ")) world.addLock("iac-runner-a");
    };
    expect(onlyLock(await world.sweep())).toMatchObject({ action: "changed" });
    expect(world.backend.objects.has(key)).toBe(true);
  });

  it("tells a lock that went away by itself", async () => {
    const world = new SweepWorld();
    const key = world.addLock("iac-runner-a");
    world.whileWaiting = () => world.backend.objects.delete(key);
    expect(onlyLock(await world.sweep())).toMatchObject({ action: "vanished" });
    expect(await world.readRecords()).toEqual([]);
  });

  it("keeps everything when the list is cut short the second time", async () => {
    const world = new SweepWorld();
    const key = world.addLock("iac-runner-a");
    world.whileWaiting = () => {
      world.cluster.problem = "410 Expired, three times";
    };
    const report = await world.sweep();
    expect(onlyLock(report)).toMatchObject({ verdict: "undetermined", reason: "list-incomplete", action: "keep" });
    expect({ exitCode: report.exitCode, there: world.backend.objects.has(key) }).toEqual({ exitCode: 1, there: true });
  });
});

describe("what stops a sweep", () => {
  it("the valve, before the first removal, naming the flag that lets it through", async () => {
    const world = new SweepWorld();
    for (let number = 0; number < 4; number += 1) world.addLock(`iac-runner-${number}`);
    const report = await world.sweep({ maxDeletions: 3 });
    expect(report.refusals).toEqual([expect.stringContaining("--max-deletions 4")]);
    expect({ exitCode: report.exitCode, left: world.backend.objects.size }).toEqual({ exitCode: 4, left: 4 });
    expect(world.backend.calls.some((call) => call.startsWith("delete"))).toBe(false);
  });

  it("the valve counts owners, not locks", async () => {
    const world = new SweepWorld();
    for (let pid = 1; pid <= 6; pid += 1) world.addLock("iac-runner-a", { pid });
    expect((await world.sweep({ maxDeletions: 1 })).summary.removed).toBe(6);
  });

  it("a declined question", async () => {
    const world = new SweepWorld();
    world.addLock("iac-runner-a");
    const report = await world.sweep({}, { confirm: () => Promise.resolve({ kind: "no" }) });
    expect({ exitCode: report.exitCode, left: world.backend.objects.size }).toEqual({ exitCode: 4, left: 1 });
  });

  it("a signal: the removal in hand is finished, no other is begun", async () => {
    const world = new SweepWorld();
    for (let number = 0; number < 20; number += 1) world.addLock(`iac-runner-${number}`);
    world.backend.before = (call) => {
      if (call.startsWith("delete")) world.stop.abort();
    };
    const report = await world.sweep();
    const removed = report.locks.filter(({ action }) => action === "deleted").length;
    expect(removed).toBeGreaterThan(0);
    expect(removed).toBeLessThan(20);
    expect(report.exitCode).toBe(3);
    expect((await world.readRecords()).every(({ outcome }) => outcome?.action === "deleted")).toBe(true);
  });

  it("P5: a stop before judging leaves every lock in the report", async () => {
    const world = new SweepWorld();
    world.addLock("iac-runner-a");
    world.cluster.before = () => {
      world.stop.abort();
      throw new Error("aborted");
    };
    expect(onlyLock(await world.sweep())).toMatchObject({ verdict: "undetermined", reason: "interrupted", action: "keep" });
  });
});

describe("the deadline", () => {
  it("P5: before judging leaves every lock in the report, which says that time ran out", async () => {
    const world = new SweepWorld();
    world.addLock("iac-runner-a");
    const report = await world.sweepPastDeadline();
    expect(onlyLock(report)).toMatchObject({ verdict: "undetermined", reason: "interrupted", action: "keep" });
    expect(report).toMatchObject({ timedOut: true, clusters: [], exitCode: 3 });
  });

  it("is not mentioned where the sweep ends before it, or by a signal", async () => {
    const world = new SweepWorld();
    expect(await world.sweep()).not.toHaveProperty("timedOut");
    world.stop.abort();
    expect(await world.sweep()).not.toHaveProperty("timedOut");
  });
});

describe("a backend that cannot be read", () => {
  it("P5: is an error, never an empty list, and does not stop the others", async () => {
    const world = new SweepWorld();
    const other = new SweepWorld();
    world.addLock("iac-runner-a");
    other.backend.before = (call) => {
      if (call === "list") throw new JanitorError("backend-denied", "gs://other: may not list");
    };
    const report = await world.sweep(
      {},
      {
        backends: [
          { kind: "open", backend: other.backend, audit: other.audit },
          { kind: "open", backend: world.backend, audit: world.audit },
        ],
      },
    );
    expect(report.backends[0]?.error).toMatchObject({ code: "backend-denied" });
    expect({ removed: report.summary.removed, exitCode: report.exitCode }).toEqual({ removed: 1, exitCode: 1 });
  });

  it("keeps a lock that could not be read (C32a)", async () => {
    const world = new SweepWorld();
    const key = world.addLock("iac-runner-a");
    world.backend.before = (call) => {
      if (call.startsWith("read ")) throw new JanitorError("backend-denied", "gs://state: may not get the object");
    };
    const report = await world.sweep();
    expect(onlyLock(report)).toMatchObject({ verdict: "undetermined", reason: "lock-not-read" });
    expect({ exitCode: report.exitCode, there: world.backend.objects.has(key) }).toEqual({ exitCode: 3, there: true });
  });
});

describe("P6: a run that crashed", () => {
  it.each([
    { when: "after the intent", call: /^delete/, outcome: "keep", lockIsThere: true },
    { when: "after the delete", call: /^record .*outcome/, outcome: "deleted-unconfirmed", lockIsThere: false },
  ])("$when: the next run completes its record with $outcome", async ({ call: at, outcome, lockIsThere }) => {
    const world = new SweepWorld();
    const key = world.addLock("iac-runner-a");
    // A crash is a call that never comes back; every later one fails too.
    let crashed = false;
    world.backend.before = (call) => {
      crashed ||= at.test(call);
      if (crashed) throw new Error("crashed");
    };
    await world.sweep();
    world.backend.before = () => undefined;
    expect(world.backend.objects.has(key)).toBe(lockIsThere);
    await world.sweep({ rules: { ...RULES, minAge: 24n * HOUR } }, { runId: "run-2" });
    const [history] = await world.readRecords();
    expect(history?.outcome).toMatchObject({ action: outcome, runId: "run-2" });
  });

  it.each([
    ["the lock is there: it was not removed", false, "keep"],
    ["the lock is gone: it may have been removed", true, "deleted-unconfirmed"],
  ])("a delete that nobody answered leaves its record open; then %s", async (_, gone, outcome) => {
    const world = new SweepWorld();
    const key = world.addLock("iac-runner-a");
    world.backend.before = (call) => {
      if (!call.startsWith("delete")) return;
      if (gone) world.backend.objects.delete(key);
      throw new JanitorError("backend-unreachable", "memory: no answer");
    };
    expect(onlyLock(await world.sweep())).toMatchObject({ action: "failed", record: expect.any(String) });
    expect((await world.readRecords())[0]?.outcome).toBeUndefined();
    world.backend.before = () => undefined;
    await world.sweep({ rules: { ...RULES, minAge: 24n * HOUR } }, { runId: "run-2" });
    expect((await world.readRecords())[0]?.outcome).toMatchObject({ action: outcome, runId: "run-2" });
  });

  it("two janitors at once: one removes, the other finds it gone, and the records say so", async () => {
    const world = new SweepWorld();
    for (let number = 0; number < 30; number += 1) world.addLock(`iac-runner-${number}`);
    const reports = await Promise.all([world.sweep({}, { runId: "run-1" }), world.sweep({}, { runId: "run-2" })]);
    expect(world.backend.objects.size).toBe(0);
    const removed = (await world.readRecords()).filter(({ outcome }) => outcome?.action === "deleted").map(({ intent }) => intent.key);
    expect({ removals: removed.length, keys: new Set(removed).size }).toEqual({ removals: 30, keys: 30 });
    expect(reports.every(({ exitCode }) => exitCode === 0)).toBe(true);
  });
});
