import * as z from "zod";

import { settingsSchema } from "./config.ts";
import { checkReport } from "./core/check-report.ts";
import { auditRecord } from "./core/record.ts";
import { sweepReport } from "./core/report.ts";

/** The published JSON Schemas, by the name of their file in `schemas/`. */
export function composeSchemas(): ReadonlyMap<string, object> {
  return new Map<string, object>([
    ["config.schema.json", z.toJSONSchema(settingsSchema, { io: "input" })],
    ["report.schema.json", z.toJSONSchema(sweepReport)],
    ["check.schema.json", z.toJSONSchema(checkReport)],
    ["record.schema.json", z.toJSONSchema(auditRecord)],
  ]);
}
