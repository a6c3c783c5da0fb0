import fc from "fast-check";

import type { Action, PodChange } from "./actions.ts";
import type { SweepPlan } from "./janitor.ts";
import type { NodePace } from "./node.ts";
import type { Manners } from "./process.ts";
import { GOOD_MOOD, type ApiMood } from "./views.ts";
import { WORKLOADS, type Setup } from "./world.ts";

/** What happens, from the beginning to the end. */
export interface History {
  readonly setup: Setup;
  readonly actions: readonly Action[];
}

export const often = <Value>(usual: Value, times: number, ...others: readonly Value[]): fc.Arbitrary<Value> =>
  fc.constantFrom(...Array.from({ length: times }, () => usual), ...others);

const pace: fc.Arbitrary<NodePace> = fc.record({
  notice: fc.constantFrom(40, 47, 50),
  hangNotice: fc.constantFrom(15, 40, 180),
  report: fc.constantFrom(1, 3, 10),
  startNoted: fc.constantFrom(0, 0.4, 1, 2),
  kill: fc.constantFrom(0.5, 2.5, 4.9),
});

const nodeWords = fc.record({ clockAhead: often(0, 30, -2, -1, 2, 2, 30, -30, 3_600, -3_600), pace, joined: fc.constant(false) });

/** What a history begins with. */
export const setup: fc.Arbitrary<Setup> = fc.record({
  clusters: often<Setup["clusters"]>("one", 5, "two", "two", "one-of-two"),
  nodes: fc.array(nodeWords, { minLength: 2, maxLength: 3 }),
  apiAhead: often(0, 3, -1, 1),
  guestAhead: often(0, 1, 2, 40, -40),
  janitorAhead: often(0, 12, -1, 1, 1, 600),
  storeAhead: often(0, 12, -1, 1, 1, -400),
  store: fc.record({
    notesTimes: often(true, 3, false),
    tellsTime: often(true, 2, false),
    late: often(0, 4, 1, 3, -1),
    versionsByContent: fc.boolean(),
    concurrency: fc.constantFrom(1, 4),
  }),
  minAge: often(60, 2, 0),
  settle: often(30, 3, 600),
  stacks: often(true, 6, false),
  begun: fc.uniqueArray(fc.nat(WORKLOADS.length - 1), { minLength: 1, maxLength: 4 }),
});

const index = fc.nat(9);
const low = fc.nat(2);
const stack = fc.constantFrom("prod", "prod", "dev");
const manners: fc.Arbitrary<Manners> = fc.oneof(
  fc.constant<Manners>({ kind: "ignores" }),
  fc.constantFrom(1, 20, 200).map((seconds): Manners => ({ kind: "ends-after", seconds })),
);
export const pause = fc.constantFrom(0.3, 1, 3, 6, 11, 35, 47, 55, 61, 75, 130, 300, 600, 640, 4_000);
const wait = pause.map((seconds): Action => ({ do: "wait", seconds }));

export const pulumi = fc.record<Extract<Action, { do: "pulumi" }>>({
  do: fc.constant("pulumi" as const),
  pod: index,
  container: low,
  stack,
  delay: fc.constantFrom(0.1, 0.4, 0.6, 2, 40),
  manners,
  nested: often(false, 6, true),
  pid: fc.option(fc.integer({ min: 7, max: 9 }), { nil: undefined }),
  abandonFails: often(false, 4, true),
});
const ofPod = (what: PodChange): fc.Arbitrary<Action> => index.map((pod): Action => ({ do: what, pod }));
const ofNode = (what: Extract<Action, { do: "node" }>["what"], node: number): Action => ({ do: "node", node, what });
const restart = fc.record<Extract<Action, { do: "restart" }>>({
  do: fc.constant("restart" as const),
  pod: index,
  container: low,
  backOff: fc.constantFrom(0.2, 1, 10, 40),
});

/** How an API server answers. */
export const mood: fc.Arbitrary<ApiMood> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<ApiMood["probe"]>("none", "none", "whole", "partly", "failed").map((probe) => ({ ...GOOD_MOOD, probe })) },
  {
    weight: 1,
    arbitrary: fc.record<ApiMood>({
      pods: often<ApiMood["pods"]>("whole", 2, "cut-short", "denied", "expires"),
      nodes: often<ApiMood["nodes"]>("listed", 3, "denied"),
      stacks: often<ApiMood["stacks"]>("listed", 3, "denied"),
      namesakes: fc.constantFrom("fresh", "stale", "denied"),
      probe: fc.constantFrom("none", "whole"),
    }),
  },
);

