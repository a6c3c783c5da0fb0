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
