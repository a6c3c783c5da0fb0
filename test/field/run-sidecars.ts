import { setTimeout as sleep } from "node:timers/promises";

import pLimit from "p-limit";
import { z } from "zod";

import { watchEvent } from "../../src/core/watch-event.ts";
import { waitFor } from "../e2e/peers/child.ts";
import type { Field } from "./field.ts";
import type { Scene } from "./scenario.ts";
import { SIDECAR } from "./shapes.ts";
import { letFinish, type SidecarScenario } from "./sidecar-scenarios.ts";

/** What was seen of one pod with a sidecar. */
export interface SidecarOutcome {
  readonly scenario: SidecarScenario;
  readonly kind: string;
  /** Whether pulumi ran, and its lock was there, once the scenario was over. */
  readonly ran: boolean;
  readonly locked: boolean;
  /** Whether the pod was there still when its lock was gone already. */
  readonly podOutlivedLock: boolean;
  /** The sidecar's own log, in its order, without times and numbers. */
  readonly told: readonly string[];
  readonly up: { readonly ok: boolean; readonly output: string };
}

interface Begun {
  readonly scenario: SidecarScenario;
  readonly scene: Scene;
  /** The sidecar's log to the end of its run; the kubelet does not keep it for longer. */
  readonly log: Promise<string>;
}

/** Runs all scenarios side by side. Gives what was seen, and the stacks whose update ran at any time without its lock. */
export async function runSidecars(
  field: Field,
  scenarios: readonly SidecarScenario[],
  say: (line: string) => void,
): Promise<{ readonly outcomes: readonly SidecarOutcome[]; readonly wronged: readonly string[] }> {
  const few = pLimit(3);
  const begun = await Promise.all(scenarios.map((scenario) => few(() => begin(field, scenario))));
  say(`${scenarios.length} updates under way, each seen by its sidecar`);
  const watch = new AbortController();
  const wronged = watchLiving(field, begun, watch.signal);
  const seen = await Promise.all(begun.map(async (one) => [one, await see(one)] as const));
  watch.abort();
  say("all have happened");
  const outcomes = await Promise.all(seen.map(([one, what]) => few(() => conclude(field, one, what))));
  return { outcomes, wronged: await wronged };
}

async function begin(field: Field, scenario: SidecarScenario): Promise<Begun> {
  const { scheme, name, sidecar } = scenario;
  const shape = scenario.shape(field.shapes, { sidecar: { kind: sidecar, url: field.backends.pods.url(scheme) } });
  const placed = await field.place(shape);
  const writers = [await field.beginUpdate(placed, scheme, name)];
  const logs = ["logs", "-n", placed.namespace, placed.pod, "-c", SIDECAR];
  const scene = { field, shape, placed, writers };
  await waitFor(
    `the sidecar of ${name} to see its lock`,
    async () => (tellLog(await field.kubectl(...logs), scene).some((line) => line.startsWith("held")) ? true : undefined),
    { every: 500 },
  );
  return { scenario, scene, log: field.followLog(...logs) };
}

type Seen = Pick<SidecarOutcome, "ran" | "locked" | "podOutlivedLock">;

async function see({ scenario, scene }: Begun): Promise<Seen> {
  const { field, placed, writers } = scene;
  const { scheme, name, end } = scenario;
  const isLocked = async (): Promise<boolean> => (await field.backends.readOwners(scheme, name)).length > 0;
  const uid = await field.uidOf(placed);
  await scenario.act(scene);
  let podOutlivedLock = false;
  if (end !== "lives") {
    await waitFor(`the lock of ${name} to go`, async () => ((await isLocked()) ? undefined : true), { every: 100 });
    podOutlivedLock = (await field.uidOf(placed)) === uid;
  }
  if (end === "pod-gone") await waitFor(`the end of ${placed.pod}`, async () => ((await field.uidOf(placed)) === uid ? undefined : true), { every: 500 });
  return { ran: (await field.truth.findAlive(writers)).length > 0, locked: await isLocked(), podOutlivedLock };
}

/** Looks again and again, until told otherwise, whether each update that runs has its lock. */
async function watchLiving(field: Field, begun: readonly Begun[], signal: AbortSignal): Promise<readonly string[]> {
  const wronged = new Set<string>();
  while (!signal.aborted) {
    const alive = await field.truth.findAlive(begun.flatMap(({ scene }) => scene.writers));
    for (const { scenario, scene } of begun) {
      const runs = scene.writers.filter((writer) => alive.includes(writer));
      if (runs.length === 0 || (await field.backends.readOwners(scenario.scheme, scenario.name)).length > 0) continue;
      // It may have ended since the look, and its lock with it.
      if ((await field.truth.findAlive(runs)).length > 0) wronged.add(scenario.name);
    }
    await sleep(500, undefined, { signal }).catch(() => undefined);
  }
  return Array.from(wronged);
}

async function conclude(field: Field, { scenario, scene, log }: Begun, seen: Seen): Promise<SidecarOutcome> {
  if (seen.ran) await letFinish(scene);
  const up = await field.up(scenario.scheme, scenario.name);
  return { scenario, kind: scene.shape.kind, ...seen, told: await readLog({ scenario, scene, log }), up };
}

/** What the sidecar said of its pod's update. The farewell is left out where the pod is gone: its log may be cut off before it. */
async function readLog({ scenario: { name, end, restarts }, scene, log }: Begun): Promise<readonly string[]> {
  if (end === "pod-gone") return tellLog(await log, scene).filter((line) => line !== "stopped");
  const { field, placed } = scene;
  const words = ["logs", "-n", placed.namespace, placed.pod, "-c", SIDECAR];
  const before = restarts ? await log : "";
  return await waitFor(
    `the sidecar of ${name} to tell of the end`,
    async () => {
      const lines = tellLog(before + (await field.kubectl(...words)), scene);
      return lines.some((line) => line.startsWith("stale")) ? lines : undefined;
    },
    { every: 500 },
  );
}

const logLine = z.looseObject({ level: z.string(), msg: z.string() });

/** The lines of a sidecar's log in short. Other processes of pulumi's take a lock too, as `stack init` does: they are left out. */
function tellLog(log: string, { placed: { pod }, writers: [writer] }: Scene): readonly string[] {
  return (
    log
      .split("\n")
      // What the kubelet says of a log that is gone is none of the log's.
      .filter((line) => line.startsWith("{"))
      .flatMap((line) => {
        const value: unknown = JSON.parse(line);
        const event = watchEvent.safeParse(value);
        if (!event.success) {
          const { level, msg } = logLine.parse(value);
          // Another pod's sidecar may have left a record open; that it was completed is none of this pod's.
          return level === "warn" ? [] : [msg.replaceAll(pod, "<pod>").replace(/: \d+$/, ": <n>")];
        }
        if (event.data.event !== "lock") return [event.data.event];
        const { owner, verdict, message, action } = event.data.lock;
        return owner?.pid === writer?.innerPid ? [`${verdict}: ${message} → ${action}`.replaceAll(/process \d+/g, "process <pid>")] : [];
      })
  );
}
