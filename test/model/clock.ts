import { parseTimestamp, type EpochNanoseconds } from "../../src/core/time.ts";

const BEGINNING = parseTimestamp("2026-03-10T12:00:00Z") ?? 0n;

/** The time at so many seconds after the beginning, to the millisecond. */
export function toTime(seconds: number): EpochNanoseconds {
  return BEGINNING + BigInt(Math.round(seconds * 1_000)) * 1_000_000n;
}
