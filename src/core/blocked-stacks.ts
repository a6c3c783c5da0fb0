import type { BackendIdentity } from "./backend-identity.ts";
import { meansBackend } from "./backend-url.ts";
import type { StackResource } from "./cluster.ts";
import { unescapeKey } from "./key.ts";
import { findLockReferences, type LockReference } from "./lock-reference.ts";
import type { ReportedLock, ReportedStack } from "./report.ts";
import { compareText } from "./text.ts";

/** The Stacks that were seen in one cluster. */
export interface StacksOfCluster {
  readonly cluster: string;
  readonly stacks: readonly StackResource[];
}

/** The locks that were seen in one backend. */
export interface SeenBackend {
  readonly identity: BackendIdentity;
  /** False when its locks could not be listed. */
  readonly listed: boolean;
  /** Those that are still there. */
  readonly locks: readonly Pick<ReportedLock, "key" | "verdict" | "reason">[];
}

type Block = ReportedStack["blockedBy"][number];

/** Longer than any store's name of an object. */
const LONGEST_KEY = 1_024;

/**
 * The Stacks whose latest update failed on a lock that is still there, and those of which that cannot be told, in a stable order. What a Stack's status says is
 * believed only as far as the lock that it names is found. `ofSome`: only some of the locks were looked at, so what is not among them is left out.
 */
export function findBlockedStacks(clusters: readonly StacksOfCluster[], backends: readonly SeenBackend[], ofSome: boolean): ReportedStack[] {
  const locks = new Map<string, { readonly identity: BackendIdentity; readonly lock: SeenBackend["locks"][number] }[]>();
  for (const { identity, locks: seen } of backends) {
    for (const lock of seen) {
      const key = unescapeKey(lock.key);
      locks.set(key, [...(locks.get(key) ?? []), { identity, lock }]);
    }
  }
  const judge = (reference: LockReference, stack: StackResource): readonly Block[] => {
    const url = reference.backendUrl ?? stack.backend;
    const isMeant = ({ identity }: { readonly identity: BackendIdentity }): boolean => url === undefined || meansBackend(url, identity);
    const found = (locks.get(unescapeKey(reference.key)) ?? []).filter(isMeant);
    if (found.length > 0 || ofSome) return found.map(({ identity, lock: { key, verdict, reason } }) => ({ key, backend: identity, verdict, reason }));
    const meant = backends.filter(isMeant);
    if (meant.length === 0) return [{ key: reference.key, message: "its backend is not one that this sweep could look into" }];
    return meant.filter(({ listed }) => !listed).map(({ identity }) => ({ key: reference.key, backend: identity, message: "that backend could not be read" }));
  };
  return clusters
    .flatMap(({ cluster, stacks }) =>
      stacks.map((stack) => ({
        cluster,
        namespace: stack.namespace,
        name: stack.name,
        stack: stack.stacks[0] ?? "",
        blockedBy: referencesOf(stack).flatMap((reference) => judge(reference, stack)),
      })),
    )
    .filter(({ blockedBy }) => blockedBy.length > 0)
    .toSorted((a, b) => compareText(pathOf(a), pathOf(b)));
}

/** The locks that the message of a failed update names, each once. */
function referencesOf({ kind, lastUpdateState, lastUpdateMessage }: StackResource): readonly LockReference[] {
  if (kind !== "Stack" || lastUpdateState !== "failed" || lastUpdateMessage === undefined) return [];
  const references = findLockReferences(lastUpdateMessage).filter(({ key }) => key.length <= LONGEST_KEY);
  return Array.from(new Map(references.map((reference) => [`${reference.backendUrl ?? ""}\0${reference.key}`, reference])).values());
}

function pathOf({ cluster, namespace, name }: ReportedStack): string {
  return [cluster, namespace, name].join("\0");
}
