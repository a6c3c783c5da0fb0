import * as z from "zod";

import { parseLockKey } from "./key.ts";
import { OUTCOMES, type OutcomeName } from "./outcome.ts";
import type { AuditRecord, RemovalHistory } from "./record.ts";
import { backendIdentity, lockOwner, overrideUsed, verdictName } from "./report.ts";
import { parseTimestamp, type EpochNanoseconds } from "./time.ts";
import { isSelected, type LockSelection } from "./wanted-lock.ts";

/** One removal, as `audit list` tells it: without the lock's body and the evidence, which `audit show` has. */
const auditEntry = z.object({
  id: z.string(),
  /** When the intent was written. */
  at: z.iso.datetime(),
  backend: backendIdentity,
  key: z.string(),
  stack: z.string(),
  owner: lockOwner.exactOptional(),
  verdict: verdictName,
  reason: z.string(),
  message: z.string(),
  outcome: z.enum(OUTCOMES),
  /** When the outcome was written; of a lock that was put back, when that was. */
  outcomeAt: z.iso.datetime().exactOptional(),
  note: z.string().exactOptional(),
  runId: z.string(),
  overrides: z.array(overrideUsed),
});
export type AuditEntry = z.infer<typeof auditEntry>;

/** A record that is there and could not be read. */
const unreadableRecord = z.object({ place: z.string(), message: z.string() });
export type UnreadableRecord = z.infer<typeof unreadableRecord>;

/** The document of `audit list --output json`, version 1. */
export const auditReport = z.object({
  version: z.literal(1),
  /** The newest first. */
  removals: z.array(auditEntry),
  /** True where `--limit` left out older ones. */
  more: z.boolean(),
  unreadable: z.array(unreadableRecord),
  errors: z.array(z.object({ backend: z.string(), code: z.string(), message: z.string() })),
  exitCode: z.int(),
});
export type AuditReport = z.infer<typeof auditReport>;

/** A stretch of time, both ends included. */
export interface TimeSpan {
  readonly since?: EpochNanoseconds;
  readonly until?: EpochNanoseconds;
}

/** Which removals are asked for; what is empty asks for all. */
export interface AuditFilter extends TimeSpan {
  readonly selection: LockSelection;
  readonly runs: readonly string[];
  readonly outcomes: readonly OutcomeName[];
}

/** Tells a removal in short. */
export function summarizeRemoval({ id, intent, outcome, restored }: RemovalHistory): AuditEntry {
  const last = restored ?? outcome;
  return {
    id,
    at: intent.at,
    backend: intent.backend,
    key: intent.key,
    stack: parseLockKey(intent.key).stack,
    ...(intent.owner === undefined ? {} : { owner: intent.owner }),
    verdict: intent.verdict,
    reason: intent.reason,
    message: intent.message,
    outcome: nameOutcome(outcome, restored),
    ...(last === undefined ? {} : { outcomeAt: last.restoredAt ?? last.at }),
    ...(last?.note === undefined ? {} : { note: last.note }),
    runId: intent.runId,
    overrides: intent.overrides,
  };
}

function nameOutcome(outcome: AuditRecord | undefined, restored: AuditRecord | undefined): OutcomeName {
  return restored === undefined ? (outcome?.action ?? "open") : "restored";
}

/** True when a removal is among those that are asked for. */
export function isAskedFor(entry: AuditEntry, { selection, runs, outcomes, ...span }: AuditFilter): boolean {
  return (
    isWithin(parseTimestamp(entry.at), span) &&
    (runs.length === 0 || runs.includes(entry.runId)) &&
    (outcomes.length === 0 || outcomes.includes(entry.outcome)) &&
    isSelected(selection, entry.key, entry.backend)
  );
}

/** True when a point in time lies in a stretch; an unknown one may. */
export function isWithin(at: EpochNanoseconds | undefined, { since, until }: TimeSpan): boolean {
  return at === undefined || ((since === undefined || at >= since) && (until === undefined || at <= until));
}
