// A range of histories: node test/model/run-range.ts [--watch] --from 0 --count 100000 [--seed 1] [--no-shrink]
import { parseArgs } from "node:util";

import { findTooRare } from "./floors.ts";
import { runIndex } from "./run-history.ts";
import { Tally } from "./tally.ts";
import { WATCH_FLOORS } from "./watch/floors.ts";
import { runWatchIndex } from "./watch/run-history.ts";

const { values } = parseArgs({
  options: {
    from: { type: "string", default: "0" },
    count: { type: "string", default: "100000" },
    seed: { type: "string", default: "1" },
    watch: { type: "boolean", default: false },
    "no-shrink": { type: "boolean", default: false },
  },
});
const from = Number(values.from);
const count = Number(values.count);
const tally = new Tally();
const begun = performance.now();
const say = (text: string): void => void process.stdout.write(`${text}\n`);

let failed = false;
for (let index = from; index < from + count && !failed; index += 1) {
  const found = await (values.watch ? runWatchIndex : runIndex)(Number(values.seed), index, tally, !values["no-shrink"]);
  if (found !== undefined) {
    failed = true;
    say(
      `history ${found.index} (seed ${found.seed}) breaks a promise; run it again with ${values.watch ? "--watch " : ""}--seed ${values.seed} --from ${found.index} --count 1\n${found.text}`,
    );
  }
  if ((index - from + 1) % 10_000 === 0) say(`${index - from + 1} of ${count}, ${((performance.now() - begun) / (index - from + 1)).toFixed(2)} ms each`);
}
say(tally.lines().join("\n"));
say(`${tally.get("histories")} histories in ${((performance.now() - begun) / 1_000).toFixed(1)} s`);
// A few histories say nothing of what is rare.
const tooRare = failed || count < (values.watch ? 300 : 1_000) ? [] : findTooRare(tally, values.watch ? WATCH_FLOORS : undefined);
for (const line of tooRare) say(`too rare: ${line}`);
if (failed || tooRare.length > 0) process.exitCode = 1;
