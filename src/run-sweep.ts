import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import { redactUrl } from "./backends/open.ts";
import { resolveBackends, resolveOwners, type BackendSettings, type Settings } from "./config.ts";
import type { RuleSettings } from "./core/decide.ts";
import type { OverrideUsed, SweepReport } from "./core/report.ts";
import { formatTimestamp, fromMilliseconds } from "./core/time.ts";
import { JanitorError } from "./errors.ts";
import { openSources, openWithAudit, toMilliseconds } from "./open-parts.ts";
import { openProgressLine } from "./output/progress.ts";
import { renderTable } from "./output/table.ts";
import { painterFor, widthOf } from "./output/terminal.ts";
import type { Surroundings } from "./surroundings.ts";
import { sweep, type Answer } from "./sweep.ts";
import { VERSION } from "./version.ts";
import { writeOutputs } from "./write-outputs.ts";

/** Runs `sweep` with its settings and gives the exit code. Throws a `JanitorError` for wrong usage. */
export async function runSweep(settings: Settings, surroundings: Surroundings): Promise<number> {
  const { env, stop, stderr } = surroundings;
  const backends = resolveBackends(settings, env);
  const asking = surroundings.interactive && settings.delete && !settings.yes;
  refuseUnsafe(settings, backends, asking);
  const clusters = await openSources(settings, env);
  const opened = await Promise.all(backends.map((backend) => openWithAudit(backend, settings)));
  const progress = openProgressLine(stderr, settings.quiet, () => Date.now());
  const deadline = settings.timeout === undefined ? new AbortController().signal : AbortSignal.timeout(toMilliseconds(settings.timeout));
  try {
    const report = await sweep(
      {
        delete: settings.delete,
        rules: toRules(settings),
        confirmDelay: toMilliseconds(settings.confirmDelay),
        maxDeletions: settings.maxDeletions,
        failOn: settings.failOn.filter((name) => name !== "none"),
        overrides: listOverrides(settings, backends),
      },
      {
        backends: opened,
        clusters,
        now: () => fromMilliseconds(Date.now()),
        sleep: async (milliseconds, signal) => await sleep(milliseconds, undefined, { signal }),
        runId: randomUUID(),
        janitor: { version: VERSION, hostname: hostname() },
        deadline,
        stop,
        onProgress: progress.show,
        ...(asking ? { confirm: async (plan: SweepReport) => await askToRemove(plan, settings, backends, surroundings, progress.clear) } : {}),
      },
    );
    progress.clear();
    await writeOutputs(settings.outputs, surroundings, {
      json: report,
      table: (stream) => renderTable(report, { width: widthOf(stream), paint: painterFor(stream), verbose: settings.verbose }),
    });
    if (report.dryRun && report.summary.wouldRemove > 0 && !report.overrides.some(({ option }) => option === "--exclusive")) {
      await surroundings.log(
        "info",
        `a removal also needs --exclusive: your word that no other cluster writes to ${report.backends.map(({ name }) => name).join(", ")}`,
      );
    }
    return report.exitCode;
  } finally {
    progress.clear();
    await Promise.all([
      ...clusters.map((cluster) => cluster.close()),
      ...opened.map(async (item) => (item.kind === "open" ? await item.backend.close() : undefined)),
    ]);
  }
}

/** Stops what cannot be safe before anything is opened. */
function refuseUnsafe(settings: Settings, backends: readonly BackendSettings[], asking: boolean): void {
  if (!settings.delete) return;
  const open = backends.filter(({ exclusive }) => !exclusive);
  if (open.length > 0 && !asking) {
    throw new JanitorError("usage", `--delete wants --exclusive for ${open.map(({ url }) => redactUrl(url)).join(", ")}`, {
      hint: "With it you state that every writer whose host matches an owner pattern runs in the clusters configured here. If another cluster uses the same backend, its live locks would be removed.",
    });
  }
  if (settings.podsFrom !== undefined && settings.podsTakenAt === undefined) {
    throw new JanitorError("usage", "--delete with --pods-from wants --pods-taken-at, the time at which kubectl began", {
      hint: "Without it a file is good for a report only: nobody knows how old it is.",
    });
  }
}

function toRules(settings: Settings): RuleSettings {
  return {
    owners: resolveOwners(settings),
    requireStack: settings.requireStack,
    minAge: settings.minAge,
    clockSkew: settings.clockSkew,
    settle: settings.settle,
    ignoredNodes: {
      all: settings.unreachableNodes.includes("ignore"),
      names: settings.unreachableNodes.filter((value) => value.startsWith("ignore:")).map((value) => value.slice("ignore:".length)),
    },
  };
}

/** Every rule that a person overrides, for report and record (promise P1). */
function listOverrides(settings: Settings, backends: readonly BackendSettings[]): OverrideUsed[] {
  return [
    ...(backends.some(({ exclusive }) => exclusive)
      ? [{ option: "--exclusive", value: backends.every(({ exclusive }) => exclusive) ? "" : "for some backends" }]
      : []),
    ...settings.owners.map(({ glob, container }) => ({ option: "--owner", value: container === undefined ? glob : `${glob}=${container}` })),
    ...(settings.requireStack === "no" ? [{ option: "--require-stack", value: "no" }] : []),
    ...settings.unreachableNodes.map((value) => ({ option: "--unreachable-nodes", value })),
    ...settings.namespaces.map((value) => ({ option: "--namespace", value })),
    ...(settings.podsTakenAt === undefined ? [] : [{ option: "--pods-taken-at", value: formatTimestamp(settings.podsTakenAt) }]),
  ];
}

async function askToRemove(
  plan: SweepReport,
  settings: Settings,
  backends: readonly BackendSettings[],
  { stderr, stop }: Surroundings,
  clear: () => void,
): Promise<Answer> {
  clear();
  stderr.write(renderTable(plan, { width: widthOf(stderr), paint: painterFor(stderr), verbose: settings.verbose }));
  const { confirm, isCancel } = await import("@clack/prompts");
  const ask = async (message: string): Promise<boolean> => {
    const answer = await confirm({ message, initialValue: false, output: stderr, signal: stop });
    return !isCancel(answer) && answer;
  };
  const unstated = plan.backends.filter((_, index) => backends[index]?.exclusive !== true).map(({ name }) => name);
  const clusters = plan.clusters.map(({ name }) => name).join(", ");
  if (unstated.length > 0 && !(await ask(`Does every pod that writes to ${unstated.join(", ")} run in ${clusters}? (--exclusive says so without asking)`)))
    return { kind: "no" };
  if (!(await ask(`Remove ${plan.summary.wouldRemove} stale ${plan.summary.wouldRemove === 1 ? "lock" : "locks"}?`))) return { kind: "no" };
  return { kind: "yes", overrides: unstated.map((value) => ({ option: "--exclusive", value })) };
}
