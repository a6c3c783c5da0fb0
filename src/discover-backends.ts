import type { StackListOfCluster } from "./core/cluster.ts";
import { describeStackUrl, judgeStackUrl, type DiscoveryRules } from "./core/discover.ts";
import { formatCount, joinSome, quoteUntrusted } from "./core/text.ts";
import { describeError } from "./errors.ts";
import type { ClusterSource } from "./kubernetes/cluster-source.ts";

/** What the Stacks of the clusters gave. Nothing is opened yet. */
export interface Discovery {
  readonly stackLists: readonly StackListOfCluster[];
  /** Each once, in a stable order, with the Stacks that name it, fit to be shown. */
  readonly backends: readonly DiscoveredBackend[];
  /** What was not admitted, in words fit to be shown. */
  readonly notes: readonly string[];
  /** What would have been admitted, but is too much. */
  readonly refusals: readonly string[];
}

export interface DiscoveredBackend {
  readonly url: string;
  readonly stacks: readonly string[];
}

/** More backends are not opened: whoever may create Stacks could name any number of them. */
const MOST_BACKENDS = 200;

/** More sentences about what was not admitted nobody reads. */
const MOST_NOTES = 20;

/** Reads the Stacks of the clusters, and decides which of the backends that they name are to be swept. Opens none of them, and never throws for what a cluster refuses. */
export async function discoverBackends(clusters: readonly ClusterSource[], rules: DiscoveryRules, signal: AbortSignal): Promise<Discovery> {
  const stackLists = await Promise.all(clusters.map((cluster) => listStacks(cluster, signal)));
  if (signal.aborted) return { stackLists: [], backends: [], notes: ["the run was stopped before the Stacks were known"], refusals: [] };
  const admitted = new Map<string, string[]>();
  const refused = new Map<string, string[]>();
  const add = (map: Map<string, string[]>, key: string, stack: string): void => {
    const stacks = map.get(key);
    if (stacks === undefined) map.set(key, [stack]);
    else stacks.push(stack);
  };
  for (const { list } of stackLists) {
    for (const { namespace, name, backend } of list.kind === "listed" ? list.stacks : []) {
      if (backend === undefined) continue;
      const stack = quoteUntrusted(`${namespace}/${name}`);
      const decision = judgeStackUrl(backend, rules);
      if (decision.kind === "admitted") add(admitted, decision.url, stack);
      else if (decision.kind === "refused") add(refused, `${describeStackUrl(backend)} ${decision.problem}`, stack);
    }
  }
  const backends = Array.from(admitted, ([url, stacks]) => ({ url, stacks })).toSorted((a, b) => (a.url < b.url ? -1 : 1));
  const tooMany = backends.length - MOST_BACKENDS;
  return {
    stackLists,
    backends: backends.slice(0, MOST_BACKENDS),
    notes: [...describeRefused(refused), ...describeEmpty(stackLists)],
    refusals:
      tooMany > 0
        ? [
            `${formatCount(tooMany, "backend")} of Stacks ${tooMany === 1 ? "was" : "were"} not swept: no more than ${MOST_BACKENDS} are discovered. Give them with --backend, or admit fewer with --discover-allow`,
          ]
        : [],
  };
}

async function listStacks(cluster: ClusterSource, signal: AbortSignal): Promise<StackListOfCluster> {
  try {
    return { cluster: cluster.name, list: await cluster.listStacks(signal) };
  } catch (error) {
    return {
      cluster: cluster.name,
      list: { kind: "unlisted", problem: describeError(error) },
    };
  }
}

/** Keys: what is shown of the URL, a space, what is wrong with it. */
function describeRefused(refused: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const sentences = Array.from(refused, ([key, stacks]) => {
    const space = key.indexOf(" ");
    return `the backend ${key.slice(0, space)} of ${describeStacks(stacks)} is not swept: ${key.slice(space + 1)}`;
  }).toSorted();
  const more = sentences.length - MOST_NOTES;
  return more > 0
    ? [...sentences.slice(0, MOST_NOTES), `${formatCount(more, "other backend")} of Stacks ${more === 1 ? "is" : "are"} not swept either`]
    : sentences;
}

/** The Stacks that name a backend, in a few words. */
export function describeStacks(stacks: readonly string[]): string {
  return `${stacks.length === 1 ? "Stack" : "Stacks"} ${joinSome(stacks)}`;
}

function describeEmpty(lists: readonly StackListOfCluster[]): readonly string[] {
  return lists.flatMap(({ cluster, list }) =>
    list.kind === "listed" && list.stacks.length === 0 ? [`cluster ${quoteUntrusted(cluster)} has no Stack, so none names a backend`] : [],
  );
}
