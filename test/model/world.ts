import { BEGINNING, Clock, seconds, Timeline } from "./clock.ts";
import { SimulatedCluster, type Workload } from "./cluster.ts";
import { SimulatedNode, type NodePace } from "./node.ts";
import { Oracle } from "./oracle.ts";
import type { SimulatedPod } from "./pod.ts";
import { PulumiProcess, type Manners } from "./process.ts";
import { ModelStore, type StoreManners } from "./store.ts";

/** What a history begins with. */
export interface Setup {
  readonly clusters: "one" | "two" | "one-of-two";
  readonly nodes: readonly { readonly clockAhead: number; readonly pace: NodePace; readonly joined: boolean }[];
  readonly apiAhead: number;
  readonly guestAhead: number;
  readonly janitorAhead: number;
  readonly storeAhead: number;
  readonly store: StoreManners;
  readonly minAge: number;
  readonly settle: number;
  /** Whether the clusters have the Stacks that the workspaces belong to. */
  readonly stacks: boolean;
  /** Which workloads have a pod at the beginning. */
  readonly begun: readonly number[];
}

const main = [{ name: "main", kind: "main" }] as const;

/** What runs in every cluster; each is called otherwise in the eyes of whoever looks by name alone. */
export const WORKLOADS: readonly Workload[] = [
  workspace("iac", 600),
  { kind: "stateful-set", name: "iac-runner-set", plan: { namespace: "ci", grace: 30, containers: [...main, { name: "proxy", kind: "sidecar" }] } },
  { kind: "deployment", name: "iac-runner-pool", plan: { namespace: "ci", grace: 60, containers: main } },
  { kind: "job", name: "iac-runner-job", plan: { namespace: "ci", grace: 30, containers: main } },
  { kind: "deployment", name: "hosted", plan: { namespace: "ci", hostname: "iac-runner-host", grace: 30, containers: main } },
  { kind: "stateful-set", name: `iac-runner-${"long-".repeat(11)}`, plan: { namespace: "ci", grace: 600, containers: main } },
  workspace("env-pr-12", 600),
  { kind: "deployment", name: "overridden", plan: { namespace: "ci", hostnameOverride: "iac-runner-over", grace: 30, containers: main } },
  { kind: "deployment", name: "daemon", plan: { namespace: "ci", hostNetwork: true, grace: 30, containers: main } },
  { kind: "stateful-set", name: "iac-runner-kata", plan: { namespace: "ci", runtimeClassName: "kata", grace: 30, containers: main } },
  { kind: "stateful-set", name: "iac-runner-fqdn", plan: { namespace: "ci", fullyQualified: true, grace: 30, containers: main } },
];

function workspace(namespace: string, grace: number): Workload {
  const containers = [
    { name: "fetch", kind: "init" },
    { name: "pulumi", kind: "main" },
    { name: "proxy", kind: "main" },
  ] as const;
  return { kind: "stateful-set", name: "shop-workspace", plan: { namespace, grace, containers, pulumiIn: "pulumi" } };
}

/** Names of nodes; one of them is shaped like a runner's. */
const NODE_NAMES = ["node-1", "iac-runner-node", "node-3", "node-four"];

/** Everything there is. */
export class World {
  readonly timeline = new Timeline();
  readonly setup: Setup;
  readonly clusters: readonly SimulatedCluster[];
  readonly stores: ModelStore[] = [];
  readonly processes: PulumiProcess[] = [];
  readonly oracle: Oracle;
  readonly janitorClock: Clock;
  /** Gets a line for all that happens; nobody listens unless a history is told. */
  tell: ((line: string) => void) | undefined;
  #pids = 6;
  #locks = 0;
  #nodesMade = 0;
  #runs = 0;

