import pLimit from "p-limit";

import type { ClusterObservation, Pod, ProcessObservation } from "./core/cluster.ts";
import type { CandidateEvidence } from "./core/judgement.ts";
import type { ClusterSource } from "./kubernetes/cluster-source.ts";

const PROBES_AT_ONCE = 8;

/** Looks at the processes of pods, some at a time, and at each pod once. */
export class Prober {
  readonly #clusters: readonly ClusterSource[];
  readonly #signal: AbortSignal;
  readonly #limit = pLimit(PROBES_AT_ONCE);
  readonly #seen = new Map<string, Promise<ProcessObservation>>();

  constructor(clusters: readonly ClusterSource[], signal: AbortSignal) {
    this.#clusters = clusters;
    this.#signal = signal;
  }

  /** The same observations, with the processes of those pods that are candidates. */
  async addProcesses(observed: readonly ClusterObservation[], candidates: readonly CandidateEvidence[]): Promise<readonly ClusterObservation[]> {
    const wanted = new Set(candidates.map(({ cluster, namespace, pod, uid }) => nameOf(cluster, namespace, pod, uid)));
    if (wanted.size === 0) return observed;
    return await Promise.all(
      observed.map(async (observation): Promise<ClusterObservation> => {
        const source = this.#clusters.find(({ name }) => name === observation.name);
        const pods = await Promise.all(
          observation.pods.pods.map(async (pod) =>
            wanted.has(nameOf(observation.name, pod.namespace, pod.name, pod.uid)) ? await this.#addTo(pod, observation.name, source) : pod,
          ),
        );
        return { ...observation, pods: { ...observation.pods, pods } };
      }),
    );
  }

  async #addTo(pod: Pod, cluster: string, source: ClusterSource | undefined): Promise<Pod> {
    if (source?.probe === undefined) return pod;
    const probe = source.probe.bind(source);
    const name = nameOf(cluster, pod.namespace, pod.name, pod.uid);
    const seen = this.#seen.get(name) ?? this.#limit(() => probe(pod, this.#signal));
    this.#seen.set(name, seen);
    return { ...pod, processes: await seen };
  }
}

function nameOf(...parts: readonly string[]): string {
  return parts.join("\0");
}
