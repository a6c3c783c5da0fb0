// What may happen in a history, as data: so that fast-check can make histories up, and shrink the one that breaks a promise.
import fc from "fast-check";

import { APPS, stackOf, type Field } from "./field.ts";
import type { SweepPlan } from "./janitor.ts";
import type { ModelContainer, ModelNode, ModelPod, World } from "./world.ts";

/** Numbers choose among what is there at that time. */
export type Action =
  | { readonly kind: "wait"; readonly seconds: number }
  | { readonly kind: "add-pod"; readonly shape: Shape; readonly app: number; readonly namespace: number; readonly node: number; readonly containers: number }
  | { readonly kind: "add-node"; readonly cluster: number; readonly clock: number }
  | {
      readonly kind: "update";
      readonly pod: number;
      readonly container: number;
      readonly takes: number;
      readonly nested: boolean;
      readonly unlockFails: boolean;
    }
  | { readonly kind: "kill-process"; readonly process: number; readonly zombie: boolean }
  | { readonly kind: "reuse-pid"; readonly process: number }
  | { readonly kind: "restart-container"; readonly pod: number; readonly container: number; readonly pause: number; readonly late: number }
  | { readonly kind: "debug-container"; readonly pod: number }
  | { readonly kind: "delete-pod"; readonly pod: number; readonly grace: number }
  | { readonly kind: "force-delete"; readonly pod: number }
  | { readonly kind: "end-pod"; readonly pod: number; readonly phase: "Succeeded" | "Failed" }
  | { readonly kind: "collect-garbage" }
  | { readonly kind: "cut-node"; readonly node: number }
  | { readonly kind: "rejoin-node"; readonly node: number }
  | { readonly kind: "remove-node"; readonly node: number }
  | { readonly kind: "out-of-service"; readonly node: number }
  | { readonly kind: "step-clock"; readonly node: number; readonly by: number }
  | { readonly kind: "laptop" }
  | { readonly kind: "person-deletes"; readonly lock: number }
  | { readonly kind: "person-restores"; readonly lock: number }
  | { readonly kind: "copy-bucket" }
  | { readonly kind: "sweep"; readonly plan: PlannedSweep };

/** `workspace`: of operator v2. `runner`: a bare pod. `named`: one that sets its hostname. `long`: one whose name is cut. `elsewhere`: in a cluster that nobody told the janitor of. */
export type Shape = "workspace" | "runner" | "named" | "override" | "long" | "elsewhere";

export interface PlannedSweep extends Omit<SweepPlan, "clusters" | "meanwhile"> {
  /** What happens before which of its steps. */
  readonly meanwhile: readonly { readonly step: number; readonly action: Action }[];
}

export interface History {
  readonly clusters: 1 | 2;
  /** What the clocks of the first nodes show less the right time. */
  readonly clocks: readonly number[];
  readonly storeClock: number | undefined;
  readonly actions: readonly Action[];
}

const CONTAINER_SETS: readonly (readonly ModelContainer["kind"][])[] = [["main"], ["main", "sidecar"], ["main", "main"], ["main", "init"]];

const some = fc.nat({ max: 7 });
const seconds = fc.constantFrom(1, 3, 8, 20, 35, 50, 70, 130, 400, 700);

const calmPlan: PlannedSweep = {
  podsCutShort: false,
  nodesDenied: false,
  stacksDenied: false,
  probeFails: false,
  probe: false,
  staleCache: false,
  meanwhile: [],
};

