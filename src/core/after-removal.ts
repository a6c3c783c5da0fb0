import { meansLockedStack } from "./accounting.ts";
import type { BackendIdentity } from "./backend-identity.ts";
import type { StackListOfCluster, StackResource } from "./cluster.ts";
import type { StaleReason } from "./judgement.ts";
import { parseLockKey } from "./key.ts";
import { escapeUntrusted, quoteUntrusted } from "./text.ts";

/** What is done once a lock is gone. */
export interface AfterRemoval {
  /** Ask the operator to try each Stack again whose lock was removed. */
  readonly requeueStacks: boolean;
  /** Tell of the removal in an Event on the Stack. */
  readonly stackEvents: boolean;
  /** Look into the checkpoint for operations that never ended. */
  readonly checkPending: boolean;
}

/** Nothing beside the removal itself. */
export const NOTHING_AFTER: AfterRemoval = { requeueStacks: false, stackEvents: false, checkPending: false };

/** The annotation on a Stack whose change makes the operator try at once (https://github.com/pulumi/pulumi-kubernetes-operator, `ReconciliationRequestAnnotation`). */
export const REQUEST_ANNOTATION = "pulumi.com/reconciliation-request";

/** A lock that was removed. */
export interface RemovedLock {
  readonly backend: BackendIdentity;
  readonly key: string;
  /** Absent where the lock was unreadable, which only a person's word removes. */
  readonly hostname?: string;
  readonly reason: string;
  /** What its checkpoint holds that never ended; absent when it was not looked at. */
  readonly pending?: { readonly kind: "counted"; readonly count: number } | { readonly kind: "unknown" };
}

/** A Stack whose locks were removed. */
export interface FreedStack {
  readonly cluster: string;
  readonly stack: StackResource;
  readonly locks: readonly [RemovedLock, ...RemovedLock[]];
}

/** The Stacks that are about the stacks of removed locks, each once, in the order of the clusters' lists. */
export function findFreedStacks(removed: readonly RemovedLock[], clusters: readonly StackListOfCluster[]): readonly FreedStack[] {
  return clusters.flatMap(({ cluster, list }) =>
    list.kind === "unlisted"
      ? []
      : list.stacks
          .filter(({ kind }) => kind === "Stack")
          .flatMap((stack): readonly FreedStack[] => {
            const [first, ...more] = removed.filter(({ backend, key }) => meansLockedStack(stack, parseLockKey(key).stack, backend));
            return first === undefined ? [] : [{ cluster, stack, locks: [first, ...more] }];
          }),
  );
}

/** Why a Stack must not be tried again at once, if so: what an update left half done is a person's to look at. */
export function findObstacle({ locks }: Pick<FreedStack, "locks">): string | undefined {
  const counted = locks.reduce((sum, { pending }) => sum + (pending?.kind === "counted" ? pending.count : 0), 0);
  if (counted > 0) return `its checkpoint holds ${counted} pending operation${counted === 1 ? "" : "s"}; look at them with 'pulumi refresh' first`;
  return locks.some(({ pending }) => pending?.kind === "unknown") ? "whether its checkpoint holds pending operations is not known" : undefined;
}

/** Characters of an Event's message that the API server takes (`note` of events.k8s.io/v1 has at most 1 KiB). */
const LONGEST_MESSAGE = 1_000;

const GONE_WORDS: Readonly<Record<StaleReason, string>> = {
  "pod-not-found": "no pod of that name is left",
  "pod-ended": "its pod has ended",
  "pod-recreated": "its pod was made anew",
  "container-restarted": "its container was started anew",
  "process-gone": "its process is gone",
};

/** The words of an Event on a Stack whose locks were removed. */
export function describeRemoval({ locks }: Pick<FreedStack, "locks">, obstacle: string | undefined): string {
  const [{ key, hostname, reason }, ...more] = locks;
  const whose = hostname === undefined ? "" : ` of ${quoteUntrusted(hostname)}`;
  const why = Object.entries(GONE_WORDS).find(([name]) => name === reason)?.[1] ?? "a person vouched for it";
  const others = more.length === 0 ? "" : `, and ${more.length} more`;
  const words = `removed the lock ${escapeUntrusted(parseLockKey(key).id)}${whose}: ${why}${others}`;
  return (obstacle === undefined ? words : `${words}; not tried again: ${obstacle}`).slice(0, LONGEST_MESSAGE);
}
