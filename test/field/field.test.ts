// Real pods on a real node, the real Pulumi in them on real backends, and the ways in which a pod can end. Whether Pulumi still runs is read from the
// node's /proc, never from a scenario's name.
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { Field } from "./field.ts";
import { runScenarios, type Outcome } from "./run-scenarios.ts";
import { stacksOf } from "./scenario.ts";
import { SCENARIOS } from "./scenarios.ts";

let field: Field | undefined;
const outcomes = new Map<string, Outcome>();

beforeAll(async () => {
  const began = Date.now();
  const say = (line: string): void => void process.stdout.write(`${Math.round((Date.now() - began) / 1_000)} s: ${line}\n`);
  field = await Field.start();
  say("the node is ready");
  for (const outcome of await runScenarios(field, SCENARIOS, say)) outcomes.set(outcome.stack, outcome);
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
