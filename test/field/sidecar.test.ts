// The janitor as a sidecar in real pods, by the recipes of the README for both operators: what it removes, when, and what it never does.
import { existsSync, readFileSync, writeFileSync } from "node:fs";

import { afterAll, beforeAll, expect, it } from "vitest";

import { Field } from "./field.ts";
import { readGivenSettings } from "./given-settings.ts";
import { runSidecars, type SidecarOutcome } from "./run-sidecars.ts";
import { writeSidecarPage } from "./sidecar-page.ts";
import { SIDECAR_SCENARIOS } from "./sidecar-scenarios.ts";

/** Another cluster than the test's own is not what the page is about. */
const PAGES = readGivenSettings() === undefined ? ["docs/field-sidecar.md"] : [];
let field: Field | undefined;
let wronged: readonly string[] | undefined;
const outcomes = new Map<string, SidecarOutcome>();

beforeAll(async () => {
  const began = Date.now();
  const say = (line: string): void => void process.stdout.write(`${Math.round((Date.now() - began) / 1_000)} s: ${line}\n`);
  field = await Field.start();
  const seen = await runSidecars(field, SIDECAR_SCENARIOS, say);
  for (const outcome of seen.outcomes) outcomes.set(outcome.scenario.name, outcome);
  ({ wronged } = seen);
  say("done");
});
afterAll(async () => await field?.stop());

it("P1: no update loses its lock while it runs", () => {
  expect(wronged).toEqual([]);
});

const CASES = SIDECAR_SCENARIOS.map((scenario) => [scenario.name, scenario.end] as const);

it.each(CASES)("%s: the lock goes with its process, and not before (%s)", (name, end) => {
  const lives = end === "lives";
  expect(outcomes.get(name)).toMatchObject({ ran: lives, locked: lives, podOutlivedLock: !lives });
});

it.each(CASES)("%s: pulumi up goes through in the end", (name) => {
  const up = outcomes.get(name)?.up;
  expect(up?.ok, up?.output).toBe(true);
});

it.each(PAGES)("%s says what this run has shown", (file) => {
  const page = writeSidecarPage([...outcomes.values()]);
  const before = existsSync(file) ? readFileSync(file, "utf8") : "";
  writeFileSync(file, page);
  expect(page, "the page is written anew: look at it, and commit it").toBe(before);
});
