import Builder from "fast-xml-builder";

import { formatIdentity } from "../core/backend-identity.ts";
import type { FailOn } from "../core/judgement.ts";
import { isGone, type ReportedLock, type SweepReport } from "../core/report.ts";
import { escapeUntrusted } from "../core/text.ts";
import { parseTimestamp, toSeconds } from "../core/time.ts";
import { adviseOn } from "./advice.ts";
import { ACTION_WORDS, describeAge, describeOwner, describeStack } from "./describe-lock.ts";

/** What a test case ended with. `failure`: it was looked at and is not as it should be. `error`: it could not be told. */
type Ending =
  | { readonly kind: "pass" }
  | { readonly kind: "failure" | "error"; readonly type: string; readonly message: string; readonly lines: readonly string[] };

interface Case {
  readonly classname: string;
  readonly name: string;
  readonly ending: Ending;
}

interface Suite {
  readonly name: string;
  readonly cases: readonly Case[];
  /** What is told about the suite as a whole. */
  readonly lines: readonly string[];
  readonly seconds: number;
}

const PASS: Ending = { kind: "pass" };

/**
 * Renders a report as JUnit's XML: a suite for each backend with a case for each lock, and one for the sweep itself. A stale lock that is left is a failure; an
 * undetermined or unreadable one is an error where `failOn` names it. The form is what Ant's schema and Jenkins's both admit, hence no `skipped`, and suites
 * that have each of their parts.
 */
export function renderJunit(report: SweepReport, failOn: readonly FailOn[]): string {
  const suites = [...report.backends.map((backend) => toBackendSuite(backend, report.locks, failOn)), toSweepSuite(report)];
  const document = {
    "?xml": { "@version": "1.0", "@encoding": "UTF-8" },
    testsuites: { testsuite: suites.map((suite, index) => toSuiteElement(suite, index, report)) },
  };
  // By default the library writes an attribute that is "true" without its value, which is no XML.
  const builder = new Builder({ attributeNamePrefix: "@", ignoreAttributes: false, format: true, suppressEmptyNode: true, suppressBooleanAttributes: false });
  return builder.build(document);
}

function toBackendSuite({ name, error }: SweepReport["backends"][number], all: readonly ReportedLock[], failOn: readonly FailOn[]): Suite {
  const locks = all.filter(({ backend }) => formatIdentity(backend) === name);
  const read: Ending = error === undefined ? PASS : { kind: "error", type: error.code, message: error.message, lines: [] };
  return {
    name,
    cases: [{ classname: "backend", name: "every lock can be read", ending: read }, ...locks.map((lock) => toLockCase(lock, failOn))],
    lines: locks.map((lock) => `${describeStack(lock)}, ${describeOwner(lock)}, ${describeAge(lock)}: ${describeVerdict(lock)}; ${ACTION_WORDS[lock.action]}`),
    seconds: 0,
  };
}

function toLockCase(lock: ReportedLock, failOn: readonly FailOn[]): Case {
  return { classname: describeStack(lock), name: `lock ${lock.id === "" ? lock.key : lock.id} of ${describeOwner(lock)}`, ending: endingOf(lock, failOn) };
}

function endingOf(lock: ReportedLock, failOn: readonly FailOn[]): Ending {
  const { verdict, action, reason } = lock;
  const end = (kind: "failure" | "error"): Ending => ({ kind, type: `${verdict}.${reason}`, message: describeVerdict(lock), lines: describeCase(lock) });
  if (action === "failed") return end("error");
  if (isGone(lock)) return PASS;
  switch (verdict) {
    case "stale":
      return end("failure");
    case "undetermined":
    case "unreadable":
      return failOn.includes(verdict) ? end("error") : PASS;
    case "held":
    case "foreign":
    case "too-young":
      return PASS;
  }
}

function describeVerdict({ verdict, reason, message }: ReportedLock): string {
  return `${verdict}, ${reason}: ${message}`;
}

function describeCase(lock: ReportedLock): readonly string[] {
  const { key, note, record, action } = lock;
  const advice = adviseOn(lock);
  return [
    `${formatIdentity(lock.backend)} ${key}`,
    `${describeOwner(lock)}, ${describeAge(lock)} old: ${ACTION_WORDS[action]}`,
    ...(note === undefined ? [] : [note]),
    ...(record === undefined ? [] : [`record ${record}`]),
    ...(advice === undefined ? [] : [`what to do: ${advice.map((part) => part.value).join("")}`]),
  ];
}

/** What belongs to no one backend: clusters that could not be read, and why nothing was removed. */
function toSweepSuite({ clusters, refusals, warnings, startedAt, finishedAt }: SweepReport): Suite {
  const clusterCases = clusters.map(({ name, error }): Case => ({
    classname: "cluster",
    name,
    ending: error === undefined ? PASS : { kind: "error", type: "cluster", message: error, lines: [] },
  }));
  const refusalCases = refusals.map((message, index): Case => ({
    classname: "sweep",
    name: `nothing is refused (${index + 1})`,
    ending: { kind: "failure", type: "refused", message, lines: [] },
  }));
  return { name: "sweep", cases: [...clusterCases, ...refusalCases], lines: warnings, seconds: secondsBetween(startedAt, finishedAt) };
}

function secondsBetween(start: string, end: string): number {
  return toSeconds((parseTimestamp(end) ?? 0n) - (parseTimestamp(start) ?? 0n));
}

type Element = Readonly<Record<string, unknown>>;

function toSuiteElement({ name, cases, lines, seconds }: Suite, id: number, { startedAt, runId, dryRun }: SweepReport): Element {
  const count = (kind: Ending["kind"]): number => cases.filter(({ ending }) => ending.kind === kind).length;
  return {
    "@id": id,
    "@name": clean(name),
    "@package": "pulumi-lock-janitor",
    "@timestamp": startedAt.slice(0, "2026-03-10T12:00:00".length),
    // The schema's word for a host that is of no importance.
    "@hostname": "localhost",
    "@tests": cases.length,
    "@failures": count("failure"),
    "@errors": count("error"),
    "@time": seconds,
    properties: {
      property: [
        { "@name": "run", "@value": clean(runId) },
        { "@name": "dryRun", "@value": String(dryRun) },
      ],
    },
    testcase: cases.map(toCaseElement),
    "system-out": lines.map(clean).join("\n"),
    "system-err": "",
  };
}

function toCaseElement({ classname, name, ending }: Case): Element {
  return {
    "@classname": clean(classname),
    "@name": clean(name),
    "@time": 0,
    ...(ending.kind === "pass"
      ? {}
      : { [ending.kind]: { "@type": clean(ending.type), "@message": clean(ending.message), "#text": ending.lines.map(clean).join("\n") } }),
  };
}

/** XML 1.0 has no way to write most control characters; as code points they are also harmless to whoever looks at them. */
function clean(text: string): string {
  return escapeUntrusted(text);
}
