import pLimit from "p-limit";

import type { Backend } from "./backends/backend.ts";
import type { ClusterObservation } from "./core/cluster.ts";
import { decide, decideHeld, type Circumstances, type RuleSettings } from "./core/decide.ts";
import type { Judgement } from "./core/judgement.ts";
import type { ObservedLock } from "./core/lock.ts";
import { awaitsProbe, findProbeable } from "./core/probe-due.ts";
import type { EpochNanoseconds } from "./core/time.ts";
import type { ClusterSource } from "./kubernetes/cluster-source.ts";
import { Prober } from "./probe-pods.ts";

/** The locks of one backend, as read just before they are judged. */
export interface LocksOfBackend {
  readonly backend: Backend;
  readonly locks: readonly ObservedLock[];
  /** Keys of locks that a person put back. */
  readonly restored?: ReadonlySet<string>;
}

/** What the rules say of each lock, and what was seen of the clusters, if they had to be asked. */
export interface Judged {
  readonly judgements: ReadonlyMap<ObservedLock, Judgement>;
  readonly clusters: readonly ClusterObservation[];
}

/** What is needed to judge. */
export interface Jury {
  readonly clusters: readonly ClusterSource[];
  readonly rules: RuleSettings;
  readonly now: () => EpochNanoseconds;
}

const LOOKUPS_AT_ONCE = 8;

/**
 * Judges locks after they were read. The rules that need no cluster come first, then a look by name, which may only find holders; only
 * for what is left the whole list of each cluster. Without any lock left no cluster is asked at all. Where the rules want it, the processes of pods that seem to hold a
 * lock are looked at in between: what was not there after the lock was read does not come back.
 */
export async function judgeLocks(backends: readonly LocksOfBackend[], { clusters, rules, now }: Jury, signal: AbortSignal): Promise<Judged> {
  const circumstances = ({ backend, restored }: LocksOfBackend, seen: Circumstances["clusters"]): Circumstances => {
    const storeClockOffset = backend.clockOffset();
    return {
      backend: backend.identity,
      now: now(),
      ...(storeClockOffset === undefined ? {} : { storeClockOffset }),
      clusters: seen,
      settings: rules,
      restored: restored ?? new Set(),
    };
  };
  const known = new Map<ObservedLock, Judgement>();
  const judge = (decideOne: (lock: ObservedLock, backend: LocksOfBackend) => Judgement | undefined): void => {
    for (const backend of backends) {
      for (const lock of backend.locks) {
        const judgement = known.has(lock) ? undefined : decideOne(lock, backend);
        if (judgement !== undefined) known.set(lock, judgement);
      }
    }
  };
  const hostnamesLeft = (): ReadonlySet<string> =>
    new Set(
      backends.flatMap(({ locks }) => locks.flatMap((lock) => (known.has(lock) || lock.content.kind !== "readable" ? [] : [lock.content.owner.hostname]))),
    );

  const prober = new Prober(clusters, signal);
  const addProcesses = async (
    seen: readonly ClusterObservation[],
    decideOne: (lock: ObservedLock, circumstances: Circumstances) => Judgement | undefined,
  ): Promise<readonly ClusterObservation[]> => {
    if (rules.probe?.enabled !== true) return seen;
    const candidates = backends.flatMap((backend) =>
      backend.locks.flatMap((lock) => {
        const judgement = known.has(lock) ? undefined : decideOne(lock, circumstances(backend, seen));
        return judgement === undefined ? [] : findProbeable(lock, judgement, now(), rules.probe);
      }),
    );
    return await prober.addProcesses(seen, candidates);
  };

  // A file costs no request, so its nodes and Stacks may decide before the lock's age does.
  if (clusters.some(({ kind }) => kind === "live")) judge((lock, backend) => decide(lock, circumstances(backend, "not-asked")));
  if (hostnamesLeft().size > 0) {
    const namesakes = await addProcesses(await lookUp(clusters, hostnamesLeft(), signal), decideHeld);
    judge((lock, backend) => {
      const held = decideHeld(lock, circumstances(backend, namesakes));
      // Beside the holder may be pods of which only the whole list tells that they are gone, and then the holder's processes decide.
      return held === undefined || awaitsProbe(lock, held, now(), rules.probe) ? undefined : held;
    });
  }
  const left = hostnamesLeft();
  const listed = left.size === 0 ? [] : await Promise.all(clusters.map((cluster) => cluster.observe(left, signal)));
  const observed = await addProcesses(listed, decide);
  judge((lock, backend) => decide(lock, circumstances(backend, observed)));
  return { judgements: known, clusters: observed };
}

/** The pods that are called like one of the hostnames, as a list that proves nothing but what it holds. */
async function lookUp(clusters: readonly ClusterSource[], hostnames: ReadonlySet<string>, signal: AbortSignal): Promise<readonly ClusterObservation[]> {
  const limit = pLimit(LOOKUPS_AT_ONCE);
  const problem = "only looked up by name";
  return await Promise.all(
    clusters
      .filter(({ kind }) => kind === "live")
      .map(async (cluster): Promise<ClusterObservation> => {
        const pods = (await Promise.all(Array.from(hostnames, (hostname) => limit(() => cluster.findNamesakes(hostname, signal))))).flat();
        return {
          name: cluster.name,
          source: { kind: "live" },
          pods: { kind: "incomplete", problem, pods, total: pods.length },
          nodes: { kind: "unlisted", problem },
          stacks: { kind: "unlisted", problem },
        };
      }),
  );
}
