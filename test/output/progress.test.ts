import stringWidth from "string-width";
import { describe, expect, it } from "vitest";

import { openProgressLine, type ProgressLine } from "../../src/output/progress.ts";

interface Shown {
  readonly line: ProgressLine;
  readonly written: string[];
  readonly logged: string[];
  /** Lets time pass, in milliseconds. */
  readonly wait: (milliseconds: number) => void;
}

/** A progress line on a terminal of so many columns; without any, on what is no terminal. */
function open({ columns, quiet = false }: { readonly columns?: number; readonly quiet?: boolean }): Shown {
  const [written, logged]: [string[], string[]] = [[], []];
  let now = 1_000_000;
  const stream = { isTTY: columns !== undefined, columns: columns ?? 0, write: (text: string) => written.push(text) > 0 };
  const log = (_level: string, text: string): Promise<void> => {
    logged.push(text);
    return Promise.resolve();
  };
  return { line: openProgressLine(stream, quiet, () => now, log), written, logged, wait: (milliseconds) => void (now += milliseconds) };
}

describe("on a terminal", () => {
  it("one line is written over, with a bar where the end is known, and taken away", () => {
    const { line, written, wait } = open({ columns: 80 });
    line.show({ kind: "reading", locks: 3 });
    wait(200);
    line.show({ kind: "removing", done: 5, of: 10 });
    line.clear();
    line.clear();
    expect(written).toEqual(["\r\u001b[Kreading locks … 3", "\r\u001b[K[##########----------] removing … 5 of 10", "\r\u001b[K"]);
  });

  it("ten times a second, not more", () => {
    const { line, written, wait } = open({ columns: 80 });
    for (let count = 0; count < 1_000; count += 1) {
      line.show({ kind: "reading", locks: count });
      wait(1);
    }
    expect(written).toHaveLength(10);
  });

  it.each([20, 40, 60, 80])("within %i columns", (columns) => {
    const { line, written, wait } = open({ columns });
    line.show({ kind: "judging", locks: 1_234_567 });
    wait(200);
    line.show({ kind: "removing", done: 1_234_567, of: 9_999_999 });
    expect(Math.max(...written.map((text) => stringWidth(text)))).toBeLessThan(columns);
  });
});

describe("elsewhere", () => {
  it("a long sweep is logged at intervals, a short one not", () => {
    const { line, written, logged, wait } = open({});
    for (let second = 0; second <= 40; second += 1) {
      line.show({ kind: "reading", locks: second });
      wait(1_000);
    }
    line.clear();
    expect({ written, logged }).toEqual({ written: [], logged: ["reading locks … 15", "reading locks … 30"] });
  });
});

it.each([80, undefined])("--quiet: nothing at all (%s columns)", (columns) => {
  const { line, written, logged, wait } = open({ quiet: true, ...(columns === undefined ? {} : { columns }) });
  wait(60_000);
  line.show({ kind: "reading", locks: 1 });
  line.clear();
  expect([written, logged]).toEqual([[], []]);
});
