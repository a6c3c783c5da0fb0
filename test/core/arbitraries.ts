import fc from "fast-check";

import type { ClusterObservation, Container, ContainerState, Node, Pod } from "../../src/core/cluster.ts";
import type { ObservedLock } from "../../src/core/lock.ts";
import { SECOND, type EpochNanoseconds, type Nanoseconds } from "../../src/core/time.ts";
import { aLockWithBody, NOW } from "./builders.ts";

/** Few names, so that pods, nodes and locks often meet. */
const hostname = fc.constantFrom("app-workspace-0", "app-workspace-0", "iac-runner-a", "iac-runner-b", "node-1", "laptop.local");

/** Seconds before now that lie close to the edges of the rules as often as far from them. */
const secondsAgo = fc.oneof(
  fc.constantFrom(0, 1, 5, 6, 29, 30, 31, 59, 60, 61, 630, 631),
  fc.integer({ min: -20, max: 200 }),
  fc.integer({ min: 0, max: 100_000 }),
);
const time: fc.Arbitrary<EpochNanoseconds> = secondsAgo.map((seconds) => NOW - BigInt(seconds) * SECOND);

const run = fc.record({ startedAt: time, finishedAt: time }, { requiredKeys: [] });
const state: fc.Arbitrary<ContainerState> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("running" as const), startedAt: time }) },
  { weight: 1, arbitrary: fc.constant({ kind: "running" as const }) },
  { weight: 2, arbitrary: run.map((value) => ({ kind: "terminated" as const, run: value })) },
  { weight: 1, arbitrary: fc.constant({ kind: "waiting" as const, reason: "CrashLoopBackOff" }) },
  { weight: 1, arbitrary: fc.constant({ kind: "unreported" as const }) },
);
const container: fc.Arbitrary<Container> = fc.record(
  {
    name: fc.constantFrom("pulumi", "istio-proxy", "fetch"),
    kind: fc.constantFrom("main", "main", "init", "sidecar", "ephemeral"),
    state,
    last: run,
    restartCount: fc.constantFrom(0, 1, 3),
    containerId: fc.constantFrom("c1", "c2"),
  },
  { requiredKeys: ["name", "kind", "state"] },
);

export const pod: fc.Arbitrary<Pod> = fc.record(
  {
    namespace: fc.constantFrom("iac", "ci"),
    name: hostname,
    uid: fc.uuid(),
    createdAt: time,
    deletionAt: time,
    phase: fc.constantFrom("Running", "Running", "Pending", "Succeeded", "Failed", "Unknown"),
    nodeName: fc.constantFrom("node-1", "node-2"),
    hostNetwork: fc.constantFrom(false, false, false, true),
    hostname,
    setHostnameAsFqdn: fc.boolean(),
    runtimeClassName: fc.constant("kata"),
    disruption: fc.constantFrom("DeletionByPodGC", "TerminationByKubelet"),
    containers: fc.array(container, { maxLength: 3 }),
  },
  { requiredKeys: ["namespace", "name", "uid", "createdAt", "phase", "hostNetwork", "setHostnameAsFqdn", "containers"] },
);

const node: fc.Arbitrary<Node> = fc
  .record({
    name: fc.constantFrom("node-1", "node-2", "node-3"),
    createdAt: time,
    ready: fc.constantFrom("True", "True", "True", "True", "False", "Unknown"),
    readySince: time,
    reportedAt: time,
    outOfService: fc.constantFrom(false, false, false, true),
  })
  .map((value) => ({ ...value, hostnames: [value.name] }));

/** Nodes that never stand in the way: old, and Ready for long. */
const soundNodes: readonly Node[] = ["node-1", "node-2"].map((name) => ({
  name,
  hostnames: [name],
  createdAt: NOW - 1_000_000n * SECOND,
  ready: "True",
  readySince: NOW - 999_999n * SECOND,
  reportedAt: NOW,
  outOfService: false,
}));

export const cluster: fc.Arbitrary<ClusterObservation> = fc
  .record({
    name: fc.constantFrom("blue", "green"),
    source: fc.oneof(
      { weight: 6, arbitrary: fc.constant({ kind: "live" as const }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant("snapshot" as const), takenAt: time, stated: fc.boolean() }) },
    ),
    pods: fc.array(pod, { maxLength: 3 }),
    complete: fc.constantFrom(true, true, true, true, true, true, false),
    nodes: fc.oneof({ weight: 3, arbitrary: fc.constant(soundNodes) }, { weight: 2, arbitrary: fc.array(node, { maxLength: 3 }) }),
    nodesListed: fc.constantFrom(true, true, true, true, false),
    accounted: fc.constantFrom(true, true, true, false),
    others: fc.constantFrom(40, 40, 40, 0),
  })
  .map(({ name, source, pods, complete, nodes, nodesListed, accounted, others }): ClusterObservation => {
    const list = { pods, total: pods.length + others };
    return {
      name,
      source,
      pods: complete ? { kind: "complete", ...list } : { kind: "incomplete", problem: "410", ...list },
      nodes: nodesListed ? { kind: "listed", nodes } : { kind: "unlisted", problem: "403" },
      stacks: { kind: "listed", stacks: accounted ? [{ kind: "Stack", namespace: "iac", name: "app", stacks: ["dev"] }] : [] },
    };
  });

export interface GeneratedLock {
  readonly lock: ObservedLock;
  readonly lockedAt: EpochNanoseconds;
  readonly hostname: string;
}

export const lock: fc.Arbitrary<GeneratedLock> = fc
  .record({
    hostname,
    lockedAt: time,
    fraction: fc.bigInt({ min: 0n, max: SECOND - 1n }),
    storeDelay: fc.option(fc.constantFrom<Nanoseconds>(0n, SECOND, 10n * SECOND, 5_000n * SECOND), { nil: undefined }),
  })
  .map(({ hostname: name, lockedAt, fraction, storeDelay }) => {
    const exact = lockedAt + fraction;
    const timestamp = `${new Date(Number(lockedAt / 1_000_000n)).toISOString().slice(0, 19)}.${String(fraction).padStart(9, "0")}Z`;
    const body = JSON.stringify({ pid: 7, username: "pulumi", hostname: name, timestamp });
    return {
      hostname: name,
      lockedAt: exact,
      lock: aLockWithBody(body, { key: ".pulumi/locks/dev/1.json", ...(storeDelay === undefined ? {} : { storedAt: exact + storeDelay }) }),
    };
  });
