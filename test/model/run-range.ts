// node test/model/run-range.ts --from 0 --count 100000: so many histories, in blocks of a hundred. The number of a block is the seed of its histories, so a range can be
// gone through in parts, and a history that broke a promise be found again.
import { parseArgs } from "node:util";

import { checkBlock, HISTORIES_PER_BLOCK } from "./check-block.ts";
import { findMissedFloors } from "./floors.ts";
import { Tally } from "./tally.ts";

const { values } = parseArgs({ options: { from: { type: "string", default: "0" }, count: { type: "string", default: "100000" } } });
const first = Math.floor(Number(values.from) / HISTORIES_PER_BLOCK);
const blocks = Math.ceil(Number(values.count) / HISTORIES_PER_BLOCK);
const began = Date.now();
const tally = new Tally();
for (let block = first; block < first + blocks; block += 1) {
  const result = await checkBlock(block);
  if (result.kind === "broken") {
    process.stdout.write(`${result.report}\n`);
    process.exit(1);
  }
  tally.merge(result.tally);
  if ((block + 1) % 100 === 0) process.stderr.write(`${(block + 1) * HISTORIES_PER_BLOCK} histories, ${Math.round((Date.now() - began) / 1_000)} s\n`);
}
process.stdout.write(`${tally.format()}\n${Math.round((Date.now() - began) / 1_000)} s\n`);
const missed = findMissedFloors(tally);
for (const line of missed) process.stdout.write(`${line}\n`);
process.exit(missed.length > 0 ? 1 : 0);
