import type { Pod, ProcessObservation } from "./cluster.ts";
import type { ProbeEvidence } from "./judgement.ts";
import type { Owner } from "./lock.ts";
import { escapeUntrusted, quoteUntrusted } from "./text.ts";
import { formatTimestamp, type Nanoseconds } from "./time.ts";

/** What the processes of a pod say of the one that wrote a lock. */
export type ProcessFinding = { readonly kind: "gone" | "may-live" | "unknown"; readonly message: string };

/**
 * Judges a probe. Gone only if every running container was seen, no process there has the pid or it is a zombie, and nothing
 * there may be the writer under another number: a pulumi that may be as old as the lock, or the pid as an inner number of a nested PID namespace.
 */
export function judgeProcesses(pod: Pod, observation: ProcessObservation, owner: Owner, skew: Nanoseconds): ProcessFinding {
  if (observation.kind === "could-not-look") return { kind: "unknown", message: `its processes could not be seen: ${escapeUntrusted(observation.problem)}` };
  const unseen = pod.containers.find(
    ({ name, state, containerId }) =>
      (state.kind === "running" || state.kind === "unreported") &&
      !observation.containers.some((seen) => seen.container === name && seen.containerId === containerId),
  );
  if (unseen !== undefined) return { kind: "unknown", message: `the processes of container ${quoteUntrusted(unseen.name)} were not seen` };
  if (observation.containers.length === 0) return { kind: "unknown", message: "no container's processes were seen" };
  const living = observation.containers.flatMap(({ processes }) => processes).filter(({ zombie }) => !zombie);
  for (const process of living) {
    const called = isPulumi(process.name);
    if (process.innerPids.includes(owner.pid)) return { kind: "may-live", message: `process ${process.pid} has the number ${owner.pid} in a nested namespace` };
    // A clock that was stepped moves every start time, so a process called pulumi is never "another process".
    if (process.pid === owner.pid && (called || process.startedAt <= owner.lockedAt + skew))
      return { kind: "may-live", message: `process ${owner.pid} still runs` };
    if (called && !isHelper(process.name) && process.startedAt <= owner.lockedAt + skew)
      return { kind: "may-live", message: `a process called ${quoteUntrusted(process.name)} there is as old as the lock` };
  }
  return { kind: "gone", message: `no process ${owner.pid} is left that could have written the lock` };
}

/** Processes that are told in a report or a record. */
const MOST_SUSPECTS = 20;

/** A look at a pod's processes, as it is reported and recorded with a lock. */
export function reportProbe(observation: ProcessObservation, owner: Owner): ProbeEvidence {
  if (observation.kind === "could-not-look") return { looked: false, problem: escapeUntrusted(observation.problem), containers: [], suspects: [] };
  const suspects = observation.containers.flatMap(({ container, processes }) =>
    processes
      .filter(({ pid, name, innerPids }) => pid === owner.pid || innerPids.includes(owner.pid) || isPulumi(name))
      .map(({ pid, name, zombie, startedAt, innerPids }) => ({ container, pid, name, zombie, startedAt: formatTimestamp(startedAt), innerPids })),
  );
  return {
    looked: true,
    containers: observation.containers.map(({ container, containerId, processes }) => ({ container, containerId, processes: processes.length })),
    suspects: suspects.slice(0, MOST_SUSPECTS),
  };
}

/**
 * What pulumi starts, and what starts pulumi: they take no lock, and write no state. A language host outlives a pulumi that is killed (seen on a real node), and operator v1 is
 * there for as long as its container. The kernel cuts a name at 15 characters.
 */
const HELPERS = ["pulumi-language", "pulumi-resource", "pulumi-analyzer", "pulumi-kubernet"];

function isHelper(name: string): boolean {
  return HELPERS.some((helper) => name.startsWith(helper));
}

function isPulumi(name: string): boolean {
  return name.startsWith("pulumi");
}
