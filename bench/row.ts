import type { Series } from "./measure.ts";

/** One line of the table. */
export interface Comparison {
  readonly work: string;
  readonly against: string;
  readonly aim: string;
  /** The smallest time of the one by the smallest of the other; megabytes where the aim is about memory alone. */
  readonly value: number;
  readonly unit: "×" | "MB";
  /** The same by the medians. */
  readonly byMedian?: number;
  readonly met: boolean;
  /** What was left out, or compared with something else than wanted. */
  readonly note?: string;
}

/** What a row gives: its lines, and everything that was measured. */
export interface Measured {
  readonly comparisons: readonly Comparison[];
  readonly series: readonly Series[];
}

/** A part of the bench that stands alone: brings up its peers, measures, takes them down. */
export interface Row {
  readonly name: string;
  readonly run: () => Promise<Measured>;
}
