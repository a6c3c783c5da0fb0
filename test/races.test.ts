// Between any two steps of a sweep something else happens: each step of a whole removal is tried with each event.
import { describe, expect, it } from "vitest";

import type { SweepReport } from "../src/core/report.ts";
import { HOUR, SECOND } from "../src/core/time.ts";
import { JanitorError } from "../src/errors.ts";
import { SweepWorld } from "./sweep-world.ts";

const STALE = ".pulumi/locks/organization/shop/prod/lock-of-iac-runner-gone-7.json";
const LIVE = ".pulumi/locks/organization/shop/dev/lock-of-iac-runner-here-7.json";

/** A stale and a held lock, and a hook before each step of a sweep over them. */
class RacedWorld extends SweepWorld {
  readonly steps: string[] = [];
  event: (world: RacedWorld) => void | Promise<void> = () => undefined;
  eventAt = -1;

  constructor() {
    super();
    this.addLock("iac-runner-gone");
    this.addHolder("iac-runner-here");
    this.addLock("iac-runner-here", { stack: "organization/shop/dev" });
    this.backend.before = async (call) => await this.#step(`backend: ${call}`);
    this.cluster.before = async (call) => await this.#step(`cluster: ${call}`);
  }

  async #step(name: string): Promise<void> {
    this.steps.push(name);
    if (this.steps.length - 1 !== this.eventAt) return;
    // Once: what the event itself does is not raced again.
    this.eventAt = -1;
    await this.event(this);
  }
}

async function listSteps(): Promise<readonly string[]> {
  const world = new RacedWorld();
  await world.sweep();
  return world.steps;
}

const steps = await listSteps();
const lastLook = steps.lastIndexOf("cluster: observe");
const PLACES = steps.map((step, index) => [index, step.replace(/[0-9A-Za-z-]*T[0-9A-Za-z-]+/, "…")] as const);

async function race(event: RacedWorld["event"], eventAt: number): Promise<{ readonly world: RacedWorld; readonly report: SweepReport }> {
  const world = new RacedWorld();
  world.event = event;
  world.eventAt = eventAt;
  const report = await world.sweep();
  await expectPromises(world);
  return { world, report };
}

/** What must hold whatever happened: the live lock is there, and every removal has its record. */
async function expectPromises(world: RacedWorld): Promise<void> {
  expect(world.backend.objects.has(LIVE), "the live lock").toBe(true);
  const records = await world.readRecords();
  const deletes = world.backend.calls.filter((call) => call.startsWith("delete"));
  for (const call of deletes) expect(records.map(({ intent }) => `delete ${intent.key}`)).toContain(call);
}

function actionOf(report: SweepReport): string {
  return report.locks.find(({ key }) => key === STALE)?.action ?? "not listed";
}

it("a whole removal has steps to race with", () => {
  expect(steps.length).toBeGreaterThan(10);
  expect(lastLook).toBeGreaterThan(0);
});

describe.each(PLACES)("before step %i, %s", (at) => {
  it("P1: the owner's pod appears, as after a stale read: kept, unless the last look was over", async () => {
    const { world, report } = await race((raced) => void raced.addHolder("iac-runner-gone"), at);
    expect({ action: actionOf(report), there: world.backend.objects.has(STALE) }).toEqual(
      at <= lastLook ? { action: "keep", there: true } : { action: "deleted", there: false },
    );
  });

  it("P2: another owner's lock takes its place: that one stays", async () => {
    const { world, report } = await race((raced) => {
      raced.backend.objects.delete(STALE);
      raced.addHolder("iac-runner-new", raced.now - HOUR);
      raced.backend.put(STALE, JSON.stringify({ pid: 9, username: "pulumi", hostname: "iac-runner-new", timestamp: "2026-03-10T11:50:00Z" }), raced.now);
    }, at);
    // Once the delete was done, the new lock is written after it.
    expect(world.backend.objects.get(STALE)?.bytes.length).toBeGreaterThan(0);
    expect(["keep", "changed", "deleted"]).toContain(actionOf(report));
  });

  it("its owner releases the lock: the sweep says that it vanished, or does not list it", async () => {
    const { world, report } = await race((raced) => void raced.backend.objects.delete(STALE), at);
    expect(world.backend.objects.has(STALE)).toBe(false);
    expect(["vanished", "deleted", "not listed"]).toContain(actionOf(report));
    expect(report.exitCode).toBe(0);
  });

  it("P6: another janitor makes its whole sweep: the lock is removed once, and each record has its end", async () => {
    const { world } = await race(async (raced) => void (await raced.sweep({}, { runId: "run-2" })), at);
    expect(world.backend.objects.has(STALE)).toBe(false);
    const outcomes = (await world.readRecords()).map(({ outcome }) => outcome?.action);
    expect(outcomes.filter((action) => action === "deleted")).toHaveLength(1);
    expect(outcomes.filter((action) => action !== "deleted" && action !== "vanished" && action !== "deleted-unconfirmed")).toEqual([]);
  });

  it("P3 and P5: the request fails: no success is claimed, and the next sweep ends clean", async () => {
    const { world, report } = await race((raced) => {
      // A cluster does not throw for what it refuses, it says that its list is cut short.
      if (raced.steps.at(-1)?.startsWith("cluster") === true) raced.cluster.problem = "403";
      else throw new JanitorError("backend-unreachable", "nobody answered");
    }, at);
    expect(actionOf(report) === "deleted" && world.backend.objects.has(STALE), "success claimed, and the lock is there").toBe(false);
    world.cluster.problem = undefined;
    world.now += 10n * SECOND;
    const next = await world.sweep({}, { runId: "run-2" });
    expect(next.exitCode).toBe(0);
    expect(world.backend.objects.has(STALE)).toBe(false);
    expect((await world.readRecords()).filter(({ outcome }) => outcome === undefined)).toEqual([]);
  });

  it("a signal: what was begun is finished, nothing else is", async () => {
    const { world, report } = await race((raced) => raced.stop.abort(), at);
    expect({ action: actionOf(report) === "deleted", there: world.backend.objects.has(STALE) }).toEqual(
      world.backend.objects.has(STALE) ? { action: false, there: true } : { action: true, there: false },
    );
    expect((await world.readRecords()).filter(({ outcome }) => outcome === undefined)).toEqual([]);
  });
});
