import type { Backend } from "./backends/backend.ts";
import { formatIdentity } from "./core/backend-identity.ts";
import { stackFolder } from "./core/key.ts";
import type { LockContent } from "./core/lock.ts";
import type { AuditRecord, RemovalHistory } from "./core/record.ts";
import { escapeUntrusted } from "./core/text.ts";
import { formatTimestamp } from "./core/time.ts";
import { describeWithHint, JanitorError } from "./errors.ts";
import type { AuditLog } from "./output/audit-log.ts";
import { composeOutcome, type Remover } from "./remove-lock.ts";

/** Finds a removal by its record's id. Throws `record-invalid` when there is none. */
export async function findRemoval(audit: AuditLog, id: string, signal: AbortSignal): Promise<RemovalHistory> {
  const { removals, unreadable } = await audit.find(id, signal);
  const [problem] = unreadable;
  // An event that cannot be read may be the one that forbids it.
  if (problem !== undefined) throw new JanitorError("record-invalid", `${problem.place}: ${problem.message}, so nothing is put back`);
  const [history] = removals;
  if (history !== undefined) return history;
  throw new JanitorError("record-invalid", `${audit.place} holds no record ${JSON.stringify(id)}`, {
    hint: "The record's id is shown by the sweep that removed the lock, and is the beginning of the record's file name.",
  });
}

/**
 * Puts a removed lock back, byte for byte: only when its record says that it was deleted, and only while no lock at all is in that stack's
 * folder. It never overwrites. Throws `restore-refused`, and `record-failed` when it cannot be recorded first. Gives the note to show, if any.
 */
export async function restoreLock(
  backend: Backend,
  audit: AuditLog,
  removal: RemovalHistory,
  remover: Remover,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { intent, outcome } = removal;
  const name = formatIdentity(backend.identity);
  const refuse = (why: string): JanitorError => new JanitorError("restore-refused", `${describeNotRestored(name, intent)}: ${why}`);
  if (formatIdentity(intent.backend) !== name) throw refuse(`its record is of ${formatIdentity(intent.backend)}`);
  if (outcome?.action !== "deleted")
    throw refuse(`its record does not say that it was deleted, but ${outcome?.action ?? "nothing of its end"}; its owner may have released it`);
  await refuseLocked(backend, removal, refuse, signal);
  // A sweep that meets the lock must find the record of it, at any moment and also if we crash: so the record comes first.
  if (removal.restored === undefined) await recordRestore(audit, intent, remover, name, signal);
  const body = Buffer.from(intent.body, "base64");
  if ((await backend.createLock(intent.key, body)) === "created") return undefined;
  // An answer that was lost, and the request sent again: then it is our own lock that is there.
  const present = await backend.readLock(intent.key, signal);
  if (present.kind === "found" && holdsBytes(present.content, body)) return "It was there already, with the same content.";
  throw refuse("a lock of that name is there");
}

/** Throws while any lock is in the stack's folder. A record of an earlier restore alone refuses nothing: that one may have failed. */
async function refuseLocked(backend: Backend, { intent, restored }: RemovalHistory, refuse: (why: string) => JanitorError, signal: AbortSignal): Promise<void> {
  const folder = stackFolder(intent.key);
  for await (const page of backend.listLocks(signal)) {
    const other = page.find(({ key }) => stackFolder(key) === folder);
    if (other === undefined) continue;
    if (restored !== undefined && other.key === intent.key) throw refuse(`it was put back already, at ${restored.restoredAt ?? restored.at}`);
    throw refuse(`the stack has a lock already, ${escapeUntrusted(other.key)}`);
  }
}

/** Makes durable that the lock is put back, before it is. Throws `record-failed`. */
async function recordRestore(audit: AuditLog, intent: AuditRecord, remover: Remover, name: string, signal: AbortSignal): Promise<void> {
  try {
    const record = { ...composeOutcome(intent, { action: "deleted" }, remover), restoredAt: formatTimestamp(remover.now()) };
    if ((await audit.append(record, "restored")) === "created") return;
    // A store also says that it exists where two requests met, and neither may have come through.
    const { removals } = await audit.find(intent.id, signal);
    if (removals.every(({ restored }) => restored === undefined)) throw new Error("the store says that there is one already, and has none");
  } catch (error) {
    throw new JanitorError("record-failed", `${describeNotRestored(name, intent)}: no record of it could be written: ${describeWithHint(error)}`, {
      cause: error,
      hint: "Without that record the next sweep would remove it again.",
    });
  }
}

function describeNotRestored(name: string, { key }: AuditRecord): string {
  return `${name}: ${escapeUntrusted(key)} was not put back`;
}

function holdsBytes(content: LockContent, bytes: Uint8Array): boolean {
  return content.kind !== "unread" && content.bytes !== undefined && Buffer.from(content.bytes).equals(bytes);
}
