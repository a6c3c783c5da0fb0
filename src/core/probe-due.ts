import type { CandidateEvidence, Judgement } from "./judgement.ts";
import { latestTimeOf, type ObservedLock, type Owner } from "./lock.ts";
import type { EpochNanoseconds, Nanoseconds } from "./time.ts";

/** Whether, and when, the processes of pods are looked at. */
export interface ProbeRules {
  /** `--probe-processes`. */
  readonly enabled: boolean;
  /** `--probe-after`: a younger lock's update is most likely still at work. */
  readonly after: Nanoseconds;
}

/** True when a lock is old enough to be probed, by the writer's and by the store's clock. */
export function isDueForProbe(owner: Owner, storedAt: EpochNanoseconds | undefined, now: EpochNanoseconds, { after }: ProbeRules): boolean {
  return now - latestTimeOf(owner, storedAt) >= after;
}

/** The candidates whose processes could change a judgement: a container of theirs runs, and no other candidate holds the lock or is in doubt. */
export function findProbeable(lock: ObservedLock, judgement: Judgement, now: EpochNanoseconds, rules: ProbeRules | undefined): readonly CandidateEvidence[] {
  if (rules?.enabled !== true || judgement.reason !== "container-running" || lock.content.kind !== "readable") return [];
  if (!isDueForProbe(lock.content.owner, lock.storedAt, now, rules)) return [];
  const { candidates } = judgement.evidence;
  const left = candidates.filter(({ finding }) => finding !== "gone");
  return left.every(({ reason }) => reason === "container-running") ? left : [];
}

/** True when a look at processes could yet change a judgement that was made without one. */
export function awaitsProbe(lock: ObservedLock, judgement: Judgement, now: EpochNanoseconds, rules: ProbeRules | undefined): boolean {
  if (rules?.enabled !== true || judgement.reason !== "container-running" || lock.content.kind !== "readable") return false;
  if (!isDueForProbe(lock.content.owner, lock.storedAt, now, rules)) return false;
  return judgement.evidence.candidates.some(({ reason, probe }) => reason === "container-running" && probe === undefined);
}
