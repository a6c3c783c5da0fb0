import { warnAfterUnlock, type AfterUnlock } from "./core/after-unlock.ts";
import { formatIdentity, type BackendIdentity } from "./core/backend-identity.ts";
import { findBlockedStacks } from "./core/blocked-stacks.ts";
import type { PendingOperations } from "./core/checkpoint.ts";
import type { ClusterObservation, StackListOfCluster } from "./core/cluster.ts";
import type { Judgement, FailOn } from "./core/judgement.ts";
import { parseLockKey } from "./core/key.ts";
import type { ObservedLock } from "./core/lock.ts";
import {
  chooseExitCode,
  reportJudgement,
  reportOwner,
  summarize,
  type Action,
  type OverrideUsed,
  type ReportedLock,
  type ReportedStack,
  type SweepReport,
  isGone,
} from "./core/report.ts";
import { escapeUntrusted, formatCount, joinSome, compareText } from "./core/text.ts";
import { formatDuration, formatSeconds, formatTimestamp, toSeconds, type EpochNanoseconds, type Nanoseconds } from "./core/time.ts";
import { describeWithHint, type JanitorError } from "./errors.ts";

/** A lock within a sweep. */
export interface SweptLock {
  readonly lock: ObservedLock;
  readonly judgement: Judgement;
  readonly action: Action;
  readonly note?: string;
  readonly record?: string;
  /** What the checkpoint of its stack holds, where that was to be looked at. */
  readonly pending?: PendingOperations;
  /** Whom its removal was told. */
  readonly afterUnlock?: AfterUnlock;
}

/** A backend within a sweep. */
export interface SweptBackend {
  readonly name: string;
  readonly identity?: BackendIdentity;
  readonly error?: JanitorError;
  /** True for one that a Stack named. */
  readonly discovered?: boolean;
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
  /** What was seen of Stacks before the backends were opened (`--discover`). */
  readonly stackLists?: readonly StackListOfCluster[];
  /** True when only some of the locks were looked at. */
  readonly selective: boolean;
  readonly refusals: readonly string[];
  readonly warnings: readonly string[];
  /** How many locks were not selected. */
  readonly leftOut: number;
  readonly warnHeldAfter: Nanoseconds;
  /** By its deadline or by a signal. */
  readonly cutShort: boolean;
  /** By its deadline. */
  readonly timedOut?: boolean;
  readonly failOn: readonly FailOn[];
}

/** Makes the report of a sweep: every lock found, in a stable order. */
export function composeReport(facts: SweepFacts): SweepReport {
  const locks = facts.backends
    .flatMap(({ identity, locks: swept }) => (identity === undefined ? [] : [{ name: formatIdentity(identity), identity, swept }]))
    .toSorted((a, b) => compareText(a.name, b.name))
    .flatMap(({ identity, swept }) =>
      swept.toSorted((a, b) => compareText(a.lock.key, b.lock.key)).map((lock) => reportLock(identity, lock, facts.finishedAt)),
    );
  const failed = facts.backends.some(({ error }) => error !== undefined && error.code !== "interrupted");
  const clusters = reportClusters(facts);
  const stacks = reportStacks(facts, locks);
  return {
    version: 1,
    runId: facts.runId,
    dryRun: facts.dryRun,
    startedAt: formatTimestamp(facts.startedAt),
    finishedAt: formatTimestamp(facts.finishedAt),
    overrides: [...facts.overrides],
    backends: facts.backends.map(({ name, identity, error, discovered = false, locks: swept }) => ({
      ...(identity === undefined ? {} : { identity }),
      name,
      ...(discovered ? { discovered } : {}),
      locks: swept.length,
      ...(error === undefined ? {} : { error: { code: error.code, message: describeWithHint(error) } }),
    })),
    clusters,
    locks,
    ...(stacks === undefined ? {} : { stacks }),
    refusals: [...facts.refusals],
    warnings: [...facts.warnings, ...warnAfterUnlock(locks), ...warnOfHolders(locks, facts.warnHeldAfter), ...warnOfLeftOut(facts.leftOut)],
    ...(facts.timedOut === true ? { timedOut: true } : {}),
    summary: summarize(locks),
    exitCode: chooseExitCode(
      // A cluster that could not be read is a failure only where it was needed and left a lock undecided.
      { locks, failed: failed || clusters.some(({ error }) => error !== undefined), refused: facts.refusals.length > 0, cutShort: facts.cutShort },
      facts.failOn,
    ),
  };
}

