import type { Backend, Recovered } from "./backends/backend.ts";
import type { UnreadableRecord } from "./core/audit-entry.ts";
import type { AuditRecord } from "./core/record.ts";
import { escapeUntrusted, formatCount, joinSome } from "./core/text.ts";
import type { AuditLog } from "./output/audit-log.ts";
import { writeOutcome, type Outcome, type Remover } from "./remove-lock.ts";

/** What was found of runs that had crashed, in words. */
export type Completion = readonly string[];

/**
 * Ends what crashed runs left half done: a lock that one had moved aside is removed or put back, and each record without an outcome gets
 * the one that can still be told. A run that is still at it writes its own outcome, which counts for more. A record that cannot be read is told and stays as
 * it is: a lock that its run had moved aside is put back, never removed.
 */
export async function completeRecords(backend: Backend, audit: AuditLog, remover: Remover, signal: AbortSignal): Promise<Completion> {
  const { intents: open, unreadable } = await audit.readOpen(signal);
  const intended = new Set(open.map(({ key, lockVersion }) => `${key}\0${lockVersion}`));
  const recovered = (await backend.recover?.((key, version) => intended.has(`${key}\0${version}`))) ?? [];
  for (const intent of open) {
    const outcome = await findOutcome(backend, intent, recovered, signal);
    if (outcome !== undefined) await writeOutcome(audit, intent, "completed", outcome, remover);
  }
  return [
    ...(unreadable.length === 0 ? [] : [describeUnreadable(unreadable)]),
    ...recovered.map(({ key, action }) => describeRecovered(key, action)),
    ...(open.length === 0
      ? []
      : [`${open.length} ${open.length === 1 ? "record" : "records"} of a run that did not end ${open.length === 1 ? "was" : "were"} completed`]),
  ];
}

async function findOutcome(
  backend: Backend,
  { key, lockVersion }: AuditRecord,
  recovered: readonly Recovered[],
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  if (recovered.some((lock) => lock.key === key && lock.action === "deleted"))
    return { action: "deleted", note: "completed by a later run, which found the lock moved aside" };
  const now = await backend.readLock(key, signal);
  if (now.kind === "gone") return { action: "deleted-unconfirmed", note: "completed by a later run: the lock is gone, by that removal or otherwise" };
  if (now.content.kind === "unread") return undefined;
  if (now.version === lockVersion) return { action: "keep", note: "completed by a later run: the lock was not removed" };
  return { action: "changed", note: "completed by a later run: another version of the lock is there" };
}

function describeUnreadable(unreadable: readonly UnreadableRecord[]): string {
  const places = unreadable.map(({ place, message }) => escapeUntrusted(message.startsWith(place) ? message : `${place}: ${message}`));
  return `${formatCount(unreadable.length, "record")} could not be read and ${unreadable.length === 1 ? "stays as it is" : "stay as they are"}: ${joinSome(places)}`;
}

function describeRecovered(key: string, action: Recovered["action"]): string {
  switch (action) {
    case "deleted":
      return `the removal of ${key}, which a run had begun, was completed`;
    case "put-back":
      return `${key}, which a run had moved aside, was put back: it is not the lock that was judged`;
    case "left-aside":
      return `${key}, which a run had moved aside, could not be put back, because another lock is in its place; it lies under .pulumi-lock-janitor/aside`;
  }
}
