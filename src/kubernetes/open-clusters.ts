import { hostname } from "node:os";

import { ApiClient } from "./api-client.ts";
import type { ClusterSource } from "./cluster-source.ts";
import { findClusters, type AccessOptions, type ClusterAccess } from "./kubeconfig.ts";
import { openLiveCluster, type OwnPod } from "./live-cluster.ts";

export interface OpenClustersOptions extends AccessOptions {
  readonly namespaces: readonly string[];
  /** Milliseconds. */
  readonly requestTimeout: number;
  readonly now: () => number;
}

/**
 * Opens the clusters that are configured: one for each context, or the one this pod runs in. No request is sent and no client loaded before
 * the first look. Throws `cluster-not-configured`.
 */
export function openClusters(options: OpenClustersOptions): readonly ClusterSource[] {
  const { namespaces, env, requestTimeout, now } = options;
  const credentialTimeout = limitCredentials(requestTimeout, process.stdin.isTTY);
  return findClusters(options).map((access) => {
    const ownPod = access.kind === "in-cluster" ? findOwnPod(access, env) : undefined;
    return openLiveCluster({
      name: access.kind === "context" ? access.context : "in-cluster",
      client: new ApiClient({ access, env, requestTimeout, credentialTimeout, now }),
      namespaces,
      ownPod,
    });
  });
}

/** Milliseconds that a person may take to log in where a credential plugin asks for it. */
const LONGEST_LOGIN = 300_000;

/** How long credentials may take, in milliseconds: as long as any request, and at a terminal as long as a person. */
export function limitCredentials(requestTimeout: number, atTerminal: boolean): number {
  return atTerminal ? Math.max(requestTimeout, LONGEST_LOGIN) : requestTimeout;
}

/** The pod that the janitor runs in, by the downward API; a pod's own hostname is its name unless something changed it. There always is one to look for. */
function findOwnPod({ namespace }: Extract<ClusterAccess, { kind: "in-cluster" }>, env: OpenClustersOptions["env"]): OwnPod {
  const isGiven = (value: string | undefined): boolean => value !== undefined && value !== "";
  return { namespace: [env["POD_NAMESPACE"], namespace].find(isGiven), name: [env["POD_NAME"], env["HOSTNAME"]].find(isGiven) ?? hostname() };
}
