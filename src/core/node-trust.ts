import type { ClusterObservation, Node, Pod } from "./cluster.ts";
import { compareText } from "./text.ts";
import { MINUTE, SECOND, type EpochNanoseconds, type Nanoseconds } from "./time.ts";

/**
 * How long the containers of a pod that was force-deleted may still run once its node is back: the longest grace period of the operator's
 * pods (600 s) and a margin. Seen on a real node: a process ran its full grace period with the node Ready again.
 */
const RETURNED_NODE_DOUBT: Nanoseconds = 10n * MINUTE + 30n * SECOND;

/** A node that became Ready this soon after its creation has just joined: it is not one that came back. */
const JOINING_TIME: Nanoseconds = 2n * MINUTE;

/** A kubelet to which nothing happens reports every 5 min (`nodeStatusReportFrequency`), with a margin. */
const REPORTED_WITHIN: Nanoseconds = 6n * MINUTE;

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
      const why = node.ready === "True" ? doubtReturn(node, now, skew) : doubtLoss(node, now, deletedBefore);
      return why === undefined ? [] : [{ name: node.name, why }];
    })
    .toSorted((a, b) => compareText(a.name, b.name));
}

/** Why a node that is Ready may have been away when a pod was deleted. */
function doubtReturn({ createdAt, readySince, reportedAt }: Node, now: EpochNanoseconds, skew: Nanoseconds): string | undefined {
  if (readySince === undefined) return "does not say since when it is Ready";
  // Only a young node can have joined just now; a node whose clock is slow seems to have become Ready early, or before it was.
  const young = createdAt > now - JOINING_TIME - RETURNED_NODE_DOUBT - REPORTED_WITHIN;
  if (young && readySince >= createdAt - skew && readySince - createdAt <= JOINING_TIME) return undefined;
  if (readySince > now - RETURNED_NODE_DOUBT) return "was not Ready until less than 10 min 30 s ago";
  if (reportedAt === undefined) return "does not say when it last reported";
  // How long that is by its own clock, whatever that says: a machine that was suspended comes back with a slow one.
  return reportedAt - readySince < RETURNED_NODE_DOUBT ? "has not reported to be Ready for 10 min 30 s" : undefined;
}

/**
 * Why a node that is not Ready may have been away when a pod was deleted. Where it was still Ready then, its kubelet learnt of that; or it had been cut off before, came back and was
 * lost again, of which the API shows the last loss only: then the pod has had its grace period when that is long ago.
 */
function doubtLoss(node: Node, now: EpochNanoseconds, deletedBefore: EpochNanoseconds | undefined): string | undefined {
  const why = `is not Ready (${node.ready})`;
  const lost = findLoss(node, now);
  if (deletedBefore === undefined || lost === undefined) return why;
  const noticed = node.ready === "False" ? HANG_NOTICED : SILENCE_NOTICED;
  return lost.earliest > deletedBefore + noticed && lost.latest <= now - RETURNED_NODE_DOUBT ? undefined : why;
}

/** When a node lost its Ready: what it says of itself is by its own clock, of which only differences count. */
function findLoss(
  { ready, readySince, reportedAt }: Node,
  now: EpochNanoseconds,
): { readonly earliest: EpochNanoseconds; readonly latest: EpochNanoseconds } | undefined {
  if (readySince === undefined) return undefined;
  if (ready === "Unknown") return { earliest: readySince, latest: readySince };
  if (reportedAt === undefined) return undefined;
  const latest = now - (reportedAt - readySince);
  return { earliest: latest - REPORTED_WITHIN, latest };
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
