import { RULES } from "../sweep-world.ts";
import { toTime } from "./clock.ts";
import { hostnameOf, type ModelPod, type World, type WrittenLock } from "./world.ts";

const SKEW = Number(RULES.clockSkew / 1_000_000_000n) + 1;
const MIN_AGE = 60;
const SETTLE = 31;

/**
 * Whether the API alone proves that the writer of a lock is gone, in a world that has been quiet for long. It claims less than the rules may: only what they must
 * find. Told apart from the rules on purpose, so that both would have to be wrong in the same way.
 */
export function isProvablyGone(world: World, lock: WrittenLock, clusters: number): boolean {
  const { pod } = lock.writer ?? {};
  if (pod === undefined || pod.cluster >= clusters) return false;
  const stored = world.store.objects.get(lock.key)?.storedAt;
  const storedAt = stored === undefined ? undefined : Number((stored - toTime(0)) / 1_000_000n) / 1_000;
  if (world.now - Math.max(lock.lockedAt, storedAt ?? lock.lockedAt) < MIN_AGE + 1) return false;
  const candidates = world.pods.filter((other) => other.listed && other.cluster < clusters && hostnameOf(other) === hostnameOf(pod));
  return candidates.every((candidate) => hasEnded(candidate) || isLater(world, candidate, lock, storedAt) || hasRestarted(world, candidate, lock));
}

function isHeardOf({ node }: ModelPod): boolean {
  return node.listed && node.on && node.silentSince === undefined && node.ready === "True";
}

function hasEnded(pod: ModelPod): boolean {
  const { phase, containers } = pod.reported;
  return isHeardOf(pod) && phase !== "Running" && phase !== "Pending" && containers.every(({ runs, running }) => runs.length > 0 && !running);
}

/** It was made after the lock, by every clock. */
function isLater(world: World, pod: ModelPod, { lockedAt }: WrittenLock, storedAt: number | undefined): boolean {
  if (!isHeardOf(pod) || pod.createdAt <= lockedAt + SKEW || pod.createdAt > world.now - SETTLE) return false;
  if (pod.reported.containers.some(({ runs }) => runs.some(({ notedStart }) => notedStart < lockedAt))) return false;
  return storedAt === undefined || storedAt < pod.createdAt - SKEW;
}

/** Its only container ran when the lock was written, ended, and runs again. */
function hasRestarted(world: World, pod: ModelPod, { lockedAt }: WrittenLock): boolean {
  const [container, ...others] = pod.reported.containers;
  if (!isHeardOf(pod) || container === undefined || others.length > 0 || !container.running || pod.createdAt > lockedAt - SKEW) return false;
  const [present, before] = [container.runs.at(-1), container.runs.at(-2)];
  if (present === undefined || before?.notedEnd === undefined) return false;
  const covered = before.notedStart + SKEW <= lockedAt && lockedAt <= before.notedEnd - SKEW;
  return covered && present.notedStart > lockedAt + SKEW && present.notedStart <= world.now;
}
