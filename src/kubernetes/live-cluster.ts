import * as z from "zod";

import type { ClusterObservation, Node, NodeList, Pod, PodList, StackList, StackResource } from "../core/cluster.ts";
import { podHostname } from "../core/hostname.ts";
import { quoteUntrusted } from "../core/text.ts";
import type { ApiClient } from "./api-client.ts";
import type { ClusterSign, ClusterSource } from "./cluster-source.ts";
import { followObjects, type ChangeType, type Follower } from "./follow-objects.ts";
import { listObjects, type ListedResource, type ListResult } from "./list-objects.ts";
import { matchHostnames } from "./match-hostnames.ts";
import { findMissingExecVerbs, probeProcesses } from "./probe-processes.ts";
import { readNode, readPod, readPodIdentity, readStack } from "./read-objects.ts";
import { readFailure, readStopped } from "./read-signs.ts";
import { reviewAccess } from "./review-access.ts";
import { findMissingRight, requeueStack, writeEvent } from "./tell-stacks.ts";

/** The janitor's own pod, which must be in every whole list of the cluster it runs in. */
export interface OwnPod {
  /** Undefined where it cannot be told: then a pod of that name in any namespace will do. */
  readonly namespace: string | undefined;
  readonly name: string;
}

export interface LiveClusterOptions {
  readonly name: string;
  readonly client: ApiClient;
  /** Only these namespaces are asked; all when empty. */
  readonly namespaces: readonly string[];
  readonly ownPod: OwnPod | undefined;
  /** Objects in a page. */
  readonly pageSize?: number;
}

/** A resource in one namespace, or in all. */
interface Place extends ListedResource {
  readonly namespace?: string;
}

const PAGE_SIZE = 500;

// What may be sent as a pod's name (https://kubernetes.io/docs/concepts/overview/working-with-objects/names/). An empty one would ask for a list.
const POD_NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

const selfReview = z.object({ status: z.object({ userInfo: z.object({ username: z.string() }) }) });
const uidObject = z.object({ metadata: z.object({ uid: z.string() }) });