/** Anything but a sweep. */
export const single: fc.Arbitrary<Action> = fc.oneof(
  { weight: 8, arbitrary: wait },
  { weight: 5, arbitrary: pulumi },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("create" as const), cluster: low, workload: fc.nat(WORKLOADS.length - 1), node: low }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("process" as const),
      process: low,
      what: fc.constantFrom("finish", "finish, delete fails", "kill", "kill", "kill, unreaped", "stop", "continue"),
    }),
  },
  { weight: 4, arbitrary: restart },
  {
    weight: 5,
    arbitrary: fc
      .constantFrom<PodChange>("debug", "delete", "evict", "force-delete", "force-delete", "collect", "complete", "fail")
      .chain((what) => ofPod(what)),
  },
  {
    weight: 5,
    arbitrary: fc
      .tuple(
        index,
        fc.constantFrom("cut", "cut", "heal", "heal", "hang", "unhang", "power off", "power on", "taint out-of-service", "delete", "delete object only"),
      )
      .map(([node, what]): Action => ofNode(what, node)),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("step clock" as const), node: index, seconds: fc.constantFrom(10, -10, 2, -2, 3_600) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("join" as const), cluster: low, words: nodeWords }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("cancel", "copy bucket", "restore", "put junk", "outside"), stack }) },
);

const call = fc.integer({ min: 1, max: 24 });
const plan = (inner: fc.Arbitrary<readonly Action[]>): fc.Arbitrary<SweepPlan> =>
  fc.record({
    mood,
    latency: often(0.02, 5, 1, 20),
    crash: fc.oneof({ weight: 6, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.record({ call, after: fc.boolean() }) }),
    fault: fc.oneof(
      { weight: 6, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: fc.record({ call, kind: fc.constantFrom("refused", "answer-lost", "sent-twice") }) },
    ),
    signal: fc.oneof({ weight: 12, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: call }),
    meanwhile: fc.oneof(
      { weight: 2, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(fc.record({ call, actions: inner }), { minLength: 1, maxLength: 2 }) },
    ),
  });
/** Another janitor's sweep. */
export const plainSweep = plan(fc.array(single, { minLength: 1, maxLength: 3 })).map((words): Action => ({ do: "sweep", plan: words }));
const sweep = plan(fc.array(fc.oneof({ weight: 3, arbitrary: single }, { weight: 1, arbitrary: plainSweep }), { minLength: 1, maxLength: 3 })).map(
  (words): Action => ({ do: "sweep", plan: words }),
);

/** Short stories: what belongs together, so that chance need not find it. */
export const story: fc.Arbitrary<readonly Action[]> = fc.oneof(
  // A node falls silent, its pod is force-deleted, and it comes back.
  fc
    .tuple(pause, pause, pause, pause, sweep, fc.constantFrom("cut", "hang"), fc.nat(1))
    .map(([a, b, c, d, swept, trouble, pod]): readonly Action[] => [
      ofNode(trouble, 0),
      { do: "wait", seconds: a },
      { do: "force-delete", pod },
      { do: "wait", seconds: b },
      swept,
      ofNode(trouble === "cut" ? "heal" : "unhang", 0),
      { do: "wait", seconds: c },
      swept,
      { do: "wait", seconds: d },
      swept,
    ]),
  // A lock is left behind, time passes, a sweep.
  fc
    .tuple(
      pulumi,
      pause,
      fc.oneof(restart, ofPod("delete"), ofPod("force-delete"), ofPod("complete"), fc.constant<Action>({ do: "process", process: 0, what: "kill" })),
      pause,
      sweep,
    )
    .map(([start, a, end, b, swept]): readonly Action[] => [start, { do: "wait", seconds: a }, end, { do: "wait", seconds: b }, swept]),
  // A container restarts and pulumi in it locks at once, perhaps unreported.
  fc
    .tuple(restart, pulumi, fc.constantFrom(0.3, 1, 3, 11), fc.boolean(), fc.constantFrom(40, 52, 61, 75), sweep)
    .map(([again, start, a, cut, b, swept]): readonly Action[] => [
      again,
      { do: "wait", seconds: a },
      start,
      ...(cut ? [ofNode("cut", 0)] : []),
      { do: "wait", seconds: b },
      swept,
    ]),
);

/** Any history. */
export const histories: fc.Arbitrary<History> = fc.record({
  setup,
  actions: fc
    .tuple(
      fc.constantFrom(3, 5, 70),
      pulumi,
      fc.array(
        fc.oneof(
          { weight: 7, arbitrary: fc.array(single, { minLength: 1, maxLength: 2, size: "max" }) },
          { weight: 2, arbitrary: sweep.map((action) => [action]) },
          { weight: 2, arbitrary: story },
        ),
        { minLength: 2, maxLength: 8, size: "max" },
      ),
    )
    .map(([settled, first, rest]): readonly Action[] => [{ do: "wait", seconds: settled }, first, { do: "wait", seconds: 3 }, ...rest.flat()]),
});
