import { formatIdentity, type BackendIdentity } from "./core/backend-identity.ts";
import type { ClusterObservation } from "./core/cluster.ts";
import type { Judgement } from "./core/judgement.ts";
import { parseLockKey } from "./core/key.ts";
import type { ObservedLock } from "./core/lock.ts";
import { chooseExitCode, summarize, type Action, type FailOn, type OverrideUsed, type ReportedLock, type SweepReport } from "./core/report.ts";
import { formatTimestamp, toSeconds, type EpochNanoseconds } from "./core/time.ts";
import { describeWithHint, type JanitorError } from "./errors.ts";

/** A lock within a sweep. */
export interface SweptLock {
  readonly lock: ObservedLock;
  readonly judgement: Judgement;
  readonly action: Action;
  readonly note?: string;
  readonly record?: string;
}

/** A backend within a sweep. */
export interface SweptBackend {
  readonly name: string;
  readonly identity?: BackendIdentity;
  readonly error?: JanitorError;
  readonly locks: readonly SweptLock[];
}

/** All that a report is made from. */
export interface SweepFacts {
  readonly runId: string;
  readonly dryRun: boolean;
  readonly startedAt: EpochNanoseconds;
  readonly finishedAt: EpochNanoseconds;
  readonly overrides: readonly OverrideUsed[];
  readonly backends: readonly SweptBackend[];
  readonly clusters: readonly ClusterObservation[];
  readonly refusals: readonly string[];
  readonly warnings: readonly string[];
  readonly cutShort: boolean;
  readonly failOn: readonly FailOn[];
}

/** Makes the report of a sweep: every lock found, in a stable order. */
export function composeReport(facts: SweepFacts): SweepReport {
  const locks = facts.backends
    .flatMap(({ identity, locks: swept }) => (identity === undefined ? [] : swept.map((lock) => reportLock(identity, lock, facts.finishedAt))))
    .toSorted((a, b) => compare(formatIdentity(a.backend), formatIdentity(b.backend)) || compare(a.key, b.key));
  const failed = facts.backends.some(({ error }) => error !== undefined && error.code !== "interrupted");
  const clusters = facts.clusters.map((cluster) => ({
    name: cluster.name,
    ...(cluster.uid === undefined ? {} : { uid: cluster.uid }),
    pods: cluster.pods.total,
    complete: cluster.pods.kind === "complete",
    ...(cluster.pods.kind === "incomplete" ? { error: cluster.pods.problem } : {}),
  }));
  return {
    version: 1,
    runId: facts.runId,
    dryRun: facts.dryRun,
    startedAt: formatTimestamp(facts.startedAt),
    finishedAt: formatTimestamp(facts.finishedAt),
    overrides: [...facts.overrides],
    backends: facts.backends.map(({ name, identity, error, locks: swept }) => ({
      ...(identity === undefined ? {} : { identity }),
      name,
      locks: swept.length,
      ...(error === undefined ? {} : { error: { code: error.code, message: describeWithHint(error) } }),
    })),
    clusters,
    locks,
    refusals: [...facts.refusals],
    warnings: [...facts.warnings],
    summary: summarize(locks),
    exitCode: chooseExitCode(
      // A cluster that could not be read is a failure only where it was needed and left a lock undecided.
      { locks, failed: failed || clusters.some(({ error }) => error !== undefined), refused: facts.refusals.length > 0, cutShort: facts.cutShort },
      facts.failOn,
    ),
  };
}

function reportLock(backend: BackendIdentity, { lock, judgement, action, note, record }: SweptLock, now: EpochNanoseconds): ReportedLock {
  const { stack, id } = parseLockKey(lock.key);
  const owner = lock.content.kind === "readable" ? lock.content.owner : undefined;
  const since = owner?.lockedAt ?? lock.storedAt;
  const { verdict, reason, message, evidence } = judgement;
  return {
    backend,
    key: lock.key,
    id,
    stack,
    ...(owner === undefined ? {} : { owner: { username: owner.username, hostname: owner.hostname, pid: owner.pid, timestamp: owner.timestamp } }),
    ...(lock.storedAt === undefined ? {} : { storedAt: formatTimestamp(lock.storedAt) }),
    ...(since === undefined ? {} : { ageSeconds: toSeconds(now - since) }),
    verdict,
    reason,
    message,
    evidence: { rules: [...evidence.rules], candidates: [...evidence.candidates], clusters: [...evidence.clusters] },
    action,
    ...(note === undefined ? {} : { note }),
    ...(record === undefined ? {} : { record }),
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
