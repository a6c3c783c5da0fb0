import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import { composeRemover } from "./compose-sweep.ts";
import { resolveBackends, type Settings } from "./config.ts";
import { formatLine } from "./core/text.ts";
import { JanitorError } from "./errors.ts";
import { closeParts, openWithAudit } from "./open-parts.ts";
import { watchOwnPod } from "./own-pod.ts";
import { readOwnProcesses } from "./own-processes.ts";
import type { Surroundings } from "./surroundings.ts";

const PROC = "/proc";

/** Runs `watch --own-pod` until a signal ends it, and gives the exit code. Throws a `JanitorError` for wrong usage. */
export async function runOwnPod(settings: Settings, { env, stdout, stop, log }: Surroundings): Promise<number> {
  refuseClusterOptions(settings);
  const processes = await readOwnProcesses(PROC);
  // The first process of a PID namespace that a pod's containers share is the pod's own; alone, it is the janitor, or what started it.
  if (process.pid === 1 || !processes.some(({ pid, name }) => pid === 1 && name !== "node")) {
    throw new JanitorError("usage", "--own-pod sees no processes but its own", {
      hint: "Set shareProcessNamespace: true in the pod, so that the janitor sees the processes of its other containers.",
    });
  }
  const backends = await Promise.all(resolveBackends(settings, env).map((backend) => openWithAudit(backend, settings)));
  try {
    for (const backend of backends) if (backend.kind === "failed") throw backend.error;
    await log(
      "info",
      `watching the processes of ${hostname()}: ${settings.delete ? "the locks that they leave behind are removed" : "a dry run, nothing is removed without --delete"}`,
    );
    const { runId: _, ...remover } = composeRemover();
    await watchOwnPod({
      ...remover,
      delete: settings.delete,
      hostname: hostname(),
      skew: settings.clockSkew,
      backends,
      readProcesses: () => readOwnProcesses(PROC),
      newRunId: randomUUID,
      sleep: async (milliseconds, signal) => await sleep(milliseconds, undefined, { signal }),
      stop,
      onEvent: (event) => void stdout.write(formatLine(event)),
      onStopping: (held) => void log("info", `told to stop; locks that are watched until their processes end: ${held}`),
      onWarning: (message) => void log("warn", message),
    });
    await log("info", "stopped");
    return 0;
  } finally {
    await closeParts([], backends);
  }
}

/** A sidecar asks no cluster, so what says which, and how, would be without effect. Throws `usage`. */
function refuseClusterOptions(settings: Settings): void {
  const idle = [
    ...(settings.discover ? ["--discover"] : []),
    ...(settings.kubeconfig === undefined ? [] : ["--kubeconfig"]),
    ...(settings.contexts.length > 0 ? ["--context"] : []),
    ...(settings.namespaces.length > 0 ? ["--namespace"] : []),
    ...(settings.probeProcesses ? ["--probe-processes"] : []),
    ...(settings.owners.length > 0 ? ["--owner"] : []),
    ...(settings.requeueStacks ? ["--requeue-stacks"] : []),
    ...(settings.stackEvents ? ["--stack-events"] : []),
    ...(settings.checkPending ? ["--check-pending"] : []),
    ...(settings.listen === undefined ? [] : ["--listen"]),
  ];
  if (idle.length > 0) throw new JanitorError("usage", `--own-pod asks no cluster and serves nothing: leave out ${idle.join(", ")}`);
}
