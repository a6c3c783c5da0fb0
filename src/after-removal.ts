import pLimit from "p-limit";

import { describeRemoval, findFreedStacks, findObstacle, type AfterRemoval, type FreedStack, type RemovedLock } from "./core/after-removal.ts";
import type { BackendIdentity } from "./core/backend-identity.ts";
import type { ClusterObservation, StackListOfCluster } from "./core/cluster.ts";
import type { ToldStack } from "./core/report.ts";
import { escapeUntrusted, quoteUntrusted } from "./core/text.ts";
import { formatTimestamp, type EpochNanoseconds } from "./core/time.ts";
import { describeError } from "./errors.ts";
import type { ClusterSource } from "./kubernetes/cluster-source.ts";
import type { Written } from "./kubernetes/write-stacks.ts";
import type { SweptLock } from "./sweep-report.ts";

/** What Stacks are told with. */
export interface TellParts {
  readonly clusters: readonly ClusterSource[];
  /** The clusters as they were seen last. */
  readonly observed: readonly ClusterObservation[];
  readonly runId: string;
  readonly reporter: string;
  readonly now: () => EpochNanoseconds;
  readonly signal: AbortSignal;
}

/** What became of the Stacks of removed locks. */
export interface Told {
  /** Undefined where none was to be told. */
  readonly toldStacks: readonly ToldStack[] | undefined;
  readonly warnings: readonly string[];
}

/** The locks of a backend that a sweep has removed beyond doubt. */
export function listRemoved(backend: BackendIdentity, locks: readonly SweptLock[]): readonly RemovedLock[] {
  return locks
    .filter(({ action }) => action === "deleted")
    .map(({ lock, judgement, pending }) => ({
      backend,
      key: lock.key,
      reason: judgement.reason,
      ...(lock.content.kind === "readable" ? { hostname: lock.content.owner.hostname } : {}),
      ...(pending === undefined ? {} : { pending }),
    }));
}

/** Requests under way at once. */
const CONCURRENCY = 8;

/**
 * Tells the Stacks whose locks were removed: a request to the operator, an Event. Neither is part of a removal, so what is refused is a warning and changes
 * nothing about it. Never throws for what a cluster refuses.
 */
export async function tellStacks(removed: readonly RemovedLock[], after: AfterRemoval, parts: TellParts): Promise<Told> {
  if (!after.requeueStacks && !after.stackEvents) return { toldStacks: undefined, warnings: [] };
  if (removed.length === 0) return { toldStacks: [], warnings: [] };
  const lists = await Promise.all(parts.clusters.map((cluster) => listStacks(cluster, parts)));
  const unlisted = lists.flatMap(({ cluster, list }) =>
    list.kind === "unlisted"
      ? [`the Stacks of cluster ${quoteUntrusted(cluster)} are not known, so none there was told of a removed lock: ${escapeUntrusted(list.problem)}`]
      : [],
  );
  const limit = pLimit(CONCURRENCY);
  const toldStacks = await Promise.all(findFreedStacks(removed, lists).map((freed, index) => limit(() => tellStack(freed, after, index, parts))));
  const refused = toldStacks.flatMap(({ namespace, name, notes }) => notes.map((note) => `Stack ${quoteUntrusted(`${namespace}/${name}`)}: ${note}`));
  return { toldStacks, warnings: [...unlisted, ...refused] };
}

async function listStacks(cluster: ClusterSource, { observed, signal }: TellParts): Promise<StackListOfCluster> {
  const seen = observed.find(({ name }) => name === cluster.name);
  if (seen !== undefined) return { cluster: cluster.name, list: seen.stacks };
  return { cluster: cluster.name, list: signal.aborted ? { kind: "unlisted", problem: STOPPED.problem } : await cluster.listStacks(signal) };
}

async function tellStack(freed: FreedStack, { requeueStacks, stackEvents }: AfterRemoval, index: number, parts: TellParts): Promise<ToldStack> {
  const { cluster, stack } = freed;
  const obstacle = findObstacle(freed);
  const event = stackEvents ? await writeEvent(freed, requeueStacks ? obstacle : undefined, index, parts) : undefined;
  const requeued = requeueStacks ? await requeue(freed, obstacle, parts) : undefined;
  return {
    cluster,
    namespace: stack.namespace,
    name: stack.name,
    locks: freed.locks.map(({ key }) => key),
    ...(requeued === undefined ? {} : { requeued: requeued.kind === "written" }),
    ...(event === undefined ? {} : { event: event.kind === "written" }),
    notes: [
      ...(requeued?.kind === "refused" ? [`it was not requeued, so the operator tries it when its own pause ends: ${requeued.problem}`] : []),
      ...(event?.kind === "refused" ? [`no Event was written on it: ${event.problem}`] : []),
    ],
  };
}

async function requeue({ cluster, stack }: FreedStack, obstacle: string | undefined, { clusters, runId, now, signal }: TellParts): Promise<Written> {
  if (obstacle !== undefined) return { kind: "refused", problem: obstacle };
  // Only a value that is new makes the operator try.
  const request = `${formatTimestamp(now())} pulumi-lock-janitor ${runId}`;
  return await write(clusters, cluster, signal, async (source) => await source.requeueStack?.(stack, request, signal));
}

async function writeEvent(
  freed: FreedStack,
  obstacle: string | undefined,
  index: number,
  { clusters, runId, reporter, now, signal }: TellParts,
): Promise<Written> {
  const event = { message: describeRemoval(freed, obstacle), at: now(), id: `${runId.replaceAll(/[^a-z0-9]/g, "").slice(0, 16)}-${index}`, reporter };
  return await write(clusters, freed.cluster, signal, async (source) => await source.tellStack?.(freed.stack, event, signal));
}

async function write(
  clusters: readonly ClusterSource[],
  cluster: string,
  signal: AbortSignal,
  attempt: (source: ClusterSource) => Promise<Written | undefined>,
): Promise<Written> {
  const source = clusters.find(({ name }) => name === cluster);
  if (signal.aborted) return STOPPED;
  try {
    return (source === undefined ? undefined : await attempt(source)) ?? { kind: "refused", problem: "its cluster cannot be written to" };
  } catch (error) {
    return { kind: "refused", problem: describeError(error) };
  }
}

const STOPPED = { kind: "refused", problem: "stopped before its turn" } as const;
