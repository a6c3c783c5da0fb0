import { compareTime } from "./compare.ts";
import { BARE_NODE, interleave, janitor, pick } from "./measure.ts";
import type { Row } from "./row.ts";

/** What is answered without any work. */
export const START_UP: Row = {
  name: "start-up",
  run: async () => {
    const series = await interleave(
      [BARE_NODE, janitor("--version", ["--version"], [/^\d+\.\d+\.\d+\n$/]), janitor("--help", ["--help"], [/Exit codes:/])],
      25,
    );
    const bare = pick(series, BARE_NODE.name);
    return {
      series,
      comparisons: [
        compareTime({ work: "`--version`", against: "bare `node -e ''`" }, pick(series, "--version"), bare, 1.3),
        compareTime({ work: "`--help`", against: "bare `node -e ''`" }, pick(series, "--help"), bare, 1.8),
      ],
    };
  },
};
