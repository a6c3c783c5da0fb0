import { readAuditQuestion } from "./audit-filter.ts";
import { findInLogs, listRemovals, type NamedLog } from "./audit.ts";
import { resolveBackends, type Settings } from "./config.ts";
import { fromMilliseconds } from "./core/time.ts";
import { JanitorError } from "./errors.ts";
import { closeParts, openWithAudit } from "./open-parts.ts";
import { openFileAuditLog } from "./output/file-audit-log.ts";
import { painterFor, widthOf } from "./output/terminal.ts";
import type { Surroundings } from "./surroundings.ts";
import { nameOfBackend, type OpenedBackend } from "./sweep.ts";
import { writeOutputs, type Renderings } from "./write-outputs.ts";

/** Runs `audit list` and gives the exit code: 1 when a log could not be read, 3 when some of its records could not. */
export async function runAuditList(flags: Readonly<Record<string, unknown>>, settings: Settings, surroundings: Surroundings): Promise<number> {
  const now = fromMilliseconds(Date.now());
  const { filter, limit } = readAuditQuestion(flags, settings, now);
  return await withLogs(settings, surroundings, async (logs) => {
    const report = await listRemovals(logs, filter, limit, surroundings.stop);
    const { renderAuditList } = await import("./output/audit-table.ts");
    await writeAudit(settings, surroundings, {
      json: report,
      table: (stream) => renderAuditList(report, { width: widthOf(stream), paint: painterFor(stream), now }),
    });
    return report.exitCode;
  });
}

/** Runs `audit show` for one record and gives the exit code. Throws `record-invalid` when there is none. */
export async function runAuditShow(id: string, settings: Settings, surroundings: Surroundings): Promise<number> {
  return await withLogs(settings, surroundings, async (logs) => {
    const { removals, unreadable } = await findInLogs(logs, id, surroundings.stop);
    const [removal] = removals;
    if (removal === undefined) return 1;
    const exitCode = unreadable.length > 0 ? 3 : 0;
    const { renderRemoval } = await import("./output/audit-record-text.ts");
    await writeAudit(settings, surroundings, {
      json: { version: 1, ...removal, unreadable, exitCode },
      table: (stream) => renderRemoval(removal, unreadable, { width: widthOf(stream), paint: painterFor(stream), now: fromMilliseconds(Date.now()) }),
    });
    return exitCode;
  });
}

async function writeAudit({ outputs }: Settings, surroundings: Surroundings, renderings: Renderings): Promise<void> {
  if (outputs.some(({ format }) => format !== "table" && format !== "json"))
    throw new JanitorError("usage", "audit has neither markdown nor other reports", { hint: "It has --output table and --output json." });
  await writeOutputs(outputs, surroundings, renderings);
}

/** A file is read as it is, also without any backend; `--backend` then says whose records in it are meant. */
async function withLogs(settings: Settings, { env }: Surroundings, use: (logs: readonly NamedLog[]) => Promise<number>): Promise<number> {
  const { auditLog } = settings;
  if (auditLog !== "backend" && settings.backends.length === 0) return await use([{ name: auditLog, log: openFileAuditLog(auditLog) }]);
  const opened = await Promise.all(resolveBackends(settings, env).map((backend) => openWithAudit(backend, settings)));
  try {
    return await use(opened.map(toLog));
  } finally {
    await closeParts([], opened);
  }
}

function toLog(item: OpenedBackend): NamedLog {
  return { name: nameOfBackend(item), log: item.kind === "open" ? item.audit : item.error };
}
