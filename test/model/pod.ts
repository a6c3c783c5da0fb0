import type { Container as ApiContainer, ContainerKind, ContainerState, Pod, Process, ProcessObservation, TerminatedRun } from "../../src/core/cluster.ts";
import type { EpochNanoseconds } from "../../src/core/time.ts";
import type { Clock } from "./clock.ts";
import type { SimulatedNode, Trouble } from "./node.ts";
import type { PulumiProcess } from "./process.ts";

/** What a workload makes its pods from. */
export interface PodPlan {
  readonly namespace: string;
  readonly hostname?: string;
  readonly hostnameOverride?: string;
  readonly hostNetwork?: boolean;
  readonly fullyQualified?: boolean;
  readonly runtimeClassName?: string;
  readonly grace: number;
  /** The only ordinary container that runs pulumi, as the profile of such pods says. */
  readonly pulumiIn?: string;
  readonly containers: readonly { readonly name: string; readonly kind: ContainerKind }[];
}

/** One container as it truly is on its node. */
export class Container {
  readonly name: string;
  readonly kind: ContainerKind;
  state: ContainerState = { kind: "waiting", reason: "ContainerCreating" };
  /** True time at which its present run began; undefined while it does not run. */
  runsSince: EpochNanoseconds | undefined;
  last: TerminatedRun | undefined;
  restarts = 0;
  runs = 0;

  constructor(name: string, kind: ContainerKind) {
    this.name = name;
    this.kind = kind;
  }

  idOf(pod: SimulatedPod): string {
    return `${pod.uid}/${this.name}/${this.runs}`;
  }

  toApi(pod: SimulatedPod): ApiContainer {
    return {
      name: this.name,
      kind: this.kind,
      state: this.state,
      restartCount: this.restarts,
      containerId: this.idOf(pod),
      ...(this.last === undefined ? {} : { last: this.last }),
    };
  }
}

/** How a pod was force-deleted: while its kubelet could act upon it, or not. */
export interface ForceDeletion {
  readonly at: EpochNanoseconds;
  /** What kept the kubelet from acting upon it, if anything did. */
  readonly trouble: Trouble | undefined;
}

/** A pod: what runs on its node, and what the API shows of it. */
export class SimulatedPod {
  readonly plan: PodPlan;
  readonly name: string;
  readonly uid: string;
  readonly workload: number;
  readonly createdAt: EpochNanoseconds;
  readonly node: SimulatedNode;
  /** The guest's clock, where a runtime class gives the pod a kernel of its own. */
  readonly guest: Clock | undefined;
  readonly containers: Container[];
  readonly processes: PulumiProcess[] = [];
  inApi = true;
  deletionAt: EpochNanoseconds | undefined;
  forceDeletion: ForceDeletion | undefined;
  disruption: string | undefined;
  /** Its containers have all ended for good. */
  over = false;
  /** Its kubelet is ending it. */
  ending = false;
  succeeded = true;
  reported: { phase: string; containers: readonly ApiContainer[] };

  constructor(words: {
    readonly plan: PodPlan;
    readonly name: string;
    readonly uid: string;
    readonly workload: number;
    readonly createdAt: EpochNanoseconds;
    readonly node: SimulatedNode;
    readonly guest?: Clock;
  }) {
    this.plan = words.plan;
    this.name = words.name;
    this.uid = words.uid;
    this.workload = words.workload;
    this.createdAt = words.createdAt;
    this.node = words.node;
    this.guest = words.guest;
    this.containers = words.plan.containers.map(({ name, kind }) => new Container(name, kind));
    this.reported = { phase: "Pending", containers: this.containers.map(({ name, kind }) => ({ name, kind, state: { kind: "unreported" } })) };
  }

  /** What the kernel tells the pod's processes. */
  get hostname(): string {
    const { hostNetwork, hostnameOverride, hostname, fullyQualified, namespace } = this.plan;
    if (hostNetwork === true) return this.node.name;
    if (hostnameOverride !== undefined) return hostnameOverride;
    let short = (hostname ?? this.name).slice(0, 63);
    while (short.endsWith("-") || short.endsWith(".")) short = short.slice(0, -1);
    return fullyQualified === true ? `${short}.sub.${namespace}.svc.cluster.local` : short;
  }

  get clock(): Clock {
    return this.guest ?? this.node.clock;
  }

  get phase(): string {
    if (this.over) return this.succeeded ? "Succeeded" : "Failed";
    return this.containers.some(({ kind, runs }) => kind === "main" && runs > 0) ? "Running" : "Pending";
  }

  toApi(): Pod {
    const { plan, deletionAt, disruption } = this;
    return {
      namespace: plan.namespace,
      name: this.name,
      uid: this.uid,
      createdAt: this.createdAt,
      phase: this.reported.phase,
      nodeName: this.node.name,
      hostNetwork: plan.hostNetwork === true,
      setHostnameAsFqdn: plan.fullyQualified === true,
      containers: this.reported.containers,
      ...(plan.hostname === undefined ? {} : { hostname: plan.hostname }),
      ...(plan.hostnameOverride === undefined ? {} : { hostnameOverride: plan.hostnameOverride }),
      ...(plan.fullyQualified === true ? { subdomain: "sub" } : {}),
      ...(plan.runtimeClassName === undefined ? {} : { runtimeClassName: plan.runtimeClassName }),
      ...(deletionAt === undefined ? {} : { deletionAt }),
      ...(disruption === undefined ? {} : { disruption }),
    };
  }

  /** What a look at the processes of its running containers gives; `miss`: one container is not looked at. */
  probe(miss: boolean): ProcessObservation {
    if (!this.node.reachable) return { kind: "could-not-look", problem: "the kubelet does not answer" };
    const running = this.containers.filter(({ state }) => state.kind === "running").slice(miss ? 1 : 0);
    return {
      kind: "looked",
      containers: running.map((container) => ({
        container: container.name,
        containerId: container.idOf(this),
        processes: [
          { pid: 1, name: "tini", zombie: false, startedAt: (container.runsSince ?? 0n) + this.clock.offset, innerPids: [] },
          ...this.processes.filter(({ place, state }) => place?.container === container && state !== "gone").map((process) => describeProcess(process)),
          ...this.processes
            .filter(({ place, leavesHost, startedAt }) => place?.container === container && leavesHost && startedAt >= (container.runsSince ?? 0n))
            .map((process) => ({ ...describeProcess(process), pid: process.pid + 100_000, name: "pulumi-language", zombie: false, innerPids: [] })),
        ],
      })),
    };
  }
}

function describeProcess(process: PulumiProcess): Process {
  return {
    pid: process.outerPid ?? process.pid,
    name: "pulumi",
    zombie: process.state === "zombie",
    startedAt: process.startedAt + process.clock.offset,
    innerPids: process.outerPid === undefined ? [] : [process.pid],
  };
}
