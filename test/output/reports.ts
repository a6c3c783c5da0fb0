import { summarize, sweepReport, type ReportedLock, type SweepReport } from "../../src/core/report.ts";

/** A lock as it is reported. */
export function aLock(lock: Partial<ReportedLock> = {}): ReportedLock {
  return {
    backend: { scheme: "azblob", account: "acme", container: "state", prefix: "" },
    key: ".pulumi/locks/organization/shop/prod/1.json",
    id: "1",
    stack: "organization/shop/prod",
    owner: { username: "pulumi", hostname: "shop-workspace-0", pid: 7, timestamp: "2026-03-10T10:00:00Z" },
    ageSeconds: 7_260,
    verdict: "stale",
    reason: "pod-not-found",
    message: 'none of the 12 pods gives its processes the hostname "shop-workspace-0"',
    evidence: { rules: [{ rule: "1 unreadable", applied: false, note: "the body is a lock" }], candidates: [], clusters: [] },
    action: "would-delete",
    ...lock,
  };
}

/** A report of a dry run. */
export function aReport(locks: readonly ReportedLock[], report: Partial<SweepReport> = {}): SweepReport {
  return sweepReport.parse({
    version: 1,
    runId: "run-1",
    dryRun: true,
    startedAt: "2026-03-10T12:00:00Z",
    finishedAt: "2026-03-10T12:00:01Z",
    overrides: [],
    backends: [{ name: "azblob://state (account acme)", locks: locks.length }],
    clusters: [{ name: "prod", pods: 12, complete: true }],
    locks,
    refusals: [],
    warnings: [],
    summary: summarize(locks),
    exitCode: 0,
    ...report,
  });
}
