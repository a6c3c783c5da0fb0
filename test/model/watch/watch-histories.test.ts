// Known ways in which a watch can be late, be wrong or look too often, by name, as scripts of the model's own actions.
import { describe, expect, it } from "vitest";

import { QUIET, type PodChange } from "../actions.ts";
import { CALM } from "../calm.ts";
import type { Setup } from "../world.ts";
import type { BesideAction, StreamChange, WatchAction } from "./actions.ts";
import { SOUND, WatchedField, type WatchHistory } from "./field.ts";
import type { JanitorPlan } from "./janitor.ts";

const RUNNER_SET = 1;
const SETUP: Setup = { ...CALM, begun: [RUNNER_SET] };
/** Nothing takes the place of its pod, and tells by its own coming that the pod is gone. */
const JOB: Setup = { ...SETUP, begun: [3] };
const PLAIN: JanitorPlan = { ...SOUND, probe: "none" };

const wait = (seconds: number): WatchAction => ({ do: "wait", seconds });
const pulumi = (stack = "prod", pod = 0): WatchAction => ({ do: "pulumi", container: 0, ...QUIET, pod, stack });
const pod = (what: PodChange, index = 0): WatchAction => ({ do: what, pod: index });
const beside = (action: BesideAction): WatchAction => ({ do: "beside", action });
const stream = (what: StreamChange): WatchAction => beside({ do: "stream", cluster: 0, what });

interface Ending {
  /** Seconds after the beginning at which locks were removed. */
  readonly removals: readonly number[];
  readonly field: WatchedField;
  readonly count: (name: string) => number;
}

/** Plays a script, and heals everything at its end. */
async function play(actions: readonly WatchAction[], words: Partial<WatchHistory> = {}): Promise<Ending> {
  const lines: string[] = [];
  const history = { setup: SETUP, interval: 1_800, maxDeletions: 50, lag: 0.2, janitors: [PLAIN], ...words, actions: [wait(5), ...actions] };
  const field = new WatchedField(history, (line) => lines.push(line));
  await field.run();
  const { oracle } = field.world;
  oracle.judgeRecords();
  expect(oracle.violations).toEqual([]);
  const removals = lines.flatMap((line) => (line.includes(" removed: ") ? [Number(line.trim().split(" ")[0])] : []));
  return { removals, field, count: (name) => oracle.tally.get(name) };
}

/** Whether there was one removal, within so many seconds. */
function isRemovedOnce({ removals }: Ending, from: number, to: number): boolean {
  const [at = 0] = removals;
  return removals.length === 1 && at > from && at < to;
}

describe("the lock of a pod that is gone", () => {
  // Its successor settles for 30 s, and between two looks are 6.
  it("is removed when the end is told, long before the interval ends", async () => {
    expect(isRemovedOnce(await play([pulumi(), wait(100), pod("force-delete"), wait(200)]), 135, 150)).toBe(true);
  });

  it("is removed at the interval where the end was lost on the way in silence", async () => {
    const ending = await play([pulumi(), wait(100), stream("drop in silence"), pod("force-delete"), wait(1_000)], { interval: 300, setup: JOB });
    expect(isRemovedOnce(ending, 300, 312)).toBe(true);
    expect(ending.count("signs that were dropped in silence")).toBe(1);
  });

  it("is removed once changes come again, where the end was in a gap (410)", async () => {
    const actions = [pulumi(), wait(100), stream("cut"), pod("force-delete"), wait(400), stream("begin anew"), wait(100)];
    expect(isRemovedOnce(await play(actions), 505, 515)).toBe(true);
  });

  it("is removed once changes come again, where nothing was missed and all is told late", async () => {
    const actions = [pulumi(), wait(100), stream("cut"), pod("force-delete"), wait(400), stream("go on"), wait(100)];
    expect(isRemovedOnce(await play(actions), 505, 515)).toBe(true);
  });

  it("is removed at once when a Stack fails on it, though its end was never told", async () => {
    const fails = beside({ do: "stack fails", lock: 0, known: true });
    const ending = await play([pulumi(), wait(100), stream("drop in silence"), pod("force-delete"), wait(300), fails, wait(100)], { setup: JOB });
    expect(isRemovedOnce(ending, 405, 413)).toBe(true);
    expect(ending.count("sweeps of named locks")).toBe(1);
  });

  it.each(Array.from({ length: 30 }, (_, number) => number + 1))("is removed, and its record ended, though the janitor dies at its call %i", async (call) => {
    for (const after of [false, true]) {
      const ending = await play([pulumi(), wait(100), pod("force-delete"), wait(200)], { janitors: [{ ...PLAIN, crash: { call, after } }] });
      expect(ending.removals).toHaveLength(1);
    }
  });
});

describe("a lock whose writer lives", () => {
  it("is kept when the end of the pod before is told late", async () => {
    const { removals, count } = await play([pod("force-delete"), wait(10), pulumi(), wait(100)], { lag: 40 });
    expect({ removals, signs: count("sign: pod") > 0 }).toEqual({ removals: [], signs: true });
  });

  it("is kept when a Stack fails on it", async () => {
    const { removals, count } = await play([pulumi(), wait(100), beside({ do: "stack fails", lock: 0, known: true }), wait(100)]);
    expect({ removals, named: count("sweeps of named locks") }).toEqual({ removals: [], named: 1 });
  });
});

it("1.17 a lock that a person put back is left alone for good", async () => {
  const { removals, field } = await play([pulumi(), wait(10), pod("force-delete"), wait(200), { do: "restore", stack: "prod" }, wait(4_000)]);
  expect({ removals: removals.length, left: field.world.store.objects.size }).toEqual({ removals: 1, left: 1 });
});

it("changes that may not be followed for an hour have nothing looked at beyond the interval", async () => {
  const { count } = await play([stream("deny"), wait(3_600)], { interval: 300 });
  expect(count("sign: unfollowed")).toBeGreaterThan(50);
  // One at the beginning of either process, and one that is not counted since everything was healed before it; the others by the interval.
  expect(count("sweeps") - count("sweeps by the interval")).toBeLessThanOrEqual(3);
});

it("changes that are lost again and again have it looked ever more rarely", async () => {
  const { count } = await play(Array.from({ length: 100 }, () => [stream("cut"), wait(4), stream("begin anew"), wait(1)]).flat(), { interval: 300 });
  expect(count("sign: lost")).toBe(100);
  expect(count("sweeps after a loss")).toBeLessThan(10);
});

it("the valve counts what went in the ten minutes before, whichever sweep removed it", async () => {
  const twoSets = { ...SETUP, begun: [RUNNER_SET, 2] };
  const actions = [pulumi("prod", 0), pulumi("dev", 1), wait(100), pod("force-delete"), wait(200), pod("complete", 1), wait(1_500)];
  const { removals, count } = await play(actions, { setup: twoSets, maxDeletions: 1, interval: 60 });
  expect(removals).toHaveLength(2);
  expect((removals[1] ?? 0) - (removals[0] ?? 0)).toBeGreaterThan(600);
  expect(count("valve: closed by earlier removals too")).toBeGreaterThan(0);
});

it("a clock that is set back by an hour delays a removal by an interval at most", async () => {
  const ending = await play(
    [beside({ do: "step janitor clock", seconds: -3_600 }), beside({ do: "step janitor clock", seconds: 3_600 }), pulumi(), wait(100)],
    {
      interval: 300,
    },
  );
  expect(ending.count("sweeps by the interval")).toBeGreaterThan(3);
});
