// The real watch in 300 random histories of a simulated field; docs/model.md says what they hold.
import { expect, it } from "vitest";

import { findTooRare } from "../floors.ts";
import type { Counterexample } from "../run-history.ts";
import { Tally } from "../tally.ts";
import { WATCH_FLOORS } from "./floors.ts";
import { runWatchIndex } from "./run-history.ts";

const HISTORIES = 300;
const BASE = 1;

it("P1 to P6 hold in 300 random histories of watch, which looks when it should, and what is provably stale goes", { timeout: 60_000 }, async () => {
  const tally = new Tally();
  let found: Counterexample | undefined;
  for (let index = 0; index < HISTORIES && found === undefined; index += 1) found = await runWatchIndex(BASE, index, tally);
  expect(found?.text, `npm run test:model -- --watch --seed ${BASE} --from ${found?.index ?? 0} --count 1`).toBeUndefined();
  expect(findTooRare(tally, WATCH_FLOORS), "the histories are no monotony").toEqual([]);
});
