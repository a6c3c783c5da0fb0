import type { Backend } from "./backends/backend.ts";
import { formatIdentity } from "./core/backend-identity.ts";
import { stackFolder } from "./core/key.ts";
import type { RemovalHistory } from "./core/record.ts";
import { escapeUntrusted } from "./core/text.ts";
import { formatTimestamp } from "./core/time.ts";
import { JanitorError } from "./errors.ts";
import type { AuditLog } from "./output/audit-log.ts";
import { writeOutcome, type Remover } from "./remove-lock.ts";

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
 * folder. It never overwrites. Throws `restore-refused`. Gives the note to show, if any.
 */
export async function restoreLock(
  backend: Backend,
  audit: AuditLog,
  { intent, outcome, restored }: RemovalHistory,
  remover: Remover,
  signal: AbortSignal,
): Promise<string | undefined> {
  const name = formatIdentity(backend.identity);
  const refuse = (why: string): JanitorError => new JanitorError("restore-refused", `${name}: ${escapeUntrusted(intent.key)} was not put back: ${why}`);
  if (formatIdentity(intent.backend) !== name) throw refuse(`its record is of ${formatIdentity(intent.backend)}`);
  if (outcome?.action !== "deleted")
    throw refuse(`its record does not say that it was deleted, but ${outcome?.action ?? "nothing of its end"}; its owner may have released it`);
  if (restored !== undefined) throw refuse(`it was put back already, at ${restored.restoredAt ?? restored.at}`);
  const folder = stackFolder(intent.key);
  for await (const page of backend.listLocks(signal)) {
    const other = page.find(({ key }) => stackFolder(key) === folder);
    if (other !== undefined) throw refuse(`the stack has a lock already, ${escapeUntrusted(other.key)}`);
  }
  if ((await backend.createLock(intent.key, Buffer.from(intent.body, "base64"))) === "exists") throw refuse("a lock of that name is there");
  return await writeOutcome(audit, intent, "restored", { action: "deleted", restoredAt: formatTimestamp(remover.now()) }, remover);
}
