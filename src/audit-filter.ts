import * as z from "zod";

import { duration, timestamp, type Settings } from "./config.ts";
import type { AuditFilter } from "./core/audit-entry.ts";
import { OUTCOMES } from "./core/outcome.ts";
import { quoteUntrusted } from "./core/text.ts";
import type { EpochNanoseconds } from "./core/time.ts";
import { JanitorError } from "./errors.ts";

/** What `audit list` takes beside settings: it is about one question, so no file and no variable has it. */
const auditFlags = z.object({
  since: z.string().optional(),
  until: z.string().optional(),
  runs: z.array(z.string().min(1)).default([]),
  outcomes: z.array(z.enum(OUTCOMES, `an outcome is one of ${OUTCOMES.join(", ")}`)).default([]),
  limit: z
    .string()
    .regex(/^[1-9]\d{0,8}$/, "this is a number from 1 on")
    .transform(Number)
    .prefault("100"),
});

/** Which removals are asked for, and how many of them. */
export interface AuditQuestion {
  readonly filter: AuditFilter;
  readonly limit: number;
}

const FLAGS: Readonly<Record<string, string>> = { runs: "--run", outcomes: "--outcome", limit: "--limit" };

/** Reads the flags of `audit list`. Throws `config-invalid`. */
export function readAuditQuestion(
  flags: Readonly<Record<string, unknown>>,
  { projects, stacks }: Pick<Settings, "projects" | "stacks">,
  now: EpochNanoseconds,
): AuditQuestion {
  const parsed = auditFlags.safeParse(flags);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path: [key], message }) => `${FLAGS[String(key)] ?? `--${String(key)}`}: ${message}`);
    throw new JanitorError("config-invalid", problems.join("\n"), { hint: "See 'pulumi-lock-janitor audit list --help'." });
  }
  const { since, until, runs, outcomes, limit } = parsed.data;
  const span = {
    ...(since === undefined ? {} : { since: readTime("--since", since, now) }),
    ...(until === undefined ? {} : { until: readTime("--until", until, now) }),
  };
  if (span.since !== undefined && span.until !== undefined && span.since > span.until)
    throw new JanitorError("usage", "--since is later than --until, so nothing can lie between them", { hint: "Exchange the two." });
  return { filter: { selection: { projects, stacks, locks: [] }, runs, outcomes, ...span }, limit };
}

function readTime(flag: string, text: string, now: EpochNanoseconds): EpochNanoseconds {
  const [length, at] = [duration.safeParse(text), timestamp.safeParse(text)];
  if (length.success) return now - length.data;
  if (at.success) return at.data;
  throw new JanitorError("config-invalid", `${flag} ${quoteUntrusted(text)}: this is no time`, {
    hint: 'Write how long ago, as in "2d" or "1h30m", or a time as RFC 3339, "2026-03-10T12:00:00Z".',
  });
}
