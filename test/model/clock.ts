import { MILLISECOND, parseTimestamp, truncateToSecond, type EpochNanoseconds, type Nanoseconds } from "../../src/core/time.ts";

/** When every history begins. */
export const BEGINNING: EpochNanoseconds = parseTimestamp("2026-03-10T12:00:00.25Z") ?? 0n;

/** Seconds as a length of time. */
export function seconds(count: number): Nanoseconds {
  return BigInt(Math.round(count * 1_000)) * MILLISECOND;
}

interface Due {
  readonly at: EpochNanoseconds;
  readonly run: () => void;
}

/** True time, and what is to happen in it. */
export class Timeline {
  now: EpochNanoseconds = BEGINNING;
  readonly #due: Due[] = [];

  after(delay: number, run: () => void): void {
    const at = this.now + seconds(delay);
    let index = this.#due.length;
    while (index > 0 && (this.#due[index - 1]?.at ?? 0n) > at) index -= 1;
    this.#due.splice(index, 0, { at, run });
  }

  /** When the next thing happens by itself; undefined for nothing more. */
  get nextAt(): EpochNanoseconds | undefined {
    return this.#due[0]?.at;
  }

  advance(count: number): void {
    this.advanceTo(this.now + seconds(count));
  }

  advanceTo(end: EpochNanoseconds): void {
    for (let next = this.#due[0]; next !== undefined && next.at <= end; next = this.#due[0]) {
      this.#due.shift();
      this.now = next.at;
      next.run();
    }
    this.now = end;
  }
}

/** A clock that somebody reads: ahead of true time, or behind it. */
export class Clock {
  readonly #timeline: Timeline;
  /** How much it is ahead, in nanoseconds. */
  offset: Nanoseconds;
  /** Every step it made: when, and by how much. */
  readonly steps: { readonly at: EpochNanoseconds; readonly by: Nanoseconds }[] = [];

  constructor(timeline: Timeline, ahead: number) {
    this.#timeline = timeline;
    this.offset = seconds(ahead);
  }

  read(): EpochNanoseconds {
    return this.#timeline.now + this.offset;
  }

  /** As Kubernetes keeps times. */
  readSecond(): EpochNanoseconds {
    return truncateToSecond(this.read());
  }

  /** How much it was ahead at a past time. */
  offsetAt(time: EpochNanoseconds): Nanoseconds {
    return this.steps.reduce((offset, { at, by }) => (at > time ? offset - by : offset), this.offset);
  }

  step(by: number): void {
    this.offset += seconds(by);
    this.steps.push({ at: this.#timeline.now, by: seconds(by) });
  }
}
