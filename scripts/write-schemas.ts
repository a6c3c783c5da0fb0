import { mkdirSync, writeFileSync } from "node:fs";

import { PROBE_COMMAND } from "../src/core/process-probe.ts";
import { composeSchemas } from "../src/schemas.ts";
import { composeValuesSchema } from "./chart-values.ts";

// Run after a change of the report, the record or the settings; a test compares the files with the code.
mkdirSync("schemas", { recursive: true });
for (const [file, schema] of composeSchemas()) write(`schemas/${file}`, schema);
write("charts/pulumi-lock-janitor/values.schema.json", composeValuesSchema());
// The one command that the chart's admission policy admits.
write("charts/pulumi-lock-janitor/files/probe-command.json", PROBE_COMMAND);

function write(file: string, schema: object): void {
  writeFileSync(file, `${JSON.stringify(schema, undefined, 2)}\n`);
}
