import { median, minimum, type Series } from "./measure.ts";
import type { Comparison } from "./row.ts";

type Told = Pick<Comparison, "work" | "against"> & { readonly note?: string };

/** One command's time by another's: at most `most` times. `factor` is what stands for several of the other, twenty bare starts for one of a tool that is not there. */
export function compareTime(told: Told, ours: Series, theirs: Series, most: number, factor = 1): Comparison {
  const value = minimum(ours) / (minimum(theirs) * factor);
  const byMedian = median(ours) / (median(theirs) * factor);
  return { ...told, aim: `≤ ${most} ×`, value, byMedian, unit: "×", met: value <= most };
}

/** How many times faster than another: at least `least` times. */
export function compareSpeed(told: Told, ours: Series, theirs: Series, least: number, factor = 1): Comparison {
  const value = (minimum(theirs) * factor) / minimum(ours);
  const byMedian = (median(theirs) * factor) / median(ours);
  return { ...told, aim: `≥ ${least} × faster`, value, byMedian, unit: "×", met: value >= least };
}

/** The peak of a command's memory: at most `most` megabytes. */
export function compareMemory(work: string, { megabytes }: Series, most: number): Comparison {
  return { work, against: "peak resident memory", aim: `≤ ${most} MB`, value: megabytes, unit: "MB", met: megabytes <= most };
}
