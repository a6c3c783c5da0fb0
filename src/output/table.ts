import cliui from "cliui";

import { formatIdentity } from "../core/backend-identity.ts";
import type { ReportedLock, SweepReport } from "../core/report.ts";
import { escapeUntrusted, formatCount, joinSome } from "../core/text.ts";
import { renderBlockedStacks } from "./blocked-stacks-table.ts";
import { ACTION_WORDS, countVerdicts, describeAge, describeOwner, describeStack } from "./describe-lock.ts";
import { layColumns, NARROW, renderLayout, wrapText } from "./layout.ts";

/** The looks that a table uses; each leaves the text alone where there is no colour. */
export type Style = "red" | "green" | "yellow" | "cyan" | "dim" | "bold";

export interface TableOptions {
  /** The columns of the terminal, at least 40; Infinity when there is none, so that nothing is wrapped. */
  readonly width: number;
  readonly paint: (style: Style, text: string) => string;
  readonly verbose: boolean;
}

const VERDICT_STYLES: Readonly<Record<ReportedLock["verdict"], Style>> = {
  stale: "red",
  held: "green",
  foreign: "cyan",
  "too-young": "cyan",
  unreadable: "yellow",
  undetermined: "yellow",
};

/** Renders a report for a person: a line for each lock, below it the reason, at the end a summary. */
export function renderTable(report: SweepReport, options: TableOptions): string {
  const { paint } = options;
  const wrap = (text: string): string => wrapText(text, options.width);
  const parts = [wrap(renderHead(report, options))];
  if (report.locks.length > 0) parts.push(options.width < NARROW ? renderBlocks(report.locks, options) : renderColumns(report.locks, options));
  if (report.stacks !== undefined && report.stacks.length > 0) parts.push(renderBlockedStacks(report.stacks, options));
  for (const { error } of report.backends) if (error !== undefined) parts.push(wrap(paint("red", `error: ${escapeUntrusted(error.message)} [${error.code}]`)));
  for (const { name, error } of report.clusters)
    if (error !== undefined) parts.push(wrap(paint("red", `error: cluster ${escapeUntrusted(name)}: ${escapeUntrusted(error)}`)));
  for (const refusal of report.refusals) parts.push(wrap(paint("yellow", `refused: ${escapeUntrusted(refusal)}`)));
  for (const warning of report.warnings) parts.push(wrap(paint("yellow", `note: ${escapeUntrusted(warning)}`)));
  parts.push(wrap(renderSummary(report, options)));
  return `${parts.join("\n\n")}\n`;
}

function renderHead(report: SweepReport, { paint }: TableOptions): string {
  const [own, discovered] = [
    report.backends.filter((backend) => backend.discovered !== true),
    report.backends.filter((backend) => backend.discovered === true),
  ];
  const names = [...own.map(({ name }) => name), ...(discovered.length === 0 ? [] : [`${joinSome(discovered.map(({ name }) => name))} (discovered)`])];
  const clusters = report.clusters.map(({ name, pods }) => `${escapeUntrusted(name)} (${pods} pods)`);
  const against = clusters.length === 0 ? "" : paint("dim", ` against ${clusters.join(", ")}`);
  const title = report.dryRun ? "Dry run" : isPlan(report) ? "Plan" : "Sweep";
  const head = `${paint("bold", title)} of ${names.length === 0 ? "no backend" : names.join(", ")}${against}`;
  const overrides = report.overrides.map(({ option, value }) => (value === "" ? option : `${option} ${escapeUntrusted(value)}`));
  return overrides.length === 0 ? head : `${head}\n${paint("dim", `on your word: ${overrides.join(", ")}`)}`;
}

function renderColumns(locks: readonly ReportedLock[], { paint, width, verbose }: TableOptions): string {
  const severalBackends = new Set(locks.map(({ backend }) => formatIdentity(backend))).size > 1;
  return layColumns(
    ["VERDICT", "STACK", "OWNER", "AGE", "ACTION"],
    locks.map((lock) => ({
      cells: [lock.verdict, describeStack(lock), describeOwner(lock), describeAge(lock), describeAction(lock)],
      below: [
        `${lock.reason}: ${lock.message}`,
        ...(lock.note === undefined ? [] : [escapeUntrusted(lock.note)]),
        ...(severalBackends ? [`in ${formatIdentity(lock.backend)}`] : []),
        ...(lock.record === undefined ? [] : [`record ${lock.record}`]),
        ...(verbose ? describeRules(lock) : []),
      ],
      style: (text, column) =>
        column === 0 ? paint(VERDICT_STYLES[lock.verdict], text) : column === 4 && lock.action === "failed" ? paint("red", text) : text,
    })),
    { width, paint, flexible: [1, 2], indent: "first column" },
  );
}

function renderBlocks(locks: readonly ReportedLock[], { paint, width, verbose }: TableOptions): string {
  const ui = cliui({ width, wrap: true });
  for (const lock of locks) {
    const line = (text: string, left = 2): void => {
      ui.div({ text, width, padding: [0, 0, 0, left] });
    };
    line(`${paint(VERDICT_STYLES[lock.verdict], lock.verdict)}  ${describeStack(lock)}`, 0);
    line(`${describeOwner(lock)}, ${describeAge(lock)} old: ${describeAction(lock)}`);
    line(paint("dim", `${lock.reason}: ${lock.message}`));
    if (lock.note !== undefined) line(paint("dim", escapeUntrusted(lock.note)));
    if (lock.record !== undefined) line(paint("dim", `record ${lock.record}`));
    if (verbose) for (const rule of describeRules(lock)) line(paint("dim", rule));
  }
  return renderLayout(ui);
}

/** A report that is shown before the removals it speaks of, so that a person can decide. */
function isPlan({ dryRun, summary }: SweepReport): boolean {
  return !dryRun && summary.wouldRemove > 0;
}

function renderSummary(report: SweepReport, { paint }: TableOptions): string {
  const { summary, dryRun, exitCode } = report;
  if (isPlan(report)) return `${formatCount(summary.locks, "lock")}: ${summary.wouldRemove} would be removed.`;
  const verdicts = countVerdicts(summary).map(({ verdict, words }) => paint(VERDICT_STYLES[verdict], words));
  const found = summary.locks === 0 ? "no locks" : `${formatCount(summary.locks, "lock")}: ${verdicts.join(", ")}`;
  const done = dryRun
    ? `${summary.wouldRemove} would be removed (--delete removes)`
    : `${summary.removed} removed${summary.failed > 0 ? `, ${summary.failed} failed` : ""}`;
  return `${found}. ${dryRun && summary.wouldRemove === 0 ? "Nothing to remove" : done}.${exitCode === 0 ? "" : paint("dim", ` Exit code ${exitCode}.`)}`;
}

function describeAction({ action }: ReportedLock): string {
  return ACTION_WORDS[action];
}

function describeRules({ evidence }: ReportedLock): readonly string[] {
  return [
    ...evidence.rules.map(({ rule, applied, note }) => `${applied ? "=>" : " -"} rule ${rule}: ${note}`),
    ...evidence.candidates.map(
      ({ cluster, namespace, pod, finding, reason, message }) =>
        `   pod ${escapeUntrusted(`${cluster}/${namespace}/${pod}`)}: ${finding} (${reason}): ${message}`,
    ),
  ];
}
