import { mkdirSync, writeFileSync } from "node:fs";

import { composeSchemas } from "../src/schemas.ts";
import { composeValuesSchema } from "./chart-values.ts";

// Run after a change of the report, the record or the settings; a test compares the files with the code.
mkdirSync("schemas", { recursive: true });
for (const [file, schema] of composeSchemas()) write(`schemas/${file}`, schema);
write("charts/pulumi-lock-janitor/values.schema.json", composeValuesSchema());

function write(file: string, schema: object): void {
  writeFileSync(file, `${JSON.stringify(schema, undefined, 2)}\n`);
}
