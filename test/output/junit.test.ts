import fc from "fast-check";
import { describe, expect, it } from "vitest";

import type { FailOn } from "../../src/core/judgement.ts";
import type { ReportedLock, SweepReport } from "../../src/core/report.ts";
import { renderJunit } from "../../src/output/junit.ts";
import { aLock, aReport } from "./reports.ts";
import { findXsdProblems, JUNIT_SCHEMAS, queryXml } from "./xsd.ts";

const BOTH: readonly FailOn[] = ["undetermined", "unreadable"];

function render(locks: readonly ReportedLock[], { failOn = BOTH, ...report }: Partial<SweepReport> & { readonly failOn?: readonly FailOn[] } = {}): string {
  return renderJunit(aReport(locks, report), failOn);
}

/** What the case of a report's one lock ended with. */
function endingOf(lock: Partial<ReportedLock>, failOn = BOTH): string {
  const xml = render([aLock(lock)], { failOn });
  return queryXml(xml, "//testcase[starts-with(@name, 'lock ')]/*/@type").join() || "pass";
}

describe("the report as JUnit's XML", () => {
  it("is a suite for each backend, a case for each lock, and a suite for the sweep", () => {
    const held = aLock({ id: "2", verdict: "held", reason: "container-running", message: "it runs", action: "keep", stack: "organization/dns/dev" });
    expect(render([aLock(), held])).toMatchInlineSnapshot(`
      "<?xml version="1.0" encoding="UTF-8"?>
      <testsuites>
        <testsuite id="0" name="azblob://state (account acme)" package="pulumi-lock-janitor" timestamp="2026-03-10T12:00:00" hostname="localhost" tests="3" failures="1" errors="0" time="0">
          <properties>
            <property name="run" value="run-1"/>
            <property name="dryRun" value="true"/>
          </properties>
          <testcase classname="backend" name="every lock can be read" time="0"/>
          <testcase classname="organization/shop/prod" name="lock 1 of pulumi@shop-workspace-0 (pid 7)" time="0">
            <failure type="stale.pod-not-found" message="stale, pod-not-found: none of the 12 pods gives its processes the hostname &quot;shop-workspace-0&quot;">azblob://state (account acme) .pulumi/locks/organization/shop/prod/1.json
      pulumi@shop-workspace-0 (pid 7), 2 h 1 min old: would be removed</failure>
          </testcase>
          <testcase classname="organization/dns/dev" name="lock 2 of pulumi@shop-workspace-0 (pid 7)" time="0"/>
          <system-out>organization/shop/prod, pulumi@shop-workspace-0 (pid 7), 2 h 1 min: stale, pod-not-found: none of the 12 pods gives its processes the hostname &quot;shop-workspace-0&quot;; would be removed
      organization/dns/dev, pulumi@shop-workspace-0 (pid 7), 2 h 1 min: held, container-running: it runs; kept</system-out>
          <system-err/>
        </testsuite>
        <testsuite id="1" name="sweep" package="pulumi-lock-janitor" timestamp="2026-03-10T12:00:00" hostname="localhost" tests="1" failures="0" errors="0" time="1">
          <properties>
            <property name="run" value="run-1"/>
            <property name="dryRun" value="true"/>
          </properties>
          <testcase classname="cluster" name="prod" time="0"/>
          <system-out/>
          <system-err/>
        </testsuite>
      </testsuites>
      "
    `);
  });

  it.each<readonly [lock: Partial<ReportedLock>, ending: string]>([
    [{ verdict: "stale", action: "would-delete" }, "stale.pod-not-found"],
    [{ verdict: "stale", action: "keep", note: "the safety valve is closed" }, "stale.pod-not-found"],
    [{ verdict: "stale", action: "failed", note: "403" }, "stale.pod-not-found"],
    [{ verdict: "stale", action: "deleted", record: "r1" }, "pass"],
    [{ verdict: "stale", action: "vanished" }, "pass"],
    [{ verdict: "held", reason: "container-running", action: "keep" }, "pass"],
    [{ verdict: "foreign", reason: "no-pattern", action: "keep" }, "pass"],
    [{ verdict: "too-young", reason: "min-age", action: "keep" }, "pass"],
    [{ verdict: "undetermined", reason: "node-unreachable", action: "keep" }, "undetermined.node-unreachable"],
    [{ verdict: "unreadable", reason: "empty", action: "keep" }, "unreadable.empty"],
  ])("%j: %s", (lock, ending) => {
    expect(endingOf(lock)).toBe(ending);
  });

  it.each(["undetermined", "unreadable"] as const)("an %s lock is an error where --fail-on names it, else it passes", (verdict) => {
    const lock = { verdict, reason: "x", action: "keep" } as const;
    expect([endingOf(lock, [verdict]), endingOf(lock, ["stale"])]).toEqual([`${verdict}.x`, "pass"]);
  });

  it("what could not be looked at is an error: a removal that failed, a backend, a cluster; a refusal is a failure", () => {
    const xml = render([aLock({ action: "failed" })], {
      backends: [
        { name: "azblob://state (account acme)", locks: 1 },
        { name: "s3://other", locks: 0, error: { code: "backend-denied", message: "s3://other: 403" } },
      ],
      clusters: [{ name: "prod", pods: 0, complete: false, error: "401" }],
      refusals: ["too many"],
    });
    expect(queryXml(xml, "//error/@type")).toEqual(["stale.pod-not-found", "backend-denied", "cluster"]);
    expect(queryXml(xml, "//failure/@message")).toEqual(["too many"]);
    expect(queryXml(xml, "//testsuite/@errors")).toEqual(["1", "1", "1"]);
  });

  it("says what to do about what is kept", () => {
    const xml = render([aLock({ verdict: "undetermined", reason: "node-not-ready", action: "keep" })]);
    expect(queryXml(xml, "//error").join()).toContain("pulumi cancel");
  });
});

