import type { ClusterObservation, Pod } from "../core/cluster.ts";

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
  /** As whom requests are sent, for `check`; undefined where it cannot be told. */
  whoAmI(signal: AbortSignal): Promise<string | undefined>;
  /** The hostnames of all pods that may be seen, for `check`. */
  listHostnames(signal: AbortSignal): Promise<readonly string[]>;
  close(): Promise<void>;
}
