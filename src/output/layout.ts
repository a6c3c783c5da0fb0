import type { Layout } from "cliui";

/** A layout as text without the blanks that fill its last column. */
export function renderLayout(layout: Layout): string {
  return layout
    .toString()
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}
