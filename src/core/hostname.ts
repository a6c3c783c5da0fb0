import type { Node, Pod } from "./cluster.ts";

/** The kernel cuts a hostname at 63 characters; the kubelet then removes what may not end it (pkg/kubelet/kubelet_pods.go, `GeneratePodHostNameAndDomain`; pkg/kubelet/util `GetNodenameForKernel`). */
const LONGEST_HOSTNAME = 63;

/** What of a pod says which hostname its processes have. */
export type PodIdentity = Pick<Pod, "name" | "nodeName" | "hostNetwork" | "hostname" | "hostnameOverride">;

/** The short hostname that a pod gives its processes, lower case; undefined with `hostNetwork`, where it is the node's. */
export function podHostname(pod: PodIdentity): string | undefined {
  if (pod.hostNetwork) return undefined;
  if (pod.hostnameOverride !== undefined && pod.hostnameOverride !== "") return pod.hostnameOverride.toLowerCase();
  const name = pod.hostname !== undefined && pod.hostname !== "" ? pod.hostname : pod.name;
  return name
    .slice(0, LONGEST_HOSTNAME)
    .replace(/[-.]+$/, "")
    .toLowerCase();
}

/**
 * True when processes of the pod may have the given hostname. The cluster's domain is not known, so a fully qualified name is
 * compared by its beginning: whatever follows the pod's own name and a dot matches, which can only add a candidate.
 */
export function mayHaveHostname(pod: PodIdentity, lockHostname: string, nodes: readonly Node[]): boolean {
  const wanted = lockHostname.toLowerCase();
  const own = podHostname(pod);
  if (own === undefined) return hostnamesOfNode(pod.nodeName, nodes).some((name) => sameMachine(name, wanted));
  return wanted === own || wanted.startsWith(`${own}.`);
}

/** The node whose name or address a lock's hostname is, if any: no pod is ever called like that. */
export function findNodeNamed(lockHostname: string, nodes: readonly Node[]): Node | undefined {
  const wanted = lockHostname.toLowerCase();
  return nodes.find((node) => node.hostnames.some((name) => sameMachine(name, wanted)));
}

function hostnamesOfNode(nodeName: string | undefined, nodes: readonly Node[]): readonly string[] {
  if (nodeName === undefined) return [];
  return nodes.find((node) => node.name === nodeName)?.hostnames ?? [nodeName];
}

function sameMachine(nodeHostname: string, wanted: string): boolean {
  const name = nodeHostname.toLowerCase();
  if (isAddress(name) || isAddress(wanted)) return name === wanted;
  return name === wanted || firstLabel(name) === firstLabel(wanted);
}

function isAddress(name: string): boolean {
  return /^[\d.]+$/.test(name) || name.includes(":");
}

function firstLabel(hostname: string): string {
  const dot = hostname.indexOf(".");
  return dot === -1 ? hostname : hostname.slice(0, dot);
}
