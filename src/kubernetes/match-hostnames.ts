import type { Node } from "../core/cluster.ts";
import { mayHaveHostname, podHostname, type PodIdentity } from "../core/hostname.ts";

/**
 * Gives the test whether a pod may have one of the hostnames: the same as `mayHaveHostname` for each of them, in a time that does not grow with their
 * number, since a large cluster and a backend with years of locks would meet here.
 */
export function matchHostnames(hostnames: ReadonlySet<string>, nodes: readonly Node[]): (pod: PodIdentity) => boolean {
  const wanted = Array.from(hostnames);
  // A pod's own name matches what is equal to it, and what goes on with a dot.
  const beginnings = new Set(wanted.flatMap((hostname) => listBeginnings(hostname.toLowerCase())));
  // All pods with hostNetwork on one node have the same hostname.
  const ofNode = new Map<string, boolean>();
  return (pod) => {
    const own = podHostname(pod);
    if (own !== undefined) return beginnings.has(own);
    const node = pod.nodeName ?? "";
    const known = ofNode.get(node) ?? wanted.some((hostname) => mayHaveHostname(pod, hostname, nodes));
    ofNode.set(node, known);
    return known;
  };
}

/** "a.b.c": itself, "a.b" and "a". */
function listBeginnings(hostname: string): readonly string[] {
  const labels = hostname.split(".");
  return labels.map((_, index) => labels.slice(0, index + 1).join("."));
}
