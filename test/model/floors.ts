import type { Tally } from "./tally.ts";

/** What must occur at least so often in 2,000 histories, and accordingly in more: else the model has become too tame to prove anything. */
const FLOORS: readonly (readonly [what: string, read: (tally: Tally) => number, least: number])[] = [
  ["histories that removed something", (tally) => tally.withRemoval, 500],
  ["histories in which a live lock was judged", (tally) => tally.withLiveLock, 400],
];

const FOR = 2_000;

/** The floors that a run did not reach, in words. */
export function findMissedFloors(tally: Tally): readonly string[] {
  return FLOORS.flatMap(([what, read, least]) => {
    const wanted = Math.floor((least * tally.histories) / FOR);
    return read(tally) >= wanted ? [] : [`too tame: ${what}: ${read(tally)}, and not ${wanted}`];
  });
}
