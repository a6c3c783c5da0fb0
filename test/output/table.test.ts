import stringWidth from "string-width";
import { describe, expect, it } from "vitest";

import type { TableOptions } from "../../src/output/table-frame.ts";
import { renderTable } from "../../src/output/table.ts";
import { aLock, aReport } from "./reports.ts";

const plain: TableOptions = { width: Infinity, paint: (_, text) => text, verbose: false };

describe("the table", () => {
  it("shows a lock with its reason below, and a summary", () => {
    expect(
      renderTable(
        aReport([aLock(), aLock({ verdict: "held", reason: "container-running", message: "it runs", action: "keep", stack: "organization/dns/dev" })]),
        plain,
      ),
    ).toMatchInlineSnapshot(`
      "Dry run of azblob://state (account acme) against prod (12 pods)

      VERDICT  STACK                   OWNER                            AGE        ACTION
      stale    organization/shop/prod  pulumi@shop-workspace-0 (pid 7)  2 h 1 min  would be removed
               pod-not-found: none of the 12 pods gives its processes the hostname "shop-workspace-0"
      held     organization/dns/dev    pulumi@shop-workspace-0 (pid 7)  2 h 1 min  kept
               container-running: it runs

      2 locks: 1 stale, 1 held. 1 would be removed (--delete removes).
      "
    `);
  });

  it("says so when there is no lock", () => {
    expect(renderTable(aReport([], { clusters: [] }), plain)).toBe("Dry run of azblob://state (account acme)\n\nno locks. Nothing to remove.\n");
  });

  it.each([40, 60, 80, 100, 120, 200])("fits into %i columns", (width) => {
    const long = aLock({ stack: "organization/a-project-with-a-long-name/a-stack-with-a-long-name", message: "x ".repeat(120) });
    const lines = renderTable(aReport([long, aLock()]), { ...plain, width })
      .split("\n")
      .slice(2);
    expect(Math.max(...lines.map((line) => stringWidth(line)))).toBeLessThanOrEqual(width);
  });

  it.each([40, 60, 80, 120])("fits wide characters into %i columns, which a terminal shows in two each", (width) => {
    const wide = aLock({ stack: `organization/${"网络".repeat(12)}/${"🚀".repeat(8)}`, message: "项目".repeat(60) });
    const lines = renderTable(aReport([wide, aLock()]), { ...plain, width })
      .split("\n")
      .slice(2);
    expect(Math.max(...lines.map((line) => stringWidth(line)))).toBeLessThanOrEqual(width);
  });

  it("breaks a long owner before the name of a stack", () => {
    const owner = {
      username: "pulumi-kubernetes-operator",
      hostname: "pulumi-kubernetes-operator-6b8d5f7c9d-q4x7n",
      pid: 28_841,
      timestamp: "2026-03-10T10:00:00Z",
    };
    const text = renderTable(aReport([aLock({ owner, stack: "organization/billing/prod" })]), { ...plain, width: 120 });
    expect(text).toMatch(/^stale +organization\/billing\/prod +pulumi-kubernetes-operator@/m);
  });

  it("shows every rule with --verbose", () => {
    expect(renderTable(aReport([aLock()]), { ...plain, verbose: true })).toContain("rule 1 unreadable: the body is a lock");
  });

  it("shows errors, refusals and the exit code", () => {
    const text = renderTable(
      aReport([aLock()], {
        backends: [{ name: "b", locks: 0, error: { code: "backend-denied", message: "b: may not list" } }],
        refusals: ["the valve"],
        exitCode: 1,
      }),
      plain,
    );
    expect(text).toContain("error: b: may not list [backend-denied]");
    expect(text).toContain("refused: the valve");
    expect(text).toContain("Exit code 1.");
  });

  it("P7: lets no character of an owner or a stack act on the terminal", () => {
    const hostile = "a\u001b[2J\u202ebidi\u0007\nnew";
    const text = renderTable(
      aReport([aLock({ stack: hostile, owner: { username: hostile, hostname: hostile, pid: 1, timestamp: "2026-03-10T10:00:00Z" } })]),
      plain,
    );
    // oxlint-disable-next-line eslint/no-control-regex -- that is what must not be there.
    expect(text).not.toMatch(/[\u001b\u202e\u0007]/);
    expect(text).toContain("\\u{1b}");
  });

  const block = { key: ".pulumi/locks/organization/shop/prod/1.json", backend: aLock().backend, verdict: "stale", reason: "pod-not-found" } as const;
  const blocked = { cluster: "prod", namespace: "iac", name: "shop", stack: "organization/shop/prod", blockedBy: [block] };

  it("shows the Stacks that are blocked, with the lock that blocks them", () => {
    const unknown = { ...blocked, name: "dns", blockedBy: [{ key: block.key, message: "its backend is not one that this sweep could look into" }] };
    expect(renderTable(aReport([], { stacks: [unknown, blocked] }), plain)).toMatchInlineSnapshot(`
      "Dry run of azblob://state (account acme) against prod (12 pods)

      Blocked Stacks
        "iac/dns" ("organization/shop/prod")
          by ".pulumi/locks/organization/shop/prod/1.json" (not known, its backend is not one that this sweep could look into)
        "iac/shop" ("organization/shop/prod")
          by ".pulumi/locks/organization/shop/prod/1.json" in azblob://state (account acme) (stale: pod-not-found)

      no locks. Nothing to remove.
      "
    `);
  });

  it("shows no such heading where none is blocked", () => {
    expect(renderTable(aReport([], { stacks: [] }), plain)).not.toContain("Blocked");
  });

  it("P7: shows of thousands of blocked Stacks some, and nothing of them acts on the terminal", () => {
    const hostile = "a\u001b[2J\u202ebidi\u0007\nnew";
    const stacks = Array.from({ length: 2_000 }, () => ({
      ...blocked,
      namespace: hostile,
      name: hostile,
      stack: hostile,
      blockedBy: Array.from({ length: 30 }, () => ({ key: hostile.repeat(1_000), message: "its backend is not one that this sweep could look into" })),
    }));
    const text = renderTable(aReport([], { stacks }), plain);
    // oxlint-disable-next-line eslint/no-control-regex -- that is what must not be there.
    expect(text).not.toMatch(/[\u001b\u202e\u0007]/);
    expect(text.split("\n").length).toBeLessThan(300);
    expect(text).toContain("and 1950 more Stacks (--output json has all)");
  });

  it.each([60, 100, 200])("fits blocked Stacks into %i columns", (width) => {
    const long = { ...blocked, name: "a-name-".repeat(20), blockedBy: [{ ...block, key: `.pulumi/locks/${"long-".repeat(40)}.json` }] };
    const lines = renderTable(aReport([], { stacks: [long, blocked] }), { ...plain, width })
      .split("\n")
      .slice(2);
    expect(Math.max(...lines.map((line) => stringWidth(line)))).toBeLessThanOrEqual(width);
  });

  it("names discovered backends apart", () => {
    const backends = [{ name: "azblob://state", locks: 0 }, ...["a", "b", "c", "d", "e"].map((name) => ({ name: `s3://${name}`, discovered: true, locks: 0 }))];
    expect(renderTable(aReport([], { backends, clusters: [] }), plain)).toContain("Dry run of azblob://state, s3://a, s3://b, s3://c and 2 more (discovered)");
  });

  it.each([Infinity, 80])("shows what was found and done after a removal, %s columns wide", (width) => {
    const stacks = [{ cluster: "prod", namespace: "iac", name: "shop\u001b[31m", requeued: false, event: true }];
    const lock = aLock({ action: "deleted", pendingOperations: { kind: "some", count: 2 }, afterUnlock: { stacks } });
    const text = renderTable(aReport([lock], { dryRun: false }), { ...plain, width }).replaceAll(/\s+/g, " ");
    expect(text).toContain("its checkpoint holds 2 pending operations: see to them before the next update");
    expect(text).toContain('Stack "iac/shop\\u{1b}[31m" of "prod": told by an Event');
  });
});
