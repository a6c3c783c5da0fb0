import cliui from "cliui";

import type { AuditEntry, AuditReport } from "../core/audit-entry.ts";
import { formatIdentity } from "../core/backend-identity.ts";
import type { OutcomeName } from "../core/outcome.ts";
import { escapeUntrusted, formatCount } from "../core/text.ts";
import { formatDuration, formatTimestamp, parseTimestamp, SECOND, type EpochNanoseconds } from "../core/time.ts";
import { describeOwner, describeStack } from "./describe-lock.ts";
import { layColumns, NARROW, renderLayout, wrapText } from "./layout.ts";
import type { Style, TableOptions } from "./table-frame.ts";

type AuditTableOptions = Pick<TableOptions, "width" | "paint"> & { readonly now: EpochNanoseconds };

/** More are in the JSON only. */
const MOST_UNREADABLE = 10;

const OUTCOME_STYLES: Readonly<Record<OutcomeName, Style>> = {
  deleted: "green",
  "deleted-unconfirmed": "yellow",
  vanished: "dim",
  changed: "dim",
  failed: "red",
  keep: "dim",
  open: "yellow",
  restored: "cyan",
};

/** What became of a removal, in words. */
export const OUTCOME_WORDS: Readonly<Record<OutcomeName, string>> = {
  deleted: "removed",
  "deleted-unconfirmed": "removed (unconfirmed)",
  vanished: "was gone already",
  changed: "kept: it changed",
  failed: "FAILED",
  keep: "kept",
  open: "not known",
  restored: "put back",
};

/** Renders removals for a person: a line for each, below it why and the record's id, at the end a summary. */
export function renderAuditList(report: AuditReport, options: AuditTableOptions): string {
  const { paint } = options;
  const table = report.removals.length === 0 ? [] : [options.width < NARROW ? renderBlocks(report.removals, options) : renderColumns(report.removals, options)];
  const parts: string[] = [];
  for (const { place, message } of report.unreadable.slice(0, MOST_UNREADABLE))
    parts.push(paint("yellow", `unreadable: ${escapeUntrusted(`${place}: ${message}`)}`));
  if (report.unreadable.length > MOST_UNREADABLE)
    parts.push(paint("yellow", `and ${report.unreadable.length - MOST_UNREADABLE} more that are unreadable (--output json has all)`));
  for (const { code, message } of report.errors) parts.push(paint("red", `error: ${escapeUntrusted(message)} [${code}]`));
  const found = report.removals.length === 0 ? "No removal is recorded that is asked for" : formatCount(report.removals.length, "removal");
  const more = report.more ? ", and there are older ones (--limit)" : "";
  parts.push(`${found}${more}.${report.exitCode === 0 ? "" : paint("dim", ` Exit code ${report.exitCode}.`)}`);
  return `${[...table, ...parts.map((part) => wrapText(part, options.width))].join("\n\n")}\n`;
}

function renderColumns(entries: readonly AuditEntry[], options: AuditTableOptions): string {
  const { paint, width } = options;
  return layColumns(
    ["WHEN", "STACK", "OWNER", "OUTCOME"],
    entries.map((entry) => ({
      cells: [describeTime(entry.at, options.now), describeStack(entry), describeOwner(entry), OUTCOME_WORDS[entry.outcome]],
      below: describeBelow(entry),
      style: (text, column) => (column === 3 ? paint(OUTCOME_STYLES[entry.outcome], text) : text),
    })),
    { width, paint, flexible: [1, 2], indent: 2 },
  );
}

function renderBlocks(entries: readonly AuditEntry[], { paint, width, now }: AuditTableOptions): string {
  const ui = cliui({ width, wrap: true });
  const line = (text: string, left: number): void => {
    ui.div({ text, width, padding: [0, 0, 0, left] });
  };
  for (const entry of entries) {
    line(`${paint(OUTCOME_STYLES[entry.outcome], OUTCOME_WORDS[entry.outcome])}  ${describeStack(entry)}`, 0);
    line(describeTime(entry.at, now), 2);
    line(describeOwner(entry), 2);
    for (const text of describeBelow(entry)) line(paint("dim", text), 2);
  }
  return renderLayout(ui);
}

function describeBelow({ verdict, reason, message, note, overrides, id, runId, backend }: AuditEntry): readonly string[] {
  const words = overrides.map(({ option, value }) => (value === "" ? option : `${option} ${value}`));
  return [
    escapeUntrusted(`${verdict}: ${reason}: ${message}`),
    ...(note === undefined ? [] : [escapeUntrusted(note)]),
    ...(words.length === 0 ? [] : [`on a person's word: ${escapeUntrusted(words.join(", "))}`]),
    `in ${formatIdentity(backend)}`,
    `record ${id}, run ${escapeUntrusted(runId)}`,
  ];
}

/** A time in UTC and in words: "2026-03-10 12:00:00 UTC (2 h 5 min ago)". */
export function describeTime(text: string, now: EpochNanoseconds): string {
  const at = parseTimestamp(text);
  if (at === undefined) return escapeUntrusted(text);
  const utc = formatTimestamp(at - (at % SECOND))
    .replace("T", " ")
    .replace("Z", " UTC");
  const whole = ((now - at) / SECOND) * SECOND;
  return `${utc} (${whole < 0n ? `in ${formatDuration(-whole)}` : whole === 0n ? "just now" : `${formatDuration(whole)} ago`})`;
}
