import { judgeLiveness } from "../liveness.ts";
import { closeHistory, createRunner, type Ending } from "../run-history.ts";
import { WatchedField, type WatchHistory } from "./field.ts";
import { watchHistories } from "./history.ts";

/** Lets a history happen around a watch, which goes on for some intervals after everything is healed. */
async function runWatchHistory(history: WatchHistory, tell?: (line: string) => void): Promise<Ending> {
  const field = new WatchedField(history, tell);
  const { world, oracle } = field;
  await field.run();
  const { tally, violations } = world.oracle;
  // A closed valve wants a person.
  if (violations.length === 0 && oracle.refused) tally.add("ends with a closed valve");
  else if (violations.length === 0) judgeLiveness(world);
  return closeHistory(world);
}

/** Runs one history of a range. */
export const runWatchIndex = createRunner(watchHistories, runWatchHistory);
