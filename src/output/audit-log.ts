import { createHash, randomUUID } from "node:crypto";

import { auditRecord, foldRecords, kindOfEvent, type AuditRecord, type EventKind, type RemovalHistory } from "../core/record.ts";
import { describeError, JanitorError } from "../errors.ts";

/** The records of removals: where an intent is made durable before a lock is removed, and an outcome after. */
export interface AuditLog {
  /** Where it is, for a person. */
  readonly place: string;
  /** Writes one event, durably; `exists` when that event of that removal was written before. */
  append(record: AuditRecord, kind: EventKind): Promise<"created" | "exists">;
  /** Every removal in the log, the oldest first. Throws `record-invalid` on a record that is none. */
  readAll(signal: AbortSignal): Promise<readonly RemovalHistory[]>;
  /** The intents whose outcome is not known. */
  readOpen(signal: AbortSignal): Promise<readonly AuditRecord[]>;
  /** Those of the given keys that `restore` put back. */
  findRestored(keys: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>>;
}

/** A new id for a removal: it sorts by time, and tells the lock's key. */
export function newRecordId(key: string, at: string): string {
  return `${at.replace(/[-:]|\.\d+/g, "")}-${hashKey(key)}-${randomUUID().slice(0, 8)}`;
}

/** What stands for a key in the name of a record. */
export function hashKey(key: string): string {
  return createHash("sha256").update(key).digest("hex").slice(0, 16);
}

/** Reads one record. Throws `record-invalid`. */
export function parseRecord(text: string, place: string): AuditRecord {
  try {
    return auditRecord.parse(JSON.parse(text));
  } catch (error) {
    throw new JanitorError("record-invalid", `${place} is no record of this janitor: ${describeError(error).slice(0, 200)}`, { cause: error });
  }
}

/** Folds events that were read one by one. */
export function sortHistories(records: readonly AuditRecord[]): readonly RemovalHistory[] {
  return foldRecords(records).toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** The kind of an event within a log of which all events are known. */
export function kindWithin(record: AuditRecord, records: readonly AuditRecord[]): EventKind {
  const intent = records.find(({ id, event }) => id === record.id && event === "intent");
  return kindOfEvent(record, intent?.runId ?? record.runId);
}
