import type { StackEvent } from "../core/after-unlock.ts";
import type { ClusterObservation, Pod, ProcessObservation, StackList, StackResource } from "../core/cluster.ts";
import type { EpochNanoseconds } from "../core/time.ts";

/** A reason to look. */
export type ClusterSign =
  /** A pod that gives its processes this hostname went away, ended, or one of its containers stopped. */
  | { readonly kind: "pod"; readonly hostname: string }
  /** A Stack's latest update failed, and its message may name the lock that is in the way. */
  | { readonly kind: "stack"; readonly message: string }
  /** Changes of pods may have been missed, and come again now. */
  | { readonly kind: "lost"; readonly problem: string }
  /** Signs of one kind of object do not come now. `denied`: the right to them is missing. */
  | { readonly kind: "unfollowed"; readonly what: string; readonly problem: string; readonly denied: boolean }
  /** They come, or come again. */
  | { readonly kind: "followed"; readonly what: string };

/** What came of telling a Stack something. */
export type Telling = { readonly kind: "told" } | { readonly kind: "failed"; readonly problem: string };

/** What may be told to Stacks, as rights name it. */
export type StackRight = "patch stacks.pulumi.com" | "create events";

/** A cluster that can be looked at again and again, each time after the locks were read. */
export interface ClusterSource {
  readonly name: string;
  /** `snapshot` for a file: looking at it costs no request. */
  readonly kind: "live" | "snapshot";
  /**
   * Everything that the rules need, for the hostnames in question: all pods that may have one of them, all nodes, all Stacks. Never throws for what
   * the cluster refuses: a part that could not be seen says so in the observation.
   */
  observe(hostnames: ReadonlySet<string>, signal: AbortSignal): Promise<ClusterObservation>;
  /** A cheap look at the pods that are called like the hostname. It may only ever conclude that a lock is held; empty when there are none or they could not be seen. */
  findNamesakes(hostname: string, signal: AbortSignal): Promise<readonly Pod[]>;
  /**
   * Looks at the processes in every running container of a pod. Never throws for what the cluster or a container refuses: the observation says so. Absent
   * where no command can be run: a file.
   */
  probe?(pod: Pod, signal: AbortSignal): Promise<ProcessObservation>;
  /** The verbs on pods/exec that are not allowed in a namespace, for `check`; undefined where it cannot be told. */
  findMissingExecVerbs?(namespace: string, signal: AbortSignal): Promise<readonly string[] | undefined>;
  /** Whether the changes of each kind of object that `follow` follows may be asked for, for `check`; undefined where it cannot be told. */
  reviewFollowing?(signal: AbortSignal): Promise<readonly { readonly what: string; readonly allowed: boolean | undefined }[]>;
  /**
   * Tells the operator to try a Stack again: sets the one annotation to a value that it has not seen, and changes nothing else. Never throws for what the cluster refuses. Absent where
   * nothing can be written: a file. The same holds for `writeEvent`.
   */
  requeueStack?(stack: StackResource, value: string, signal: AbortSignal): Promise<Telling>;
  /** Writes an Event on a Stack. */
  writeEvent?(stack: StackResource, event: StackEvent, at: EpochNanoseconds, signal: AbortSignal): Promise<Telling>;
  /** Where a right to tell Stacks is missing, for `check`: nowhere, everywhere or in some of the namespaces that are asked; undefined where it cannot be told. */
  findMissingRight?(right: StackRight, signal: AbortSignal): Promise<readonly string[] | undefined>;
  /** All Stacks and Workspaces, for the backends that they name. */
  listStacks(signal: AbortSignal): Promise<StackList>;
  /** As whom requests are sent, for `check`; undefined where it cannot be told. */
  whoAmI(signal: AbortSignal): Promise<string | undefined>;
  /** The hostnames of all pods that may be seen, for `check`. */
  listHostnames(signal: AbortSignal): Promise<readonly string[]>;
  /** Tells of what may make a lock stale, or shows one, until the signal aborts; a file tells of nothing. A sign is a reason to look, and proves nothing. */
  follow?(onSign: (sign: ClusterSign) => void, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}
