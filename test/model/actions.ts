import { openBackendAuditLog } from "../../src/output/backend-audit-log.ts";
import { restoreLock } from "../../src/restore.ts";
import { runSweep, type SweepPlan } from "./janitor.ts";
import type { SimulatedNode } from "./node.ts";
import type { SimulatedPod } from "./pod.ts";
import type { Manners, PulumiProcess } from "./process.ts";
import { ModelStore } from "./store.ts";
import { StoreView } from "./views.ts";
import type { Setup, World } from "./world.ts";

/** What may be done to a pod as a whole. */
export type PodChange = "debug" | "delete" | "evict" | "force-delete" | "collect" | "complete" | "fail";

/** One thing that happens. What it happens to is told by a number, so that a history stays one when a part of it is left out. */
export type Action =
  | { readonly do: "wait"; readonly seconds: number }
  | { readonly do: "create"; readonly cluster: number; readonly workload: number; readonly node: number }
  | {
      readonly do: "pulumi";
      readonly pod: number;
      readonly container: number;
      readonly stack: string;
      readonly delay: number;
      readonly manners: Manners;
      readonly nested: boolean;
      readonly pid: number | undefined;
      readonly abandonFails: boolean;
    }
  | { readonly do: "outside"; readonly stack: string }
  | {
      readonly do: "process";
      readonly process: number;
      readonly what: "finish" | "finish, delete fails" | "kill" | "kill, unreaped" | "stop" | "continue";
    }
  | { readonly do: "restart"; readonly pod: number; readonly container: number; readonly backOff: number }
  | { readonly do: PodChange; readonly pod: number }
  | {
      readonly do: "node";
      readonly node: number;
      readonly what: "cut" | "heal" | "hang" | "unhang" | "power off" | "power on" | "taint out-of-service" | "delete" | "delete object only";
    }
  | { readonly do: "step clock"; readonly node: number; readonly seconds: number }
  | { readonly do: "join"; readonly cluster: number; readonly words: Setup["nodes"][number] }
  | { readonly do: "cancel" | "copy bucket" | "restore" | "put junk"; readonly stack: string }
  | { readonly do: "sweep"; readonly plan: SweepPlan };

/** Lets one action happen. What it needs and does not find makes it nothing. */
export async function perform(world: World, action: Action): Promise<void> {
  world.oracle.tally.action(action.do === "node" || action.do === "process" ? `${action.do}: ${action.what}` : action.do);
  if (action.do !== "wait") world.note(() => describeAction(action));
  switch (action.do) {
    case "wait":
      world.timeline.advance(action.seconds);
      return;
    case "create":
      pick(world.clusters, action.cluster)?.create(action.workload, action.node);
      return;
    case "pulumi":
      startPulumi(world, action);
      return;
    case "outside":
      world.startPulumi({ ...QUIET, place: undefined, stack: action.stack });
      return;
    case "process":
      changeProcess(pick(livingOrAll(world), action.process), action.what);
      return;
    case "restart": {
      const pod = pickPod(world, action.pod);
      const container = pick(pod?.containers ?? [], action.container);
      if (pod !== undefined && container !== undefined) clusterOf(world, pod)?.restart(pod, container, action.backOff);
      return;
    }
    case "node":
      changeNode(world, pickNode(world, action.node), action.what);
      return;
    case "step clock":
      pickNode(world, action.node)?.clock.step(action.seconds);
      return;
    case "join": {
      const cluster = pick(world.clusters, action.cluster);
      if (cluster !== undefined) world.joinNode(cluster, { ...action.words, joined: true });
      return;
    }
    case "cancel":
      for (const { key } of Array.from(world.store.objects.values())) if (key.includes(`/${action.stack}/`)) world.store.depart(key, "person");
      return;
    case "copy bucket":
      copyBucket(world);
      return;
    case "restore":
      await restoreLast(world);
      return;
    case "put junk":
      world.store.put(`.pulumi/locks/organization/shop/${action.stack}/junk.json`, new Uint8Array(), undefined);
      return;
    case "sweep":
      await runSweep(world, action.plan, perform);
      return;
    case "debug":
    case "delete":
    case "evict":
    case "force-delete":
    case "collect":
    case "complete":
    case "fail":
      changePod(world, pickPod(world, action.pod), action.do);
  }
}

/** An action in one line. */
function describeAction(action: Action): string {
  const { do: what, ...words } = action;
  return `${what} ${JSON.stringify(words)}`;
}

/** A writer of no special kind. */
export const QUIET = {
  stack: "prod",
  delay: 0.5,
  manners: { kind: "ignores" },
  nested: false,
  pid: undefined,
  abandonFails: false,
} as const;

