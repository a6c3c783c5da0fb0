import { beforeEach, expect, it } from "vitest";

import { Pulse } from "../src/pulse.ts";
import { SweepWorld } from "./sweep-world.ts";

const PODS = { cluster: "prod", what: "pods" };

let now: number;
let pulse: Pulse;
beforeEach(() => {
  now = 0;
  pulse = new Pulse(60_000, () => now);
});

/** Beats with a sweep of one lock, whose list of pods is cut short where a problem is given. */
async function beat(problem?: string): Promise<void> {
  const world = new SweepWorld();
  world.addLock("iac-runner-gone");
  world.cluster.problem = problem;
  pulse.beat(await world.sweep());
}

it("is ready once a sweep has ended that could read everything, and not while the latest could not", async () => {
  expect(pulse.ready()).toEqual({ ok: false, message: "no sweep has ended yet" });
  await beat();
  expect(pulse.ready().ok).toBe(true);
  await beat("429");
  expect(pulse.ready()).toEqual({ ok: false, message: "could not read test" });
  await beat();
  expect(pulse.ready().ok).toBe(true);
});

it("is not ready after a sweep whose time ran out while a cluster gave no answer", async () => {
  const world = new SweepWorld();
  world.addLock("iac-runner-gone");
  pulse.beat(await world.sweepPastDeadline());
  expect(pulse.ready()).toEqual({ ok: false, message: "the time for the sweep (--timeout) ran out before its end" });
  expect(pulse.healthy().ok).toBe(true);
  await beat();
  expect(pulse.ready().ok).toBe(true);
});

it("is not ready while changes do not come, unless the right to them is missing", async () => {
  await beat();
  pulse.follow({ ...PODS, trouble: { problem: "no answer", denied: false } });
  expect(pulse.ready()).toEqual({ ok: false, message: "could not follow pods of cluster prod: no answer" });
  pulse.follow({ ...PODS, trouble: { problem: "403", denied: true } });
  expect(pulse.ready().ok).toBe(true);
  pulse.follow({ ...PODS, trouble: { problem: "no answer", denied: false } });
  pulse.follow(PODS);
  expect(pulse.ready().ok).toBe(true);
});

it("is healthy while sweeps end, whatever they meet", async () => {
  now = 59_000;
  await beat("429");
  now = 118_000;
  expect(pulse.healthy().ok).toBe(true);
  now = 119_000;
  expect(pulse.healthy()).toEqual({ ok: false, message: "no sweep has ended for 60 s" });
});
