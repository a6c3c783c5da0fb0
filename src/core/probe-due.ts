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

/** True when processes could change a judgement: only that a container runs keeps the lock, and it is old enough. */
function wantsProbe({ content, storedAt }: ObservedLock, { reason }: Judgement, now: EpochNanoseconds, rules: ProbeRules | undefined): boolean {
  if (rules?.enabled !== true || reason !== "container-running" || content.kind !== "readable") return false;
  return isDueForProbe(content.owner, storedAt, now, rules);
}

/** The candidates whose processes could change a judgement: a container of theirs runs, and no other candidate holds the lock or is in doubt. */
export function findProbeable(lock: ObservedLock, judgement: Judgement, now: EpochNanoseconds, rules: ProbeRules | undefined): readonly CandidateEvidence[] {
  if (!wantsProbe(lock, judgement, now, rules)) return [];
  const { candidates } = judgement.evidence;
  const left = candidates.filter(({ finding }) => finding !== "gone");
  return left.every(({ reason }) => reason === "container-running") ? left : [];
}

/** True when a look at processes could yet change a judgement that was made without one. */
export function awaitsProbe(lock: ObservedLock, judgement: Judgement, now: EpochNanoseconds, rules: ProbeRules | undefined): boolean {
  return (
    wantsProbe(lock, judgement, now, rules) && judgement.evidence.candidates.some(({ reason, probe }) => reason === "container-running" && probe === undefined)
  );
}
