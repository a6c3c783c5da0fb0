import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { appendStepSummary } from "../../src/output/step-summary.ts";

const LARGEST = 1_048_576;

let folder = "";
let file = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "step-summary-"));
  file = join(folder, "summary.md");
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Adds a text, and gives what was warned of. */
async function append(
  text: string,
  { summary = file, outputs = [] }: { readonly summary?: string; readonly outputs?: readonly { readonly file?: string }[] } = {},
): Promise<readonly string[]> {
  const warned: string[] = [];
  const log = (level: string, message: string): Promise<void> => {
    warned.push(`${level}: ${message}`);
    return Promise.resolve();
  };
  await appendStepSummary(() => Promise.resolve(text), outputs, { env: { GITHUB_STEP_SUMMARY: summary }, log });
  return warned;
}

describe("the summary of a step", () => {
  it("keeps what is there", async () => {
    expect(await append("### one\n")).toEqual([]);
    await append("### two\n");
    expect(readFileSync(file, "utf8")).toBe("### one\n\n### two\n");
  });

  it("is left to an output that a person leads there", async () => {
    await append("### one\n", { outputs: [{ file: join(folder, ".", "summary.md") }] });
    expect(() => readFileSync(file)).toThrow("ENOENT");
  });

  it("holds 1 MiB: whole lines, and a note that the rest is missing", async () => {
    const line = `| ${"ä".repeat(500)} |`;
    await append(`${line}\n`.repeat(2_000));
    const text = readFileSync(file, "utf8");
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(LARGEST);
    expect(Buffer.byteLength(text)).toBeGreaterThan(LARGEST - 2_000);
    const [rows = "", note] = text.split("\n\n");
    expect(new Set(rows.split("\n"))).toEqual(new Set([line]));
    expect(note).toContain("cut here");
  });

  it("counts what is there already, to the byte", async () => {
    writeFileSync(file, "x".repeat(LARGEST - 10));
    expect(await append("12345678\n")).toEqual([]);
    expect(readFileSync(file).byteLength).toBe(LARGEST);
    expect(await append("y")).toEqual(["warn: the step's summary is full (1 MiB), so the report was not added to it"]);
    expect(readFileSync(file).byteLength).toBe(LARGEST);
  });

  it("that cannot be written is told about, and fails nothing", async () => {
    expect(await append("x", { summary: folder })).toEqual([expect.stringMatching(/^warn: .*summary.*(EISDIR|ENOENT)/)]);
    expect(await append("x", { summary: join(folder, "no/such/folder") })).toEqual([expect.stringContaining("ENOENT")]);
  });

  it("is nothing where there is none", async () => {
    expect(await append("x", { summary: "" })).toEqual([]);
  });
});
