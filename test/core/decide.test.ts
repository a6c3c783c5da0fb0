import { describe, expect, it } from "vitest";

import type { ClusterObservation, Pod } from "../../src/core/cluster.ts";
import { decide, decideHeld, type Circumstances } from "../../src/core/decide.ts";
import type { ObservedLock } from "../../src/core/lock.ts";
import {
  aCluster,
  aContainer,
  aLock,
  aLockWithBody,
  aLook,
  aNode,
  aPod,
  at,
  judge,
  NOW,
  running,
  SETTINGS,
  terminated,
  verdictOf,
  waiting,
  type CaseWords,
} from "./builders.ts";

const FUTURE = "2026-03-10T12:00:30Z";
const YOUNG = "2026-03-10T11:59:30Z";
const lock = aLock({ storedAt: "2026-03-10T10:00:01Z" });
const incomplete: ClusterObservation = { ...aCluster(), pods: { kind: "incomplete", problem: "403", pods: [], total: 7 } };
const noStack = aCluster({ stacks: [] });
const circumstances = (more: Partial<Circumstances> = {}): Circumstances => ({
  backend: { scheme: "azblob", account: "acme", container: "state", prefix: "" },
  now: NOW,
  clusters: [aCluster()],
  settings: SETTINGS,
  restored: new Set(),
  ...more,
});

describe("the first rule that applies wins", () => {
  it.each<[string, ObservedLock, CaseWords, string]>([
    ["1 before 2: what is no lock has no owner to be foreign", aLockWithBody("{}"), { clusters: [] }, "unreadable: not-a-lock"],
    ["1: a lock that could not be read is not unreadable", { ...lock, content: { kind: "unread", problem: "403" } }, {}, "undetermined: lock-not-read"],
    ["2 before 3", aLock({ hostname: "laptop.local", timestamp: FUTURE }), {}, "foreign: no-pattern"],
    ["2 before 4", aLock({ hostname: "laptop.local", timestamp: YOUNG }), {}, "foreign: no-pattern"],
    ["2 before 5: no cluster is asked about a laptop", aLock({ hostname: "laptop.local" }), { clusters: [] }, "foreign: no-pattern"],
    [
      "2: a node's name before a missing Stack",
      aLock({ hostname: "node-workspace-0" }),
      { clusters: [aCluster({ stacks: [], nodes: [aNode({ name: "node-workspace-0" })] })] },
      "foreign: node-name",
    ],
    ["2: no Stack before 3", aLock({ timestamp: FUTURE }), { clusters: [noStack] }, "foreign: no-stack"],
    ["2: no Stack before a list that is not whole", lock, { clusters: [{ ...incomplete, stacks: { kind: "listed", stacks: [] } }] }, "foreign: no-stack"],
    ["2: no Stack, though the pod itself is here and runs", lock, { clusters: [aCluster({ stacks: [], pods: [aPod()] })] }, "foreign: no-stack"],
    [
      "2: Stacks that could not be listed are no missing Stack",
      lock,
      { clusters: [{ ...aCluster(), stacks: { kind: "unlisted", problem: "403" } }] },
      "undetermined: stacks-not-listed",
    ],
    ["3 before 4", aLock({ timestamp: FUTURE }), {}, "undetermined: clock-contradiction"],
    [
      "3 before 5: a living pod does not explain a contradiction",
      aLock({ timestamp: FUTURE }),
      { clusters: [aCluster({ pods: [aPod()] })] },
      "undetermined: clock-contradiction",
    ],
    ["4 before 5: held is not said of a young lock", aLock({ timestamp: YOUNG }), { clusters: [aCluster({ pods: [aPod()] })] }, "too-young: min-age"],
    ["4 before a restore", aLock({ timestamp: YOUNG }), { restored: new Set([lock.key]) }, "too-young: min-age"],
    ["a restored lock before its candidates", lock, { restored: new Set([lock.key]) }, "held: restored"],
    ["a restore of another lock", lock, { restored: new Set(["other"]) }, "stale: pod-not-found"],
    [
      "5: held before an incomplete list",
      lock,
      { clusters: [{ ...incomplete, pods: { kind: "incomplete", problem: "410", pods: [aPod()], total: 7 } }] },
      "held: container-running",
    ],
    ["5: an incomplete list before stale", lock, { clusters: [incomplete] }, "undetermined: list-incomplete"],
  ])("%s", (_, given, words, expected) => {
    expect(verdictOf(judge(given, words))).toBe(expected);
  });

  it("every rule up to the one that applied is told, with why the others did not", () => {
    const { evidence } = judge(lock);
    expect(evidence.rules.map(({ rule, applied }) => `${rule} ${applied}`)).toEqual([
      "1 unreadable false",
      "2 foreign: no-pattern false",
      "2 foreign: node-name false",
      "2 foreign: no-stack false",
      "3 clock-contradiction false",
      "4 too-young false",
      "5 restored false",
      "5 candidates true",
    ]);
    expect(evidence.rules.every(({ note }) => note !== "")).toBe(true);
    expect(judge(aLock({ hostname: "laptop.local" })).evidence.rules.map(({ rule }) => rule)).toEqual(["1 unreadable", "2 foreign: no-pattern"]);
  });
});

