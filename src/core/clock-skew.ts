import { SECOND, type Nanoseconds } from "./time.ts";

/** By how much clocks may differ while every margin of the rules holds. */
const WITHIN_MARGINS: Nanoseconds = 5n * SECOND;

/** What `--clock-skew` allows beyond the margins of the rules: by that much the janitor's clock may be ahead, so each margin is longer by it. */
export function findExcessSkew(skew: Nanoseconds): Nanoseconds {
  return skew > WITHIN_MARGINS ? skew - WITHIN_MARGINS : 0n;
}
