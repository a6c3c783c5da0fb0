import * as z from "zod";

import { afterUnlock } from "./after-unlock.ts";
import { pendingOperations } from "./checkpoint.ts";
import type { CandidateEvidence, Judgement, FailOn } from "./judgement.ts";
import type { Owner } from "./lock.ts";

/** The words of report and record, as schemas: what is published as JSON Schema is what is written. */
export const backendIdentity = z.discriminatedUnion("scheme", [
  z.object({ scheme: z.literal("azblob"), account: z.string(), container: z.string(), prefix: z.string() }),
  z.object({ scheme: z.literal("s3"), endpoint: z.string().exactOptional(), bucket: z.string(), prefix: z.string() }),
  z.object({ scheme: z.literal("gs"), endpoint: z.string().exactOptional(), bucket: z.string(), prefix: z.string() }),
  z.object({ scheme: z.literal("file"), path: z.string(), prefix: z.string() }),
  z.object({ scheme: z.literal("postgres"), endpoint: z.string(), database: z.string(), table: z.string(), prefix: z.string() }),
]);

export const verdictName = z.enum(["held", "stale", "foreign", "too-young", "unreadable", "undetermined"]);

export const lockOwner = z.object({
  username: z.string(),
  hostname: z.string(),
  pid: z.int(),
  /** As the writer wrote it, with its offset and all its decimals. */
  timestamp: z.string(),
});

/** An owner as it is reported and recorded. */
export function reportOwner({ username, hostname, pid, timestamp }: Owner): z.infer<typeof lockOwner> {
  return { username, hostname, pid, timestamp };
}

export const overrideUsed = z.object({ option: z.string(), value: z.string() });
export type OverrideUsed = z.infer<typeof overrideUsed>;

const probeEvidence = z.object({
  looked: z.boolean(),
  problem: z.string().exactOptional(),
  containers: z.array(z.object({ container: z.string(), containerId: z.string(), processes: z.int() })),
  /** The processes that have the lock's number or are called pulumi, the first 20. */
  suspects: z.array(
    z.object({
      container: z.string(),
      pid: z.int(),
      name: z.string(),
      zombie: z.boolean(),
      startedAt: z.iso.datetime(),
      innerPids: z.array(z.int()),
    }),
  ),
});

export const judgementEvidence = z.object({
  rules: z.array(z.object({ rule: z.string(), applied: z.boolean(), note: z.string() })),
  candidates: z.array(
    z.object({
      cluster: z.string(),
      namespace: z.string(),
      pod: z.string(),
      uid: z.string(),
      finding: z.enum(["held", "gone", "undetermined"]),
      reason: z.string(),
      message: z.string(),
      /** What a look at the pod's processes gave (`--probe-processes`). */
      probe: probeEvidence.exactOptional(),
    }),
  ),
  clusters: z.array(z.object({ name: z.string(), uid: z.string().exactOptional(), pods: z.int(), complete: z.boolean() })),
});

/** A judgement as it is reported and recorded. */
export function reportJudgement({ verdict, reason, message, evidence }: Judgement): ReportedJudgement {
  const { rules, candidates, clusters } = evidence;
  return { verdict, reason, message, evidence: { rules: [...rules], candidates: candidates.map(reportCandidate), clusters: [...clusters] } };
}

function reportCandidate({ probe, ...candidate }: CandidateEvidence): z.infer<typeof judgementEvidence>["candidates"][number] {
  if (probe === undefined) return candidate;
  const suspects = probe.suspects.map((suspect) => ({ ...suspect, innerPids: [...suspect.innerPids] }));
  return { ...candidate, probe: { ...probe, containers: [...probe.containers], suspects } };
}

interface ReportedJudgement {
  readonly verdict: z.infer<typeof verdictName>;
  readonly reason: string;
  readonly message: string;
  readonly evidence: z.infer<typeof judgementEvidence>;
}

const action = z.enum(["keep", "would-delete", "deleted", "deleted-unconfirmed", "vanished", "changed", "failed"]);
export type Action = z.infer<typeof action>;

/** True where this run removed the lock. */
export function isRemoved({ action: done }: { readonly action: Action }): boolean {
  return done === "deleted" || done === "deleted-unconfirmed";
}

/** True where the lock is no longer there, by this run or otherwise. */
export function isGone(lock: { readonly action: Action }): boolean {
  return isRemoved(lock) || lock.action === "vanished";
}

const problem = z.object({ code: z.string(), message: z.string() });

