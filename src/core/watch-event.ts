import * as z from "zod";

import { backendIdentity, isGone, reportedLock, TIMED_OUT, type ReportedLock, type SweepReport } from "./report.ts";

const event = { version: z.literal(1), at: z.iso.datetime(), runId: z.string() };

/** One line of `watch`, version 1: something that is otherwise than at the sweep before. */
export const watchEvent = z.discriminatedUnion("event", [
  /** A lock is there for the first time, or its verdict, reason or action is another. */
  z.object({ ...event, event: z.literal("lock"), lock: reportedLock }),
  /** A lock is no longer there, and it was not the janitor that removed it. */
  z.object({ ...event, event: z.literal("released"), backend: backendIdentity, key: z.string() }),
  /** A backend or a cluster cannot be read, a removal was refused, or the time for a sweep ran out. */
  z.object({ ...event, event: z.literal("problem"), source: z.string(), message: z.string() }),
  /** It is over. */
  z.object({ ...event, event: z.literal("solved"), source: z.string() }),
]);
export type WatchEvent = z.infer<typeof watchEvent>;

/** What was told last, so that only changes are told: each lock's state and each source's problem. It grows with the locks that are there, and with nothing else. */
export interface Told {
  readonly locks: ReadonlyMap<string, ReportedLock>;
  readonly problems: ReadonlyMap<string, string>;
}

/** What to tell of a sweep, and what is told then. `whole`: the sweep was about every lock, so one that it does not list is gone. */
export function compareReport({ locks, problems }: Told, report: SweepReport, whole: boolean): { readonly events: readonly WatchEvent[]; readonly told: Told } {
  const about = { version: 1 as const, at: report.finishedAt, runId: report.runId };
  const unread = new Set(report.backends.flatMap(({ identity, error }) => (error === undefined || identity === undefined ? [] : [JSON.stringify(identity)])));
  const now = new Map(report.locks.map((lock) => [nameOf(lock), lock]));
  const next = new Map(locks);
  const events: WatchEvent[] = [];
  for (const [name, lock] of now) {
    if (stateOf(lock) !== stateOf(locks.get(name))) events.push({ ...about, event: "lock", lock });
    if (isGone(lock)) next.delete(name);
    else next.set(name, lock);
  }
  for (const [name, { backend, key }] of locks) {
    // Of a backend that could not be read, and in a look at some locks only, absence says nothing.
    if (
      !whole ||
      now.has(name) ||
      unread.has(JSON.stringify(backend)) ||
      !report.backends.some(({ identity }) => JSON.stringify(identity) === JSON.stringify(backend))
    )
      continue;
    next.delete(name);
    events.push({ ...about, event: "released", backend, key });
  }
  const found = listProblems(report);
  for (const [source, message] of found) if (problems.get(source) !== message) events.push({ ...about, event: "problem", source, message });
  if (whole) for (const source of problems.keys()) if (!found.has(source)) events.push({ ...about, event: "solved", source });
  return { events, told: { locks: next, problems: whole ? found : new Map([...problems, ...found]) } };
}

function listProblems(report: SweepReport): ReadonlyMap<string, string> {
  return new Map([
    ...report.backends.flatMap(({ name, error }) => (error === undefined ? [] : [[name, error.message] as const])),
    ...report.clusters.flatMap(({ name, error }) => (error === undefined ? [] : [[`cluster ${name}`, error] as const])),
    ...(report.timedOut === true ? [["timeout", TIMED_OUT] as const] : []),
    ...(report.refusals.length === 0 ? [] : [["refusal", report.refusals.join("; ")] as const]),
  ]);
}

function nameOf({ backend, key }: ReportedLock): string {
  return `${JSON.stringify(backend)} ${key}`;
}

function stateOf(lock: ReportedLock | undefined): string | undefined {
  return lock === undefined ? undefined : `${lock.verdict} ${lock.reason} ${lock.action} ${lock.owner?.timestamp ?? ""}`;
}