/** All that is not a sweep. */
const happening: fc.Arbitrary<Action> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("wait" as const), seconds }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("add-pod" as const),
      shape: fc.constantFrom<Shape>("workspace", "workspace", "workspace", "runner", "runner", "named", "override", "long", "elsewhere"),
      app: fc.nat({ max: 2 }),
      namespace: fc.nat({ max: 1 }),
      node: some,
      containers: fc.constantFrom(0, 0, 0, 1, 2, 3),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("add-node" as const), cluster: fc.nat({ max: 1 }), clock: fc.constantFrom(0, -2, 2) }) },
  {
    weight: 7,
    arbitrary: fc.record({
      kind: fc.constant("update" as const),
      pod: some,
      container: fc.constantFrom(0, 0, 0, 1),
      takes: fc.constantFrom(5, 60, 400, 2_000, 9_000),
      nested: fc.constantFrom(false, false, false, false, true),
      unlockFails: fc.constantFrom(false, false, false, true),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("kill-process" as const), process: some, zombie: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reuse-pid" as const), process: some }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("restart-container" as const),
      pod: some,
      container: fc.constantFrom(0, 0, 1),
      pause: fc.constantFrom(0, 1, 5, 40),
      late: fc.constantFrom(0, 0, 1, 2),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("debug-container" as const), pod: some }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("delete-pod" as const), pod: some, grace: fc.constantFrom(1, 30, 600) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("force-delete" as const), pod: some }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("end-pod" as const), pod: some, phase: fc.constantFrom("Succeeded", "Failed") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("collect-garbage" as const) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("cut-node" as const), node: some }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("rejoin-node" as const), node: some }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("remove-node" as const), node: some }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("out-of-service" as const), node: some }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("step-clock" as const), node: some, by: fc.constantFrom(-3_600, -30, -3, 3, 30, 3_600) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("laptop" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("person-deletes" as const), lock: some }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("person-restores" as const), lock: some }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("copy-bucket" as const) }) },
);

const rarely = fc.constantFrom(false, false, false, false, false, false, false, true);
const aStep = fc.integer({ min: 1, max: 16 });
const mishap = fc.option(fc.record({ step: aStep, after: fc.boolean() }), { freq: 2, nil: undefined });

const plan: fc.Arbitrary<PlannedSweep> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ probe: fc.boolean() }).map(({ probe }) => ({ ...calmPlan, probe })) },
  {
    weight: 1,
    arbitrary: fc
      .record({
        podsCutShort: rarely,
        nodesDenied: rarely,
        stacksDenied: rarely,
        probeFails: rarely,
        probe: fc.boolean(),
        staleCache: fc.boolean(),
        crash: mishap,
        failure: mishap,
        meanwhile: fc.array(
          fc.record({
            step: aStep,
            action: fc.oneof(
              { weight: 6, arbitrary: happening },
              // Another janitor.
              { weight: 1, arbitrary: fc.boolean().map((probe): Action => ({ kind: "sweep", plan: { ...calmPlan, probe } })) },
            ),
          }),
          { maxLength: 3 },
        ),
      })
      .map(({ crash, failure, ...rest }) => ({ ...rest, ...(crash === undefined ? {} : { crash }), ...(failure === undefined ? {} : { failure }) })),
  },
);

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 5, arbitrary: happening },
  { weight: 1, arbitrary: plan.map((planned): Action => ({ kind: "sweep", plan: planned })) },
);

export const history: fc.Arbitrary<History> = fc.record({
  clusters: fc.constantFrom(1, 1, 2),
  clocks: fc.array(fc.constantFrom(0, 0, 0, 2, -2, 4, -4, 600, -600), { minLength: 2, maxLength: 4 }),
  storeClock: fc.constantFrom(0, 0, 2, -2, undefined),
  actions: fc.array(action, { minLength: 3, maxLength: 24 }),
});

/** Lets one thing happen. What it chooses among may be empty: then nothing does. */
export async function happen(field: Field, step: Action): Promise<void> {
  field.tally.countAction(step.kind);
  if (step.kind === "sweep") {
    await runPlan(field, step.plan);
    return;
  }
  happenAtOnce(field.world, field.clusters, step);
}

async function runPlan(field: Field, { meanwhile, ...planned }: PlannedSweep): Promise<void> {
  await field.sweep({
    ...planned,
    meanwhile: async (number) => {
      for (const { step, action: between } of meanwhile) if (step === number) await happen(field, between);
    },
  });
}

