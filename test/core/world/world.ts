// Small true histories: what really happened to the writer of a lock, and what the API shows of it. All times are seconds before now.
import fc from "fast-check";

import type { ClusterObservation, Container, ContainerState, Node, Pod, Process, ProcessObservation } from "../../../src/core/cluster.ts";
import type { ObservedLock } from "../../../src/core/lock.ts";
import { formatTimestamp, MILLISECOND, SECOND, truncateToSecond, type EpochNanoseconds } from "../../../src/core/time.ts";
import { aLockWithBody, NOW } from "../builders.ts";

const HOST = "app-workspace-0";
/** How long a node that was cut off stays Ready. */
const READY_OUTLASTS = 50;
/** The longest grace period: what a force-deleted pod may run on after its node came back. */
const GRACE = 600;

function ago(seconds: number): EpochNanoseconds {
  return NOW - BigInt(Math.round(seconds * 1_000)) * MILLISECOND;
}

/** As Kubernetes keeps times. */
function wholeSecond(seconds: number): EpochNanoseconds {
  return truncateToSecond(ago(seconds));
}

interface Writer {
  readonly lockAge: number;
  /** When its container started, and its pod was created. */
  readonly started: number;
  readonly created: number;
  /** When the run before ended; undefined if there was none. */
  readonly earlierEnd: number | undefined;
  /** How much its node's clock is ahead of the API server's. */
  readonly clockAhead: number;
  /** How late the runtime notes the start. */
  readonly noted: number;
  /** How late the store notes the lock; undefined if it does not. */
  readonly stored: number | undefined;
}

const small = fc.constantFrom(0.3, 1, 2, 4, 6, 11, 35, 70, 700);
const writer: fc.Arbitrary<Writer> = fc
  .record({
    lockAge: fc.oneof(fc.integer({ min: 61, max: 90 }), fc.integer({ min: 61, max: 800 }), fc.integer({ min: 61, max: 90_000 })),
    beforeLock: small,
    beforeStart: small,
    pause: fc.option(small, { nil: undefined }),
    clockAhead: fc.constantFrom(-2, 0, 0, 2),
    noted: fc.constantFrom(0, 0, 1, 2),
    stored: fc.constantFrom(undefined, 0, 1),
  })
  .map(({ lockAge, beforeLock, beforeStart, pause, clockAhead, noted, stored }): Writer => {
    const started = lockAge + beforeLock;
    const earlierEnd = pause === undefined ? undefined : started + pause;
    return { lockAge, started, earlierEnd, created: (earlierEnd ?? started) + beforeStart, clockAhead, noted, stored };
  });

function lockOf({ lockAge, clockAhead, stored }: Writer): ObservedLock {
  const timestamp = formatTimestamp(ago(lockAge - clockAhead));
  const body = JSON.stringify({ pid: 300, username: "pulumi", hostname: HOST, timestamp });
  return aLockWithBody(body, { key: ".pulumi/locks/dev/1.json", ...(stored === undefined ? {} : { storedAt: ago(lockAge - stored) }) });
}

/** The writer's container as its node reported it `at` so many seconds before now. */
function containerAt({ started, created, earlierEnd, clockAhead, noted }: Writer, at: number): Container {
  const byNode = (seconds: number): EpochNanoseconds => wholeSecond(seconds - clockAhead);
  const earlier = earlierEnd === undefined ? undefined : { startedAt: byNode(created), finishedAt: byNode(earlierEnd) };
  const common = { name: "pulumi", kind: "main", containerId: "c1" } as const;
  if (at <= started) {
    const state: ContainerState = { kind: "running", startedAt: byNode(started - noted) };
    return { ...common, state, restartCount: earlier === undefined ? 0 : 1, ...(earlier === undefined ? {} : { last: earlier }) };
  }
  if (earlier === undefined || earlierEnd === undefined) return { ...common, state: { kind: "waiting", reason: "ContainerCreating" }, restartCount: 0 };
  if (at > earlierEnd) return { ...common, state: { kind: "running", startedAt: earlier.startedAt }, restartCount: 0 };
  return { ...common, state: { kind: "waiting", reason: "CrashLoopBackOff" }, restartCount: 0, last: earlier };
}

