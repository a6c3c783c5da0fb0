import type { List, ListItem, PhrasingContent, RootContent, TableRow } from "mdast";
import { gfmTableToMarkdown } from "mdast-util-gfm-table";
import { toMarkdown } from "mdast-util-to-markdown";

import { describeAfterUnlock } from "../core/after-unlock.ts";
import { isGone, type ReportedLock, type SweepReport } from "../core/report.ts";
import { escapeUntrusted, formatCount } from "../core/text.ts";
import { adviseOn } from "./advice.ts";
import { ACTION_WORDS, countVerdicts, describeAge, describeOwner, describeStack } from "./describe-lock.ts";

/** More locks than this nobody reads in a comment, and GitHub takes no more than 65,536 characters. */
const MOST_LOCKS = 100;

/**
 * Renders a report for a pull request or a job's summary. Text that somebody else wrote stands in code alone: there no mention, reference, link or markup of
 * GitHub's acts, and what would end a line or reorder it is written as its code point.
 */
export function renderMarkdown(report: SweepReport): string {
  const shown = report.locks.slice(0, MOST_LOCKS);
  const children: RootContent[] = [
    { type: "heading", depth: 3, children: [text(`Pulumi locks: ${describeFound(report)}`)] },
    { type: "paragraph", children: describeRun(report) },
    ...(shown.length === 0 ? [] : [tableOf(shown), ...restOf(report.locks.length), whyOf(shown)]),
    ...blockedOf(report),
    ...problemsOf(report),
    ...adviceOf(report),
  ];
  return toMarkdown({ type: "root", children }, { bullet: "-", extensions: [gfmTableToMarkdown()] });
}

function describeFound({ summary, backends, clusters }: SweepReport): string {
  const failed = [...backends, ...clusters].some(({ error }) => error !== undefined);
  const found = countVerdicts(summary).map(({ words }) => words);
  return `${found.length === 0 ? "none" : found.join(", ")}${failed ? ", and not everything could be read" : ""}`;
}

function describeRun({ dryRun, backends, clusters, finishedAt, summary, overrides }: SweepReport): PhrasingContent[] {
  const done = dryRun
    ? `a dry run: ${summary.wouldRemove} would be removed`
    : `${summary.removed} removed${summary.failed > 0 ? `, ${summary.failed} failed` : ""}`;
  return [
    ...join(backends.map(({ name }) => code(name))),
    ...(clusters.length === 0 ? [] : [text(" against "), ...join(clusters.map(({ name }) => code(name)))]),
    text(` at ${finishedAt}, ${done}.`),
    ...(overrides.length === 0
      ? []
      : [text(" On somebody's word: "), ...join(overrides.map(({ option, value }) => code(`${option} ${value}`.trim()))), text(".")]),
  ];
}

function tableOf(locks: readonly ReportedLock[]): RootContent {
  const row = (...cells: readonly PhrasingContent[]): TableRow => ({
    type: "tableRow",
    children: cells.map((cell) => ({ type: "tableCell", children: [cell] })),
  });
  return {
    type: "table",
    children: [
      row(...["verdict", "stack", "owner", "age", "what happens"].map(text)),
      ...locks.map((lock) =>
        row(text(lock.verdict), code(describeStack(lock)), code(describeOwner(lock)), text(describeAge(lock)), text(ACTION_WORDS[lock.action])),
      ),
    ],
  };
}

function restOf(count: number): RootContent[] {
  return count <= MOST_LOCKS
    ? []
    : [{ type: "paragraph", children: [text(`… and ${formatCount(count - MOST_LOCKS, "lock")} more; the JSON report has all of them.`)] }];
}

function whyOf(locks: readonly ReportedLock[]): List {
  return listOf(locks.map((lock) => [code(describeStack(lock)), text(` is ${lock.verdict}, ${lock.reason}: `), code(lock.message), ...noteOf(lock)]));
}

function noteOf(lock: ReportedLock): PhrasingContent[] {
  const { note, record } = lock;
  const told = describeAfterUnlock(lock).flatMap((line) => [text("; "), code(line)]);
  return [...(note === undefined ? [] : [text("; "), code(note)]), ...told, ...(record === undefined ? [] : [text("; record "), code(record)])];
}

function blockedOf({ stacks = [] }: SweepReport): RootContent[] {
  if (stacks.length === 0) return [];
  const items = stacks.map(({ cluster, namespace, name, blockedBy }): PhrasingContent[] => [
    text("Stack "),
    code(`${namespace}/${name}`),
    text(" of "),
    code(cluster),
    text(" by "),
    ...join(blockedBy.map(({ key }) => code(key))),
  ]);
  return [{ type: "paragraph", children: [text("Blocked right now:")] }, listOf(items)];
}

function problemsOf({ backends, clusters, refusals, warnings }: SweepReport): RootContent[] {
  const items = [
    ...backends.flatMap(({ error }) => (error === undefined ? [] : [[text("error: "), code(`${error.message} [${error.code}]`)]])),
    ...clusters.flatMap(({ name, error }) => (error === undefined ? [] : [[text("error: cluster "), code(name), text(": "), code(error)]])),
    ...refusals.map((refusal) => [text("refused: "), code(refusal)]),
    ...warnings.map((warning) => [text("note: "), code(warning)]),
  ];
  return items.length === 0 ? [] : [listOf(items)];
}

/** What a person does about what the janitor leaves, once for each reason. */
function adviceOf({ dryRun, summary, locks }: SweepReport): RootContent[] {
  const left = locks.filter((lock) => !isGone(lock));
  const advised = new Map(
    left.flatMap((lock) => {
      const advice = adviseOn(lock);
      return advice === undefined ? [] : [[lock.verdict === "unreadable" ? lock.verdict : lock.reason, advice] as const];
    }),
  );
  const items: PhrasingContent[][] = [
    ...(dryRun && summary.wouldRemove > 0
      ? [[text("Stale locks go with "), code("--delete --exclusive"), text(", or one at a time with "), code("pulumi-lock-janitor unlock <id>"), text(".")]]
      : []),
    ...Array.from(advised, ([reason, advice]) => [text(`${reason}: `), ...advice.map(({ kind, value }) => (kind === "code" ? code(value) : text(value)))]),
  ];
  return items.length === 0 ? [] : [{ type: "paragraph", children: [text("What to do:")] }, listOf(items)];
}

function listOf(items: readonly PhrasingContent[][]): List {
  const children = items.map((content): ListItem => ({ type: "listItem", spread: false, children: [{ type: "paragraph", children: content }] }));
  return { type: "list", ordered: false, spread: false, children };
}

function join(parts: readonly PhrasingContent[]): PhrasingContent[] {
  return parts.flatMap((part, index) => (index === 0 ? [part] : [text(", "), part]));
}

function text(value: string): PhrasingContent {
  return { type: "text", value };
}

function code(value: string): PhrasingContent {
  return { type: "inlineCode", value: escapeUntrusted(value) };
}
