import { readdirSync, readFileSync } from "node:fs";

import stringWidth from "string-width";
import { describe, expect, it } from "vitest";

import { summarizeRemoval, type AuditReport } from "../../src/core/audit-entry.ts";
import type { RemovalHistory } from "../../src/core/record.ts";
import { parseTimestamp } from "../../src/core/time.ts";
import { parseRecord, sortHistories } from "../../src/output/audit-log.ts";
import { renderRemoval } from "../../src/output/audit-record-text.ts";
import { describeTime, renderAuditList } from "../../src/output/audit-table.ts";

const now = parseTimestamp("2026-03-10T15:30:00Z") ?? 0n;
const plain = { width: Infinity, paint: (_: string, text: string) => text, now };
const folder = "test/fixtures/records-v1";

function aRemoval(change: (text: string) => string = (text) => text): RemovalHistory {
  const records = readdirSync(folder).map((name) => parseRecord(change(readFileSync(`${folder}/${name}`, "utf8")), name));
  const [removal] = sortHistories(records);
  if (removal === undefined) throw new Error("the fixture holds no removal");
  return removal;
}

function aReport(removals: readonly RemovalHistory[], report: Partial<AuditReport> = {}): AuditReport {
  return { version: 1, removals: removals.map(summarizeRemoval), more: false, unreadable: [], errors: [], exitCode: 0, ...report };
}

/** Replaces a host by text that would act on a terminal. */
function makeHostile(text: string): string {
  return text.replaceAll("network-dev-workspace-0", String.raw`a\u001b[2J\u202e\u0007\nnew`).replaceAll("janitor-29218440-x7k2p", String.raw`\u001b]0;x\u0007`);
}

describe("the list of removals", () => {
  it("shows each with its time in UTC and in words, the reason and the record's id", () => {
    expect(renderAuditList(aReport([aRemoval()]), plain)).toMatchInlineSnapshot(`
      "WHEN                                      STACK                     OWNER                                     OUTCOME
      2026-03-10 12:00:00 UTC (3 h 30 min ago)  organization/network/dev  pulumi@network-dev-workspace-0 (pid 211)  removed
        stale: container-restarted: no container of pod "iac/network-dev-workspace-0" that could have written the lock still runs
        on a person's word: --exclusive
        in gs://state
        record 20260310T120000Z-3f1a2b9c4d5e6f70-9d0c1b2a, run 0b7c8d7e-6a5f-4b3c-9d2e-1f0a9b8c7d6e

      1 removal.
      "
    `);
  });

  it("says that there is none, what is left out and what could not be read", () => {
    const unreadable = Array.from({ length: 12 }, (_, index) => ({ place: `audit/${index}`, message: "is no record" }));
    const errors = [{ backend: "b", code: "backend-denied", message: "b: may not list" }];
    const text = renderAuditList(aReport([], { more: true, unreadable, errors, exitCode: 1 }), plain);
    expect(text).toContain("No removal is recorded that is asked for, and there are older ones (--limit). Exit code 1.");
    expect(text).toContain("unreadable: audit/0: is no record");
    expect(text).toContain("and 2 more that are unreadable");
    expect(text).toContain("error: b: may not list [backend-denied]");
  });

  it.each([40, 60, 80, 100, 160])("fits into %i columns, with wide characters too", (width) => {
    const wide = aRemoval((text) => text.replaceAll("organization/network/dev", "organization/网络网络网络网络网络/🚀🚀🚀🚀🚀"));
    for (const text of [renderAuditList(aReport([wide, aRemoval()]), { ...plain, width }), renderRemoval(wide, [], { ...plain, width })])
      expect(Math.max(...text.split("\n").map((line) => stringWidth(line)))).toBeLessThanOrEqual(width);
  });

  it.each([
    ["2026-03-10T15:30:00Z", "2026-03-10 15:30:00 UTC (just now)"],
    ["2026-03-10T15:29:59.9Z", "2026-03-10 15:29:59 UTC (just now)"],
    ["2026-03-08T12:30:00.123456789Z", "2026-03-08 12:30:00 UTC (2 d 2 h ago)"],
    ["2026-03-10T16:30:00+02:00", "2026-03-10 14:30:00 UTC (1 h ago)"],
    ["2026-03-10T15:31:00Z", "2026-03-10 15:31:00 UTC (in 1 min)"],
  ])("tells the time %s as %s", (text, words) => {
    expect(describeTime(text, now)).toBe(words);
  });

  it("P7: nothing of a record acts on the terminal", () => {
    const removal = aRemoval(makeHostile);
    const unreadable = [{ place: "\u001b[2J", message: "\u202e" }];
    for (const text of [renderAuditList(aReport([removal], { unreadable }), plain), renderRemoval(removal, unreadable, plain)]) {
      // oxlint-disable-next-line eslint/no-control-regex -- that is what must not be there.
      expect(text).not.toMatch(/[\u001b\u202e\u0007]/);
      expect(text).toContain(String.raw`\u{1b}`);
    }
  });
});

describe("one removal", () => {
  it("is shown with its lock, its evidence and how to undo it", () => {
    expect(renderRemoval(aRemoval(), [], plain)).toMatchInlineSnapshot(`
      "Record 20260310T120000Z-3f1a2b9c4d5e6f70-9d0c1b2a
      stack        organization/network/dev
      lock         .pulumi/locks/organization/network/dev/0b9f3f1e-4a44-4a3e-9d2a-9c1d5b7a2e61.json
      backend      gs://state
      owner        pulumi@network-dev-workspace-0 (pid 211)
      locked       2026-03-10 09:02:11 UTC (6 h 27 min ago)
      verdict      stale: container-restarted: no container of pod "iac/network-dev-workspace-0" that could have written the lock still runs
      recorded     2026-03-10 12:00:00 UTC (3 h 30 min ago)
      by           pulumi-lock-janitor 0.1.0 on janitor-29218440-x7k2p, run 0b7c8d7e-6a5f-4b3c-9d2e-1f0a9b8c7d6e
      outcome      removed, 2026-03-10 12:00:01 UTC (3 h 29 min ago)
      on your word --exclusive
      cluster      prod (f3c3a3a0-5d7e-4e8e-b1d1-6c7a3a2b1c0d), 412 pods
      rule         1 unreadable: the body is a lock
      rule         => 5 candidates: all of 1 candidate are gone
      pod          prod/iac/network-dev-workspace-0: gone (container-restarted): container "pulumi" started at 2026-03-10T10:40:00Z, after the lock
      lock's body  "{"pid":211,"username":"pulumi","hostname":"network-dev-workspace-0","timestamp":"2026-03-10T09:02:11.482915027Z"}"

      pulumi-lock-janitor restore 20260310T120000Z-3f1a2b9c4d5e6f70-9d0c1b2a puts it back.
      "
    `);
  });
});
