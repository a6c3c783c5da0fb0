import pLimit from "p-limit";

import { findStacksOf } from "./core/accounting.ts";
import { composeEvent, mayRequeue, type AfterUnlock, type ToldStack } from "./core/after-unlock.ts";
import type { BackendIdentity } from "./core/backend-identity.ts";
import type { PendingOperations } from "./core/checkpoint.ts";
import type { StackList, StackResource } from "./core/cluster.ts";
import type { Judgement } from "./core/judgement.ts";
import type { ObservedLock } from "./core/lock.ts";
import { matchOwners, type OwnerPattern } from "./core/owner.ts";
import { escapeUntrusted, quoteUntrusted } from "./core/text.ts";
import { formatTimestamp, type EpochNanoseconds } from "./core/time.ts";
import { describeError } from "./errors.ts";
import type { ClusterSource, Telling } from "./kubernetes/cluster-source.ts";

/** What follows the removal of a lock. */
export interface AfterUnlockSettings {
  /** Tell the operator to try again. */
  readonly requeueStacks: boolean;
  /** Write an Event on the Stack. */
  readonly stackEvents: boolean;
  /** Look for pending operations in the checkpoint, and tell no operator to try again where there are some. */
  readonly checkPending: boolean;
}

/** A lock that was removed for certain. */
export interface RemovedLock {
  readonly backend: BackendIdentity;
  readonly lock: ObservedLock;
  readonly judgement: Judgement;
  readonly pending?: PendingOperations;
}

/** What Stacks are told by. */
export interface StackTellers {
  readonly clusters: readonly ClusterSource[];
  /** The Stacks that were seen last, by the names of clusters; those of any other cluster are listed now. */
  readonly seen: ReadonlyMap<string, StackList>;
  readonly owners: readonly OwnerPattern[];
  readonly now: () => EpochNanoseconds;
}

/** Milliseconds. A signal that stops the janitor does not stop this: no later run would make up for it. */
const LONGEST = 10_000;

const AT_ONCE = 8;

/** Whoever may create Stacks could have any number of them account for one lock. */
const MOST_STACKS = 20;

interface Target {
  readonly cluster: ClusterSource;
  readonly stack: StackResource;
}

/**
 * Tells the Stacks that account for removed locks, each Stack once however many locks of it went. Never throws: what could not be told is in the answer, and the removal stays
 * what it is.
 */
export async function tellStacks(
  removed: readonly RemovedLock[],
  settings: AfterUnlockSettings,
  tellers: StackTellers,
): Promise<ReadonlyMap<ObservedLock, AfterUnlock>> {
  if (removed.length === 0 || (!settings.requeueStacks && !settings.stackEvents)) return new Map();
  const signal = AbortSignal.timeout(LONGEST);
  const lists = await Promise.all(
    tellers.clusters.map(async (cluster) => ({ cluster, list: tellers.seen.get(cluster.name) ?? (await listStacks(cluster, signal)) })),
  );
  const found = removed.map((each) => ({ ...each, ...findTargets(each, lists, tellers.owners) }));
  const limit = pLimit(AT_ONCE);
  const requeued = settings.requeueStacks ? await requeueAll(found, (work) => limit(work), tellers.now, signal) : undefined;
  const entries = found.map(async (each) => {
    const stacks = each.targets.map(async ({ cluster, stack }): Promise<ToldStack> => {
      const event = composeEvent(each.lock, each.judgement, each.pending);
      const noted = settings.stackEvents ? await limit(() => tell(() => cluster.writeEvent?.(stack, event, tellers.now(), signal))) : undefined;
      return describeTold({ cluster, stack }, requeued === undefined ? undefined : (requeued.get(stack) ?? "not-wanted"), noted);
    });
    return [each.lock, { stacks: await Promise.all(stacks), ...(each.problem === undefined ? {} : { problem: each.problem }) }] as const;
  });
  return new Map(await Promise.all(entries));
}

/** The Stacks that a lock's removal is told to, and why others may have been missed. */
function findTargets(
  { backend, lock }: RemovedLock,
  lists: readonly { readonly cluster: ClusterSource; readonly list: StackList }[],
  owners: readonly OwnerPattern[],
): { readonly targets: readonly Target[]; readonly problem?: string } {
  const hostname = lock.content.kind === "readable" ? lock.content.owner.hostname : "";
  const all = lists.flatMap(({ cluster, list }) =>
    list.kind === "unlisted" ? [] : findStacksOf(lock.key, hostname, matchOwners(hostname, owners), backend, list.stacks).map((stack) => ({ cluster, stack })),
  );
  const problems = lists.flatMap(({ cluster, list }) =>
    list.kind === "unlisted" ? [`the Stacks of cluster ${quoteUntrusted(cluster.name)} are not known, so none was told: ${escapeUntrusted(list.problem)}`] : [],
  );
  if (all.length > MOST_STACKS) problems.push(`${all.length} Stacks account for one lock, and no more than ${MOST_STACKS} of them were told`);
  return { targets: all.slice(0, MOST_STACKS), ...(problems.length === 0 ? {} : { problem: problems.join("; ") }) };
}

/** Has each Stack tried again once, unless a lock of it wants a person first. */
async function requeueAll(
  found: readonly (RemovedLock & { readonly targets: readonly Target[] })[],
  limit: (work: () => Promise<Telling>) => Promise<Telling>,
  now: () => EpochNanoseconds,
  signal: AbortSignal,
): Promise<ReadonlyMap<StackResource, Telling>> {
  const kept = new Set(found.flatMap(({ targets, pending }) => (mayRequeue(pending) ? [] : targets.map(({ stack }) => stack))));
  const targets = new Map(found.flatMap((each) => each.targets.map(({ cluster, stack }) => [stack, cluster] as const)));
  const value = formatTimestamp(now());
  const telling = Array.from(targets)
    .filter(([stack]) => !kept.has(stack))
    .map(async ([stack, cluster]) => [stack, await limit(() => tell(() => cluster.requeueStack?.(stack, value, signal)))] as const);
  return new Map(await Promise.all(telling));
}

async function tell(send: () => Promise<Telling> | undefined): Promise<Telling> {
  try {
    return (await send()) ?? { kind: "failed", problem: "nothing can be written to a file" };
  } catch (error) {
    return {
      kind: "failed",
      problem: error instanceof Error && error.name === "TimeoutError" ? "the API server did not answer in time" : describeError(error),
    };
  }
}

function describeTold({ cluster, stack }: Target, requeued: Telling | "not-wanted" | undefined, noted: Telling | undefined): ToldStack {
  const problems = [requeued, noted].flatMap((telling) => (typeof telling === "object" && telling.kind === "failed" ? [telling.problem] : []));
  return {
    cluster: cluster.name,
    namespace: stack.namespace,
    name: stack.name,
    ...(requeued === undefined ? {} : { requeued: requeued !== "not-wanted" && requeued.kind === "told" }),
    ...(noted === undefined ? {} : { event: noted.kind === "told" }),
    ...(problems.length === 0 ? {} : { problem: problems.join("; ") }),
  };
}

async function listStacks(cluster: ClusterSource, signal: AbortSignal): Promise<StackList> {
  try {
    return await cluster.listStacks(signal);
  } catch (error) {
    return { kind: "unlisted", problem: describeError(error) };
  }
}