/** The clusters that were asked; one whose Stacks were wanted and could not be listed has an error (promise P5). */
function reportClusters({ clusters, stackLists = [] }: SweepFacts): SweepReport["clusters"] {
  const failures = new Map(
    stackLists.flatMap(({ cluster, list }) => (list.kind === "unlisted" ? [[cluster, [`its Stacks are not known: ${list.problem}`]] as const] : [])),
  );
  const observed = clusters.map(({ name, uid, pods }) => {
    const problems = [...(pods.kind === "incomplete" ? [pods.problem] : []), ...(failures.get(name) ?? [])];
    return {
      name,
      ...(uid === undefined ? {} : { uid }),
      pods: pods.total,
      complete: pods.kind === "complete",
      ...(problems.length === 0 ? {} : { error: problems.join("; ") }),
    };
  });
  const unobserved = Array.from(failures).filter(([cluster]) => !clusters.some(({ name }) => name === cluster));
  return [...observed, ...unobserved.map(([name, problems]) => ({ name, pods: 0, complete: false, error: problems.join("; ") }))];
}

/** The blocked Stacks, by the latest list of each cluster; undefined when no cluster was asked. */
function reportStacks({ backends, clusters, stackLists = [], selective }: SweepFacts, locks: readonly ReportedLock[]): ReportedStack[] | undefined {
  if (clusters.length === 0 && stackLists.length === 0) return undefined;
  const lists = new Map(
    [...stackLists, ...clusters.map(({ name, stacks: list }) => ({ cluster: name, list }))].flatMap(({ cluster, list }) =>
      list.kind === "listed" ? [[cluster, list.stacks] as const] : [],
    ),
  );
  const there = locks.filter((lock) => !isGone(lock));
  return findBlockedStacks(
    Array.from(lists, ([cluster, stacks]) => ({ cluster, stacks })),
    backends.flatMap(({ identity, error }) =>
      identity === undefined ? [] : [{ identity, listed: error === undefined, locks: there.filter(({ backend }) => backend === identity) }],
    ),
    selective,
  );
}

/** Nothing in Kubernetes tells whether the process of a held lock still runs, so an old one is a person's to look at. */
function warnOfHolders(locks: readonly ReportedLock[], after: Nanoseconds): readonly string[] {
  const old = locks.filter(({ verdict, reason, ageSeconds = 0 }) => verdict === "held" && reason !== "restored" && ageSeconds >= toSeconds(after));
  if (old.length === 0) return [];
  const names = old
    .toSorted((a, b) => (b.ageSeconds ?? 0) - (a.ageSeconds ?? 0))
    .map(({ stack, owner, ageSeconds = 0 }) => `${escapeUntrusted(stack)} by ${escapeUntrusted(owner?.hostname ?? "")} for ${formatSeconds(ageSeconds)}`);
  return [`${formatCount(old.length, "lock")} held for longer than ${formatDuration(after)}, whose update may hang or have died unseen: ${joinSome(names)}`];
}

function warnOfLeftOut(count: number): readonly string[] {
  return count === 0 ? [] : [`${formatCount(count, "other lock")} there ${count === 1 ? "was" : "were"} not looked at`];
}

function reportLock(backend: BackendIdentity, { lock, judgement, action, note, record, pending, afterUnlock }: SweptLock, now: EpochNanoseconds): ReportedLock {
  const { stack, id } = parseLockKey(lock.key);
  const owner = lock.content.kind === "readable" ? lock.content.owner : undefined;
  const since = owner?.lockedAt ?? lock.storedAt;
  return {
    backend,
    key: lock.key,
    id,
    stack,
    ...(owner === undefined ? {} : { owner: reportOwner(owner) }),
    ...(lock.storedAt === undefined ? {} : { storedAt: formatTimestamp(lock.storedAt) }),
    ...(since === undefined ? {} : { ageSeconds: toSeconds(now - since) }),
    ...reportJudgement(judgement),
    action,
    ...(note === undefined ? {} : { note }),
    ...(record === undefined ? {} : { record }),
    ...(pending === undefined ? {} : { pendingOperations: pending }),
    ...(afterUnlock === undefined ? {} : { afterUnlock }),
  };
}