function startPulumi(world: World, action: Extract<Action, { do: "pulumi" }>): void {
  const pods = world.pods.filter(({ over, containers }) => !over && containers.some(({ state }) => state.kind === "running"));
  const pod = pick(pods, action.pod);
  const { pulumiIn } = pod?.plan ?? {};
  const mayRun = pod?.containers.filter(({ state, name, kind }) => state.kind === "running" && (kind === "ephemeral" || (pulumiIn ?? name) === name));
  const container = pick(mayRun ?? [], action.container);
  if (pod === undefined || container === undefined) return;
  const taken = pod.processes.some(({ pid, outerPid, state, place }) => place?.container === container && state !== "gone" && (outerPid ?? pid) === action.pid);
  world.startPulumi({ ...action, place: { pod, container }, pid: taken && !action.nested ? undefined : action.pid });
}

function changeProcess(process: PulumiProcess | undefined, what: Extract<Action, { do: "process" }>["what"]): void {
  if (process === undefined) return;
  switch (what) {
    case "finish":
      process.finish(false);
      return;
    case "finish, delete fails":
      process.finish(true);
      return;
    case "kill":
      process.kill();
      return;
    case "kill, unreaped":
      process.kill(false);
      return;
    case "stop":
      if (process.state === "running") process.state = "stopped";
      return;
    case "continue":
      if (process.state === "stopped") process.state = "running";
  }
}

function changePod(world: World, pod: SimulatedPod | undefined, what: PodChange): void {
  const cluster = pod === undefined ? undefined : clusterOf(world, pod);
  if (pod === undefined || cluster === undefined) return;
  switch (what) {
    case "debug":
      cluster.debug(pod);
      return;
    case "delete":
      cluster.delete(pod);
      return;
    case "evict":
      cluster.delete(pod, "DeletionByTaintManager");
      return;
    case "force-delete":
      cluster.forceDelete(pod);
      return;
    case "collect":
      cluster.collect(pod, 5);
      return;
    case "complete":
    case "fail":
      cluster.complete(pod, what === "complete");
  }
}

function changeNode(world: World, node: SimulatedNode | undefined, what: Extract<Action, { do: "node" }>["what"]): void {
  const cluster = world.clusters.find(({ nodes }) => node !== undefined && nodes.includes(node));
  if (node === undefined || cluster === undefined) return;
  switch (what) {
    case "cut":
      if (!node.cut) node.change({ cut: true });
      return;
    case "heal":
      if (node.cut) node.change({ cut: false });
      return;
    case "hang":
      if (!node.hung) node.change({ hung: true });
      return;
    case "unhang":
      if (node.hung) node.change({ hung: false });
      return;
    case "power off":
      cluster.powerOff(node);
      return;
    case "power on":
      if (!node.on && node.inApi && !node.outOfService) node.change({ on: true, hung: false });
      return;
    case "taint out-of-service":
      cluster.powerOff(node);
      node.outOfService = true;
      return;
    case "delete":
      cluster.powerOff(node);
      node.inApi = false;
      return;
    case "delete object only":
      if (!node.reachable) node.inApi = false;
  }
}

function copyBucket(world: World): void {
  if (world.stores.length > 1) return;
  const { store } = world;
  const copy = new ModelStore("copy", store.clock, store.manners);
  for (const { key, bytes, writer } of store.objects.values()) copy.put(key, bytes, writer);
  world.stores.push(copy);
}

/** A person puts the removed lock back that was removed last. */
async function restoreLast(world: World): Promise<void> {
  const view = new StoreView(world.store, world, { lookedAt: 0n, before: () => Promise.resolve(undefined), after: () => Promise.resolve() });
  const audit = openBackendAuditLog(view.records);
  const { signal } = new AbortController();
  const last = (await audit.readAll(signal)).findLast(({ outcome, restored }) => outcome?.action === "deleted" && restored === undefined);
  if (last === undefined) return;
  const remover = { runId: "person", janitor: { version: "model", hostname: "model" }, overrides: [], now: () => world.janitorClock.read() };
  // A refusal is an answer too.
  await restoreLock(view, audit, last, remover, signal).catch(() => undefined);
}

function livingOrAll({ processes }: World): readonly PulumiProcess[] {
  const living = processes.filter(({ lives }) => lives);
  return living.length > 0 ? living : processes;
}

/** Small numbers mean pods that something was started in, others any pod. */
function pickPod({ pods }: World, index: number): SimulatedPod | undefined {
  const there = pods.filter(({ inApi, over }) => inApi || !over);
  const busy = there.filter(({ processes }) => processes.length > 0);
  return pick(index < 8 && busy.length > 0 ? busy : there, index);
}

function pickNode(world: World, index: number): SimulatedNode | undefined {
  const busy = Array.from(new Set(world.pods.filter(({ processes }) => processes.some(({ lives }) => lives)).map(({ node }) => node)));
  return pick(index < 8 && busy.length > 0 ? busy : world.nodes, index);
}

function clusterOf({ clusters }: World, pod: SimulatedPod): World["clusters"][number] | undefined {
  return clusters.find(({ pods }) => pods.includes(pod));
}

function pick<Item>(items: readonly Item[], index: number): Item | undefined {
  return items[index % Math.max(items.length, 1)];
}
