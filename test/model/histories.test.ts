// Known ways to lose a live lock, by name, as scripts of the model's own actions.
import { expect, it, describe } from "vitest";

import { forceUnlock, unlock, type FoundLock } from "../../src/unlock.ts";
import { perform, QUIET, type Action, type PodChange } from "./actions.ts";
import { CALM, PACE, SOUND_NODE } from "./calm.ts";
import { composeSweep, type SweepPlan } from "./janitor.ts";
import { GOOD_MOOD, type ApiMood } from "./views.ts";
import { World, WORKLOADS, type Setup } from "./world.ts";

const WORKSPACE = 0;
const RUNNER_SET = 1;
/** Nothing takes the place of its pod. */
const JOB = 3;
const TWIN_NAMESPACE = 6;

const wait = (seconds: number): Action => ({ do: "wait", seconds });
const pulumi = (words: Partial<Extract<Action, { do: "pulumi" }>> = {}): Action => ({ do: "pulumi", pod: 0, container: 0, ...QUIET, ...words });
const node = (what: Extract<Action, { do: "node" }>["what"]): Action => ({ do: "node", node: 0, what });
const pod = (what: PodChange, index = 0): Action => ({ do: what, pod: index });
const restart = (backOff = 1, index = 0): Action => ({ do: "restart", pod: index, container: 0, backOff });
const kill: Action = { do: "process", process: 0, what: "kill" };
const sweep = (mood: Partial<ApiMood> = {}, more: Partial<SweepPlan> = {}): Action => ({
  do: "sweep",
  plan: { mood: { ...GOOD_MOOD, ...mood }, latency: 0.02, crash: undefined, fault: undefined, signal: undefined, meanwhile: [], ...more },
});

/** Plays a script, and tells what became of the first lock: kept, removed, or removed because of a known limit. */
async function play(setup: Partial<Setup>, actions: readonly Action[]): Promise<{ readonly fate: string; readonly world: World; readonly reasons: string }> {
  const world = new World({ ...CALM, begun: [RUNNER_SET], ...setup });
  let key: string | undefined;
  for (const action of [wait(10), ...actions]) {
    await perform(world, action);
    key ??= Array.from(world.store.objects.keys())[0];
  }
  const { oracle, store } = world;
  expect(oracle.violations).toEqual([]);
  const [limit] = oracle.limits;
  const fate = limit === undefined ? (store.objects.has(key ?? "") ? "kept" : "removed") : `known limit: ${limit}`;
  const reasons = oracle.tally.lines().filter((line) => line.startsWith("reason: "));
  return { fate, world, reasons: reasons.join("; ") };
}

interface Script {
  readonly setup?: Partial<Setup>;
  readonly actions: readonly Action[];
  readonly fate: string;
  readonly reason: string;
}

const FORCED: readonly Action[] = [pulumi(), wait(70), node("cut"), wait(60), pod("force-delete"), wait(40)];
/** Its clock has stood still for an hour. */
const SUSPENDED = { ...SOUND_NODE, clockAhead: -3_600 };
const slowStart = { ...SOUND_NODE, pace: { ...PACE, startNoted: 2 } };

