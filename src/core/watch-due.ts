import { findExcessSkew } from "./clock-skew.ts";
import { latestTimeOf } from "./lock.ts";
import type { ReportedLock, SweepReport } from "./report.ts";
import { parseTimestamp, SECOND, type EpochNanoseconds, type Nanoseconds } from "./time.ts";

/** What is not settled now is so within seconds, unless `settle` is long. */
const SOON: Nanoseconds = 5n * SECOND;

/** After a failure to read something, and after the next; from then on it doubles, since what is refused for good comes back by no looking. */
const AFTER_FAILURE: Nanoseconds = 30n * SECOND;

/** Beyond any interval. */
const MOST_DOUBLINGS = 20;

/** True where a sweep could not read a backend or a cluster, or had no time to: one that waits for an answer has no error to tell. */
export function hasFailed({ backends, clusters, timedOut = false }: SweepReport): boolean {
  return timedOut || [...backends, ...clusters].some(({ error }) => error !== undefined);
}

/** What the time to look again depends on. */
export interface DueSettings {
  readonly minAge: Nanoseconds;
  readonly clockSkew: Nanoseconds;
  readonly settle: Nanoseconds;
  /** Sweeps one after the other, this one included, that could not read something. */
  readonly failures: number;
}

/** When a watch should look again because of what a sweep found, whatever its interval: a lock comes of age, a pod settles, a backend comes back. Undefined for no such reason. */
export function findNextDue({ locks }: SweepReport, now: EpochNanoseconds, { minAge, clockSkew, settle, failures }: DueSettings): EpochNanoseconds | undefined {
  const dues = locks.flatMap((lock) => {
    if (lock.verdict === "too-young") return [later(comesOfAge(lock, minAge + findExcessSkew(clockSkew)), now + SECOND)];
    if (lock.reason === "not-settled") return [now + later(SOON, settle / 10n)];
    return lock.reason === "status-older" ? [now + SOON] : [];
  });
  const afterFailure = AFTER_FAILURE << BigInt(Math.min(Math.max(failures - 2, 0), MOST_DOUBLINGS));
  return [...dues, ...(failures > 0 ? [now + afterFailure] : [])].toSorted((a, b) => (a < b ? -1 : 1))[0];
}

function comesOfAge({ owner, storedAt }: ReportedLock, minAge: Nanoseconds): EpochNanoseconds {
  const lockedAt = parseTimestamp(owner?.timestamp ?? "") ?? 0n;
  return latestTimeOf({ lockedAt }, storedAt === undefined ? undefined : parseTimestamp(storedAt)) + minAge;
}

function later(one: EpochNanoseconds, other: EpochNanoseconds): EpochNanoseconds {
  return one > other ? one : other;
}

/** Between the first two looks that lost changes ask for; from one to the next it doubles. */
const FIRST_GAP: Nanoseconds = 10n * SECOND;

/** When to look again because changes may have been missed: at once, and ever more rarely where they are lost again and again, until the interval is often enough. */
export class LossPace {
  readonly #interval: Nanoseconds;
  #gap: Nanoseconds = FIRST_GAP;
  #dueAt: EpochNanoseconds | undefined;

  constructor(interval: Nanoseconds) {
    this.#interval = interval;
  }

  note(now: EpochNanoseconds): EpochNanoseconds {
    const last = this.#dueAt;
    // That look is still to come, and sees what is lost now as well. Further ahead than the interval it is only by a clock that was set back.
    if (last !== undefined && last > now && last <= now + this.#interval) return last;
    if (last === undefined || last > now || now - last >= this.#interval) {
      this.#gap = FIRST_GAP;
      this.#dueAt = now;
    } else {
      this.#dueAt = later(now, last + this.#gap);
      this.#gap = this.#gap * 2n < this.#interval ? this.#gap * 2n : this.#interval;
    }
    return this.#dueAt;
  }
}
