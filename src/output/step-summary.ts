import { appendFile, stat } from "node:fs/promises";
import { resolve } from "node:path";

import { describeError, systemCode } from "../errors.ts";
import type { Surroundings } from "../surroundings.ts";

/** GitHub shows nothing of a step's summary that is larger (docs.github.com, "Workflow commands": step isolation and limits). */
const LARGEST = 1_048_576;

const CUT_NOTE = "\n… the report was cut here: a step's summary holds 1 MiB. The JSON report has all of it.\n";

/**
 * Adds a report to the summary of the job of GitHub Actions that this runs in, if it does. A summary that cannot be written is told about and fails nothing.
 * An output that a person leads to the same file takes its place.
 */
export async function appendStepSummary(
  render: () => Promise<string>,
  outputs: readonly { readonly file?: string }[],
  { env, log }: Pick<Surroundings, "env" | "log">,
): Promise<void> {
  const file = env["GITHUB_STEP_SUMMARY"];
  if (file === undefined || file === "" || outputs.some((output) => output.file !== undefined && resolve(output.file) === resolve(file))) return;
  try {
    const before = await sizeOf(file);
    const separator = before === 0 ? "" : "\n";
    const text = cutToFit(`${separator}${await render()}`, LARGEST - before);
    if (text === "") await log("warn", "the step's summary is full (1 MiB), so the report was not added to it");
    else await appendFile(file, text);
  } catch (error) {
    await log("warn", `the report could not be added to the step's summary ${file}: ${describeError(error)}`);
  }
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await stat(file)).size;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return 0;
    throw error;
  }
}

/** As many whole lines as there is room for, and a note where some are missing; empty where not even the note fits. A line of the report is never half a table's row or half a piece of code. */
function cutToFit(text: string, room: number): string {
  if (Buffer.byteLength(text) <= room) return text;
  let left = room - Buffer.byteLength(CUT_NOTE);
  if (left < 0) return "";
  const kept: string[] = [];
  for (const line of text.split("\n")) {
    left -= Buffer.byteLength(line) + 1;
    if (left < 0) break;
    kept.push(`${line}\n`);
  }
  return `${kept.join("")}${CUT_NOTE}`;
}