it("a lock that is ahead of the janitor's clock, within the skew, is said to be new", () => {
  expect(judge(aLock({ timestamp: "2026-03-10T12:00:05Z" })).message).toBe("it is 0 s old, and left alone until it is 1 min old");
});

describe("the border of each margin", () => {
  const madeAt = (createdAt: string, startedAt = createdAt): Pod => aPod({ createdAt: at(createdAt), containers: [aContainer(running(startedAt))] });
  it.each<[string, ObservedLock, CaseWords, string]>([
    ["min-age: 59.999999999 s old", aLock({ timestamp: "2026-03-10T11:59:00.000000001Z" }), {}, "too-young: min-age"],
    ["min-age: 60 s old", aLock({ timestamp: "2026-03-10T11:59:00Z" }), {}, "stale: pod-not-found"],
    [
      "min-age: 60 s by the writer, 59 s by the store",
      aLock({ timestamp: "2026-03-10T11:59:00Z", storedAt: "2026-03-10T11:59:01Z" }),
      {},
      "too-young: min-age",
    ],
    ["min-age: a store's time in the future", aLock({ storedAt: "2026-03-10T12:30:00Z" }), {}, "too-young: min-age"],
    ["min-age of an hour", aLock({ timestamp: "2026-03-10T11:30:00Z" }), { settings: { minAge: 3_600_000_000_000n } }, "too-young: min-age"],
    [
      "min-age: what clocks may differ by beyond 5 s is added",
      aLock({ timestamp: "2026-03-10T11:49:00.000000001Z" }),
      { settings: { clockSkew: 605_000_000_000n } },
      "too-young: min-age",
    ],
    ["min-age, and as much beyond", aLock({ timestamp: "2026-03-10T11:49:00Z" }), { settings: { clockSkew: 605_000_000_000n } }, "stale: pod-not-found"],
    [
      "a node that came back 20 min ago by a clock that may be 10 min ahead and more",
      aLock({ timestamp: "2026-03-10T10:00:00Z" }),
      { settings: { clockSkew: 605_000_000_000n }, clusters: [aCluster({ nodes: [aNode({ readySince: at("2026-03-10T11:40:00Z") })] })] },
      "undetermined: node-unreachable",
    ],
    [
      "settle, and what clocks may differ by beyond 5 s",
      aLock({ timestamp: "2026-03-10T11:30:00Z" }),
      { settings: { clockSkew: 605_000_000_000n }, clusters: [aCluster({ pods: [madeAt("2026-03-10T11:49:31Z")] })] },
      "undetermined: not-settled",
    ],
    ["future: 5 s", aLock({ timestamp: "2026-03-10T12:00:05Z" }), {}, "too-young: min-age"],
    ["future: 5.000000001 s", aLock({ timestamp: "2026-03-10T12:00:05.000000001Z" }), {}, "undetermined: clock-contradiction"],
    ["the store's clock 5 s ahead", lock, { storeClockOffset: 5_000_000_000n }, "stale: pod-not-found"],
    ["the store's clock a nanosecond more", lock, { storeClockOffset: 5_000_000_001n }, "undetermined: clock-contradiction"],
    ["the store's clock 5 s behind, and a nanosecond", lock, { storeClockOffset: -5_000_000_001n }, "undetermined: clock-contradiction"],
    [
      "created 5 s after the lock, started 5 s after it",
      aLock({ timestamp: "2026-03-10T10:00:00Z" }),
      { clusters: [aCluster({ pods: [madeAt("2026-03-10T10:00:05Z")] })] },
      "held: container-running",
    ],
    [
      "created 6 s after the lock",
      aLock({ timestamp: "2026-03-10T10:00:00Z" }),
      { clusters: [aCluster({ pods: [madeAt("2026-03-10T10:00:06Z")] })] },
      "stale: pod-recreated",
    ],
    [
      "settle: created 30 s ago",
      aLock({ timestamp: "2026-03-10T11:58:00Z" }),
      { clusters: [aCluster({ pods: [madeAt("2026-03-10T11:59:30Z")] })] },
      "stale: pod-recreated",
    ],
    [
      "settle: created 29 s ago",
      aLock({ timestamp: "2026-03-10T11:58:00Z" }),
      { clusters: [aCluster({ pods: [madeAt("2026-03-10T11:59:31Z")] })] },
      "undetermined: not-settled",
    ],
    [
      "settle of 10 min 30 s, where people force-delete pods",
      lock,
      { settings: { settle: 630_000_000_000n }, clusters: [aCluster({ pods: [madeAt("2026-03-10T11:50:00Z")] })] },
      "undetermined: not-settled",
    ],
    [
      "recreated, yet one of its containers started before the lock",
      lock,
      { clusters: [aCluster({ pods: [madeAt("2026-03-10T10:30:00Z", "2026-03-10T09:59:59Z")] })] },
      "held: container-running",
    ],
    [
      "recreated, its store's time agrees",
      aLock({ storedAt: "2026-03-10T10:00:01Z" }),
      { clusters: [aCluster({ pods: [madeAt("2026-03-10T10:30:00Z")] })] },
      "stale: pod-recreated",
    ],
    [
      "a skew of a minute",
      lock,
      { settings: { clockSkew: 60_000_000_000n }, clusters: [aCluster({ pods: [madeAt("2026-03-10T10:00:40Z")] })] },
      "held: container-running",
    ],
  ])("%s", (_, given, words, expected) => {
    expect(verdictOf(judge(given, words))).toBe(expected);
  });
});

