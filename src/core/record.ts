import * as z from "zod";

import { OUTCOME_ACTIONS } from "./outcome.ts";
import { backendIdentity, judgementEvidence, lockOwner, overrideUsed, verdictName } from "./report.ts";

/**
 * One event of the audit log. An intent is durable before the delete is sent and holds all that a restore needs; an outcome says what became of it.
 * A later version of the janitor goes on reading version 1.
 */
export const auditRecord = z.object({
  version: z.literal(1),
  event: z.enum(["intent", "outcome"]),
  /** Names the removal: all its events have the same. */
  id: z.string().regex(/^[0-9A-Za-z-]+$/),
  at: z.iso.datetime(),
  runId: z.string(),
  janitor: z.object({ version: z.string(), hostname: z.string() }),
  backend: backendIdentity,
  key: z.string(),
  lockVersion: z.string(),
  /** The lock as it was, base64. */
  body: z.base64(),
  /** Absent when the body is no lock: only a person removes such a one, with `unlock --force`. */
  owner: lockOwner.exactOptional(),
  verdict: verdictName,
  reason: z.string(),
  message: z.string(),
  evidence: judgementEvidence,
  overrides: z.array(overrideUsed),
  clusters: z.array(z.object({ name: z.string(), uid: z.string().exactOptional() })),
  /** Only in an outcome. */
  action: z.enum(OUTCOME_ACTIONS).exactOptional(),
  /** Why an outcome is what it is, where that needs words: a failed delete, a store that ignored the condition. */
  note: z.string().exactOptional(),
  /** Only in the outcome that `restore` writes. */
  restoredAt: z.iso.datetime().exactOptional(),
});

export type AuditRecord = z.infer<typeof auditRecord>;

/** The kinds of events of one removal. `completed`: an outcome written by another run, for one that had crashed. */
export const EVENT_KINDS = ["intent", "outcome", "completed", "restored"] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

/** What an event is: told by the record itself, so that a log in one file needs no names. */
export function kindOfEvent(record: AuditRecord, intentRunId: string): EventKind {
  if (record.event === "intent") return "intent";
  if (record.restoredAt !== undefined) return "restored";
  return record.runId === intentRunId ? "outcome" : "completed";
}

/** All that the audit log knows of one removal. */
export interface RemovalHistory {
  readonly id: string;
  readonly intent: AuditRecord;
  /** Absent while no outcome is known. */
  readonly outcome?: AuditRecord;
  readonly restored?: AuditRecord;
}

/** Puts the events of each removal together; events whose intent is missing are left out. */
export function foldRecords(records: readonly AuditRecord[]): readonly RemovalHistory[] {
  const intents = new Map(records.filter(({ event }) => event === "intent").map((record) => [record.id, record]));
  return Array.from(intents.values(), (intent): RemovalHistory => {
    const events = records.filter(({ id, event }) => id === intent.id && event === "outcome");
    const find = (kind: EventKind): AuditRecord | undefined => events.find((event) => kindOfEvent(event, intent.runId) === kind);
    const outcome = chooseOutcome(find("outcome"), find("completed"));
    const restored = find("restored");
    return { id: intent.id, intent, ...(outcome === undefined ? {} : { outcome }), ...(restored === undefined ? {} : { restored }) };
  });
}

/** The run itself knows best, unless it could not confirm what a recovery has seen. */
function chooseOutcome(own: AuditRecord | undefined, completed: AuditRecord | undefined): AuditRecord | undefined {
  if (own === undefined) return completed;
  return own.action === "deleted-unconfirmed" && completed?.action === "deleted" ? completed : own;
}
