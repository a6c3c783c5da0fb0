import type { Backend, Deletion } from "./backends/backend.ts";
import type { Judgement } from "./core/judgement.ts";
import type { ObservedLock } from "./core/lock.ts";
import type { AuditRecord, EventKind } from "./core/record.ts";
import { reportJudgement, reportOwner, type Action, type OverrideUsed } from "./core/report.ts";
import { formatTimestamp, type EpochNanoseconds } from "./core/time.ts";
import { describeError, describeWithHint, JanitorError } from "./errors.ts";
import { newRecordId, type AuditLog } from "./output/audit-log.ts";

/** Who removes, for the record. */
export interface Remover {
  readonly runId: string;
  readonly janitor: { readonly version: string; readonly hostname: string };
  readonly overrides: readonly OverrideUsed[];
  readonly now: () => EpochNanoseconds;
}

/** What became of one removal. */
export interface Removal {
  readonly action: Extract<Action, "deleted" | "deleted-unconfirmed" | "vanished" | "changed" | "failed">;
  readonly note?: string;
  readonly record?: string;
}

/**
 * Removes one lock: a durable intent that holds the whole body, the conditional delete of the very version that was judged, the outcome. Never
 * throws for what a store refuses; without a durable intent nothing is deleted.
 */
export async function removeLock(backend: Backend, audit: AuditLog, lock: ObservedLock, judgement: Judgement, remover: Remover): Promise<Removal> {
  const bytes = lock.content.kind === "unread" ? undefined : lock.content.bytes;
  if (bytes === undefined) return { action: "failed", note: "only a lock that was read whole is ever removed, since its record must hold it" };
  const intent = composeIntent(backend, lock, bytes, judgement, remover);
  try {
    if ((await audit.append(intent, "intent")) === "exists")
      return { action: "failed", note: `a record ${intent.id} is there already, so nothing was removed` };
  } catch (error) {
    return { action: "failed", note: `no record could be written, so nothing was removed: ${describeError(error)}` };
  }
  const { unknown, ...removal } = await tryDelete(backend, lock);
  // What nobody answered may have happened: the next run looks, and completes the record with what it finds.
  if (unknown) return { ...removal, record: intent.id };
  const note = await writeOutcome(audit, intent, "outcome", removal, remover);
  return { ...removal, ...(note === undefined ? {} : { note }), record: intent.id };
}

async function tryDelete(backend: Backend, lock: ObservedLock): Promise<Omit<Removal, "record"> & { readonly unknown: boolean }> {
  try {
    return { ...describeDeletion(await backend.deleteLock(lock.key, lock.version)), unknown: false };
  } catch (error) {
    return { action: "failed", note: describeWithHint(error), unknown: error instanceof JanitorError && error.code === "backend-unreachable" };
  }
}

function describeDeletion(deletion: Deletion): Omit<Removal, "record"> {
  switch (deletion.kind) {
    case "deleted":
      return deletion.conditionEnforced
        ? { action: "deleted" }
        : { action: "deleted", note: "the store does not enforce the condition of a delete: the lock was read again right before" };
    case "deleted-unconfirmed":
      return { action: "deleted-unconfirmed", note: "the delete had to be sent again and met no lock: the first may have removed it" };
    case "vanished":
      return { action: "vanished", note: "the lock was gone already" };
    case "changed":
      return { action: "changed", note: "another version of the lock is there now; it stays" };
  }
}

function composeIntent(backend: Backend, lock: ObservedLock, bytes: Uint8Array, judgement: Judgement, remover: Remover): AuditRecord {
  const at = formatTimestamp(remover.now());
  const { content } = lock;
  return {
    version: 1,
    event: "intent",
    id: newRecordId(lock.key, at),
    at,
    runId: remover.runId,
    janitor: remover.janitor,
    backend: backend.identity,
    key: lock.key,
    lockVersion: lock.version,
    body: Buffer.from(bytes).toString("base64"),
    ...(content.kind === "readable" ? { owner: reportOwner(content.owner) } : {}),
    ...reportJudgement(judgement),
    overrides: [...remover.overrides],
    clusters: judgement.evidence.clusters.map(({ name, uid }) => ({ name, ...(uid === undefined ? {} : { uid }) })),
  };
}

/** What became of an intent. */
export interface Outcome {
  readonly action: NonNullable<AuditRecord["action"]>;
  readonly note?: string;
}

/** The record of what became of an intent. */
export function composeOutcome(
  intent: AuditRecord,
  { action, note }: Outcome,
  { runId, janitor, now }: Pick<Remover, "runId" | "janitor" | "now">,
): AuditRecord {
  return { ...intent, event: "outcome", at: formatTimestamp(now()), runId, janitor, action, ...(note === undefined ? {} : { note }) };
}

/** Writes what became of an intent; a failure to do so is told, and mended by the next run. */
export async function writeOutcome(
  audit: AuditLog,
  intent: AuditRecord,
  kind: Extract<EventKind, "outcome" | "completed">,
  outcome: Outcome,
  remover: Pick<Remover, "runId" | "janitor" | "now">,
): Promise<string | undefined> {
  const { note } = outcome;
  try {
    await audit.append(composeOutcome(intent, outcome, remover), kind);
    return note;
  } catch (error) {
    return [note, `the outcome could not be recorded, the next run will do it: ${describeError(error)}`].filter((part) => part !== undefined).join("; ");
  }
}
