import { mkdirSync, writeFileSync } from "node:fs";

import { composeSchemas } from "../src/schemas.ts";

// Run after a change of the report, the record or the settings; a test compares the files with the code.
mkdirSync("schemas", { recursive: true });
for (const [file, schema] of composeSchemas()) writeFileSync(`schemas/${file}`, `${JSON.stringify(schema, undefined, 2)}\n`);
