import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { expect, it } from "vitest";

/** Every field case that is to be shown through the whole command. */
const IDS = "C01 C02 C03 C04 C06 C07 C09 C10 C11 C13 C14 C15 C17 C18 C19 C20 C22 C23 C25 C27 C29 C30 C32 C33 C35 C37".split(" ");

const FOLDER = "test/e2e";

it.each(IDS)("%s is the first word of a test of the end-to-end suites", (id) => {
  const sources = readdirSync(FOLDER)
    .filter((name) => /^field-cases-.*\.test\.ts$/.test(name))
    .map((name) => readFileSync(join(FOLDER, name), "utf8"));
  // The title of a test, or the first cell of a row; nothing that is commented out.
  expect(sources.filter((source) => new RegExp(`^\\s*(\\[|it\\()?"${id} `, "m").test(source))).not.toEqual([]);
});
