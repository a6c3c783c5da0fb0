import { readFileSync } from "node:fs";

import { expect, it } from "vitest";

import { composeValuesSchema } from "../scripts/chart-values.ts";
import { PROBE_COMMAND } from "../src/core/process-probe.ts";
import { composeSchemas } from "../src/schemas.ts";

it.each(Array.from(composeSchemas()))("schemas/%s is what the code says (npm run schemas writes it)", (file, schema) => {
  expect(JSON.parse(readFileSync(`schemas/${file}`, "utf8"))).toEqual(JSON.parse(JSON.stringify(schema)));
});

it("the chart's values.schema.json is what the code says (npm run schemas writes it)", () => {
  expect(JSON.parse(readFileSync("charts/pulumi-lock-janitor/values.schema.json", "utf8"))).toEqual(JSON.parse(JSON.stringify(composeValuesSchema())));
});

it("the command that the chart's policy admits is the probe's (npm run schemas writes it)", () => {
  expect(JSON.parse(readFileSync("charts/pulumi-lock-janitor/files/probe-command.json", "utf8"))).toEqual(PROBE_COMMAND);
});