function podOf(given: Writer, reportedAt: number, pod: Partial<Pod> = {}): Pod {
  return {
    namespace: "iac",
    name: HOST,
    uid: "writer",
    createdAt: wholeSecond(given.created),
    phase: "Running",
    nodeName: "node-1",
    hostNetwork: false,
    setHostnameAsFqdn: false,
    containers: [containerAt(given, reportedAt)],
    ...pod,
  };
}

function lookAt(containerId: string, processes: readonly Process[]): ProcessObservation {
  const init = { pid: 1, name: "tini", zombie: false, startedAt: ago(1_000_000), innerPids: [] };
  return { kind: "looked", containers: [{ container: "pulumi", containerId, processes: [init, ...processes] }] };
}

function nodeOf(name: string, ready: Node["ready"], since: number): Node {
  return { name, createdAt: ago(1_000_000), hostnames: [name], ready, readySince: wholeSecond(since), reportedAt: NOW, outOfService: false };
}

const soundNode = nodeOf("node-2", "True", 999_990);

/** Pods of the same hostname that cannot have written the lock, in whatever state they are told to be. */
function strangerOf(given: Writer): fc.Arbitrary<Pod> {
  const base: Pod = podOf(given, 0, { namespace: "ci", uid: "stranger", nodeName: "node-2" });
  const early = given.lockAge + 20;
  const ended = { startedAt: wholeSecond(early + 60), finishedAt: wholeSecond(early) };
  const earlier = { startedAt: wholeSecond(early + 200), finishedAt: wholeSecond(early + 100) };
  const restarts = fc.constantFrom<Partial<Container>>({}, { restartCount: 0 }, { restartCount: 1, last: earlier }, { restartCount: 5 });
  const over = restarts.map((more): Pod => ({
    ...base,
    createdAt: wholeSecond(early + 400),
    phase: "Succeeded",
    containers: [{ name: "pulumi", kind: "main", state: { kind: "terminated", run: ended }, ...more }],
  }));
  const crashing = fc.constantFrom(0, 3).map((restartCount): Pod => ({
    ...base,
    createdAt: wholeSecond(early + 400),
    containers: [{ name: "pulumi", kind: "main", state: { kind: "waiting", reason: "CrashLoopBackOff" }, last: ended, restartCount }],
  }));
  const { nodeName: _, ...unscheduled } = base;
  const pending: Pod = { ...unscheduled, phase: "Pending", containers: [{ name: "pulumi", kind: "main", state: { kind: "unreported" } }] };
  return fc.oneof(over, crashing, fc.constant(pending));
}

/** A pod of the writer's name that took its place `born` seconds before now; its container may have restarted since. */
function successorOf(given: Writer, born: number): fc.Arbitrary<Pod> {
  return fc
    .record({ delay: fc.constantFrom(1, 3, 20), again: fc.option(fc.integer({ min: 0, max: born }), { nil: undefined }), seen: fc.boolean() })
    .map(({ delay, again, seen }): Pod => {
      const started = Math.max(born - delay, 0);
      const restarted = again === undefined || again >= started - 1 ? undefined : again;
      const last = restarted === undefined ? {} : { last: { startedAt: wholeSecond(started), finishedAt: wholeSecond(restarted + 1) } };
      const state: ContainerState = { kind: "running", startedAt: wholeSecond(restarted ?? started) };
      return podOf(given, 0, {
        uid: "successor",
        nodeName: "node-2",
        createdAt: wholeSecond(born),
        containers: [{ name: "pulumi", kind: "main", containerId: "c2", state, restartCount: restarted === undefined ? 0 : 1, ...last }],
        ...(seen ? { processes: lookAt("c2", []) } : {}),
      });
    });
}

export interface History {
  readonly story: string;
  readonly lock: ObservedLock;
  readonly clusters: readonly ClusterObservation[];
}

function observe(story: string, lock: ObservedLock, pods: readonly Pod[], nodes: readonly Node[]): History {
  const stacks = [{ kind: "Stack" as const, namespace: "iac", name: "app", stacks: ["dev"] }];
  const cluster: ClusterObservation = {
    name: "prod",
    source: { kind: "live" },
    pods: { kind: "complete", pods, total: pods.length + 40 },
    nodes: { kind: "listed", nodes: [...nodes, soundNode] },
    stacks: { kind: "listed", stacks },
  };
  return { story, lock, clusters: [cluster] };
}