  constructor(setup: Setup) {
    this.setup = setup;
    this.janitorClock = new Clock(this.timeline, setup.janitorAhead);
    this.stores.push(new ModelStore("state", new Clock(this.timeline, setup.storeAhead), setup.store));
    this.clusters = (setup.clusters === "one" ? ["blue"] : ["blue", "green"]).map((name) => this.#openCluster(name));
    this.oracle = new Oracle(this);
  }

  /** The clusters that the janitor is told of. */
  get configured(): readonly SimulatedCluster[] {
    return this.setup.clusters === "one-of-two" ? this.clusters.slice(0, 1) : this.clusters;
  }

  /** Nobody may truly say that a backend is of the configured clusters alone while another writes to it: then only dry runs are let through. */
  get mayDelete(): boolean {
    return this.setup.clusters !== "one-of-two";
  }

  get store(): ModelStore {
    const [store] = this.stores;
    if (store === undefined) throw new Error("a world has a store");
    return store;
  }

  get pods(): readonly SimulatedPod[] {
    return this.clusters.flatMap(({ pods }) => pods);
  }

  get nodes(): readonly SimulatedNode[] {
    return this.clusters.flatMap(({ nodes }) => nodes);
  }

  /** Tells what happens, with the seconds since the beginning. */
  note(compose: () => string): void {
    this.tell?.(`${(Number(this.timeline.now - BEGINNING) / 1e9).toFixed(2).padStart(9)} s  ${compose()}`);
  }

  newRunId(): string {
    this.#runs += 1;
    return `run-${this.#runs}`;
  }

  joinNode(cluster: SimulatedCluster, words: Setup["nodes"][number]): void {
    const joined = words.joined ? 30 : 100_000;
    const name = NODE_NAMES[this.#nodesMade % NODE_NAMES.length] ?? "node";
    this.#nodesMade += 1;
    const clock = new Clock(this.timeline, words.clockAhead);
    const node = new SimulatedNode({
      name: cluster.nodes.some((other) => other.name === name) ? `${name}-${this.#nodesMade}` : name,
      clock,
      pace: words.pace,
      timeline: this.timeline,
      apiClock: cluster.clock,
      createdAt: cluster.clock.readSecond() - seconds(joined),
      readySince: clock.readSecond() - seconds(joined - 25),
    });
    cluster.addNode(node);
  }

  /** Starts pulumi in a container, or outside; it takes the lock of a stack after a while. */
  startPulumi(words: {
    readonly place: PulumiProcess["place"];
    readonly stack: string;
    readonly delay: number;
    readonly manners: Manners;
    readonly nested: boolean;
    readonly pid: number | undefined;
    readonly abandonFails: boolean;
  }): PulumiProcess {
    const { place } = words;
    this.#pids += 1;
    const process = new PulumiProcess({
      hostname: place === undefined ? "user-laptop.local" : place.pod.hostname,
      clock: place?.pod.clock ?? this.janitorClock,
      ...(place === undefined ? {} : { place }),
      pid: words.pid ?? this.#pids,
      ...(words.nested ? { outerPid: this.#pids + 1_000 } : {}),
      startedAt: this.timeline.now,
      manners: words.manners,
    });
    this.processes.push(process);
    place?.pod.processes.push(process);
    this.timeline.after(words.delay, () => this.#lock(process, words.stack, words.abandonFails));
    return process;
  }

  /** As lock.go does: refuses where another lock is, writes its own, looks again, and takes its own back where another has come. */
  #lock(process: PulumiProcess, stack: string, abandonFails: boolean): void {
    if (process.state !== "running") return;
    const store = this.store;
    this.#locks += 1;
    const folder = `.pulumi/locks/organization/shop/${stack}/`;
    const key = `${folder}${String(this.#locks).padStart(8, "0")}-0000-4000-8000-000000000000.json`;
    if (store.findOther(folder, key) !== undefined) {
      process.finish(false);
      return;
    }
    this.timeline.after(0.05, () => {
      if (process.state !== "running") return;
      store.putLock(key, process);
      process.holds = { store, key };
      this.timeline.after(0.2, () => {
        if (process.state === "running" && store.findOther(folder, key) !== undefined) process.finish(abandonFails);
      });
    });
  }

  #openCluster(name: string): SimulatedCluster {
    const { timeline, setup } = this;
    const guest = (): Clock => new Clock(timeline, setup.guestAhead);
    const cluster = new SimulatedCluster(name, timeline, new Clock(timeline, setup.apiAhead), WORKLOADS, guest);
    for (const words of setup.nodes) this.joinNode(cluster, words);
    for (const workload of setup.begun) cluster.create(workload, workload);
    return cluster;
  }
}