describe("several candidates", () => {
  const recreated = aPod({ uid: "r", createdAt: at("2026-03-10T10:30:00Z"), containers: [aContainer(running("2026-03-10T10:30:05Z"))] });
  const ended = aPod({ namespace: "a", uid: "e", phase: "Failed", containers: [aContainer(terminated("2026-03-10T11:00:00Z", "2026-03-10T09:00:00Z"))] });
  const crashing = aPod({ namespace: "b", uid: "c", containers: [aContainer(waiting, { restartCount: 2 })] });
  const killed = aPod({ namespace: "c", uid: "k", containers: [aContainer(running("2026-03-01T00:00:10Z"), { containerId: "c1" })], processes: aLook() });
  it.each<[readonly Pod[], string]>([
    [[ended], "stale: pod-ended"],
    [[ended, recreated], "stale: pod-recreated"],
    [[ended, recreated, crashing], "stale: container-restarted"],
    [[ended, recreated, crashing, killed], "stale: process-gone"],
    [[ended, recreated, crashing, killed, aPod({ namespace: "d", uid: "h" })], "held: container-running"],
  ])("of %# that are gone, the reason that rests most on observation is told", (pods, expected) => {
    const judgement = judge(lock, { clusters: [aCluster({ pods: pods.toReversed() })] });
    expect(verdictOf(judgement)).toBe(expected);
    expect(judgement.evidence.candidates).toHaveLength(pods.length);
    expect(judge(lock, { clusters: [aCluster({ pods })] })).toEqual(judgement);
  });

  it("each finding names its pod, its namespace and its cluster", () => {
    const clusters = [aCluster({ name: "blue", pods: [ended] }), aCluster({ name: "green", pods: [recreated] })];
    const { evidence, message } = judge(lock, { clusters });
    expect(evidence.candidates.map(({ cluster, namespace, pod, uid, finding, reason }) => [cluster, namespace, pod, uid, finding, reason])).toEqual([
      ["blue", "a", "app-workspace-0", "e", "gone", "pod-ended"],
      ["green", "iac", "app-workspace-0", "r", "gone", "pod-recreated"],
    ]);
    expect(message).toContain('"green"');
    expect(evidence.clusters).toEqual([
      { name: "blue", uid: "uid-of-prod", pods: 41, complete: true },
      { name: "green", uid: "uid-of-prod", pods: 41, complete: true },
    ]);
  });
});

