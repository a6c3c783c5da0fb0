import { setTimeout as sleep } from "node:timers/promises";

import pLimit from "p-limit";

import type { Shape } from "../test/field/shapes.ts";
import type { Lane, Measured, Update } from "./death-lane.ts";

/** One way to die, and how it is tried. */
export interface Kind {
  readonly name: string;
  readonly dies: string;
  readonly janitor: "watch" | "sidecar";
  /** The share of the trials that are asked for. */
  readonly share: number;
  readonly run: (lanes: readonly Lane[], trials: number, tell: (measured: Measured) => void) => Promise<void>;
}

/** Past `--min-age`. */
const AGE = 62_000;
/** The pods of each lane whose locks come of age together, and the stacks that they update. */
const TOGETHER = 5;
export const STACKS: readonly string[] = Array.from({ length: TOGETHER }, (_, index) => `s${index}`);
/** How long a lock is waited for: watch has a limit of its own in its interval. */
const WATCHED = 120_000;
const SIDE = 15_000;

export const KINDS: readonly Kind[] = [
  { name: "process-killed", dies: "pulumi alone is killed (`kill -9`)", janitor: "sidecar", share: 1, run: killProcesses },
  {
    name: "graceful-end",
    dies: "the pod is deleted, its container ends with pulumi in it, long before the grace period is over",
    janitor: "sidecar",
    share: 1,
    run: (lanes, trials, tell) => endPods(lanes, trials, { grace: 60, agentLeaves: true }, tell),
  },
  {
    name: "grace-ran-out",
    dies: "the pod is deleted, pulumi is killed when the grace period is over, and the sidecar has two seconds",
    janitor: "sidecar",
    share: 0.2,
    run: (lanes, trials, tell) => endPods(lanes, trials, { grace: 1, agentWaits: true }, tell),
  },
  {
    name: "container-restarted",
    dies: "the container's process 1 is killed; it restarts in its place",
    janitor: "watch",
    share: 1,
    run: endTogether(TOGETHER, {
      place: (lane, index) => lane.shapes.bare(`bench-${lane.number}-r${index}`, { restartPolicy: "Always" }),
      end: (lane, { pod }) => Promise.resolve(void process.kill(lane.findAgent(pod).pid, "SIGKILL")),
    }),
  },
  {
    name: "pod-deleted",
    dies: "the pod is deleted, and its container ends with pulumi in it",
    janitor: "watch",
    share: 1,
    run: endTogether(TOGETHER, {
      place: (lane, index, batch) => lane.shapes.bare(`bench-${lane.number}-d${batch}-${index}`, { grace: 60, agentLeaves: true }),
      end: deletePod,
    }),
  },
  {
    name: "pod-recreated",
    dies: "the same, and a StatefulSet makes a pod of the same name at once: `--settle` (30 s) comes first",
    janitor: "watch",
    share: 0.08,
    run: endTogether(2, {
      place: (lane, index) => lane.shapes.workspace(`bench-${lane.number}-p${index}`, { grace: 60, agentLeaves: true }),
      end: deletePod,
    }),
  },
];

/** The pods of a batch, and how they die. */
interface Ending {
  readonly place: (lane: Lane, index: number, batch: number) => Shape;
  readonly end: (lane: Lane, update: Update) => Promise<void>;
}

function endTogether(together: number, ending: Ending): Kind["run"] {
  return async (lanes, trials, tell) => await comeOfAge(lanes, trials, together, ending, tell);
}

/** Batch by batch: updates in some pods of every lane, the wait until their locks are of age, and one death after the other in each lane. */
async function comeOfAge(lanes: readonly Lane[], trials: number, together: number, { place, end }: Ending, tell: (measured: Measured) => void): Promise<void> {
  const few = pLimit(4);
  const left = { trials };
  for (let batch = 0; left.trials > 0; batch += 1) {
    const stacks = STACKS.slice(0, Math.min(together, Math.ceil(left.trials / lanes.length)));
    const begun = await Promise.all(
      lanes.map(async (lane) => {
        const shapes = stacks.map((_, index) => place(lane, index, batch));
        await lane.field.apply(...shapes.flatMap(({ objects }) => objects));
        return await Promise.all(shapes.map((shape, index) => few(() => lane.begin(nameOf(shape), stacks[index] ?? ""))));
      }),
    );
    await sleep(Math.max(...begun.flat().map(({ lockedAt }) => lockedAt)) + AGE - Date.now());
    await Promise.all(
      lanes.map(async (lane, at) => {
        for (const update of begun[at] ?? []) {
          await pause();
          const measured = await lane.measure(update, () => end(lane, update), WATCHED);
          if (left.trials > 0) tell(measured);
          left.trials -= 1;
        }
      }),
    );
  }
  const [lane] = lanes;
  await lane?.kubectl("delete", "statefulsets,pods", "-n", "field", "-l", "!watcher", "--force", "--grace-period=0", "--wait=false");
}

/** One pod with a sidecar for each lane, in which one update after the other is killed. */
async function killProcesses(lanes: readonly Lane[], trials: number, tell: (measured: Measured) => void): Promise<void> {
  const left = { trials };
  await Promise.all(
    lanes.map(async (lane) => {
      const shape = lane.shapes.bare(`side-${lane.number}`, { sidecar: { kind: "native", url: lane.url } });
      await lane.field.apply(...shape.objects);
      while (left.trials > 0) {
        left.trials -= 1;
        const update = await lane.begin(nameOf(shape), "s0");
        await lane.waitForSidecar(update);
        await pause();
        tell(await lane.measure(update, () => Promise.resolve(void process.kill(update.pid, "SIGKILL")), SIDE));
        lane.tidy(update);
      }
      await lane.kubectl("delete", "pod", "-n", "field", nameOf(shape), "--force", "--grace-period=0");
    }),
  );
}

/** A pod with a sidecar for each trial. */
async function endPods(
  lanes: readonly Lane[],
  trials: number,
  options: { readonly grace: number; readonly agentLeaves?: boolean; readonly agentWaits?: boolean },
  tell: (measured: Measured) => void,
): Promise<void> {
  const left = { trials };
  await Promise.all(
    lanes.map(async (lane) => {
      for (let number = 0; left.trials > 0; number += 1) {
        left.trials -= 1;
        const shape = lane.shapes.bare(`side-${lane.number}-${options.grace}-${number}`, { ...options, sidecar: { kind: "native", url: lane.url } });
        await lane.field.apply(...shape.objects);
        const update = await lane.begin(nameOf(shape), "s0");
        await lane.waitForSidecar(update);
        await pause();
        tell(await lane.measure(update, () => deletePod(lane, update), SIDE));
      }
    }),
  );
}

async function deletePod(lane: Lane, { pod }: Update): Promise<void> {
  await lane.kubectl("delete", "pod", "-n", "field", pod, "--wait=false");
}

/** So that no trial keeps time with what looks at it. */
async function pause(): Promise<void> {
  await sleep(Math.random() * 2_500);
}

function nameOf({ pod }: Shape): string {
  if ("name" in pod) return pod.name;
  throw new Error("only a pod that has a name of its own is tried here");
}