describe.each(Object.entries(JUNIT_SCHEMAS))("valid by %s", (_name, schema) => {
  it("whatever a report says", () => {
    const every = (["stale", "held", "foreign", "too-young", "unreadable", "undetermined"] as const).map((verdict) => aLock({ verdict, action: "keep" }));
    const xml = render([...every, aLock({ action: "failed", note: "n", record: "r" })], {
      backends: [
        { name: "azblob://state (account acme)", locks: 7 },
        { name: "x", locks: 0, error: { code: "c", message: "m" } },
      ],
      clusters: [{ name: "c", pods: 0, complete: false, error: "e" }],
      refusals: ["r"],
      warnings: ["w"],
    });
    expect(findXsdProblems(xml, schema)).toEqual([]);
    expect(findXsdProblems(render([], { backends: [], clusters: [] }), schema)).toEqual([]);
  });

  it("the schema is really asked", () => {
    expect(findXsdProblems(render([aLock()]).replace('name="sweep"', 'nome="sweep"'), schema)).not.toEqual([]);
  });

  it.each([
    ["]]>"],
    ["<failure>"],
    ["</testsuite>"],
    ['"\' a="b'],
    ["&lt;&#0;&nbsp;"],
    ["\u0000\u0001\u001b[2J\u007f\u0085"],
    ["\ufffe\uffff"],
    ["\ud800"],
    ["a\nb\tc\r"],
    ["\u202egnp.exe"],
    ["<!-- -->"],
    ["<?xml?>"],
    ["<![CDATA["],
    ["😀 日本語"],
    ["true"],
    ["__proto__"],
  ])("P7: %j from a lock acts on nothing", (hostile) => {
    expect(findHarm(hostile, schema)).toEqual([]);
  });
});

it("P7: nor does anything else, and it can be read back", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 30 }), (hostile) => {
      expect(findHarm(hostile, JUNIT_SCHEMAS["JUnit.xsd (Apache Ant, by Windy Road)"])).toEqual([]);
    }),
    { numRuns: 100 },
  );
});

/** What text from a lock does to the document beyond being in it. */
function findHarm(hostile: string, schema: string): readonly string[] {
  const owner = { username: hostile, hostname: hostile, pid: 7, timestamp: "2026-03-10T10:00:00Z" };
  const lock = aLock({ id: hostile, owner, stack: hostile, message: hostile, note: hostile, verdict: "undetermined", reason: "list-incomplete" });
  const xml = render([lock], {
    warnings: [hostile],
    refusals: [hostile],
    clusters: [{ name: hostile, pods: 1, complete: false, error: hostile }],
  });
  const elements = queryXml(xml, "//*").length;
  // oxlint-disable-next-line eslint/no-control-regex -- that is what must not be there.
  const acting = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\ufffe\uffff]/.exec(xml);
  return [
    ...findXsdProblems(xml, schema),
    ...(elements === ELEMENTS ? [] : [`${elements} elements, not ${ELEMENTS}`]),
    ...(acting === null ? [] : [`a character that acts at ${acting.index}`]),
  ];
}

/** testsuites, 2 × (testsuite, properties, 2 × property, system-out, system-err), 4 cases, 2 errors, 1 failure. */
const ELEMENTS = 1 + 2 * 6 + 4 + 3;