/** Histories in which the process that wrote the lock lives. None may be judged stale. */
export const writerLives: fc.Arbitrary<History> = writer.chain((given) => {
  const lock = lockOf(given);
  const strangers = fc.array(strangerOf(given), { maxLength: 1 });
  const inPlain = fc.record({ strangers, terminating: fc.boolean(), seen: fc.boolean() }).map(({ strangers: others, terminating, seen }) => {
    const process = { pid: 300, name: "pulumi", zombie: false, startedAt: ago(given.lockAge + 0.2), innerPids: [] };
    const pod = podOf(given, 0, { ...(terminating ? { deletionAt: ago(-300) } : {}), ...(seen ? { processes: lookAt("c1", [process]) } : {}) });
    return observe("in plain sight", lock, [pod, ...others], [nodeOf("node-1", "True", 999_999)]);
  });
  // Cut off at any time, as long as its node has lost Ready by now or had spoken since the lock.
  const cutOff = fc
    .record({ strangers, cut: fc.oneof(fc.integer({ min: READY_OUTLASTS, max: given.lockAge + 30 }), fc.integer({ min: READY_OUTLASTS, max: 95_000 })) })
    .filter(({ cut }) => cut < given.created)
    .map(({ strangers: others, cut }) => observe("cut off", lock, [podOf(given, cut), ...others], [nodeOf("node-1", "Unknown", cut - 45)]));
  const forceDeleted = fc
    .record({
      strangers,
      cut: fc.oneof(fc.integer({ min: READY_OUTLASTS + 2, max: 900 }), fc.integer({ min: READY_OUTLASTS + 2, max: 95_000 })),
      returned: fc.option(fc.integer({ min: 0, max: GRACE }), { nil: undefined }),
      ready: fc.constantFrom<Node["ready"]>("Unknown", "False"),
    })
    .filter(({ cut, returned }) => cut < given.created && (returned === undefined || returned <= cut - READY_OUTLASTS))
    .chain(({ strangers: others, cut, returned, ready }) => {
      const node = returned === undefined ? nodeOf("node-1", ready, cut - 45) : nodeOf("node-1", "True", returned);
      const deleted = observe("force-deleted", lock, others, [node]);
      // A StatefulSet makes it again as soon as it was force-deleted: before the lock even, which the forerunner then writes unseen.
      const replaced = fc
        .integer({ min: 0, max: cut })
        .chain((birth) => successorOf(given, birth))
        .map((successor) => observe("replaced", lock, [successor, ...others], [node]));
      return fc.oneof(fc.constant(deleted), replaced);
    });
  return fc.oneof(inPlain, cutOff, forceDeleted);
});

/** Histories in which it is gone, and everything needed to know so is there. All should be judged stale. */
export const writerGone: fc.Arbitrary<History> = writer.chain((given) => {
  const lock = lockOf(given);
  const node = nodeOf("node-1", "True", 999_999);
  const later = fc.integer({ min: 30, max: Math.max(given.lockAge - 12, 30) });
  const restarted = (again: number): Pod => {
    const finished = wholeSecond(again + 1 - given.clockAhead);
    const last = { startedAt: wholeSecond(given.started - given.noted - given.clockAhead), finishedAt: finished };
    const state: ContainerState = { kind: "running", startedAt: wholeSecond(again - given.clockAhead) };
    return podOf(given, 0, { containers: [{ name: "pulumi", kind: "main", state, restartCount: 1, last }] });
  };
  return fc.oneof(
    fc.constant(observe("deleted", lock, [], [node])),
    fc.constant(observe("killed", lock, [podOf(given, 0, { processes: lookAt("c1", []) })], [node])),
    later.map((again) => observe("restarted", lock, [restarted(again)], [node])),
    later.chain((birth) => successorOf(given, birth)).map((successor) => observe("replaced", lock, [successor], [node])),
    later.map((end) => {
      const run = { startedAt: wholeSecond(given.started - given.noted - given.clockAhead), finishedAt: wholeSecond(end - given.clockAhead) };
      const pod = podOf(given, 0, { phase: "Failed", containers: [{ name: "pulumi", kind: "main", state: { kind: "terminated", run }, restartCount: 0 }] });
      return observe("ended", lock, [pod], [node]);
    }),
  );
});

/** The writer's own lock, with the skew that the histories stay within. */
export const HISTORY_SKEW = 5n * SECOND;
