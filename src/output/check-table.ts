import cliui from "cliui";

import type { CheckItem, CheckReport } from "../core/check-report.ts";
import { renderLayout } from "./layout.ts";
import type { TableOptions } from "./table-frame.ts";

const MARKS: Readonly<Record<CheckItem["status"], readonly ["green" | "red" | "yellow", string]>> = {
  ok: ["green", "ok"],
  denied: ["red", "MISSING"],
  unknown: ["yellow", "?"],
};

/** Renders what `check` found: a block for each backend and cluster, a line for each thing tried. */
export function renderCheck({ items, exitCode }: CheckReport, { width, paint }: Pick<TableOptions, "width" | "paint">): string {
  const wrap = Number.isFinite(width);
  const ui = cliui({ width: wrap ? width : 2_000, wrap });
  let subject = "";
  for (const item of items) {
    if (item.subject !== subject) ui.div({ text: paint("bold", item.subject), padding: [subject === "" ? 0 : 1, 0, 0, 0] });
    subject = item.subject;
    const [colour, mark] = MARKS[item.status];
    const name = item.area === "proof" ? `proof ${item.name}` : item.area === "owners" ? `--owner ${item.name}` : item.name;
    ui.div(
      { text: paint(colour, mark), width: 11, padding: [0, 2, 0, 2] },
      { text: name, width: 46, padding: [0, 2, 0, 0] },
      { text: paint("dim", item.message) },
    );
  }
  const missing = items.filter(({ status }) => status === "denied").length;
  const end = missing === 0 ? "Everything that a sweep needs is there." : `${missing} missing. Exit code ${exitCode}.`;
  return `${renderLayout(ui)}\n\n${end}\n`;
}
