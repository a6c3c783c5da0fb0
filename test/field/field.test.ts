// Real pods on a real node, the real Pulumi in them on real backends, and the ways in which a pod can end. Whether Pulumi still runs is read from the
// node's /proc, never from a scenario's name.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { writeFieldPage } from "./document.ts";
import { Field } from "./field.ts";
import { EXPECTED_LOOKS, runCuts, type CutOutcome } from "./run-cuts.ts";
import { runScenarios, type Outcome } from "./run-scenarios.ts";
import { stacksOf } from "./scenario.ts";
import { SCENARIOS } from "./scenarios.ts";

const PAGE = "docs/field-test.md";
let field: Field | undefined;
let cuts: CutOutcome | undefined;
const outcomes = new Map<string, Outcome>();

beforeAll(async () => {
  const began = Date.now();
  const say = (line: string): void => void process.stdout.write(`${Math.round((Date.now() - began) / 1_000)} s: ${line}\n`);
  field = await Field.start();
  say("the node is ready");
  for (const outcome of await runScenarios(field, SCENARIOS, say)) outcomes.set(outcome.stack, outcome);
  cuts = await runCuts(field, say);
  say("done");
});
afterAll(async () => await field?.stop());

const CASES = SCENARIOS.flatMap((scenario) => stacksOf(scenario).map((stack) => [stack, scenario] as const));

describe("in the field", () => {
  it.each(CASES)("P1: %s: no update loses its lock while it runs", (stack) => {
    expect(outcomes.get(stack)?.wronged).toEqual([]);
  });

  it.each(CASES)("%s: verdicts", (stack, { before = "held: container-running", after }) => {
    expect(outcomes.get(stack)).toMatchObject({ before, after });
  });

  it.each(CASES)("%s: where nothing runs any more the lock goes, unless it cannot be proven", (stack, { after }) => {
    const outcome = outcomes.get(stack);
    expect(outcome).toMatchObject({
      ranAfter: after.startsWith("held") && outcome?.byHand !== true,
      byHand: outcome?.ranAfter === false && !after.startsWith("stale") && after !== "no lock",
    });
    expect(outcome?.removedBy !== undefined).toBe(after.startsWith("stale"));
  });

  it.each(CASES)("%s: pulumi up goes through in the end", (stack) => {
    const up = outcomes.get(stack)?.up;
    expect(up?.ok, up?.output).toBe(true);
  });
});

describe("a node that is cut off", () => {
  it("P1: shows what it must at each moment", () => {
    expect(cuts?.looks).toEqual(EXPECTED_LOOKS);
  });

  it("pulumi up goes through in the end", () => {
    expect([...(cuts?.ups ?? [])].filter(([, { ok }]) => !ok)).toEqual([]);
    expect(cuts?.ups.size).toBe(3);
  });
});

it("the page of the field test says what this run has shown", () => {
  const page = writeFieldPage([...outcomes.values()], cuts?.looks ?? []);
  const before = existsSync(PAGE) ? readFileSync(PAGE, "utf8") : "";
  mkdirSync("docs", { recursive: true });
  writeFileSync(PAGE, page);
  expect(page, "the page is written anew: look at it, and commit it").toBe(before);
});
