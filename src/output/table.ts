import cliui from "cliui";
import stringWidth from "string-width";

import { formatIdentity } from "../core/backend-identity.ts";
import type { ReportedLock, SweepReport } from "../core/report.ts";
import { escapeUntrusted, formatCount, joinSome } from "../core/text.ts";
import { renderBlockedStacks } from "./blocked-stacks-table.ts";
import { ACTION_WORDS, countVerdicts, describeAge, describeOwner, describeStack } from "./describe-lock.ts";
import { renderLayout } from "./layout.ts";

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

// Below this width the columns do not fit beside each other.
const NARROW = 100;
const GAP = 2;
// Of the room for stack and owner, what a long stack may take before it is broken.
const STACK_SHARE = 0.45;

/** Renders a report for a person: a line for each lock, below it the reason, at the end a summary. */
export function renderTable(report: SweepReport, options: TableOptions): string {
  const { paint } = options;
  const parts = [renderHead(report, options)];
  if (report.locks.length > 0) parts.push(options.width < NARROW ? renderBlocks(report.locks, options) : renderColumns(report.locks, options));
  if (report.stacks !== undefined && report.stacks.length > 0) parts.push(renderBlockedStacks(report.stacks, options));
  for (const { error } of report.backends) if (error !== undefined) parts.push(paint("red", `error: ${escapeUntrusted(error.message)} [${error.code}]`));
  for (const { name, error } of report.clusters)
    if (error !== undefined) parts.push(paint("red", `error: cluster ${escapeUntrusted(name)}: ${escapeUntrusted(error)}`));
  for (const refusal of report.refusals) parts.push(paint("yellow", `refused: ${escapeUntrusted(refusal)}`));
  for (const warning of report.warnings) parts.push(paint("yellow", `note: ${escapeUntrusted(warning)}`));
  parts.push(renderSummary(report, options));
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

function renderColumns(locks: readonly ReportedLock[], options: TableOptions): string {
  const { paint, width, verbose } = options;
  const severalBackends = new Set(locks.map(({ backend }) => formatIdentity(backend))).size > 1;
  const rows = locks.map((lock) => [lock.verdict, describeStack(lock), describeOwner(lock), describeAge(lock), describeAction(lock)]);
  const headings = ["VERDICT", "STACK", "OWNER", "AGE", "ACTION"];
  const natural = headings.map((heading, column) => Math.max(...[heading, ...rows.map((row) => row[column] ?? "")].map((text) => stringWidth(text))) + GAP);
  const widths = Number.isFinite(width) ? fit(natural, width) : natural;
  const total = Number.isFinite(width) ? width : Math.max(...widths.map((_, index) => widths.slice(0, index + 1).reduce((sum, each) => sum + each, 0))) + 1_000;
  const ui = cliui({ width: total, wrap: Number.isFinite(width) });
  const row = (cells: readonly string[], style: (text: string, column: number) => string): void => {
    ui.div(...cells.map((text, column) => ({ text: style(text, column), width: widths[column] ?? GAP, padding: [0, GAP, 0, 0] as const })));
  };
  const below = (text: string): void => {
    ui.div({ text: paint("dim", text), width: total, padding: [0, 0, 0, widths[0] ?? 0] });
  };
  row(headings, (text) => paint("dim", text));
  locks.forEach((lock, index) => {
    row(rows[index] ?? [], (text, column) =>
      column === 0 ? paint(VERDICT_STYLES[lock.verdict], text) : column === 4 && lock.action === "failed" ? paint("red", text) : text,
    );
    below(`${lock.reason}: ${lock.message}`);
    if (lock.note !== undefined) below(escapeUntrusted(lock.note));
    if (severalBackends) below(`in ${formatIdentity(lock.backend)}`);
    if (lock.record !== undefined) below(`record ${lock.record}`);
    if (verbose) for (const line of describeRules(lock)) below(line);
  });
  return renderLayout(ui);
}

/** Makes stack and owner narrower until the columns fit: the owner first, since a stack is looked for by its name. */
function fit(natural: readonly number[], width: number): readonly number[] {
  const over = natural.reduce((sum, each) => sum + each, 0) - width;
  if (over <= 0) return natural;
  const [verdict = 0, stack = 0, , age = 0, action = 0] = natural;
  const room = Math.max(width - verdict - age - action, 40);
  const narrowed = Math.min(stack, Math.max(16, Math.floor(room * STACK_SHARE)));
  return [verdict, narrowed, room - narrowed, age, action];
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
