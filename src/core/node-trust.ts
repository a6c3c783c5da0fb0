import type { ClusterObservation, Node, Pod } from "./cluster.ts";
import { MINUTE, SECOND, type EpochNanoseconds, type Nanoseconds } from "./time.ts";

/**
 * How long the containers of a pod that was force-deleted may still run once its node is back: the longest grace period of the operator's
 * pods (600 s) and a margin. Seen on a real node: a process ran its full grace period with the node Ready again.
 */
const RETURNED_NODE_DOUBT: Nanoseconds = 10n * MINUTE + 30n * SECOND;

/** A node that became Ready this soon after its creation has just joined: it is not one that came back. */
const JOINING_TIME: Nanoseconds = 2n * MINUTE;

/** After a node falls silent it takes 40 to 50 s until it loses Ready. */
const SILENCE_NOTICED: Nanoseconds = MINUTE;

/** A runtime that hangs costs its node Ready only after 3 min (`relistThreshold`, pkg/kubelet/pleg/generic.go), and the kubelet's next report. */
const HANG_NOTICED: Nanoseconds = 4n * MINUTE;

/** The nodes whose silence a person vouches for (`--unreachable-nodes=ignore`, `ignore:<node>`). */
export interface IgnoredNodes {
  readonly all: boolean;
  readonly names: readonly string[];
}

/** A node on which a pod that the API no longer shows may still run, and why. */
export interface DoubtfulNode {
  readonly name: string;
  readonly why: string;
}

/**
 * The nodes of a cluster that make the absence of a pod unprovable: older than the lock, not said to be off, and not Ready or Ready again too recently.
 * A kubelet that cannot reach the API server does not learn that its pod was force-deleted.
 */
export function findDoubtfulNodes(nodes: readonly Node[], { lockedAt, now, skew, ignored, deletedBefore }: AbsenceQuestion): readonly DoubtfulNode[] {
  if (ignored.all) return [];
  return nodes
    .filter((node) => node.createdAt <= lockedAt + skew && !node.outOfService && !ignored.names.includes(node.name))
    .flatMap((node) => {
      if (node.ready !== "True") {
        // It was still Ready when the pod in question was deleted, so its kubelet learnt of that; or it had been cut off before, came back
        // and was lost again, of which the API shows the last loss only: then the pod has had its grace period when that is long ago.
        const lostSince = node.readySince;
        const noticed = node.ready === "False" ? HANG_NOTICED : SILENCE_NOTICED;
        if (deletedBefore !== undefined && lostSince !== undefined && lostSince > deletedBefore + noticed && lostSince <= now - RETURNED_NODE_DOUBT) return [];
        return [{ name: node.name, why: `is not Ready (${node.ready})` }];
      }
      if (node.readySince === undefined) return [{ name: node.name, why: "does not say since when it is Ready" }];
      const joined = node.readySince - node.createdAt <= JOINING_TIME;
      if (!joined && node.readySince > now - RETURNED_NODE_DOUBT) return [{ name: node.name, why: "was not Ready until less than 10 min 30 s ago" }];
      return [];
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Of which pod it is asked whether it may still run unseen. */
export interface AbsenceQuestion {
  /** The lock's time, by the later of the writer's and the store's clock: a node that joined after it ran no writer. */
  readonly lockedAt: EpochNanoseconds;
  readonly now: EpochNanoseconds;
  readonly skew: Nanoseconds;
  readonly ignored: IgnoredNodes;
  /** The pod in question was deleted before this time; at any time when undefined. */
  readonly deletedBefore: EpochNanoseconds | undefined;
}

/** Whether what a pod's status says can be believed: only a Ready node's kubelet reports. */
export type NodeState =
  | { readonly kind: "ready" | "not-ready" | "deleted"; readonly name: string }
  | { readonly kind: "unscheduled" }
  | { readonly kind: "unlisted"; readonly problem: string };

/** The state of the node that a pod was bound to. */
export function stateOfNode(pod: Pod, cluster: ClusterObservation): NodeState {
  if (pod.nodeName === undefined) return { kind: "unscheduled" };
  if (cluster.nodes.kind === "unlisted") return { kind: "unlisted", problem: cluster.nodes.problem };
  const node = cluster.nodes.nodes.find(({ name }) => name === pod.nodeName);
  if (node === undefined) return { kind: "deleted", name: pod.nodeName };
  return { kind: node.ready === "True" ? "ready" : "not-ready", name: node.name };
}