describe("what a message must name", () => {
  it.each<[string, ObservedLock, CaseWords, readonly string[]]>([
    ["the key of a lock that is none", aLockWithBody("", { key: ".pulumi/locks/dev/README.txt" }), {}, [".pulumi/locks/dev/README.txt"]],
    ["the host that matches no pattern", aLock({ hostname: "laptop.local" }), {}, ["laptop.local"]],
    [
      "the node that has the host's name",
      aLock({ hostname: "n-workspace-0" }),
      { clusters: [aCluster({ nodes: [aNode({ name: "n-workspace-0.internal", hostnames: ["n-workspace-0.internal"] })] })] },
      ["n-workspace-0.internal"],
    ],
    ["what lets a deleted Stack's lock through", lock, { clusters: [noStack] }, ["--require-stack=no"]],
    ["how old a young lock is, and how old it must be", aLock({ timestamp: YOUNG }), {}, ["30 s", "1 min"]],
    [
      "the node that does not answer, and the way around",
      lock,
      { clusters: [aCluster({ nodes: [aNode({ name: "node-7", ready: "Unknown" })] })] },
      ['"node-7"', "Unknown", "--unreachable-nodes=ignore"],
    ],
    [
      "the node of a pod whose status is old",
      lock,
      { clusters: [aCluster({ pods: [aPod({ containers: [aContainer(waiting)] })], nodes: [aNode({ ready: "Unknown" })] })] },
      ['"node-1"'],
    ],
    ["the verb that is missing", lock, { clusters: [incomplete] }, ["403"]],
    ["how many pods were seen", lock, {}, ["40 pods", "app-workspace-0"]],
    ["that only some namespaces were asked", lock, { clusters: [aCluster({ namespaces: ["iac"] })] }, ["namespaces asked"]],
    ["the container that holds the lock", lock, { clusters: [aCluster({ pods: [aPod()] })] }, ['"pulumi"', "iac/app-workspace-0"]],
    [
      "when a container restarted",
      lock,
      { clusters: [aCluster({ pods: [aPod({ containers: [aContainer(running("2026-03-10T10:30:00Z"), { restartCount: 1 })] })] })] },
      ["2026-03-10T10:30:00Z"],
    ],
  ])("%s", (_, given, words, parts) => {
    const { message } = judge(given, words);
    for (const part of parts) expect(message).toContain(part);
  });
});

describe("before any cluster is asked", () => {
  const unasked = circumstances({ clusters: "not-asked" });
  it.each<[string, ObservedLock, string | undefined]>([
    ["a lock that is none", aLockWithBody("x"), "unreadable"],
    ["a stranger's", aLock({ hostname: "laptop.local" }), "foreign"],
    ["one from the future", aLock({ timestamp: FUTURE }), "undetermined"],
    ["a young one", aLock({ timestamp: YOUNG }), "too-young"],
    ["one of a pod: only a cluster tells", lock, undefined],
  ])("%s: %s", (_, given, verdict) => {
    expect(decide(given, unasked)?.verdict).toBe(verdict);
    expect(decideHeld(given, circumstances())?.verdict).toBeUndefined();
  });

  it("1.11 a look by name may only end in held", () => {
    const look = (pod: Pod): string | undefined => {
      const seen: ClusterObservation = {
        ...aCluster({ pods: [pod] }),
        nodes: { kind: "unlisted", problem: "only looked up" },
        stacks: { kind: "unlisted", problem: "only looked up" },
      };
      return decideHeld(lock, circumstances({ clusters: [seen] }))?.reason;
    };
    expect(look(aPod())).toBe("container-running");
    expect(look(aPod({ deletionAt: at("2026-03-10T12:05:00Z") }))).toBe("pod-terminating");
    expect(look(aPod({ phase: "Succeeded", containers: [aContainer(terminated("2026-03-10T11:00:00Z"))] }))).toBeUndefined();
    expect(look(aPod({ createdAt: at("2026-03-10T11:00:00Z"), containers: [aContainer(running("2026-03-10T11:00:01Z"))] }))).toBeUndefined();
    expect(look(aPod({ name: "other" }))).toBeUndefined();
    expect(decideHeld(lock, circumstances({ clusters: [] }))).toBeUndefined();
  });
});
