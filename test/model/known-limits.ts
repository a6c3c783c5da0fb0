import { RULES } from "../sweep-world.ts";
import type { ModelProcess, World, WrittenLock } from "./world.ts";
import { hostnameOf } from "./world.ts";

const SKEW = Number(RULES.clockSkew / 1_000_000_000n);

/**
 * The histories in which a live lock is removed because nobody can know better from the API: those of the README's chapter "What no one can know from the
 * API", each as narrow as it can be told. Undefined where the removal has no such excuse.
 */
export function findExcuse(world: World, lock: WrittenLock, { pod, container }: ModelProcess): string | undefined {
  const { node } = pod;
  if (pod.orphanedSince !== undefined) {
    // Its node did not lose Ready in the cut, or had not yet: the API shows nothing of it.
    if (node.ready === "True" && node.readySince <= pod.orphanedSince) return "force-deleted in a cut that did not cost the node its Ready";
    const namesake = world.pods.some((other) => other !== pod && hostnameOf(other) === hostnameOf(pod) && other.createdAt <= lock.writtenAt);
    if (namesake) return "force-deleted in a cut, and a pod of that hostname was there beside it";
  }
  // By the node's own clock the lock is older than the container that it was written in.
  const run = container.runs.at(-1);
  if (node.setBackAt !== undefined && run !== undefined && lock.lockedAt + SKEW < run.notedStart)
    return "the node's clock was set back under a running container";
  const before = container.runs.at(-2);
  if (node.setBackAt !== undefined && before?.notedEnd !== undefined && lock.lockedAt < before.notedEnd)
    return "the node's clock was set back into the container's run before";
  return undefined;
}
