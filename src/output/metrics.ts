import { Counter, Gauge, Histogram, Registry } from "prom-client";

import { formatIdentity } from "../core/backend-identity.ts";
import type { Following } from "../core/following.ts";
import { verdictName, type SweepReport, isGone, isRemoved } from "../core/report.ts";
import { hasFailed } from "../core/watch-due.ts";

/** What `watch` counts, for Prometheus. */
export interface Metrics {
  /** Takes in a sweep that has ended. `whole`: it was about every lock, so that the gauges can be set. */
  readonly observe: (report: SweepReport, whole: boolean) => void;
  /** Takes in that changes come, or do not. */
  readonly follow: (following: Following) => void;
  /** The text of `/metrics`, with its content type. */
  readonly render: () => Promise<{ readonly contentType: string; readonly text: string }>;
}

const PREFIX = "pulumi_lock_janitor_";

/** Metrics of one process, all zero. Names and units as https://prometheus.io/docs/practices/naming/ wants them. */
export function openMetrics(version: string): Metrics {
  const registers = [new Registry()];
  const [registry] = registers;
  const gauge = <Label extends string>(name: string, help: string, labelNames: readonly Label[]): Gauge<Label> =>
    new Gauge({ name: PREFIX + name, help, labelNames: [...labelNames], registers });
  const counter = <Label extends string>(name: string, help: string, labelNames: readonly Label[]): Counter<Label> =>
    new Counter({ name: PREFIX + name, help, labelNames: [...labelNames], registers });
  const locks = gauge("locks", "Locks at the latest sweep, by backend and verdict.", ["backend", "verdict"]);
  const oldestHeld = gauge("oldest_held_lock_age_seconds", "Age of the oldest lock that is held; 0 without any.", ["backend"]);
  const removals = counter("removals_total", "Locks removed, by backend and reason.", ["backend", "reason"]);
  const removalFailures = counter("removal_failures_total", "Removals that failed.", ["backend"]);
  const refusals = counter("refusals_total", "Sweeps in which a safety valve stopped all removals of a backend.", ["kind"]);
  const duration = new Histogram({
    name: `${PREFIX}sweep_duration_seconds`,
    help: "How long sweeps took.",
    buckets: [0.1, 0.5, 1, 5, 10, 30, 60, 300],
    registers,
  });
  const lastSuccess = gauge("last_success_timestamp_seconds", "When a sweep of every lock last read every backend and cluster it needed, in time.", []);
  const errors = counter("errors_total", "Backends and clusters that could not be read, by kind of error.", ["kind", "source"]);
  const following = gauge("following", "Whether changes of this kind of object come; 0: they are found when the interval ends.", ["cluster", "resource"]);
  // A counter that is first seen at 1 has not increased, for Prometheus (https://prometheus.io/docs/practices/instrumentation/#avoid-missing-metrics).
  refusals.inc({ kind: "max-deletions" }, 0);
  gauge("build_info", "The version that runs.", ["version"]).set({ version }, 1);
  return {
    observe: (report, whole) => {
      duration.observe((Date.parse(report.finishedAt) - Date.parse(report.startedAt)) / 1_000);
      for (const { name, error } of report.backends) if (error !== undefined) errors.inc({ kind: error.code, source: name });
      for (const { name, error } of report.clusters) if (error !== undefined) errors.inc({ kind: "cluster", source: name });
      if (report.refusals.length > 0) refusals.inc({ kind: "max-deletions" }, report.refusals.length);
      for (const lock of report.locks) {
        const name = formatIdentity(lock.backend);
        if (isRemoved(lock)) removals.inc({ backend: name, reason: lock.reason });
        if (lock.action === "failed") removalFailures.inc({ backend: name });
      }
      if (!whole) return;
      for (const { name, error } of report.backends) {
        // What could not be read keeps its figures; that it is so, errors_total says.
        if (error !== undefined) continue;
        const here = report.locks.filter((lock) => formatIdentity(lock.backend) === name && !isGone(lock));
        for (const verdict of verdictName.options) locks.set({ backend: name, verdict }, here.filter((lock) => lock.verdict === verdict).length);
        removalFailures.inc({ backend: name }, 0);
        oldestHeld.set({ backend: name }, Math.max(0, ...here.filter(({ verdict }) => verdict === "held").map(({ ageSeconds = 0 }) => ageSeconds)));
      }
      if (!hasFailed(report)) lastSuccess.set(Date.parse(report.finishedAt) / 1_000);
    },
    follow: ({ cluster, what, trouble }) => {
      following.set({ cluster, resource: what }, trouble === undefined ? 1 : 0);
      if (trouble !== undefined) errors.inc({ kind: "watch", source: cluster });
    },
    render: async () => ({ contentType: registry?.contentType ?? "text/plain", text: (await registry?.metrics()) ?? "" }),
  };
}