export const reportedLock = z.object({
  backend: backendIdentity,
  key: z.string(),
  id: z.string(),
  stack: z.string(),
  /** Absent when the lock is unreadable or could not be read. */
  owner: lockOwner.exactOptional(),
  storedAt: z.iso.datetime().exactOptional(),
  ageSeconds: z.number().exactOptional(),
  verdict: verdictName,
  reason: z.string(),
  message: z.string(),
  evidence: judgementEvidence,
  action,
  /** What became of the action, where that needs words. */
  note: z.string().exactOptional(),
  /** The record of the removal, for `restore`. */
  record: z.string().exactOptional(),
  /** What the checkpoint of the stack holds (`--check-pending`); only of a lock that was, or would be, removed. */
  pendingOperations: pendingOperations.exactOptional(),
  /** Whom its removal was told (`--requeue-stacks`, `--stack-events`). */
  afterUnlock: afterUnlock.exactOptional(),
});
export type ReportedLock = z.infer<typeof reportedLock>;

/** A Stack whose latest update failed on a lock. */
const reportedStack = z.object({
  cluster: z.string(),
  namespace: z.string(),
  name: z.string(),
  /** `spec.stack`. */
  stack: z.string(),
  blockedBy: z.array(
    z.object({
      key: z.string(),
      /** Absent when the lock's backend is not of this run. */
      backend: backendIdentity.exactOptional(),
      /** Absent when the lock was not judged; then `message` says why. */
      verdict: verdictName.exactOptional(),
      reason: z.string().exactOptional(),
      message: z.string().exactOptional(),
    }),
  ),
});
export type ReportedStack = z.infer<typeof reportedStack>;

const summary = z.object({
  locks: z.int(),
  held: z.int(),
  stale: z.int(),
  foreign: z.int(),
  "too-young": z.int(),
  unreadable: z.int(),
  undetermined: z.int(),
  removed: z.int(),
  wouldRemove: z.int(),
  failed: z.int(),
});
export type Summary = z.infer<typeof summary>;

/** The document of `--output json`, version 1. New fields may be added to it; none is renamed or removed without a new version. */
export const sweepReport = z.object({
  version: z.literal(1),
  runId: z.string(),
  dryRun: z.boolean(),
  startedAt: z.iso.datetime(),
  finishedAt: z.iso.datetime(),
  overrides: z.array(overrideUsed),
  backends: z.array(
    z.object({
      identity: backendIdentity.exactOptional(),
      name: z.string(),
      /** True for one that a Stack named (`--discover`). */
      discovered: z.boolean().exactOptional(),
      locks: z.int(),
      error: problem.optional(),
    }),
  ),
  clusters: z.array(z.object({ uid: z.string().exactOptional(), name: z.string(), pods: z.int(), complete: z.boolean(), error: z.string().optional() })),
  locks: z.array(reportedLock),
  /** The Stacks that are blocked; absent when no cluster was asked for its Stacks. */
  stacks: z.array(reportedStack).exactOptional(),
  /** Why no removal was begun, or not all: a safety valve, a declined question, a signal. */
  refusals: z.array(z.string()),
  warnings: z.array(z.string()),
  /** True where the time for the sweep (`--timeout`) ran out before its end: what it had not seen by then is not in here. */
  timedOut: z.boolean().exactOptional(),
  summary,
  exitCode: z.int(),
});
export type SweepReport = z.infer<typeof sweepReport>;

/** What to say of a report that is `timedOut`. */
export const TIMED_OUT = "the time for the sweep (--timeout) ran out before its end";

/** Counts what a report says. */
export function summarize(locks: readonly ReportedLock[]): Summary {
  const count = (matches: (lock: ReportedLock) => boolean): number => locks.filter(matches).length;
  const verdict = (name: ReportedLock["verdict"]): number => count((lock) => lock.verdict === name);
  return {
    locks: locks.length,
    held: verdict("held"),
    stale: verdict("stale"),
    foreign: verdict("foreign"),
    "too-young": verdict("too-young"),
    unreadable: verdict("unreadable"),
    undetermined: verdict("undetermined"),
    removed: count(isRemoved),
    wouldRemove: count(({ action }) => action === "would-delete"),
    failed: count(({ action }) => action === "failed"),
  };
}

/** What an exit code is chosen from. */
export interface SweepResult {
  readonly locks: readonly Pick<ReportedLock, "verdict" | "action">[];
  readonly failed: boolean;
  readonly refused: boolean;
  readonly cutShort: boolean;
}

/** The exit code of a sweep: the first of 1, 4, 3, 5, 0 that applies (2, wrong usage, never gets this far). */
export function chooseExitCode({ locks, failed, refused, cutShort }: SweepResult, failOn: readonly FailOn[]): number {
  if (failed || locks.some(({ action }) => action === "failed")) return 1;
  if (refused) return 4;
  const incomplete = (["undetermined", "unreadable"] as const).some((name) => failOn.includes(name) && locks.some(({ verdict }) => verdict === name));
  if (cutShort || incomplete) return 3;
  const left = locks.some((lock) => lock.verdict === "stale" && !isGone(lock));
  return failOn.includes("stale") && left ? 5 : 0;
}