const SCRIPTS: readonly (readonly [name: string, script: Script])[] = [
  [
    "1.1 the other of two clusters with the same Stacks holds the lock",
    { setup: { clusters: "two", begun: [WORKSPACE] }, actions: [pulumi({ pod: 1 }), wait(100), sweep()], fate: "kept", reason: "held: container-running" },
  ],
  [
    "1.1 this cluster's pod has no such process, the other's has",
    {
      setup: { clusters: "two", begun: [WORKSPACE] },
      actions: [pulumi({ pod: 1 }), wait(100), sweep({ probe: "whole" })],
      fate: "kept",
      reason: "held: container-running",
    },
  ],
  [
    "1.1 the other cluster is not configured: nobody may say --exclusive, and a dry run removes nothing",
    {
      setup: { clusters: "one-of-two", begun: [WORKSPACE] },
      actions: [pulumi({ pod: 1 }), wait(100), sweep({ probe: "whole" })],
      fate: "kept",
      reason: "stale: process-gone",
    },
  ],
  [
    "1.2 a Stack of one name in two namespaces: the other pod has the process",
    {
      setup: { begun: [WORKSPACE, TWIN_NAMESPACE] },
      actions: [pulumi(), wait(100), sweep({ probe: "whole" })],
      fate: "kept",
      reason: "held: container-running",
    },
  ],
  ["1.3 force-deleted on a node that is cut off", { actions: [...FORCED, sweep()], fate: "kept", reason: "undetermined: node-unreachable" }],
  [
    "1.3 the node is back, and the pod has its grace period before it",
    { actions: [...FORCED, node("heal"), wait(20), sweep()], fate: "kept", reason: "undetermined: node-unreachable" },
  ],
  [
    "1.3 the node has been back for longer than any grace period",
    { actions: [...FORCED, node("heal"), wait(940), sweep()], fate: "removed", reason: "stale: pod-recreated" },
  ],
  [
    "1.3 the machine was suspended and its clock is slow: by that clock it has been back for long",
    {
      setup: { begun: [JOB], nodes: [SUSPENDED, SOUND_NODE] },
      actions: [...FORCED, node("heal"), wait(20), sweep()],
      fate: "kept",
      reason: "undetermined: node-unreachable",
    },
  ],
  [
    "1.3 the runtime hangs, its node is not Ready but not silent",
    { actions: [pulumi(), wait(70), node("hang"), wait(200), pod("force-delete"), wait(40), sweep()], fate: "kept", reason: "undetermined: node-unreachable" },
  ],
  [
    "1.3 pod GC writes Failed for a pod of a node that was only taken from the API",
    {
      actions: [pulumi(), wait(70), node("cut"), wait(60), node("delete object only"), pod("collect"), wait(60), sweep()],
      fate: "known limit: node object deleted while it runs",
      reason: "stale: pod-recreated",
    },
  ],
  [
    "1.3 a cut that never cost Ready: the documented limit",
    {
      setup: { begun: [WORKSPACE] },
      actions: [pulumi(), wait(70), node("cut"), wait(5), pod("force-delete"), wait(5), node("heal"), wait(35), sweep()],
      fate: "known limit: trouble that did not cost Ready",
      reason: "stale: pod-recreated",
    },
  ],
  [
    "1.3 the same with --settle at the pods' grace period",
    {
      setup: { settle: 600, begun: [WORKSPACE] },
      actions: [pulumi(), wait(70), node("cut"), wait(5), pod("force-delete"), wait(5), node("heal"), wait(15), sweep()],
      fate: "kept",
      reason: "undetermined: not-settled",
    },
  ],
  [
    "1.4 an ephemeral container runs pulumi, the profile's container restarts",
    {
      setup: { begun: [WORKSPACE] },
      actions: [
        pod("debug"),
        wait(5),
        pod("debug"),
        wait(5),
        pulumi({ container: 1 }),
        wait(70),
        { do: "restart", pod: 0, container: 1, backOff: 1 },
        wait(60),
        sweep(),
      ],
      fate: "kept",
      reason: "held: container-running",
    },
  ],
  [
    "1.5 the node's clock is stepped, so the writer seems to be younger than its lock",
    { actions: [pulumi(), wait(100), { do: "step clock", node: 0, seconds: 10 }, sweep({ probe: "whole" })], fate: "kept", reason: "held: container-running" },
  ],
  [
    "1.6 the lock's pid is of a nested PID namespace",
    { actions: [pulumi({ nested: true, pid: 7 }), wait(100), sweep({ probe: "whole" })], fate: "kept", reason: "held: container-running" },
  ],
  ["1.7 the look at the processes failed", { actions: [pulumi(), wait(100), sweep({ probe: "failed" })], fate: "kept", reason: "held: container-running" }],
  [
    "1.7 one of the containers was not looked at",
    { actions: [pulumi(), wait(100), sweep({ probe: "partly" })], fate: "kept", reason: "held: container-running" },
  ],
  [
    "a zombie holds nothing",
    {
      actions: [pulumi(), wait(100), { do: "process", process: 0, what: "kill, unreaped" }, sweep({ probe: "whole" })],
      fate: "removed",
      reason: "stale: process-gone",
    },
  ],
  [
    "1.8 the container restarts and locks before the API knows",
    {
      setup: { minAge: 0, nodes: [{ ...SOUND_NODE, pace: { ...PACE, report: 10 } }] },
      actions: [restart(0.2), wait(0.5), pulumi({ delay: 0.1 }), wait(5), sweep()],
      fate: "kept",
      reason: "held: container-running",
    },
  ],
  [
    "1.9 startedAt is noted after the lock",
    {
      setup: { nodes: [slowStart] },
      actions: [restart(0.2), wait(0.4), pulumi({ delay: 0.1 }), wait(100), sweep()],
      fate: "kept",
      reason: "held: container-running",
    },
  ],
  [
    "1.9 the same on a node an hour slow, in a store without times",
    {
      setup: { nodes: [{ ...slowStart, clockAhead: -3_600 }], store: { ...CALM.store, notesTimes: false } },
      actions: [restart(0.2), wait(0.4), pulumi({ delay: 0.1 }), wait(100), sweep()],
      fate: "kept",
      reason: "held: container-running",
    },
  ],
  [
    "1.9 startedAt is noted after the lock, and another container's last run ended in between",
    {
      setup: { nodes: [slowStart] },
      actions: [restart(0.2), wait(0.3), pulumi({ delay: 0.1 }), wait(1), { do: "restart", pod: 0, container: 1, backOff: 10 }, wait(100), sweep()],
      fate: "kept",
      reason: "held: container-running",
    },
  ],
  [
    "1.9 a guest with a clock of its own",
    { setup: { begun: [9], guestAhead: -40 }, actions: [pulumi(), wait(100), sweep()], fate: "kept", reason: "undetermined: clock-contradiction" },
  ],
  [
    "1.10 the API says CrashLoopBackOff, the node is silent, and the container has started again and locked",
    {
      setup: { begun: [2], nodes: [{ ...SOUND_NODE, pace: { ...PACE, report: 3 } }] },
      actions: [restart(8), wait(7), wait(1.5), pulumi({ delay: 0.1 }), wait(0.5), node("cut"), wait(120), sweep()],
      fate: "kept",
      reason: "undetermined: node-not-ready",
    },
  ],
  [
    "1.10 the same in a silence that is not noticed yet, on a node whose clock is slow, in a store without times: a lock of a moment ago seems older than any status",
    {
      setup: {
        begun: [2],
        nodes: [{ ...SOUND_NODE, clockAhead: -120, pace: { ...PACE, report: 3 } }],
        store: { ...CALM.store, notesTimes: false },
      },
      actions: [wait(200), restart(3.5), wait(3.7), pulumi({ delay: 0.1 }), wait(0.5), node("cut"), wait(2), sweep()],
      fate: "kept",
      reason: "undetermined: lock-undated",
    },
  ],
  [
    "1.11 the owner is found by its hostname where no pod is called so",
    { setup: { begun: [4] }, actions: [pulumi(), wait(100), sweep({ namesakes: "stale" })], fate: "kept", reason: "held: container-running" },
  ],
  [
    "1.11 one of two pods of a hostname has ended, the other is the writer",
    {
      setup: { begun: [4] },
      actions: [{ do: "create", cluster: 0, workload: 4, node: 1 }, wait(10), pulumi({ pod: 0 }), wait(70), pod("complete", 9), wait(30), sweep()],
      fate: "kept",
      reason: "held: container-running",
    },
  ],
  [
    "1.11 the hostname is a name cut to 63 characters",
    { setup: { begun: [5] }, actions: [pulumi(), wait(100), sweep()], fate: "kept", reason: "held: container-running" },
  ],
  ["1.13 a laptop", { actions: [{ do: "outside", stack: "prod" }, wait(100), sweep()], fate: "kept", reason: "foreign: no-pattern" }],
  [
    "1.14 a pod with hostNetwork on a node that is called like a runner",
    {
      setup: { begun: [8], nodes: [SOUND_NODE, SOUND_NODE] },
      actions: [{ do: "create", cluster: 0, workload: 8, node: 1 }, wait(10), pulumi({ pod: 9 }), pulumi({ stack: "dev", pod: 0 }), wait(100), sweep()],
      fate: "kept",
      reason: "foreign: node-name",
    },
  ],
  [
    // By the store's new time it is younger than the pod, by its own it is older: that alone keeps it, before the record is asked.
    "1.17 a lock that a person put back stays",
    {
      actions: [pulumi(), wait(10), pod("force-delete"), wait(100), sweep(), { do: "restore", stack: "prod" }, wait(100), sweep()],
      fate: "kept",
      reason: "undetermined: clock-contradiction",
    },
  ],
  [
    "two janitors in one another, and the removal is done once",
    {
      actions: [pulumi(), wait(10), pod("force-delete"), wait(100), sweep({}, { meanwhile: [{ call: 9, actions: [sweep()] }] })],
      fate: "removed",
      reason: "stale: pod-recreated",
    },
  ],
  [
    "the janitor dies once its delete has taken effect; the next run ends its record",
    { actions: [pulumi(), wait(10), pod("force-delete"), wait(100), sweep({}, { crash: { call: 16, after: true } }), sweep()], fate: "removed", reason: "" },
  ],
];

