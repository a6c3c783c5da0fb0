import { isAskedFor, summarizeRemoval, type AuditEntry, type AuditFilter, type AuditReport, type UnreadableRecord } from "./core/audit-entry.ts";
import { compareText } from "./core/text.ts";
import { describeWithHint, JanitorError } from "./errors.ts";
import type { AuditLog, AuditPage } from "./output/audit-log.ts";

/** One audit log to be read: opened, or why it could not be. */
export interface NamedLog {
  readonly name: string;
  readonly log: Pick<AuditLog, "browse" | "find"> | JanitorError;
}

/** Reads the removals of all logs that are asked for, the newest first, at most `limit`. A log that cannot be read is an error of the report. */
export async function listRemovals(logs: readonly NamedLog[], filter: AuditFilter, limit: number, signal: AbortSignal): Promise<AuditReport> {
  const read = await Promise.all(logs.map(async (named) => await readLog(named, filter, limit, signal)));
  const entries = read.flatMap(({ entries }) => entries).toSorted((a, b) => compareText(b.id, a.id));
  const [unreadable, errors] = [read.flatMap((item) => item.unreadable), read.flatMap((item) => item.errors)];
  return {
    version: 1,
    removals: entries.slice(0, limit),
    more: entries.length > limit,
    unreadable,
    errors,
    exitCode: errors.length > 0 ? 1 : unreadable.length > 0 ? 3 : 0,
  };
}

interface ReadLog {
  readonly entries: readonly AuditEntry[];
  readonly unreadable: readonly UnreadableRecord[];
  readonly errors: AuditReport["errors"];
}

async function readLog({ name, log }: NamedLog, filter: AuditFilter, limit: number, signal: AbortSignal): Promise<ReadLog> {
  const entries: AuditEntry[] = [];
  const unreadable: UnreadableRecord[] = [];
  try {
    if (log instanceof JanitorError) throw log;
    for await (const page of log.browse(filter, signal)) {
      entries.push(...page.removals.map(summarizeRemoval).filter((entry) => isAskedFor(entry, filter)));
      unreadable.push(...page.unreadable);
      // One more than is shown tells that there are more.
      if (entries.length > limit) break;
    }
    return { entries, unreadable, errors: [] };
  } catch (error) {
    const code = error instanceof JanitorError ? error.code : "backend-failed";
    return { entries, unreadable, errors: [{ backend: name, code, message: describeWithHint(error) }] };
  }
}

/** Finds one removal in the logs. Throws `record-invalid` when none has it, naming what could not be read. */
export async function findInLogs(logs: readonly NamedLog[], id: string, signal: AbortSignal): Promise<AuditPage> {
  const problems: string[] = [];
  for (const { name, log } of logs) {
    try {
      if (log instanceof JanitorError) throw log;
      const page = await log.find(id, signal);
      if (page.removals.length > 0) return page;
      problems.push(...page.unreadable.map(({ place, message }) => `${place}: ${message}`));
    } catch (error) {
      problems.push(`${name}: ${describeWithHint(error)}`);
    }
  }
  const shown = problems.length === 0 ? "" : ` Not all could be read: ${problems.slice(0, 3).join("; ")}.`;
  throw new JanitorError("record-invalid", `there is no record ${JSON.stringify(id)} in ${logs.map(({ name }) => name).join(", ")}.${shown}`, {
    hint: "'audit list' shows the ids that there are",
  });
}
