import type { Pod } from "../../src/core/cluster.ts";
// What must go: told from what the API shows, by the design's words and not by the rules' code.
import { parseLockBody, type Owner } from "../../src/core/lock.ts";
import { matchOwners, BUILTIN_OWNERS } from "../../src/core/owner.ts";
import { perform } from "./actions.ts";
import { seconds } from "./clock.ts";
import { runSweep } from "./janitor.ts";
import type { SimulatedPod } from "./pod.ts";
import type { ModelStore, StoredLock } from "./store.ts";
import { GOOD_MOOD } from "./views.ts";
import type { World } from "./world.ts";

const PLAIN = { mood: { ...GOOD_MOOD, probe: "whole" }, latency: 0.02, crash: undefined, fault: undefined, signal: undefined, meanwhile: [] } as const;

/** Heals everything, waits until nothing is doubted, and sweeps twice. */
export async function sweepInHealth(world: World): Promise<void> {
  for (const node of world.nodes) node.change({ cut: false, hung: false, ...(node.inApi && !node.outOfService ? { on: true } : {}) });
  world.timeline.advance(1_400);
  await runSweep(world, PLAIN, perform);
  await runSweep(world, PLAIN, perform);
}

/** Complete lists, every node Ready for more than 15 min or off for good, clocks that agree, and a command that may remove. */
function isHealthy(world: World): boolean {
  const { setup } = world;
  const now = world.timeline.now;
  const nodes = world.nodes.every(
    ({ inApi, outOfService, ready, readySince, clock }) =>
      (!inApi || outOfService || (ready === "True" && readySince < now - seconds(940))) &&
      clock.steps.length === 0 &&
      clock.offset >= seconds(-2) &&
      clock.offset <= seconds(2),
  );
  return nodes && world.mayDelete && Math.abs(setup.janitorAhead) <= 2 && Math.abs(setup.storeAhead) <= 2 && Math.abs(setup.guestAhead) <= 2;
}

/** After the healthy sweeps: what is provably gone is removed, every record has its end. */
export function judgeLiveness(world: World): void {
  const { oracle } = world;
  if (world.mayDelete) oracle.judgeRecords();
  if (!isHealthy(world)) return;
  oracle.tally.add("healthy ends");
  for (const store of world.stores) {
    for (const lock of store.objects.values()) {
      if (isProvablyGone(world, store, lock)) oracle.violations.push(`liveness: ${lock.key} in ${store.bucket} is provably stale, and stays`);
    }
  }
}

function isProvablyGone(world: World, store: ModelStore, { bytes, storedAt }: StoredLock): boolean {
  const content = parseLockBody(bytes);
  if (content.kind !== "readable") return false;
  const { owner } = content;
  const restored = Array.from(store.records.keys()).some((name) => name.endsWith(".restored.json"));
  const patterns = matchOwners(owner.hostname, [...BUILTIN_OWNERS, { glob: "iac-runner-*", profile: "explicit" }]);
  if (restored || patterns.length === 0) return false;
  if (patterns.every(({ profile }) => profile !== "explicit") && !world.setup.stacks) return false;
  if (world.nodes.some((node) => node.inApi && node.name === owner.hostname)) return false;
  const now = world.timeline.now;
  // Pulled or copied late, a lock is as young as its store says.
  if (now - owner.lockedAt < seconds(80) || now - storedAt < seconds(80)) return false;
  const candidates = world.clusters.flatMap(({ pods }) => pods.filter((pod) => pod.inApi && sharesHostname(pod.hostname, owner.hostname)));
  return candidates.every((candidate) => {
    const { node } = candidate;
    const pod = candidate.toApi();
    // A status is worth what its node is: only a deleted node's pods are over for good.
    if (!node.inApi || node.ready !== "True") return !node.inApi && isOver(pod);
    return isOver(pod) || isYounger(pod, owner, storedAt, world) || hasRestarted(pod, owner) || hasNoWriter(candidate, owner);
  });
}

/** An FQDN is compared by its beginning. */
function sharesHostname(own: string, wanted: string): boolean {
  return own === wanted || wanted.startsWith(`${own}.`);
}

function isOver({ phase, containers, disruption, nodeName }: Pod): boolean {
  const ended = containers.every(({ state }) => state.kind === "terminated");
  return (phase === "Succeeded" || phase === "Failed") && ended && disruption === undefined && nodeName !== undefined;
}

function isYounger({ createdAt, containers, runtimeClassName }: Pod, { lockedAt }: Owner, storedAt: bigint, world: World): boolean {
  const started = containers.every(
    ({ state, last }) => (state.kind === "running" ? (state.startedAt ?? 0n) : lockedAt) >= lockedAt && (last?.startedAt ?? lockedAt) >= lockedAt,
  );
  const settled = createdAt < world.timeline.now - seconds(world.setup.settle + 5);
  if (runtimeClassName !== undefined && !world.setup.store.notesTimes) return false;
  return (
    started && settled && createdAt > lockedAt + seconds(12) && createdAt > storedAt + seconds(12) && containers.some(({ state }) => state.kind === "running")
  );
}

/** Its containers all run anew since well after the lock, and the run before was there when the lock was written. */
function hasRestarted({ containers, createdAt, runtimeClassName }: Pod, { lockedAt }: Owner): boolean {
  return (
    runtimeClassName === undefined &&
    createdAt < lockedAt - seconds(12) &&
    containers.every(
      ({ state, last }) =>
        state.kind === "running" &&
        (state.startedAt ?? 0n) > lockedAt + seconds(12) &&
        last?.startedAt !== undefined &&
        last.finishedAt !== undefined &&
        last.startedAt < lockedAt &&
        last.finishedAt > lockedAt,
    )
  );
}

/** Every container of it has been running since before the lock, by clocks that can be compared, and a look into each finds neither a pulumi nor the lock's number. */
function hasNoWriter(candidate: SimulatedPod, { lockedAt, pid }: Owner): boolean {
  const { containers, createdAt, runtimeClassName } = candidate.toApi();
  const seen = candidate.probe(false);
  if (seen.kind !== "looked" || createdAt >= lockedAt - seconds(12) || runtimeClassName !== undefined) return false;
  if (containers.some(({ state }) => state.kind !== "running" || (state.startedAt ?? 0n) > lockedAt)) return false;
  const living = seen.containers.flatMap(({ processes }) => processes).filter(({ zombie }) => !zombie);
  return (
    seen.containers.length === containers.length &&
    living.every((process) => process.name !== "pulumi" && process.pid !== pid && !process.innerPids.includes(pid))
  );
}
