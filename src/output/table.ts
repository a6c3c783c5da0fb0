import cliui from "cliui";

import { describeAfterUnlock } from "../core/after-unlock.ts";
import { formatIdentity } from "../core/backend-identity.ts";
import type { ReportedLock, SweepReport } from "../core/report.ts";
import { escapeUntrusted } from "../core/text.ts";
import { renderBlockedStacks } from "./blocked-stacks-table.ts";
import { ACTION_WORDS, describeAge, describeOwner, describeStack } from "./describe-lock.ts";
import { layColumns, NARROW, renderLayout, wrapText } from "./layout.ts";
import { renderFrame, VERDICT_STYLES, type TableOptions } from "./table-frame.ts";

/** Renders a report for a person: a line for each lock, below it the reason, at the end a summary. */
export function renderTable(report: SweepReport, options: TableOptions): string {
  const middle: string[] = [];
  if (report.locks.length > 0) middle.push(options.width < NARROW ? renderBlocks(report.locks, options) : renderColumns(report.locks, options));
  if (report.stacks !== undefined && report.stacks.length > 0) middle.push(renderBlockedStacks(report.stacks, options));
  return renderFrame(report, options, middle, (text) => wrapText(text, options.width));
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
        ...describeAfterUnlock(lock).map((line) => escapeUntrusted(line)),
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
    for (const told of describeAfterUnlock(lock)) line(paint("dim", escapeUntrusted(told)));
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