function happenAtOnce(world: World, clusters: number, step: Exclude<Action, { kind: "sweep" }>): void {
  const pods = world.pods.filter(({ listed, node }) => listed && node.on);
  switch (step.kind) {
    case "wait":
      world.pass(step.seconds);
      return;
    case "add-pod":
      addPod(world, clusters, step);
      return;
    case "add-node":
      world.addNode(step.cluster % clusters, step.clock);
      return;
    case "update": {
      // Also where the API server no longer has the pod: its processes go on until they are ended.
      const pod = choose(world.pods.filter(isAlive(world)), step.pod);
      const container = pod === undefined ? undefined : pod.containers[step.container % pod.containers.length];
      if (pod === undefined || container === undefined) return;
      const { takes, nested, unlockFails } = step;
      world.startUpdate(pod, container, { stack: stackOf(pod.name.split("-")[0] ?? ""), takes, nested, unlockFails });
      return;
    }
    case "kill-process": {
      const process = choose(
        world.processes.filter(({ alive }) => alive),
        step.process,
      );
      if (process === undefined) return;
      process.alive = false;
      process.zombie = step.zombie;
      return;
    }
    case "reuse-pid": {
      const dead = choose(
        world.processes.filter(({ alive, zombie, container }) => !alive && !zombie && world.isRunning(container)),
        step.process,
      );
      if (dead === undefined) return;
      world.processes.push({ pid: dead.pid, name: "sh", pod: dead.pod, container: dead.container, startedAt: world.now, alive: true, zombie: false });
      return;
    }
    case "restart-container": {
      const pod = choose(pods, step.pod);
      const container = pod?.containers[step.container % pod.containers.length];
      if (pod === undefined || container === undefined || container.kind === "ephemeral") return;
      world.endRun(pod, container);
      world.after(step.pause, () => world.startRun(pod, container, step.late));
      return;
    }
    case "debug-container": {
      const pod = choose(pods.filter(isAlive(world)), step.pod);
      if (pod === undefined) return;
      const container: ModelContainer = { name: `debug-${pod.containers.length}`, kind: "ephemeral", runs: [] };
      pod.containers.push(container);
      world.startRun(pod, container, 0);
      return;
    }
    case "delete-pod": {
      const pod = choose(
        pods.filter(({ deletionAt }) => deletionAt === undefined),
        step.pod,
      );
      if (pod === undefined) return;
      pod.deletionAt = world.now + step.grace;
      if (pod.node.silentSince === undefined) world.terminate(pod, step.grace);
      return;
    }
    case "force-delete": {
      const pod = choose(pods, step.pod);
      if (pod !== undefined) forceDelete(world, pod);
      return;
    }
    case "end-pod": {
      const pod = choose(
        pods.filter(({ phase, statefulSet }) => phase === "Running" && !statefulSet),
        step.pod,
      );
      if (pod !== undefined) world.endPod(pod, step.phase);
      return;
    }
    case "collect-garbage":
      collectGarbage(world);
      return;
    case "cut-node": {
      const node = choose(listedNodes(world), step.node);
      if (node !== undefined) world.silence(node);
      return;
    }
    case "rejoin-node": {
      const node = choose(
        world.nodes.filter(({ silentSince, on }) => silentSince !== undefined && on),
        step.node,
      );
      if (node !== undefined) world.rejoin(node);
      return;
    }
    case "remove-node": {
      const node = choose(listedNodes(world), step.node);
      if (node === undefined || listedNodes(world).length < 2) return;
      world.turnOff(node);
      node.listed = false;
      return;
    }
    case "out-of-service": {
      const node = choose(listedNodes(world), step.node);
      if (node === undefined || listedNodes(world).length < 2) return;
      world.turnOff(node);
      node.outOfService = true;
      return;
    }
    case "step-clock": {
      const node = choose(world.nodes, step.node);
      if (node === undefined) return;
      node.clock += step.by;
      if (step.by < 0) node.setBackAt = world.now;
      return;
    }
    case "laptop":
      addLaptop(world);
      return;
    case "person-deletes": {
      const key = choose(Array.from(world.store.objects.keys()), step.lock);
      if (key !== undefined) world.store.objects.delete(key);
      return;
    }
    case "person-restores": {
      const lock = choose(
        Array.from(world.written.values()).filter(({ key, writer }) => !world.store.objects.has(key) && writer?.alive !== true),
        step.lock,
      );
      if (lock !== undefined) world.putBody(lock.key, lock.body);
      return;
    }
    case "copy-bucket":
      for (const [key, { bytes }] of Array.from(world.store.objects)) world.putBody(key, new TextDecoder().decode(bytes));
  }
}

