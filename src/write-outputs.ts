import { once } from "node:events";
import { constants } from "node:fs";
import { access, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

import type { Settings } from "./config.ts";
import type { SweepReport } from "./core/report.ts";
import { formatJsonParts } from "./core/text.ts";
import { describeError, JanitorError, systemCode } from "./errors.ts";
import { appendStepSummary } from "./output/step-summary.ts";
import { renderFrame, type TableOptions } from "./output/table-frame.ts";
import { painterFor, widthOf } from "./output/terminal.ts";
import type { Surroundings } from "./surroundings.ts";

/** The forms of one report. */
export interface Renderings {
  readonly json: object;
  /** Absent where a command has none; loaded on use. */
  readonly markdown?: () => Promise<string>;
  /** Absent where a command has none; loaded on use. */
  readonly junit?: () => Promise<string>;
  /** The stream is undefined for a file. */
  readonly table: (stream: NodeJS.WriteStream | undefined) => string | Promise<string>;
}

/** Writes the report of a sweep in every form asked for, and to the summary of a job of GitHub Actions. Throws `output-failed`. */
export async function writeSweepReport(report: SweepReport, settings: Settings, surroundings: Surroundings): Promise<void> {
  const { outputs, verbose, failOn } = settings;
  const markdown = async (): Promise<string> => (await import("./output/markdown.ts")).renderMarkdown(report);
  if (settings.stepSummary) await appendStepSummary(markdown, outputs, surroundings);
  await writeOutputs(outputs, surroundings, {
    json: report,
    markdown,
    junit: async () =>
      (await import("./output/junit.ts")).renderJunit(
        report,
        failOn.filter((name) => name !== "none"),
      ),
    table: (stream) => renderTable(report, { width: widthOf(stream), paint: painterFor(stream), verbose }),
  });
}

/** Without a lock or a Stack there is nothing to lay out, and what measures text takes as long to load as an idle sweep's request. */
async function renderTable(report: SweepReport, options: TableOptions): Promise<string> {
  const empty = report.locks.length === 0 && (report.stacks ?? []).length === 0;
  if (empty && !Number.isFinite(options.width)) return renderFrame(report, options, []);
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

/** Stops before anything is read or removed where a report could not be written afterwards. Makes no file. Throws `output-failed`. */
export async function refuseUnwritable(outputs: Settings["outputs"]): Promise<void> {
  for (const output of outputs) {
    if (!("file" in output)) continue;
    const problem = await findProblem(output.file);
    if (problem !== undefined)
      throw new JanitorError("output-failed", `the report could not be written to ${output.file}: ${problem}`, { hint: "Nothing was begun." });
  }
}

/** Why a file cannot be written; undefined when it can, or can be made. */
async function findProblem(file: string): Promise<string | undefined> {
  try {
    if ((await stat(file)).isDirectory()) return "it is a folder";
    await access(file, constants.W_OK);
    return undefined;
  } catch (error) {
    if (systemCode(error) !== "ENOENT") return describeError(error);
  }
  try {
    const folder = dirname(file);
    if (!(await stat(folder)).isDirectory()) return `${folder} is no folder`;
    await access(folder, constants.W_OK);
    return undefined;
  } catch (error) {
    return describeError(error);
  }
}

async function render(
  format: Settings["outputs"][number]["format"],
  { json, markdown, junit, table }: Renderings,
  stream: NodeJS.WriteStream | undefined,
): Promise<Iterable<string>> {
  switch (format) {
    case "json":
      return formatJsonParts(json);
    case "table":
      return [await table(stream)];
    case "markdown":
      return [(await markdown?.()) ?? ""];
    case "junit":
      return [(await junit?.()) ?? ""];
  }
}
