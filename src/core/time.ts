import { Temporal } from "temporal-polyfill";

/** A point in time, in nanoseconds since 1970-01-01T00:00:00Z. */
export type EpochNanoseconds = bigint;

/** A length of time, in nanoseconds. */
export type Nanoseconds = bigint;

export const MILLISECOND: Nanoseconds = 1_000_000n;
export const SECOND: Nanoseconds = 1_000n * MILLISECOND;
export const MINUTE: Nanoseconds = 60n * SECOND;
export const HOUR: Nanoseconds = 60n * MINUTE;
const DAY: Nanoseconds = 24n * HOUR;

// Go's time.Time.UnmarshalJSON takes exactly this shape (https://pkg.go.dev/time#Time.UnmarshalJSON);
// Temporal alone would also take "20261128T…", a space for the "T", and a second of 60.
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/** Reads an RFC 3339 timestamp with up to nine decimals, as Go writes it; undefined when it is none. */
export function parseTimestamp(text: string): EpochNanoseconds | undefined {
  if (!RFC_3339.test(text)) return undefined;
  try {
    return Temporal.Instant.from(text).epochNanoseconds;
  } catch {
    return undefined;
  }
}

/** Writes a point in time as RFC 3339 in UTC, with as many decimals as it has. */
export function formatTimestamp(at: EpochNanoseconds): string {
  return Temporal.Instant.fromEpochNanoseconds(at).toString();
}

/** Milliseconds since the epoch (what `Date.now()` gives) as nanoseconds. */
export function fromMilliseconds(milliseconds: number): EpochNanoseconds {
  return BigInt(Math.trunc(milliseconds)) * MILLISECOND;
}

/** The point in time with its fraction of a second cut off, as Kubernetes keeps its times. */
export function truncateToSecond(at: EpochNanoseconds): EpochNanoseconds {
  const fraction = at % SECOND;
  return fraction < 0n ? at - fraction - SECOND : at - fraction;
}

/** A length of time in whole seconds, rounded towards zero. */
export function toSeconds(length: Nanoseconds): number {
  return Number(length / SECOND);
}

/** Seconds in words, as `formatDuration`. */
export function formatSeconds(seconds: number): string {
  return formatDuration(BigInt(Math.trunc(seconds)) * SECOND);
}

/** A length of time in words, its two largest units: "2 d 19 h", "42 min", "-3 s". */
export function formatDuration(length: Nanoseconds): string {
  if (length < 0n) return `-${formatDuration(-length)}`;
  const units: readonly [Nanoseconds, string][] = [
    [DAY, "d"],
    [HOUR, "h"],
    [MINUTE, "min"],
    [SECOND, "s"],
  ];
  const first = units.findIndex(([size]) => length >= size);
  if (first === -1) return length === 0n ? "0 s" : `${length / MILLISECOND} ms`;
  let rest = length;
  return units
    .slice(first, first + 2)
    .map(([size, name]) => {
      const count = rest / size;
      rest %= size;
      return { count, name };
    })
    .filter(({ count }) => count > 0n)
    .map(({ count, name }) => `${count} ${name}`)
    .join(" ");
}
