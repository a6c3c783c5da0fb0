import * as z from "zod";

import { settingsSchema } from "./config.ts";
import { auditReport } from "./core/audit-entry.ts";
import { checkReport } from "./core/check-report.ts";
import { auditRecord } from "./core/record.ts";
import { sweepReport } from "./core/report.ts";
import { watchEvent } from "./core/watch-event.ts";

/** The published JSON Schemas, by the name of their file in `schemas/`. */
export function composeSchemas(): ReadonlyMap<string, object> {
  return new Map<string, object>([
    ["config.schema.json", z.toJSONSchema(settingsSchema, { io: "input" })],
    ["report.schema.json", z.toJSONSchema(sweepReport)],
    ["check.schema.json", z.toJSONSchema(checkReport)],
    ["audit.schema.json", z.toJSONSchema(auditReport)],
    ["record.schema.json", z.toJSONSchema(auditRecord)],
    ["watch-event.schema.json", z.toJSONSchema(watchEvent)],
  ]);
}
