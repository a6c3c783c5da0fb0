import { once } from "node:events";
import { writeFile } from "node:fs/promises";

import type { Settings } from "./config.ts";
import type { SweepReport } from "./core/report.ts";
import { formatJsonParts } from "./core/text.ts";
import { describeError, JanitorError } from "./errors.ts";
import { renderFrame, type TableOptions } from "./output/table-frame.ts";
import { painterFor, widthOf } from "./output/terminal.ts";
import type { Surroundings } from "./surroundings.ts";

/** The forms of one report. */
export interface Renderings {
  readonly json: object;
  /** Absent where a command has none; loaded on use. */
  readonly markdown?: () => Promise<string>;
  /** The stream is undefined for a file. */
  readonly table: (stream: NodeJS.WriteStream | undefined) => string | Promise<string>;
}

/** Writes the report of a sweep in every form asked for. Throws `output-failed`. */
export async function writeSweepReport(report: SweepReport, { outputs, verbose }: Settings, surroundings: Surroundings): Promise<void> {
  await writeOutputs(outputs, surroundings, {
    json: report,
    markdown: async () => (await import("./output/markdown.ts")).renderMarkdown(report),
    table: (stream) => renderTable(report, { width: widthOf(stream), paint: painterFor(stream), verbose }),
  });
}

/** Without a lock or a Stack there is nothing to lay out, and what measures text takes as long to load as an idle sweep's request. */
async function renderTable(report: SweepReport, options: TableOptions): Promise<string> {
  if (report.locks.length === 0 && (report.stacks ?? []).length === 0) return renderFrame(report, options, []);
  return (await import("./output/table.ts")).renderTable(report, options);
}

/** Writes a report in every form asked for, to stdout or to files. Throws `output-failed` at the end, when a file could not be written. */
export async function writeOutputs(outputs: Settings["outputs"], { stdout }: Surroundings, renderings: Renderings): Promise<void> {
  const failures: JanitorError[] = [];
  for (const output of outputs) {
    const file = "file" in output ? output.file : undefined;
    const parts = await render(output.format, renderings, file === undefined ? stdout : undefined);
    if (file === undefined) {
      for (const part of parts) {
        stdout.write(part);
        if (stdout.writableNeedDrain) await once(stdout, "drain");
      }
      continue;
    }
    try {
      await writeFile(file, parts);
    } catch (error) {
      failures.push(
        new JanitorError("output-failed", `the report could not be written to ${file}: ${describeError(error)}`, {
          cause: error,
          hint: "What was removed is in the audit log all the same.",
        }),
      );
    }
  }
  const [first] = failures;
  if (first !== undefined) throw first;
}

async function render(
  format: Settings["outputs"][number]["format"],
  { json, markdown, table }: Renderings,
  stream: NodeJS.WriteStream | undefined,
): Promise<Iterable<string>> {
  switch (format) {
    case "json":
      return formatJsonParts(json);
    case "table":
      return [await table(stream)];
    case "markdown":
      return [(await markdown?.()) ?? ""];
  }
}
