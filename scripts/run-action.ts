// The one step of action.yml that reports: from the variables of a job of GitHub Actions to the command, and from its report to the step's outputs.
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { sweepReport } from "../src/core/report.ts";

const { env } = process;

/** The lines of an input that say something. */
function readLines(name: string): readonly string[] {
  return (env[`INPUT_${name}`] ?? "")
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** Each value in one word with its flag, so that a value that looks like a flag is none. */
function toWords(flag: string, values: readonly string[]): readonly string[] {
  return values.map((value) => `${flag}=${value}`);
}

function writeOutput(name: string, value: string | number): void {
  const file = env["GITHUB_OUTPUT"];
  if (file === undefined || file === "") return;
  // A delimiter that nobody can guess: what a value says can end no value and begin no other.
  const end = randomUUID();
  appendFileSync(file, `${name}<<${end}\n${value}\n${end}\n`);
}

const folder = mkdtempSync(join(env["RUNNER_TEMP"] ?? tmpdir(), "pulumi-lock-janitor-"));
const files = { json: join(folder, "report.json"), markdown: join(folder, "report.md"), junit: join(folder, "junit.xml") };
const words = [
  "sweep",
  ...toWords("--backend", readLines("BACKENDS")),
  ...toWords("--config", readLines("CONFIG")),
  ...toWords("--pods-from", readLines("PODS_FROM")),
  ...toWords("--pods-taken-at", readLines("PODS_TAKEN_AT")),
  ...toWords("--context", readLines("CONTEXT")),
  ...toWords("--owner", readLines("OWNERS")),
  ...toWords("--fail-on", readLines("FAIL_ON")),
  ...toWords("--output", ["table", ...Object.entries(files).map(([format, file]) => `${format}=${file}`), ...readLines("OUTPUT")]),
  ...(env["INPUT_SUMMARY"] === "false" ? ["--no-step-summary"] : []),
];
const main = join(import.meta.dirname, "../src/main.ts");
// A file or a variable of the workspace may ask for removals; a report makes none.
const { status } = spawnSync(process.execPath, [main, ...words], { stdio: "inherit", env: { ...env, PULUMI_LOCK_JANITOR_DELETE: "false" } });
const exitCode = status ?? 1;
writeOutput("exit-code", exitCode);
if (existsSync(files.json)) {
  const { summary } = sweepReport.parse(JSON.parse(readFileSync(files.json, "utf8")));
  for (const name of ["locks", "stale", "held", "undetermined", "unreadable"] as const) writeOutput(name, summary[name]);
  for (const [format, file] of Object.entries(files)) writeOutput(format, file);
}
process.exitCode = exitCode;
