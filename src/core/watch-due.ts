import { latestTimeOf } from "./lock.ts";
import type { ReportedLock, SweepReport } from "./report.ts";
import { parseTimestamp, SECOND, type EpochNanoseconds, type Nanoseconds } from "./time.ts";

/** What is not settled now is so within seconds. */
const SOON: Nanoseconds = 5n * SECOND;

/** After a failure to read something. */
const AFTER_FAILURE: Nanoseconds = 30n * SECOND;

/** When a watch should look again because of what a sweep found, whatever its interval: a lock comes of age, a pod settles, a backend comes back. Undefined for no such reason. */
export function findNextDue({ locks, backends, clusters }: SweepReport, now: EpochNanoseconds, minAge: Nanoseconds): EpochNanoseconds | undefined {
  const dues = locks.flatMap((lock) => {
    if (lock.verdict === "too-young") return [later(comesOfAge(lock, minAge), now + SECOND)];
    return lock.reason === "not-settled" || lock.reason === "status-older" ? [now + SOON] : [];
  });
  const failed = [...backends, ...clusters].some(({ error }) => error !== undefined);
  return [...dues, ...(failed ? [now + AFTER_FAILURE] : [])].toSorted((a, b) => (a < b ? -1 : 1))[0];
}

function comesOfAge({ owner, storedAt }: ReportedLock, minAge: Nanoseconds): EpochNanoseconds {
  const lockedAt = parseTimestamp(owner?.timestamp ?? "") ?? 0n;
  return latestTimeOf({ lockedAt }, storedAt === undefined ? undefined : parseTimestamp(storedAt)) + minAge;
}

function later(one: EpochNanoseconds, other: EpochNanoseconds): EpochNanoseconds {
  return one > other ? one : other;
}
