import cliui, { type Layout } from "cliui";
import stringWidth from "string-width";

import type { TableOptions } from "./table-frame.ts";

/** Below this width columns do not fit beside each other. */
export const NARROW = 100;

const GAP = 2;

/** A row of a table, and the lines that belong below it. */
export interface ColumnRow {
  readonly cells: readonly string[];
  readonly below: readonly string[];
  readonly style: (text: string, column: number) => string;
}

/** A layout as text without the blanks that fill its last column. */
export function renderLayout(layout: Layout): string {
  return layout
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

/** Breaks text into lines that fit a terminal; left as it is where nothing is wrapped. */
export function wrapText(text: string, width: number): string {
  if (!Number.isFinite(width)) return text;
  const ui = cliui({ width, wrap: true });
  for (const line of text.split("\n")) ui.div({ text: line, width });
  return renderLayout(ui);
}

/** Lays rows in columns as wide as they need, the two flexible ones narrower where the terminal is; what is below a row is indented. */
export function layColumns(
  headings: readonly string[],
  rows: readonly ColumnRow[],
  {
    width,
    paint,
    flexible,
    indent,
  }: Pick<TableOptions, "width" | "paint"> & { readonly flexible: readonly [number, number]; readonly indent: number | "first column" },
): string {
  const natural = headings.map(
    (heading, column) => Math.max(...[heading, ...rows.map(({ cells }) => cells[column] ?? "")].map((text) => stringWidth(text))) + GAP,
  );
  const widths = Number.isFinite(width) ? narrow(natural, flexible, width) : natural;
  const total = Number.isFinite(width) ? width : sum(widths) + 1_000;
  const ui = cliui({ width: total, wrap: Number.isFinite(width) });
  const row = (cells: readonly string[], style: ColumnRow["style"]): void => {
    ui.div(...cells.map((text, column) => ({ text: style(text, column), width: widths[column] ?? GAP, padding: [0, GAP, 0, 0] as const })));
  };
  row(headings, (text) => paint("dim", text));
  for (const { cells, below, style } of rows) {
    row(cells, style);
    for (const text of below) ui.div({ text: paint("dim", text), width: total, padding: [0, 0, 0, indent === "first column" ? (widths[0] ?? 0) : indent] });
  }
  return renderLayout(ui);
}

/** Of the room for the two flexible columns, what the first may take where it is long before it is broken: a stack is looked for by its name. */
const FIRST_SHARE = 0.45;

/** Makes two columns narrower until all fit, the second one first. */
function narrow(natural: readonly number[], [first, second]: readonly [number, number], width: number): readonly number[] {
  if (sum(natural) <= width) return natural;
  const [one, two] = [natural[first] ?? 0, natural[second] ?? 0];
  const room = Math.max(width - (sum(natural) - one - two), 40);
  const narrowed = Math.min(one, Math.max(16, Math.floor(room * FIRST_SHARE)));
  return natural.map((each, column) => (column === first ? narrowed : column === second ? room - narrowed : each));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
