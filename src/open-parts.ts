import { openBackend, redactUrl } from "./backends/open.ts";
import type { BackendSettings, Settings } from "./config.ts";
import { MILLISECOND, type Nanoseconds } from "./core/time.ts";
import { describeError, JanitorError } from "./errors.ts";
import type { ClusterSource } from "./kubernetes/cluster-source.ts";
import { openClusters } from "./kubernetes/open-clusters.ts";
import { openSnapshot } from "./kubernetes/snapshot.ts";
import { openAuditLog } from "./output/open-audit-log.ts";
import type { OpenedBackend } from "./sweep.ts";

/** Opens the clusters of the settings, or the file that takes their place. Throws `cluster-not-configured`, `snapshot-invalid` and `usage`. */
export async function openSources(settings: Settings, env: Readonly<Record<string, string | undefined>>): Promise<readonly ClusterSource[]> {
  if (settings.podsTakenAt !== undefined && settings.podsFrom === undefined)
    throw new JanitorError("usage", "--pods-taken-at goes with --pods-from", {
      hint: "Name the file that kubectl wrote with --pods-from, or leave --pods-taken-at out.",
    });
  if (settings.podsFrom !== undefined) {
    if (settings.kubeconfig !== undefined || settings.contexts.length > 0 || settings.namespaces.length > 0) {
      throw new JanitorError("usage", "--pods-from takes the place of a cluster, so --kubeconfig, --context and --namespace do not go with it", {
        hint: "Leave them out, or leave out --pods-from; a variable or the configuration file may have set them, which 'config print' shows.",
      });
    }
    if (settings.probeProcesses) {
      throw new JanitorError("usage", "--probe-processes does not go with --pods-from: no command can be run in a pod of a file", {
        hint: "Leave out one of the two.",
      });
    }
    const writing = [...(settings.requeueStacks ? ["--requeue-stacks"] : []), ...(settings.stackEvents ? ["--stack-events"] : [])];
    if (writing.length > 0) {
      throw new JanitorError(
        "usage",
        `${writing.join(" and ")} ${writing.length === 1 ? "does" : "do"} not go with --pods-from: no Stack of a file can be told anything`,
      );
    }
    return [await openSnapshot({ path: settings.podsFrom, ...(settings.podsTakenAt === undefined ? {} : { takenAt: settings.podsTakenAt }) })];
  }
  return openClusters({
    ...(settings.kubeconfig === undefined ? {} : { kubeconfig: settings.kubeconfig }),
    contexts: settings.contexts,
    namespaces: settings.namespaces,
    env,
    requestTimeout: toMilliseconds(settings.requestTimeout),
    requireExplicitContext: settings.delete,
    now: () => Date.now(),
  });
}

/** Opens one backend with its audit log. Throws only for a URL that can never work; any other failure is part of the report. */
export async function openWithAudit({ url, env }: BackendSettings, settings: Settings): Promise<OpenedBackend> {
  try {
    const backend = await openBackend({ url, env, requestTimeout: toMilliseconds(settings.requestTimeout), now: () => Date.now() });
    return { kind: "open", backend, audit: openAuditLog(settings.auditLog, backend) };
  } catch (error) {
    const wrapped =
      error instanceof JanitorError
        ? error
        : new JanitorError("backend-failed", `${redactUrl(url)} could not be opened: ${describeError(error)}`, { cause: error });
    if (wrapped.exitCode === 2) throw wrapped;
    return { kind: "failed", name: redactUrl(url), error: wrapped };
  }
}

/** Closes everything that a command had opened. */
export async function closeParts(clusters: readonly ClusterSource[], opened: readonly OpenedBackend[]): Promise<void> {
  await Promise.all([
    ...clusters.map((cluster) => cluster.close()),
    ...opened.map(async (item) => (item.kind === "open" ? await item.backend.close() : undefined)),
  ]);
}

/** A length of time in milliseconds, as timers take it. */
export function toMilliseconds(length: Nanoseconds): number {
  return Number(length / MILLISECOND);
}
