import { readFileSync } from "node:fs";

import { expect, it } from "vitest";

/** Situations that people really met, each told by a test of the whole command whose title begins with its id. */
const IDS = [1, 2, 3, 4, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 20, 22, 23, 25, 27, 29, 30, 32, 33, 35, 37].map(
  (number) => `C${String(number).padStart(2, "0")}`,
);

const SUITES = ["cluster", "store", "cloud"].map((suite) => readFileSync(`test/e2e/field-cases-${suite}.test.ts`, "utf8"));

it.each(IDS)("the case %s has a test", (id) => {
  expect(SUITES.some((text) => text.includes(`"${id} `))).toBe(true);
});
