import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { styleText } from "node:util";

import { openBackend, redactUrl } from "./backends/open.ts";
import { resolveBackends, resolveOwners, type BackendSettings, type Settings } from "./config.ts";
import type { RuleSettings } from "./core/decide.ts";
import type { OverrideUsed, SweepReport } from "./core/report.ts";
import { formatTimestamp, fromMilliseconds, MILLISECOND, type Nanoseconds } from "./core/time.ts";
import { describeError, JanitorError } from "./errors.ts";
import type { ClusterSource } from "./kubernetes/cluster-source.ts";
import { openClusters } from "./kubernetes/open-clusters.ts";
import { openSnapshot } from "./kubernetes/snapshot.ts";
import type { Log } from "./output/log.ts";
import { openAuditLog } from "./output/open-audit-log.ts";
import { openProgressLine } from "./output/progress.ts";
import { renderTable } from "./output/table.ts";
import { sweep, type Answer, type OpenedBackend } from "./sweep.ts";
import { VERSION } from "./version.ts";

/** What a command gets from the process it runs in. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly interactive: boolean;
  /** Aborted by SIGINT or SIGTERM. */
  readonly stop: AbortSignal;
  readonly log: Log;
}

/** Runs `sweep` with its settings and gives the exit code. Throws a `JanitorError` for wrong usage. */
export async function runSweep(settings: Settings, surroundings: Surroundings): Promise<number> {
  const { env, stop, stderr } = surroundings;
  const backends = resolveBackends(settings, env);
  const asking = surroundings.interactive && settings.delete && !settings.yes;
  refuseUnsafe(settings, backends, asking);
  const now = (): number => Date.now();
  const clusters = await openSources(settings, env, now);
  const opened = await Promise.all(backends.map((backend) => open(backend, settings, now)));
  const progress = openProgressLine(stderr, settings.quiet, now);
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
        now: () => fromMilliseconds(now()),
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
    await writeOutputs(report, settings, surroundings);
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
  if (settings.podsTakenAt !== undefined && settings.podsFrom === undefined) throw new JanitorError("usage", "--pods-taken-at goes with --pods-from");
  if (settings.podsFrom !== undefined && (settings.kubeconfig !== undefined || settings.contexts.length > 0 || settings.namespaces.length > 0)) {
    throw new JanitorError("usage", "--pods-from takes the place of a cluster, so --kubeconfig, --context and --namespace do not go with it");
  }
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

async function openSources(settings: Settings, env: Surroundings["env"], now: () => number): Promise<readonly ClusterSource[]> {
  if (settings.podsFrom !== undefined) {
    const snapshot = await openSnapshot({ path: settings.podsFrom, ...(settings.podsTakenAt === undefined ? {} : { takenAt: settings.podsTakenAt }) });
    return [snapshot];
  }
  return openClusters({
    ...(settings.kubeconfig === undefined ? {} : { kubeconfig: settings.kubeconfig }),
    contexts: settings.contexts,
    namespaces: settings.namespaces,
    env,
    requestTimeout: toMilliseconds(settings.requestTimeout),
    requireExplicitContext: settings.delete,
    now,
  });
}

async function open({ url, env }: BackendSettings, settings: Settings, now: () => number): Promise<OpenedBackend> {
  try {
    const backend = await openBackend({ url, env, requestTimeout: toMilliseconds(settings.requestTimeout), now });
    return { kind: "open", backend, audit: openAuditLog(settings.auditLog, backend) };
  } catch (error) {
    const wrapped =
      error instanceof JanitorError
        ? error
        : new JanitorError("backend-failed", `${redactUrl(url)} could not be opened: ${describeError(error)}`, { cause: error });
    // A URL that can never work is wrong usage, whatever the other backends say.
    if (wrapped.exitCode === 2) throw wrapped;
    return { kind: "failed", name: redactUrl(url), error: wrapped };
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

async function writeOutputs(report: SweepReport, settings: Settings, { stdout, log }: Surroundings): Promise<void> {
  for (const { format, file } of settings.outputs.map((output) => ({ file: undefined, ...output }))) {
    const toTerminal = file === undefined;
    const text =
      format === "json"
        ? `${JSON.stringify(report, undefined, 2)}\n`
        : renderTable(report, {
            width: toTerminal ? widthOf(stdout) : Infinity,
            paint: toTerminal ? painterFor(stdout) : (_, plain) => plain,
            verbose: settings.verbose,
          });
    if (file === undefined) {
      stdout.write(text);
      continue;
    }
    try {
      await writeFile(file, text);
    } catch (error) {
      // What was removed is in the audit log; a report that cannot be written must not hide it.
      await log("error", `the report could not be written to ${file}: ${describeError(error)}`);
      throw new JanitorError("output-failed", `the report could not be written to ${file}`, { cause: error });
    }
  }
  if (report.dryRun && report.summary.wouldRemove > 0 && !report.overrides.some(({ option }) => option === "--exclusive")) {
    await log("info", `a removal also needs --exclusive: your word that no other cluster writes to ${report.backends.map(({ name }) => name).join(", ")}`);
  }
}

function widthOf(stream: NodeJS.WriteStream): number {
  return stream.isTTY ? Math.max(stream.columns, 40) : Infinity;
}

function painterFor(stream: NodeJS.WriteStream): (style: "red" | "green" | "yellow" | "cyan" | "dim" | "bold", text: string) => string {
  return (style, text) => styleText(style, text, { stream });
}

function toMilliseconds(length: Nanoseconds): number {
  return Number(length / MILLISECOND);
}