describe("a known history", () => {
  it.each(SCRIPTS)("%s", async (_, { setup = {}, actions, fate, reason }) => {
    const ending = await play(setup, actions);
    expect(ending.fate).toBe(fate);
    expect(ending.reasons).toContain(reason);
    if (ending.world.mayDelete) ending.world.oracle.judgeRecords();
    expect(ending.world.oracle.violations).toEqual([]);
  });

  it("every workload is known to the scripts or the arbitraries", () => {
    expect(WORKLOADS[TWIN_NAMESPACE]?.name).toBe(WORKLOADS[WORKSPACE]?.name);
  });
});

describe("1.17 a person's unlock", () => {
  const find = async (
    actions: readonly Action[],
  ): Promise<{ readonly world: World; readonly found: FoundLock; readonly composed: ReturnType<typeof composeSweep> }> => {
    const { world } = await play({}, actions);
    const composed = composeSweep(world, {
      mood: GOOD_MOOD,
      steps: { lookedAt: 0n, before: () => Promise.resolve(undefined), after: () => Promise.resolve() },
    });
    const [opened] = composed.backends;
    const key = Array.from(world.store.objects.keys())[0] ?? "";
    const read = await opened?.backend.readLock(key, new AbortController().signal);
    if (opened === undefined || read?.kind !== "found") throw new Error("the lock is not there");
    return { world, composed, found: { opened, lock: { key, version: read.version, content: read.content } } };
  };

  it("refuses a lock whose writer lives, and obeys --force with the override in the record", async () => {
    const { world, found, composed } = await find([pulumi(), wait(100)]);
    expect((await unlock(found, composed.settings, composed.parts)).exitCode).toBe(4);
    expect(world.store.objects.size).toBe(1);
    const report = await forceUnlock(found, composed.settings, composed.parts);
    expect(report.overrides.map(({ option }) => option)).toContain("--force");
    expect(world.store.objects.size).toBe(0);
  });

  it("removes one whose writer is gone", async () => {
    const { world, found, composed } = await find([pulumi(), wait(10), kill, pod("force-delete"), wait(100)]);
    expect((await unlock(found, composed.settings, composed.parts)).exitCode).toBe(0);
    expect(world.oracle.violations).toEqual([]);
  });
});
