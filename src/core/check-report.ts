import * as z from "zod";

/** One thing that was tried. `unknown`: it cannot be told without doing it, or nothing depends on it. */
const checkItem = z.object({
  area: z.enum(["backend", "cluster", "proof", "owners", "discovery"]),
  /** The backend or cluster. */
  subject: z.string(),
  name: z.string(),
  status: z.enum(["ok", "denied", "unknown"]),
  message: z.string(),
});
export type CheckItem = z.infer<typeof checkItem>;

/** The document of `check --output json`, version 1. */
export const checkReport = z.object({ version: z.literal(1), items: z.array(checkItem), exitCode: z.int() });
export type CheckReport = z.infer<typeof checkReport>;
