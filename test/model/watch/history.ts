import fc from "fast-check";

import { mood, often, pause, plainSweep, pulumi, setup, single, story } from "../history.ts";
import type { BesideAction, StreamChange, WatchAction } from "./actions.ts";
import type { WatchHistory } from "./field.ts";
import type { JanitorPlan } from "./janitor.ts";

const call = fc.integer({ min: 1, max: 60 });

const janitor: fc.Arbitrary<JanitorPlan> = fc.record({
  latency: often(0.02, 5, 1, 5),
  probe: fc.constantFrom("none", "none", "whole", "partly", "failed"),
  crash: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.record({ call, after: fc.boolean() }) }),
  faults: fc.array(fc.record({ call, kind: fc.constantFrom("refused", "answer-lost", "sent-twice") }), { maxLength: 2 }),
  signal: fc.oneof({ weight: 8, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: call }),
  down: fc.constantFrom(0.5, 10, 300),
});

const stream = fc.record({
  do: fc.constant("stream" as const),
  cluster: fc.nat(1),
  what: fc.constantFrom<StreamChange>("cut", "cut", "deny", "go on", "begin anew", "drop in silence", "repeat"),
});

/** What only a watch is hurt by. */
const beside: fc.Arbitrary<BesideAction> = fc.oneof(
  { weight: 6, arbitrary: stream },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("stack fails" as const), lock: fc.nat(3), known: often(true, 4, false) }) },
  { weight: 2, arbitrary: mood.map((words) => ({ do: "mood" as const, mood: words })) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("janitor" as const), what: fc.constantFrom("kill", "stop") }) },
  { weight: 1, arbitrary: fc.constantFrom(3_600, -3_600, 30).map((seconds) => ({ do: "step janitor clock" as const, seconds })) },
);

const wait = pause.map((seconds): WatchAction => ({ do: "wait", seconds }));

/** A pod that has left a lock goes away while changes do not come, and then they come again. */
const gap: fc.Arbitrary<readonly WatchAction[]> = fc
  .tuple(
    pulumi,
    wait,
    fc.constantFrom<StreamChange>("cut", "deny"),
    wait,
    fc.constantFrom("force-delete", "delete", "complete"),
    fc.nat(2),
    wait,
    fc.constantFrom<StreamChange>("go on", "begin anew"),
    wait,
  )
  .map(([start, a, broken, b, end, pod, c, again, d]): readonly WatchAction[] => [
    start,
    a,
    { do: "beside", action: { do: "stream", cluster: 0, what: broken } },
    b,
    { do: end, pod },
    c,
    { do: "beside", action: { do: "stream", cluster: 0, what: again } },
    d,
  ]);

/** One pod after the other leaves a lock and goes, so that the valve has something to count. */
const exodus: fc.Arbitrary<readonly WatchAction[]> = fc
  .tuple(fc.array(fc.tuple(pulumi, fc.constantFrom(0, 75, 200, 400)), { minLength: 2, maxLength: 4 }), fc.constantFrom("force-delete", "complete"))
  .map(([starts, end]): readonly WatchAction[] =>
    starts.flatMap(([start, seconds], pod): readonly WatchAction[] => [
      { ...start, pod, stack: pod % 2 === 0 ? "prod" : "dev" },
      { do: "wait", seconds: 3 },
      { do: end, pod: 0 },
      { do: "wait", seconds },
    ]),
  );

/** Any history of a watch. */
export const watchHistories: fc.Arbitrary<WatchHistory> = fc.record({
  setup,
  interval: often(300, 5, 600, 1_800, 60),
  maxDeletions: often(50, 2, 1, 2),
  lag: often(0.2, 3, 0.02, 5, 40),
  janitors: fc.array(janitor, { minLength: 1, maxLength: 3 }),
  actions: fc
    .tuple(
      pulumi,
      fc.array(
        fc.oneof(
          { weight: 6, arbitrary: fc.array(single, { minLength: 1, maxLength: 2, size: "max" }) },
          { weight: 3, arbitrary: beside.map((action): readonly WatchAction[] => [{ do: "beside", action }]) },
          { weight: 2, arbitrary: wait.map((action) => [action]) },
          { weight: 2, arbitrary: gap },
          { weight: 2, arbitrary: exodus },
          { weight: 1, arbitrary: story },
          { weight: 1, arbitrary: plainSweep.map((action) => [action]) },
        ),
        { minLength: 2, maxLength: 8, size: "max" },
      ),
    )
    .map(([first, rest]): readonly WatchAction[] => [{ do: "wait", seconds: 5 }, first, { do: "wait", seconds: 3 }, ...rest.flat()]),
});
