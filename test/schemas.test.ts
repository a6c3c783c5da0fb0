import { readFileSync } from "node:fs";

import { expect, it } from "vitest";

import { composeSchemas } from "../src/schemas.ts";

it.each(Array.from(composeSchemas()))("schemas/%s is what the code says (npm run schemas writes it)", (file, schema) => {
  expect(JSON.parse(readFileSync(`schemas/${file}`, "utf8"))).toEqual(JSON.parse(JSON.stringify(schema)));
});
