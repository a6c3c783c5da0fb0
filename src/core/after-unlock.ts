import * as z from "zod";

import type { PendingOperations } from "./checkpoint.ts";
import type { Judgement } from "./judgement.ts";
import { parseLockKey } from "./key.ts";
import type { ObservedLock } from "./lock.ts";
import { formatCount, joinSome, quoteUntrusted } from "./text.ts";

/** What changes a Stack so that the operator tries again at once; any value that it has not seen will do (operator's docs, "reconciliation-request"). */
export const RECONCILIATION_REQUEST = "pulumi.com/reconciliation-request";

/** What was told to one Stack after a lock of it had been removed. */
const toldStack = z.object({
  cluster: z.string(),
  namespace: z.string(),
  name: z.string(),
  /** Whether the operator was told to try again (`--requeue-stacks`); absent where it was not to be. */
  requeued: z.boolean().exactOptional(),
  /** Whether an Event was written (`--stack-events`). */
  event: z.boolean().exactOptional(),
  /** Why something of it could not be done. */
  problem: z.string().exactOptional(),
});
export type ToldStack = z.infer<typeof toldStack>;

/** What was done after a lock was removed. Nothing of it changes what became of the lock. */
export const afterUnlock = z.object({
  stacks: z.array(toldStack),
  /** Why Stacks may have been missed. */
  problem: z.string().exactOptional(),
});
export type AfterUnlock = z.infer<typeof afterUnlock>;

/** Whether the operator may be told to try again. A checkpoint with pending operations wants a person first, and one that was to be looked at and could not be may have some. */
export function mayRequeue(pending: PendingOperations | undefined): boolean {
  return pending === undefined || pending.kind === "none";
}

/** An Event on a Stack: what became of its lock. */
export interface StackEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: "LockRemoved";
  readonly message: string;
}

/** The API server takes no more of an Event's message (https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/, `note`). */
const LONGEST_MESSAGE = 1_024;

/** Tells a Stack that a lock of it was removed, and why. What the lock itself says is shown as words of others. */
export function composeEvent({ key, content }: ObservedLock, { verdict, reason }: Judgement, pending: PendingOperations | undefined): StackEvent {
  const { id, stack } = parseLockKey(key);
  const owner = content.kind === "readable" ? `${quoteUntrusted(`${content.owner.username}@${content.owner.hostname}`)} (pid ${content.owner.pid})` : undefined;
  const why =
    verdict === "stale" && owner !== undefined
      ? `whose owner ${owner} is gone (${reason})`
      : `on a person's word: it was ${verdict} (${reason})${owner === undefined ? "" : `, of ${owner}`}`;
  const text = `Removed the lock ${quoteUntrusted(id)} of ${quoteUntrusted(stack)}, ${why}.`;
  const warning =
    pending?.kind === "some" ? ` Its checkpoint holds ${formatCount(pending.count, "pending operation")}: see to them before the next update.` : "";
  return {
    type: warning === "" ? "Normal" : "Warning",
    reason: "LockRemoved",
    message: cutToBytes(text, LONGEST_MESSAGE - lengthInBytes(warning)) + warning,
  };
}

function lengthInBytes(text: string): number {
  return new TextEncoder().encode(text).length;
}

function cutToBytes(text: string, most: number): string {
  if (lengthInBytes(text) <= most) return text;
  let cut = "";
  let size = lengthInBytes("…");
  for (const character of text) {
    size += lengthInBytes(character);
    if (size > most) break;
    cut += character;
  }
  return `${cut}…`;
}

/** What a report says of a lock after its removal. */
export interface Unlocked {
  readonly stack: string;
  readonly key: string;
  readonly pendingOperations?: PendingOperations;
  readonly afterUnlock?: AfterUnlock;
}

/** One line for each thing that was found or done after a removal, fit to be shown. */
export function describeAfterUnlock({ pendingOperations: pending, afterUnlock: done }: Unlocked): readonly string[] {
  const lines: string[] = [];
  if (pending?.kind === "some")
    lines.push(`its checkpoint holds ${formatCount(pending.count, "pending operation")}: see to them before the next update, with 'pulumi refresh' or by hand`);
  if (pending?.kind === "unknown") lines.push(`whether its checkpoint holds pending operations is not known: ${pending.problem}`);
  for (const { cluster, namespace, name, requeued, event, problem } of done?.stacks ?? []) {
    const told = [...(requeued === true ? ["told to try again"] : []), ...(event === true ? ["told by an Event"] : [])];
    const problems = problem === undefined ? [] : [`not everything could be told: ${problem}`];
    const words = [...told, ...problems];
    if (words.length > 0) lines.push(`Stack ${quoteUntrusted(`${namespace}/${name}`)} of ${quoteUntrusted(cluster)}: ${words.join(", ")}`);
  }
  if (done?.problem !== undefined) lines.push(done.problem);
  return lines;
}

/** What a person should know of it at once: checkpoints to be looked at, and Stacks that were not told. */
export function warnAfterUnlock(locks: readonly Unlocked[]): readonly string[] {
  const pending = locks.filter(({ pendingOperations: found }) => found?.kind === "some");
  const unknown = locks.filter(({ pendingOperations: found }) => found?.kind === "unknown");
  const problems = locks.flatMap(({ afterUnlock: done }) => [
    ...(done?.stacks ?? []).flatMap(({ namespace, name, problem }) =>
      problem === undefined ? [] : [`Stack ${quoteUntrusted(`${namespace}/${name}`)} could not be told of its lock's removal: ${problem}`],
    ),
    ...(done?.problem === undefined ? [] : [done.problem]),
  ]);
  const namesOf = (found: readonly Unlocked[]): string =>
    joinSome(Array.from(new Set(found.map(({ stack, key }) => quoteUntrusted(stack === "" ? key : stack)))));
  return [
    ...(pending.length === 0
      ? []
      : [`pending operations are in the checkpoint of ${namesOf(pending)}: an update was killed half-way, see to them before the next one ('pulumi refresh')`]),
    ...(unknown.length === 0 ? [] : [`whether pending operations are in the checkpoint is not known of ${namesOf(unknown)}`]),
    ...Array.from(new Set(problems)),
  ];
}
