import cliui from "cliui";
import stringWidth from "string-width";

import { formatIdentity } from "../core/backend-identity.ts";
import type { ReportedLock, SweepReport } from "../core/report.ts";
import { escapeUntrusted } from "../core/text.ts";
import { renderBlockedStacks } from "./blocked-stacks-table.ts";
import { ACTION_WORDS, describeAge, describeOwner, describeStack } from "./describe-lock.ts";
import { renderLayout } from "./layout.ts";
import { renderFrame, VERDICT_STYLES, type TableOptions } from "./table-frame.ts";

// Below this width the columns do not fit beside each other.
const NARROW = 100;
const GAP = 2;

/** Renders a report for a person: a line for each lock, below it the reason, at the end a summary. */
export function renderTable(report: SweepReport, options: TableOptions): string {
  const middle: string[] = [];
  if (report.locks.length > 0) middle.push(options.width < NARROW ? renderBlocks(report.locks, options) : renderColumns(report.locks, options));
  if (report.stacks !== undefined && report.stacks.length > 0) middle.push(renderBlockedStacks(report.stacks, options));
  return renderFrame(report, options, middle);
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

/** Makes stack and owner narrower until the columns fit. */
function fit(natural: readonly number[], width: number): readonly number[] {
  const over = natural.reduce((sum, each) => sum + each, 0) - width;
  if (over <= 0) return natural;
  const [verdict = 0, stack = 0, owner = 0, age = 0, action = 0] = natural;
  const room = Math.max(width - verdict - age - action, 40);
  const share = stack / (stack + owner);
  const narrowed = Math.min(stack, Math.max(16, Math.floor(room * share)));
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
