import type { EpochNanoseconds } from "./time.ts";

/** A pod as the rules see it: what its status last said, reduced to what can prove something. */
export interface Pod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The API server's clock. */
  readonly createdAt: EpochNanoseconds;
  /** Set while the pod is Terminating: the end of its grace period. */
  readonly deletionAt?: EpochNanoseconds;
  readonly phase: string;
  readonly nodeName?: string;
  readonly hostNetwork: boolean;
  readonly hostname?: string;
  readonly hostnameOverride?: string;
  readonly subdomain?: string;
  readonly setHostnameAsFqdn: boolean;
  readonly runtimeClassName?: string;
  /** Reason of a `DisruptionTarget` condition that is True: who ended the pod, if not itself. */
  readonly disruption?: string;
  readonly containers: readonly Container[];
  /** What a probe of the pod's processes saw; absent when none was made. */
  readonly processes?: ProcessObservation;
}

export type ContainerKind = "main" | "init" | "sidecar" | "ephemeral";

/** A container of a pod, from the pod's spec and its status together. */
export interface Container {
  readonly name: string;
  readonly kind: ContainerKind;
  readonly state: ContainerState;
  /** The run before the present one. */
  readonly last?: TerminatedRun;
  readonly restartCount?: number;
  readonly containerId?: string;
  /** It has ended, and nothing starts it again in this pod. */
  readonly final?: true;
}

/** Times are whole seconds of the kubelet's clock; containerd notes `startedAt` after the process already runs. */
export type ContainerState =
  | { readonly kind: "running"; readonly startedAt?: EpochNanoseconds }
  | { readonly kind: "waiting"; readonly reason: string }
  | { readonly kind: "terminated"; readonly run: TerminatedRun }
  | { readonly kind: "unreported" };

export interface TerminatedRun {
  readonly startedAt?: EpochNanoseconds;
  readonly finishedAt?: EpochNanoseconds;
}

/** What a look at the processes of a pod's running containers gave: everything, or nothing that proves anything. */
export type ProcessObservation =
  | { readonly kind: "looked"; readonly containers: readonly ContainerProcesses[] }
  | { readonly kind: "could-not-look"; readonly problem: string };

export interface ContainerProcesses {
  readonly container: string;
  readonly containerId: string;
  readonly processes: readonly Process[];
}

export interface Process {
  readonly pid: number;
  /** The kernel's short name of it, `comm`. */
  readonly name: string;
  /** True for state Z with no thread left alive. */
  readonly zombie: boolean;
  /** By `btime` and the process's ticks; moves when the node's clock is stepped. */
  readonly startedAt: EpochNanoseconds;
  /** Its numbers in nested PID namespaces, from `NSpid`, without the outermost. */
  readonly innerPids: readonly number[];
}

export interface Node {
  readonly name: string;
  readonly createdAt: EpochNanoseconds;
  /** Name, `kubernetes.io/hostname` and addresses: what a process on the node itself may have as its hostname. */
  readonly hostnames: readonly string[];
  readonly ready: "True" | "False" | "Unknown";
  /** When `ready` became what it is: True and False by the node's own clock, Unknown by the control plane's (pkg/kubelet/nodestatus/setters.go, pkg/controller/nodelifecycle). */
  readonly readySince?: EpochNanoseconds;
  /** When its kubelet last reported, by the node's own clock: at each change, and every 5 min. */
  readonly reportedAt?: EpochNanoseconds;
  /** Tainted `node.kubernetes.io/out-of-service`: a person said that it is off. */
  readonly outOfService: boolean;
}

/** A `Stack` (or `Workspace`) of the Pulumi Kubernetes Operator: what says that a lock belongs here. */
export interface StackResource {
  readonly kind: "Stack" | "Workspace";
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
  /** `spec.stack` (for a Workspace its `spec.stacks[].name`). */
  readonly stacks: readonly string[];
  /** `spec.backend`. */
  readonly backend?: string;
  /** `status.lastUpdate.state` of a Stack: `failed`, `succeeded`. */
  readonly lastUpdateState?: string;
  /** The beginning of `status.lastUpdate.message` of a Stack: what Pulumi said, or whoever may write the status. */
  readonly lastUpdateMessage?: string;
}

/** A list that is whole, or the reason why it proves nothing. What was found is there in both cases. */
export type PodList = {
  readonly pods: readonly Pod[];
  /** How many pods the list had in all, the ones that concern no lock included. */
  readonly total: number;
} & ({ readonly kind: "complete" } | { readonly kind: "incomplete"; readonly problem: string });

export type NodeList = { readonly kind: "listed"; readonly nodes: readonly Node[] } | { readonly kind: "unlisted"; readonly problem: string };

export type StackList =
  /** `withoutWorkspaces`: why the list has Stacks only. */
  | { readonly kind: "listed"; readonly stacks: readonly StackResource[]; readonly withoutWorkspaces?: string }
  | { readonly kind: "unlisted"; readonly problem: string };

/** What was seen of the Stacks of one cluster. */
export interface StackListOfCluster {
  readonly cluster: string;
  readonly list: StackList;
}

/** Where an observation comes from, and so what its age proves. */
export type ObservationSource =
  | { readonly kind: "live" }
  /** `takenAt`: no later than when kubectl began. `stated`: on the user's word; else the latest time inside the pods of the file. */
  | { readonly kind: "snapshot"; readonly takenAt: EpochNanoseconds; readonly stated: boolean };

/** Everything that was seen of one cluster, after the locks were read. */
export interface ClusterObservation {
  readonly name: string;
  /** UID of the namespace `kube-system`. */
  readonly uid?: string;
  readonly source: ObservationSource;
  readonly pods: PodList;
  readonly nodes: NodeList;
  readonly stacks: StackList;
  /** The API server's clock less the janitor's, where it was seen. */
  readonly clockOffset?: bigint;
  /** Only these namespaces were asked. */
  readonly namespaces?: readonly string[];
}
