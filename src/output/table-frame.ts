import type { ReportedLock, SweepReport } from "../core/report.ts";
import { escapeUntrusted, formatCount, joinSome } from "../core/text.ts";
import { countVerdicts } from "./describe-lock.ts";

/** The looks that a table uses; each leaves the text alone where there is no colour. */
export type Style = "red" | "green" | "yellow" | "cyan" | "dim" | "bold";

export interface TableOptions {
  /** The columns of the terminal, at least 40; Infinity when there is none, so that nothing is wrapped. */
  readonly width: number;
  readonly paint: (style: Style, text: string) => string;
  readonly verbose: boolean;
}

export const VERDICT_STYLES: Readonly<Record<ReportedLock["verdict"], Style>> = {
  stale: "red",
  held: "green",
  foreign: "cyan",
  "too-young": "cyan",
  unreadable: "yellow",
  undetermined: "yellow",
};

/** Renders what stands around the columns of a report: what it is of, then `middle`, what went wrong, and a summary. What measures text is not loaded for it. */
export function renderFrame(report: SweepReport, options: TableOptions, middle: readonly string[], wrap: (text: string) => string = (text) => text): string {
  const { paint } = options;
  const problems = [
    ...report.backends.flatMap(({ error }) => (error === undefined ? [] : [paint("red", `error: ${escapeUntrusted(error.message)} [${error.code}]`)])),
    ...report.clusters.flatMap(({ name, error }) =>
      error === undefined ? [] : [paint("red", `error: cluster ${escapeUntrusted(name)}: ${escapeUntrusted(error)}`)],
    ),
    ...report.refusals.map((refusal) => paint("yellow", `refused: ${escapeUntrusted(refusal)}`)),
    ...report.warnings.map((warning) => paint("yellow", `note: ${escapeUntrusted(warning)}`)),
  ];
  const parts = [wrap(renderHead(report, options)), ...middle, ...problems.map((problem) => wrap(problem)), wrap(renderSummary(report, options))];
  return `${parts.join("\n\n")}\n`;
}

function renderHead(report: SweepReport, { paint }: TableOptions): string {
  const [own, discovered] = [
    report.backends.filter((backend) => backend.discovered !== true),
    report.backends.filter((backend) => backend.discovered === true),
  ];
  const names = [...own.map(({ name }) => name), ...(discovered.length === 0 ? [] : [`${joinSome(discovered.map(({ name }) => name))} (discovered)`])];
  const clusters = report.clusters.map(({ name, pods }) => `${escapeUntrusted(name)} (${pods} pods)`);
  const against = clusters.length === 0 ? "" : paint("dim", ` against ${clusters.join(", ")}`);
  const title = report.dryRun ? "Dry run" : isPlan(report) ? "Plan" : "Sweep";
  const head = `${paint("bold", title)} of ${names.length === 0 ? "no backend" : names.join(", ")}${against}`;
  const overrides = report.overrides.map(({ option, value }) => (value === "" ? option : `${option} ${escapeUntrusted(value)}`));
  return overrides.length === 0 ? head : `${head}\n${paint("dim", `on your word: ${overrides.join(", ")}`)}`;
}

/** A report that is shown before the removals it speaks of, so that a person can decide. */
function isPlan({ dryRun, summary }: SweepReport): boolean {
  return !dryRun && summary.wouldRemove > 0;
}

function renderSummary(report: SweepReport, { paint }: TableOptions): string {
  const { summary, dryRun, exitCode } = report;
  if (isPlan(report)) return `${formatCount(summary.locks, "lock")}: ${summary.wouldRemove} would be removed.`;
  const verdicts = countVerdicts(summary).map(({ verdict, words }) => paint(VERDICT_STYLES[verdict], words));
  const found = summary.locks === 0 ? "no locks" : `${formatCount(summary.locks, "lock")}: ${verdicts.join(", ")}`;
  const done = dryRun
    ? `${summary.wouldRemove} would be removed (--delete removes)`
    : `${summary.removed} removed${summary.failed > 0 ? `, ${summary.failed} failed` : ""}`;
  return `${found}. ${dryRun && summary.wouldRemove === 0 ? "Nothing to remove" : done}.${exitCode === 0 ? "" : paint("dim", ` Exit code ${exitCode}.`)}`;
}
