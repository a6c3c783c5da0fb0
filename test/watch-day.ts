// A day of events in a watch, in a process of its own: node --expose-gc test/watch-day.ts. Prints what the heap held hour by hour, and what became of the locks.
import { formatIdentity } from "../src/core/backend-identity.ts";
import { HOUR, MINUTE, SECOND, type EpochNanoseconds, type Nanoseconds } from "../src/core/time.ts";
import type { ClusterSign } from "../src/kubernetes/cluster-source.ts";
import { openMetrics } from "../src/output/metrics.ts";
import { Pulse } from "../src/pulse.ts";
import { watch } from "../src/watch.ts";
import { RULES, SweepWorld } from "./sweep-world.ts";

/** Between two of the things that happen. */
const BEAT: Nanoseconds = 20n * SECOND;

const DAY: Nanoseconds = 24n * HOUR;

const world = new SweepWorld();
const begunAt = world.now;
const stop = new AbortController();
const metrics = openMetrics("day");
const pulse = new Pulse(60_000, () => Number(world.now / 1_000_000n));
const heap: number[] = [];
let sign: (sign: ClusterSign) => void = () => undefined;
let nextBeat = world.now + BEAT;
let nextLook = world.now + HOUR;
let beats = 0;
let removed = 0;
let sweeps = 0;

world.addHolder("iac-runner-live", world.now - 100n * HOUR);
const alive = world.addLock("iac-runner-live");

/** A pod comes, locks, is killed and leaves its lock; watches break and come again; Stacks fail on locks that are there or not. */
function beat(): void {
  beats += 1;
  const name = `iac-runner-${beats}`;
  switch (beats % 5) {
    case 0:
      sign({ kind: "unfollowed", what: "pods", problem: `attempt ${beats} failed`, denied: false });
      sign({ kind: "followed", what: "pods" });
      if (beats % 100 === 0) sign({ kind: "lost", problem: `the watch ended (${beats})` });
      return;
    case 1: {
      const key = world.addLock(name, { age: 2n * MINUTE });
      sign({ kind: "stack", message: `locked: ${formatIdentity(world.backend.identity)}/${key}: created by pulumi@${name} (pid 7) at 2026-03-10T12:00:00Z` });
      return;
    }
    case 2:
      sign({ kind: "stack", message: `locked: gs://state/.pulumi/locks/organization/shop/prod/none-${beats}.json: created by a@b (pid 7) at x` });
      return;
    case 3:
      world.addLock(name, { age: 2n * MINUTE });
      sign({ kind: "pod", hostname: name });
      return;
    default:
      world.cluster.problem = beats % 50 === 4 ? `attempt ${beats} was refused (429)` : undefined;
      sign({ kind: "pod", hostname: `nginx-${beats}` });
  }
}

function pass(length: Nanoseconds, signal: AbortSignal): void {
  const until: EpochNanoseconds = world.now + length;
  while (world.now < until && !signal.aborted) {
    if (nextBeat > until) world.now = until;
    else {
      if (nextBeat > world.now) world.now = nextBeat;
      nextBeat += BEAT;
      beat();
    }
  }
  if (world.now >= nextLook) look();
  if (world.now >= begunAt + DAY) stop.abort();
}

function look(): void {
  nextLook += HOUR;
  // What the test's own world keeps of the past is no growth of the watch.
  world.backend.calls.length = 0;
  world.cluster.calls.length = 0;
  world.backend.recordObjects.clear();
  globalThis.gc?.();
  heap.push(process.memoryUsage().heapUsed);
}

world.cluster.follow = async (onSign, signal) => {
  sign = onSign;
  await new Promise<void>((done) => {
    signal.addEventListener("abort", () => done(), { once: true });
  });
};
await watch(
  {
    interval: 300_000,
    sweep: { delete: true, rules: RULES, confirmDelay: 6_000, maxDeletions: 1_000, failOn: [], overrides: [], warnHeldAfter: 100n * HOUR },
  },
  {
    clusters: [world.cluster],
    openBackends: () => Promise.resolve({ backends: [{ kind: "open", backend: world.backend, audit: world.audit }] }),
    now: () => world.now,
    sleep: async (milliseconds, signal) => {
      // As a timer does, it lets everything else go on.
      await new Promise((done) => {
        setImmediate(done);
      });
      pass(BigInt(milliseconds) * 1_000_000n, signal);
    },
    newRunId: () => `run-${(sweeps += 1)}`,
    // A real timer would outlast the whole day, which takes seconds.
    newDeadline: () => new AbortController().signal,
    janitor: { version: "0.0.0-test", hostname: "test" },
    stop: stop.signal,
    onEvent: (event) => {
      if (event.event === "lock" && event.lock.action === "deleted") removed += 1;
    },
    onFollow: (following) => {
      metrics.follow(following);
      pulse.follow(following);
    },
    onSweep: (report, whole) => {
      metrics.observe(report, whole);
      if (whole) pulse.beat(report);
    },
  },
);
const left = Array.from(world.backend.objects.keys()).filter((key) => key !== alive);
process.stdout.write(
  `${JSON.stringify({ beats, sweeps, removed, left: left.length, alive: world.backend.objects.has(alive), heap, metrics: (await metrics.render()).text.length })}\n`,
);
