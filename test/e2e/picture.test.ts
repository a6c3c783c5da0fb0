// The README's picture, and what a terminal shows when it is wide or narrow, with colour or without: from the built command on a real terminal.
import { readFileSync } from "node:fs";

import stringWidth from "string-width";
import { describe, expect, it } from "vitest";

import { drawTerminal, recordDemo } from "../../scripts/terminal-picture.ts";

// oxlint-disable-next-line eslint/no-control-regex -- colours are control characters.
const COLOUR = /\u001b\[[\d;]*m/g;

it("docs/images/sweep.svg is what the command shows (npm run picture draws it)", () => {
  expect(drawTerminal(recordDemo(120), 120)).toBe(readFileSync("docs/images/sweep.svg", "utf8"));
});

describe.each([60, 80, 100, 120, 160])("on %i columns", (columns) => {
  it("no line is wider than the terminal", () => {
    const lines = recordDemo(columns).replaceAll(COLOUR, "").split("\n");
    // The head and the notes are left to the terminal's own wrapping.
    const table = lines.slice(
      lines.findIndex((line) => /^(VERDICT|held|stale)/.test(line)),
      lines.findLastIndex((line) => line.startsWith("7 locks")),
    );
    expect(table.filter((line) => stringWidth(line) > columns && !line.startsWith("note:"))).toEqual([]);
  });

  it("without colour it says the same", () => {
    const plain = recordDemo(columns, { NO_COLOR: "1" });
    expect(plain).not.toMatch(COLOUR);
    expect(plain).toBe(recordDemo(columns).replaceAll(COLOUR, ""));
  });
});

// On 100 columns, the fewest that have a table, long owners and stacks are broken within their columns.
it.each([40, 60, 80, 110, 120, 160])("on %i columns: names can be read, whole or over two lines", (columns) => {
  const shown = recordDemo(columns).replaceAll(COLOUR, "").replaceAll(/\s+/g, "");
  for (const name of ["billing-prod-workspace-0", "Mirrens-MacBook-Pro.local", "organization/network/dev", "7locks:2stale"]) expect(shown).toContain(name);
});