function choose<Item>(items: readonly Item[], index: number): Item | undefined {
  return items[index % Math.max(1, items.length)];
}

function isAlive(world: World): (pod: ModelPod) => boolean {
  return (pod) => pod.node.on && pod.containers.some((container) => world.isRunning(container));
}

function listedNodes(world: World): readonly ModelNode[] {
  return world.nodes.filter(({ listed, on }) => listed && on);
}

function addPod(world: World, clusters: number, { shape, app, namespace, node: index, containers }: Extract<Action, { kind: "add-pod" }>): void {
  const elsewhere = shape === "elsewhere";
  const node = choose(
    world.nodes.filter(
      ({ cluster, on, silentSince, listed }) => on && listed && silentSince === undefined && (elsewhere ? cluster >= clusters : cluster < clusters),
    ),
    index,
  );
  if (node === undefined) return;
  const common = { cluster: node.cluster, namespace: namespace === 0 ? "iac" : "ci", node, containers: CONTAINER_SETS[containers] ?? ["main" as const] };
  const name = nameOf(shape, app, world);
  if (world.pods.some((pod) => pod.listed && pod.cluster === node.cluster && pod.namespace === common.namespace && pod.name === name)) return;
  world.addPod({
    ...common,
    name,
    statefulSet: shape === "workspace" || elsewhere,
    ...(shape === "named" ? { hostname: `iac-runner-${app}` } : {}),
    ...(shape === "override" ? { hostnameOverride: `iac-runner-${app}` } : {}),
  });
}

function nameOf(shape: Shape, app: number, world: World): string {
  switch (shape) {
    case "workspace":
      return `${APPS[app] ?? "app0"}-workspace-0`;
    case "elsewhere":
      return `other${app}-workspace-0`;
    case "runner":
      return `iac-runner-${app}`;
    case "long":
      return `iac-runner-${"x".repeat(58)}-${app}`;
    case "named":
    case "override":
      return `worker-${world.nextId()}`;
  }
}

function forceDelete(world: World, pod: ModelPod): void {
  const { node } = pod;
  if (node.silentSince === undefined) world.after(3, () => pod.containers.forEach((container) => world.endRun(pod, container)));
  else pod.orphanedSince = node.silentSince;
  world.unlist(pod);
}

/** As the pod garbage collector: pods of nodes that are gone are marked as failed, then removed by force (pkg/controller/podgc/gc_controller.go). */
function collectGarbage(world: World): void {
  for (const pod of world.pods) {
    if (!pod.listed || (pod.node.listed && !pod.node.outOfService)) continue;
    if (pod.phase === "Running") {
      pod.phase = "Failed";
      pod.disruption = "DeletionByPodGC";
      pod.reported = { ...pod.reported, phase: "Failed" };
      world.after(2, () => world.unlist(pod));
    } else world.unlist(pod);
  }
}

/** Somebody works from a machine that is no pod; its lock stays as long as it does. */
function addLaptop(world: World): void {
  const node: ModelNode = { cluster: 9, name: "laptop", createdAt: 0, clock: 0, ready: "True", readySince: 0, listed: false, outOfService: false, on: true };
  const run = { startedAt: world.now, notedStart: world.now };
  const container: ModelContainer = { name: "shell", kind: "main", runs: [run] };
  const pod: ModelPod = {
    cluster: 9,
    namespace: "",
    name: `laptop-${world.nextId()}.local`,
    uid: "laptop",
    node,
    createdAt: world.now,
    containers: [container],
    statefulSet: false,
    listed: false,
    phase: "Running",
    reported: { phase: "Running", containers: [] },
  };
  world.startUpdate(pod, container, { stack: stackOf("laptop"), takes: 5_000, nested: false, unlockFails: false });
}