/** A cluster behind its API server. Only reads are sent, with a probe the one command that reads, and what a Stack is to be told after a removal. */
export function openLiveCluster({ name, client, namespaces, ownPod, pageSize = PAGE_SIZE }: LiveClusterOptions): ClusterSource {
  const query = { limit: String(pageSize) };
  const within = (path: string, resource: string): readonly Place[] =>
    namespaces.length === 0
      ? [{ path, name: resource }]
      : namespaces.map((namespace) => ({
          namespace,
          path: path.replace(/\/([a-z]+)$/, `/namespaces/${namespace}/$1`),
          name: `${resource} in namespace ${namespace}`,
        }));
  const podPaths = within("/api/v1/pods", "pods");
  const stackPaths = within(STACKS_PATH, STACKS);

  const listNodes = async (signal: AbortSignal): Promise<NodeList> => {
    let nodes: Node[] = [];
    const visit = { onStart: () => (nodes = []), onItem: (item: unknown) => nodes.push(readNode(item)) };
    const result = await listObjects(client, { path: "/api/v1/nodes", name: "nodes" }, query, visit, signal);
    return result.kind === "complete" ? { kind: "listed", nodes } : { kind: "unlisted", problem: problemOf(result) };
  };

  const listPods = async (hostnames: ReadonlySet<string>, nodes: readonly Node[], signal: AbortSignal): Promise<PodList> => {
    const mayMatch = matchHostnames(hostnames, nodes);
    const kept: Pod[] = [];
    let total = 0;
    let sawOwnPod = false;
    for (const resource of podPaths) {
      let found: Pod[] = [];
      let count = 0;
      let foundOwnPod = false;
      const visit = {
        // What an attempt saw that was given up does not count, the canary included.
        onStart: () => {
          found = [];
          count = 0;
          foundOwnPod = false;
        },
        onItem: (item: unknown) => {
          count += 1;
          const pod = readPodIdentity(item);
          foundOwnPod ||= pod.name === ownPod?.name && (ownPod.namespace ?? pod.namespace) === pod.namespace;
          if (mayMatch(pod)) found.push(readPod(item));
        },
      };
      const result = await listObjects(client, resource, query, visit, signal);
      kept.push(...found);
      total += count;
      sawOwnPod ||= foundOwnPod;
      if (result.kind !== "complete") return { kind: "incomplete", problem: problemOf(result), pods: kept, total };
    }
    const wanted = ownPod !== undefined && (namespaces.length === 0 || (ownPod.namespace !== undefined && namespaces.includes(ownPod.namespace)));
    if (wanted && !sawOwnPod) {
      const name = ownPod.namespace === undefined ? ownPod.name : `${ownPod.namespace}/${ownPod.name}`;
      const problem = `the janitor's own pod ${quoteUntrusted(name)} is not in the list, so others may be missing too (are POD_NAME and POD_NAMESPACE set from the downward API?)`;
      return { kind: "incomplete", problem, pods: kept, total };
    }
    return { kind: "complete", pods: kept, total };
  };

  /** Something of each pod that can be seen, of whole lists and of parts alike. */
  const listEach = async <Value>(parameters: Readonly<Record<string, string>>, read: (item: unknown) => Value, signal: AbortSignal): Promise<Value[]> => {
    const all: Value[] = [];
    for (const resource of podPaths) {
      let found: Value[] = [];
      await listObjects(client, resource, parameters, { onStart: () => (found = []), onItem: (item) => found.push(read(item)) }, signal);
      all.push(...found);
    }
    return all;
  };

  const listStacks = async (signal: AbortSignal): Promise<StackList> => {
    let stacks: StackResource[] = [];
    let withoutWorkspaces: string | undefined;
    for (const [path, resource] of STACK_RESOURCES) {
      for (const each of within(path, resource)) {
        const before = stacks;
        const visit = { onStart: () => (stacks = [...before]), onItem: (item: unknown) => stacks.push(readStack(item)) };
        const result = await listObjects(client, each, query, visit, signal);
        // Without the right to see Workspaces the Stacks alone may account for a lock; without Stacks nothing is known.
        if (result.kind === "failed" && resource === STACKS) return { kind: "unlisted", problem: result.problem };
        if (result.kind === "failed") withoutWorkspaces = result.problem;
      }
    }
    return { kind: "listed", stacks, ...(withoutWorkspaces === undefined ? {} : { withoutWorkspaces }) };
  };

  return {
    name,
    kind: "live",
    observe: async (hostnames, signal): Promise<ClusterObservation> => {
      // Nodes first: a pod with hostNetwork has its node's name. A node that falls silent while the pods are listed is seen at the second look.
      const nodes = await listNodes(signal);
      const [pods, stacks, uid] = await Promise.all([
        listPods(hostnames, nodes.kind === "listed" ? nodes.nodes : [], signal),
        listStacks(signal),
        readUid(client, signal),
      ]);
      const clockOffset = client.clockOffset;
      return {
        name,
        source: { kind: "live" },
        pods,
        nodes,
        stacks,
        ...(uid === undefined ? {} : { uid }),
        ...(clockOffset === undefined ? {} : { clockOffset }),
        ...(namespaces.length === 0 ? {} : { namespaces }),
      };
    },
    findNamesakes: async (hostname, signal) => {
      if (!POD_NAME.test(hostname)) return [];
      // What could not be seen here is asked for again, in the whole list, which then tells what is missing.
      return await listEach({ fieldSelector: `metadata.name=${hostname}` }, readPod, signal);
    },
    probe: (pod, signal) => probeProcesses(client, pod, signal),
    findMissingExecVerbs: (namespace, signal) => findMissingExecVerbs(client, namespace, signal),
    requeueStack: (stack, value, signal) => requeueStack(client, stack, value, signal),
    writeEvent: (stack, event, at, signal) => writeEvent(client, stack, event, at, signal),
    findMissingRight: (right, signal) => findMissingRight(client, right, namespaces, signal),
    listStacks,
    whoAmI: async (signal) => {
      const answer = await client.post(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" },
        signal,
      );
      const parsed = answer.kind === "ok" ? selfReview.safeParse(answer.body) : undefined;
      return parsed?.success === true ? parsed.data.status.userInfo.username : undefined;
    },
    listHostnames: async (signal) => {
      const hostnames = await listEach(query, (item) => podHostname(readPod(item)), signal);
      return hostnames.filter((hostname) => hostname !== undefined);
    },
    follow: async (onSign, signal) => {
      const follow = async (
        resource: ListedResource,
        read: (object: unknown, type: ChangeType) => ClusterSign | undefined,
        onLost: Follower["onLost"],
      ): Promise<void> => {
        const onChange: Follower["onChange"] = (object, type) => {
          const sign = read(object, type);
          if (sign !== undefined) onSign(sign);
        };
        const what = resource.name;
        const onFollowed = (): void => onSign({ kind: "followed", what });
        const onUnfollowed: Follower["onUnfollowed"] = (problem, denied) => onSign({ kind: "unfollowed", what, problem, denied });
        await followObjects(client, resource, { onChange, onFollowed, onUnfollowed, onLost }, signal);
      };
      await Promise.all([
        ...podPaths.map((resource) => follow(resource, readStopped, (problem) => onSign({ kind: "lost", problem }))),
        // What a Stack would have told, the interval finds as well.
        ...stackPaths.map((resource) => follow(resource, readFailure, () => undefined)),
      ]);
    },
    reviewFollowing: async (signal) => {
      const review = async ({ name: what, namespace }: Place, group: string, resource: string): ReturnType<NonNullable<ClusterSource["reviewFollowing"]>> => {
        const right = { verb: "watch", group, resource, ...(namespace === undefined ? {} : { namespace }) };
        return [{ what, allowed: await reviewAccess(client, right, signal) }];
      };
      const reviews = [...podPaths.map((place) => review(place, "", "pods")), ...stackPaths.map((place) => review(place, "pulumi.com", "stacks"))];
      return (await Promise.all(reviews)).flat();
    },
    close: () => client.close(),
  };
}

// The operator's kinds; v2 has both (https://github.com/pulumi/pulumi-kubernetes-operator).
const STACKS = "stacks.pulumi.com";
const STACKS_PATH = "/apis/pulumi.com/v1/stacks";
const STACK_RESOURCES: readonly (readonly [path: string, resource: string])[] = [
  [STACKS_PATH, STACKS],
  ["/apis/auto.pulumi.com/v1alpha1/workspaces", "workspaces.auto.pulumi.com"],
];

function problemOf(result: Exclude<ListResult, { kind: "complete" }>): string {
  return result.kind === "failed" ? result.problem : "the API server does not know this kind";
}

/** What a cluster is known by; undefined where the namespace may not be read. */
async function readUid(client: ApiClient, signal: AbortSignal): Promise<string | undefined> {
  const answer = await client.get("/api/v1/namespaces/kube-system", {}, signal);
  if (answer.kind !== "ok") return undefined;
  const parsed = uidObject.safeParse(answer.body);
  return parsed.success ? parsed.data.metadata.uid : undefined;
}
