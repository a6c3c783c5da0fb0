// Real pods on a real node, the real Pulumi in them on real backends, and the ways in which a pod can end. Whether Pulumi still runs is read from the
// node's /proc, never from a scenario's name. FIELD_KUBECONFIG has it use a cluster that is there already (CONTRIBUTING.md).
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { writeFieldPage } from "./document.ts";
import { Field } from "./field.ts";
import { readGivenSettings, readWantedScenarios } from "./given-settings.ts";
import { CUT_STACKS, EXPECTED_LOOKS, runCuts, type CutOutcome } from "./run-cuts.ts";
import { runScenarios, type Outcome } from "./run-scenarios.ts";
import { stacksOf } from "./scenario.ts";
import { SCENARIOS } from "./scenarios.ts";

const PAGE = "docs/field-test.md";
let field: Field | undefined;
let cuts: CutOutcome | undefined;
const outcomes = new Map<string, Outcome>();
const wanted = readWantedScenarios();
const scenarios = SCENARIOS.filter(({ name }) => wanted?.includes(name) !== false);
const isOwn = readGivenSettings() === undefined;
/** What this run leaves out, each with the reason. */
const leftOut: string[] = wanted === undefined ? [] : [`not run: ${SCENARIOS.length - scenarios.length} scenarios and the cuts, by FIELD_SCENARIOS`];

beforeAll(async () => {
  const began = Date.now();
  const say = (line: string): void => void process.stdout.write(`${Math.round((Date.now() - began) / 1_000)} s: ${line}\n`);
  field = await Field.start();
  say("the node is ready");
  for (const outcome of await runScenarios(field, scenarios, say)) outcomes.set(outcome.stack, outcome);
  if (typeof field.cutter === "string") leftOut.push(`not run: needs the node: ${CUT_STACKS.join(", ")}: ${field.cutter}`);
  else if (wanted === undefined) cuts = await runCuts(field, field.cutter, say);
  if (!isOwn) leftOut.push(`${PAGE} is not compared: it is about the test's own node`, "no folder is shared with pods: S3 stands for the backend file");
  for (const line of leftOut) say(line);
  say("done");
});
afterAll(async () => await field?.stop());

const CASES = scenarios.flatMap((scenario) => stacksOf(scenario).map((stack) => [stack, scenario] as const));

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
  it("P1: shows what it must at each moment, or the run has said why it is left out", () => {
    const told = leftOut.find((line) => line.startsWith("not run"));
    expect(cuts?.looks ?? told).toEqual(told ?? EXPECTED_LOOKS);
  });

  it("pulumi up goes through in the end", () => {
    expect([...(cuts?.ups ?? [])].filter(([, { ok }]) => !ok)).toEqual([]);
    expect(cuts?.ups.size).toBe(cuts?.looks === undefined ? undefined : CUT_STACKS.length);
  });
});

/** Part of the scenarios, and another cluster, are not what the page is about. */
const PAGES = isOwn && wanted === undefined ? [PAGE] : [];

it.each(PAGES)("%s says what this run has shown", (file) => {
  const page = writeFieldPage([...outcomes.values()], cuts?.looks ?? []);
  const before = existsSync(file) ? readFileSync(file, "utf8") : "";
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, page);
  expect(page, "the page is written anew: look at it, and commit it").toBe(before);
});
