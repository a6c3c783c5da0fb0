// The real sweep in 2,000 random histories of a simulated field; docs/model.md says what it holds.
import { expect, it } from "vitest";

import { findTooRare } from "./floors.ts";
import { runIndex, type Counterexample } from "./run-history.ts";
import { Tally } from "./tally.ts";

const HISTORIES = 2_000;
const BASE = 1;

it("P1 to P6 hold in 2,000 random histories, and what is provably stale goes", { timeout: 60_000 }, async () => {
  const tally = new Tally();
  let found: Counterexample | undefined;
  for (let index = 0; index < HISTORIES && found === undefined; index += 1) found = await runIndex(BASE, index, tally);
  expect(found?.text, `npm run test:model -- --seed ${BASE} --from ${found?.index ?? 0} --count 1`).toBeUndefined();
  expect(findTooRare(tally), "the histories are no monotony").toEqual([]);
  process.stdout.write(`${tally.lines().join("\n")}\n`);
});
