import type { NodePace } from "./node.ts";
import type { Setup } from "./world.ts";

export const PACE: NodePace = { notice: 45, hangNotice: 180, report: 1, startNoted: 0, kill: 1 };

/** A node on which nothing is wrong. */
export const SOUND_NODE: Setup["nodes"][number] = { clockAhead: 0, pace: PACE, joined: false };

/** One cluster, two nodes, a store that tells its times, and clocks that agree. */
export const CALM: Setup = {
  clusters: "one",
  nodes: [SOUND_NODE, SOUND_NODE],
  apiAhead: 0,
  guestAhead: 0,
  janitorAhead: 0,
  storeAhead: 0,
  store: { notesTimes: true, tellsTime: true, late: 0, versionsByContent: false, concurrency: 4 },
  minAge: 60,
  settle: 30,
  stacks: true,
  begun: [],
};
