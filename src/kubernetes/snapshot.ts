import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";

import * as z from "zod";

import type { ClusterObservation, Node, Pod, StackList, StackResource } from "../core/cluster.ts";
import { podHostname } from "../core/hostname.ts";
import { formatTimestamp, parseTimestamp, SECOND, type EpochNanoseconds } from "../core/time.ts";
import { describeError, JanitorError } from "../errors.ts";
import type { ClusterSource } from "./cluster-source.ts";
import { matchHostnames } from "./match-hostnames.ts";
import { readNode, readPod, readStack } from "./read-objects.ts";

/** The command whose output a snapshot is. */
const KUBECTL = "kubectl get pods,stacks.pulumi.com,nodes -A -o json";

const anyList = z.object({
  kind: z.string().regex(/List$/),
  metadata: z.object({ continue: z.string().nullish(), remainingItemCount: z.number().nullish() }).nullish(),
  items: z.array(z.looseObject({ kind: z.string().optional() })),
});

/**
 * Opens a file that kubectl wrote, in place of a cluster. `takenAt` is the user's word for when kubectl began; without it the latest time inside the
 * pods is what is sure: kubectl asks for one kind after the other, so a node's time may be later than the list of pods. Throws `snapshot-invalid`.
 */
export async function openSnapshot({ path, takenAt }: { readonly path: string; readonly takenAt?: EpochNanoseconds }): Promise<ClusterSource> {
  const content = await readJson(path);
  if (takenAt !== undefined) await refuseImpossibleTime(path, takenAt);
  const list = anyList.safeParse(content);
  if (!list.success) throw invalid(path, "it is no list of Kubernetes objects");
  const defaultKind = list.data.kind.replace(/List$/, "");
  refusePartOfList(path, list.data);
  const itemsOf = (...kinds: readonly string[]): readonly unknown[] => list.data.items.filter(({ kind = defaultKind }) => kinds.includes(kind));
  const read = readItems(path, itemsOf);
  const source = { kind: "snapshot", takenAt: takenAt ?? findLatestTime(itemsOf("Pod")), stated: takenAt !== undefined } as const;
  const name = basename(path);
  // kubectl leaves out a kind of which there is none, so a missing Stack may be one that was not asked for.
  const stacks: StackList =
    read.stacks.length > 0
      ? { kind: "listed", stacks: read.stacks }
      : { kind: "unlisted", problem: `the file holds no Stacks; write it with '${KUBECTL}', or use --require-stack=no` };
  return {
    name,
    kind: "snapshot",
    observe: (hostnames): Promise<ClusterObservation> =>
      Promise.resolve({
        name,
        source,
        pods: {
          kind: "complete",
          total: read.pods.length,
          pods: read.pods.filter(matchHostnames(hostnames, read.nodes)),
        },
        nodes:
          read.nodes.length > 0 ? { kind: "listed", nodes: read.nodes } : { kind: "unlisted", problem: `the file holds no nodes; write it with '${KUBECTL}'` },
        stacks,
      }),
    findNamesakes: () => Promise.resolve([]),
    listStacks: () => Promise.resolve(stacks),
    whoAmI: () => Promise.resolve(undefined),
    listHostnames: () => Promise.resolve(read.pods.flatMap((pod) => podHostname(pod) ?? [])),
    close: () => Promise.resolve(),
  };
}

/** A file that was last written before the time at which kubectl is said to have begun is an old one. */
async function refuseImpossibleTime(path: string, takenAt: EpochNanoseconds): Promise<void> {
  const { mtimeNs } = await stat(path, { bigint: true });
  // Some file systems keep whole seconds.
  if (mtimeNs + SECOND >= takenAt) return;
  throw new JanitorError(
    "snapshot-invalid",
    `the snapshot ${path} was written at ${formatTimestamp(mtimeNs)}, before kubectl is said to have begun (${formatTimestamp(takenAt)})`,
    {
      hint: "Give --pods-taken-at the time before that very run of kubectl.",
    },
  );
}

/**
 * One page of a list, as `kubectl get --raw` writes it, and objects that are not looked at would make pods seem absent: kubectl's own List is whole,
 * flat, and has a kind in each object.
 */
function refusePartOfList(path: string, { kind, metadata, items }: z.infer<typeof anyList>): void {
  if ((metadata?.continue ?? "") !== "" || (metadata?.remainingItemCount ?? 0) > 0) throw invalid(path, "it is one page of a longer list");
  if (kind === "List" && items.some((item) => item.kind === undefined)) throw invalid(path, "one of its objects does not say of what kind it is");
  if (items.some((item) => item.kind?.endsWith("List") === true)) throw invalid(path, "it is a list of lists");
}

interface SnapshotItems {
  readonly pods: readonly Pod[];
  readonly nodes: readonly Node[];
  readonly stacks: readonly StackResource[];
}

function readItems(path: string, itemsOf: (...kinds: readonly string[]) => readonly unknown[]): SnapshotItems {
  try {
    return { pods: itemsOf("Pod").map(readPod), nodes: itemsOf("Node").map(readNode), stacks: itemsOf("Stack", "Workspace").map(readStack) };
  } catch (error) {
    throw invalid(path, `one of its objects could not be read: ${describeError(error).slice(0, 200)}`, error);
  }
}

async function readJson(path: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw invalid(path, describeError(error), error);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalid(path, "it is no JSON, cut off perhaps", error);
  }
}

function invalid(path: string, problem: string, cause?: unknown): JanitorError {
  return new JanitorError("snapshot-invalid", `the snapshot ${path} is of no use: ${problem}`, {
    hint: `Write it with '${KUBECTL} > ${basename(path)}'.`,
    ...(cause === undefined ? {} : { cause }),
  });
}

/** Fields that tell what is to come, or a person's wish: no proof that the file is later. */
const NOT_OF_THE_PAST: ReadonlySet<string> = new Set(["deletionTimestamp", "annotations", "labels", "spec"]);

/** The latest time that the API server or a kubelet wrote into any of the objects: their list cannot be older. */
function findLatestTime(value: unknown): EpochNanoseconds {
  if (typeof value === "string") return parseTimestamp(value) ?? 0n;
  if (typeof value !== "object" || value === null) return 0n;
  let latest = 0n;
  for (const [name, part] of Object.entries<unknown>({ ...value })) {
    const found = NOT_OF_THE_PAST.has(name) ? 0n : findLatestTime(part);
    if (found > latest) latest = found;
  }
  return latest;
}
