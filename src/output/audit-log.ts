import { createHash, randomUUID } from "node:crypto";

import * as z from "zod";

import type { TimeSpan, UnreadableRecord } from "../core/audit-entry.ts";
import { auditRecord, foldRecords, kindOfEvent, type AuditRecord, type EventKind, type RemovalHistory } from "../core/record.ts";
import { JanitorError } from "../errors.ts";

/** The records of removals: where an intent is made durable before a lock is removed, and an outcome after. */
export interface AuditLog {
  /** Where it is, for a person. */
  readonly place: string;
  /** Writes one event, durably; `exists` when that event of that removal was written before. */
  append(record: AuditRecord, kind: EventKind): Promise<"created" | "exists">;
  /** The removals that may lie in a stretch of time, page by page, the newest first. Reads only. */
  browse(span: TimeSpan, signal: AbortSignal): AsyncIterable<AuditPage>;
  /** All that is known of one removal. */
  find(id: string, signal: AbortSignal): Promise<AuditPage>;
  /** Every removal in the log, the oldest first. Throws `record-invalid` on a record that is none. */
  readAll(signal: AbortSignal): Promise<readonly RemovalHistory[]>;
  /** The intents whose outcome is not known. What cannot be read is told, and neither taken for open nor for ended. */
  readOpen(signal: AbortSignal): Promise<OpenRecords>;
  /** Those of the given keys that `restore` put back, and those of which a record that cannot be read may say so. */
  findRestored(keys: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>>;
}

/** What a run that did not end has left in an audit log. */
export interface OpenRecords {
  readonly intents: readonly AuditRecord[];
  readonly unreadable: readonly UnreadableRecord[];
}

/** A part of an audit log, the newest removal first. What cannot be read is told, and stops nothing. */
export interface AuditPage {
  readonly removals: readonly RemovalHistory[];
  readonly unreadable: readonly UnreadableRecord[];
}

/** A new id for a removal: it sorts by time, and tells the lock's key. */
export function newRecordId(key: string, at: string): string {
  return `${at.replace(/[-:]|\.\d+/g, "")}-${hashKey(key)}-${randomUUID().slice(0, 8)}`;
}

/** What stands for a key in the name of a record. */
export function hashKey(key: string): string {
  return createHash("sha256").update(key).digest("hex").slice(0, 16);
}

/** The first thing that is otherwise than in a record. */
function describeMisfit(error: unknown): string {
  if (!(error instanceof z.ZodError)) return "it is no JSON";
  const [issue] = error.issues;
  return `${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}`;
}

/** Reads one record. Throws `record-invalid`. */
export function parseRecord(text: string, place: string): AuditRecord {
  try {
    const content: unknown = JSON.parse(text);
    const version = versionOf(content);
    if (version > 1) {
      throw new JanitorError("record-invalid", `${place} is a record of version ${version}, which a later janitor wrote`, {
        hint: "Read it with the version that wrote it, or a later one.",
      });
    }
    return auditRecord.parse(content);
  } catch (error) {
    if (error instanceof JanitorError) throw error;
    throw new JanitorError("record-invalid", `${place} is no record of this janitor: ${describeMisfit(error)}`, { cause: error });
  }
}

function versionOf(content: unknown): number {
  const version: unknown = typeof content === "object" && content !== null && "version" in content ? content.version : undefined;
  return typeof version === "number" ? version : 0;
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
