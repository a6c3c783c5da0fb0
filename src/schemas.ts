import * as z from "zod";

import { settingsSchema } from "./config.ts";
import { auditReport } from "./core/audit-entry.ts";
import { checkReport } from "./core/check-report.ts";
import { auditRecord } from "./core/record.ts";
import { sweepReport } from "./core/report.ts";
import { watchEvent } from "./core/watch-event.ts";
import { ALL_OPTIONS } from "./options.ts";

/** The published JSON Schemas, by the name of their file in `schemas/`. */
export function composeSchemas(): ReadonlyMap<string, object> {
  return new Map<string, object>([
    ["config.schema.json", composeConfigSchema()],
    ["report.schema.json", z.toJSONSchema(sweepReport)],
    ["check.schema.json", z.toJSONSchema(checkReport)],
    ["audit.schema.json", z.toJSONSchema(auditReport)],
    ["record.schema.json", z.toJSONSchema(auditRecord)],
    ["watch-event.schema.json", z.toJSONSchema(watchEvent)],
  ]);
}

/** What a configuration file may hold: not what a person has to say each time. */
function composeConfigSchema(): object {
  const flagOnly = new Set(ALL_OPTIONS.filter((option) => option.flagOnly === true).map(({ key }) => key));
  const { properties = {}, ...schema } = z.toJSONSchema(settingsSchema, { io: "input" });
  const kept = Object.entries(properties).filter(([key]) => !flagOnly.has(key));
  // To vouch for all nodes at once is a flag only, too.
  return {
    ...schema,
    properties: { ...Object.fromEntries(kept), unreachableNodes: { default: [], type: "array", items: { type: "string", pattern: "^ignore:.+$" } } },
  };
}
