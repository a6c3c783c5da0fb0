// Ways in which a rule that looks right would take the lock of a living process. Each is one small world; none may end in "stale".
import { describe, expect, it } from "vitest";

import type { ClusterObservation, Node, Pod } from "../../src/core/cluster.ts";
import type { ObservedLock } from "../../src/core/lock.ts";
import {
  aCluster,
  aContainer,
  aLock,
  aLook,
  aNode,
  aPod,
  aRun,
  aStack,
  at,
  judge,
  running,
  terminated,
  unreported,
  verdictOf,
  waiting,
  type CaseWords,
} from "./builders.ts";

// The lock was written at 10:00:00.5, two hours ago.
const workspaceLock = aLock();
const runnerLock = aLock({ hostname: "iac-runner-0" });
const RUNNERS: CaseWords = { owners: ["iac-runner-*"] };
const silentSinceFive = aNode({ name: "node-7", ready: "Unknown", readySince: at("2026-03-10T05:00:00Z") });

function judgeRunners(pods: readonly Pod[], nodes: readonly Node[] = [aNode()], lock: ObservedLock = runnerLock): string {
  return verdictOf(judge(lock, { ...RUNNERS, clusters: [aCluster({ pods, nodes })] }));
}

describe("P1: the writer was force-deleted and runs on, on a node that is cut off; another pod has its hostname", () => {
  const cutOff = [aNode(), silentSinceFive];
  it.each<[string, Partial<Pod>]>([
    ["it ended before the lock was written", { phase: "Succeeded", containers: [aContainer(terminated("2026-03-10T08:00:00Z", "2026-03-10T07:00:00Z"))] }],
    [
      "it ended before the lock was written, after a restart",
      {
        phase: "Succeeded",
        containers: [
          aContainer(terminated("2026-03-10T08:00:00Z", "2026-03-10T07:00:00Z"), {
            restartCount: 1,
            last: aRun("2026-03-10T06:00:00Z", "2026-03-10T06:59:00Z"),
          }),
        ],
      },
    ],
    [
      "it ended before the lock was written, and how often it restarted is not told",
      { phase: "Failed", containers: [{ name: "pulumi", kind: "main", state: terminated("2026-03-10T08:00:00Z", "2026-03-10T07:00:00Z") }] },
    ],
    [
      "it has been crashing since before the lock was written",
      { containers: [aContainer(waiting, { restartCount: 4, last: aRun("2026-03-10T08:00:00Z", "2026-03-10T08:01:00Z") })] },
    ],
    ["it was never scheduled", { phase: "Pending", containers: [aContainer(unreported)] }],
    ["it was made after the lock", { createdAt: at("2026-03-10T10:30:00Z"), containers: [aContainer(running("2026-03-10T10:30:05Z"))] }],
    [
      "it was made after the lock, and has ended",
      { createdAt: at("2026-03-10T10:30:00Z"), phase: "Failed", containers: [aContainer(terminated("2026-03-10T10:40:00Z", "2026-03-10T10:30:05Z"))] },
    ],
    [
      "pod GC ended it",
      {
        phase: "Failed",
        disruption: "DeletionByPodGC",
        nodeName: "node-9",
        containers: [aContainer(terminated("2026-03-10T11:00:00Z", "2026-03-10T09:00:00Z"))],
      },
    ],
    ["its node is gone", { phase: "Failed", nodeName: "node-9", containers: [] }],
  ])("%s: so it says nothing of the writer", (_, pod) => {
    const { nodeName, ...scheduled } = aPod({ name: "iac-runner-0", ...pod });
    const candidate = pod.phase === "Pending" ? scheduled : { ...scheduled, ...(nodeName === undefined ? {} : { nodeName }) };
    expect(judgeRunners([candidate], cutOff)).not.toMatch(/^stale/);
  });

  it("the same pods prove it gone where every node can be trusted", () => {
    const ended = aPod({ name: "iac-runner-0", phase: "Succeeded", containers: [aContainer(terminated("2026-03-10T11:00:00Z", "2026-03-10T09:00:00Z"))] });
    expect(judgeRunners([ended])).toBe("stale: pod-ended");
    expect(judgeRunners([ended], cutOff)).toBe("stale: pod-ended");
  });

  it("a successor older than the lock, whose container restarted since: the forerunner on the silent node may have written it", () => {
    const successor = aPod({
      createdAt: at("2026-03-10T06:00:00Z"),
      containers: [aContainer(running("2026-03-10T10:30:00Z"), { restartCount: 1, last: aRun("2026-03-10T06:00:05Z", "2026-03-10T10:29:00Z") })],
    });
    expect(verdictOf(judge(workspaceLock, { clusters: [aCluster({ pods: [successor], nodes: cutOff })] }))).not.toMatch(/^stale/);
  });

  it("the writer's clock was slow, so that the lock seems older than every node: the store knows better", () => {
    const lock = aLock({ hostname: "iac-runner-0", timestamp: "1970-01-01T00:05:00Z", storedAt: "2026-03-10T10:00:00Z" });
    expect(judgeRunners([], cutOff, lock)).not.toMatch(/^stale/);
  });
});

describe("P1: the process probe saw another pod, or not all of this one", () => {
  const pulumi = aContainer(running("2026-03-01T00:00:10Z"), { containerId: "c1" });
  const judgePod = (pod: Partial<Pod>, nodes: readonly Node[] = [aNode()]): string =>
    verdictOf(judge(workspaceLock, { clusters: [aCluster({ pods: [aPod({ processes: aLook(), ...pod })], nodes })] }));

  it("the whole pod was seen: gone", () => {
    expect(judgePod({ containers: [pulumi] })).toBe("stale: process-gone");
  });

  it("1.4 a container whose status is missing may run, and was not looked into", () => {
    expect(judgePod({ containers: [pulumi, aContainer(unreported, { name: "debug", kind: "ephemeral" })] })).not.toMatch(/^stale/);
  });

  it("the pod was made 10 s ago: its forerunner may still be stopping, whatever its own processes are", () => {
    const successor = { createdAt: at("2026-03-10T11:59:50Z"), containers: [{ ...pulumi, state: running("2026-03-10T11:59:55Z") }] };
    expect(judgePod(successor)).not.toMatch(/^stale/);
  });

  it("the pod was made after the lock, and a node is cut off", () => {
    const successor = { createdAt: at("2026-03-10T11:00:00Z"), containers: [{ ...pulumi, state: running("2026-03-10T11:00:05Z") }] };
    expect(judgePod(successor, [aNode(), silentSinceFive])).not.toMatch(/^stale/);
  });
});

describe("P1: a node's clock was ahead when it booted, and was set back before pulumi wrote its lock", () => {
  const judgePod = (pod: Partial<Pod>): string => verdictOf(judge(workspaceLock, { clusters: [aCluster({ pods: [aPod(pod)] })] }));

  it("the container never restarted, so it cannot have started after the lock", () => {
    expect(judgePod({ containers: [aContainer(running("2026-03-10T10:54:00Z"))] })).not.toMatch(/^stale/);
  });

  it("likewise beside a container that did restart", () => {
    const mesh = aContainer(running("2026-03-10T11:00:00Z"), {
      name: "istio-proxy",
      restartCount: 1,
      last: aRun("2026-03-10T10:54:00Z", "2026-03-10T10:59:00Z"),
    });
    expect(judgePod({ containers: [aContainer(running("2026-03-10T10:54:00Z")), mesh] })).not.toMatch(/^stale/);
  });

  it("the lock lies between two runs of the container, in which it did not run", () => {
    const containers = [aContainer(running("2026-03-10T10:54:00Z"), { restartCount: 1, last: aRun("2026-03-01T00:00:10Z", "2026-03-10T09:50:00Z") })];
    expect(judgePod({ containers })).not.toMatch(/^stale/);
  });

  it("the container says that it started in the future", () => {
    expect(judgePod({ containers: [aContainer(running("2026-03-10T12:10:00Z"), { restartCount: 1 })] })).toBe("undetermined: clock-contradiction");
  });
});

describe("P1: the strong form, a lock written while the run before still ran, wants proof of that very thing", () => {
  // The container runs since 10:00:03, less than the skew after the lock of 10:00:00.5.
  it.each([
    ["the run before covers the lock", "2026-03-10T09:00:00Z", "2026-03-10T10:00:02Z", "stale: container-restarted"],
    ["it covers the lock's second only", "2026-03-10T10:00:00Z", "2026-03-10T10:00:01Z", "stale: container-restarted"],
    ["it began after the lock: an earlier one may have written it, or this one", "2026-03-10T10:00:01Z", "2026-03-10T10:00:02Z", "held: container-running"],
    ["it ended before the lock", "2026-03-10T09:00:00Z", "2026-03-10T09:59:59Z", "held: container-running"],
    ["it ended in the lock's second", "2026-03-10T09:00:00Z", "2026-03-10T10:00:00Z", "held: container-running"],
    ["it ended after its successor began: the clock was set back between", "2026-03-10T09:00:00Z", "2026-03-10T10:00:04Z", "held: container-running"],
    ["when it began is not told", undefined, "2026-03-10T10:00:02Z", "held: container-running"],
    ["when it ended is not told", "2026-03-10T09:00:00Z", undefined, "held: container-running"],
  ])("%s", (_, startedAt, finishedAt, expected) => {
    const containers = [aContainer(running("2026-03-10T10:00:03Z"), { restartCount: 4, last: aRun(startedAt, finishedAt) })];
    expect(verdictOf(judge(workspaceLock, { clusters: [aCluster({ pods: [aPod({ containers })] })] }))).toBe(expected);
  });
});

describe("P1: the pod that lives is not found by a careless comparison of hostnames", () => {
  const holder = (pod: Partial<Pod>, nodes?: readonly Node[]): ClusterObservation =>
    aCluster({ pods: [aPod({ name: "other", ...pod })], ...(nodes === undefined ? {} : { nodes }) });
  const xs = (count: number): string => "x".repeat(count);
  it.each<[string, string, string, ClusterObservation]>([
    ["spec.hostname", "iac-a", "iac-*", holder({ hostname: "iac-a" })],
    ["hostnameOverride with dots", "ci7.corp.example", "ci?.corp.example", holder({ hostnameOverride: "ci7.corp.example" })],
    ["hostnameOverride before spec.hostname", "iac-b", "iac-*", holder({ hostname: "iac-a", hostnameOverride: "iac-b" })],
    ["an empty spec.hostname is none", "other", "oth*", holder({ hostname: "", hostnameOverride: "" })],
    ["fully qualified", "iac-a.r.iac.svc.cluster.local", "iac-*", holder({ hostname: "iac-a", subdomain: "r", setHostnameAsFqdn: true })],
    ["fully qualified in a cluster of another domain", "iac-a.r.iac.svc.corp", "iac-*", holder({ hostname: "iac-a", subdomain: "r", setHostnameAsFqdn: true })],
    ["a name with a dot", "iac.runner-0", "iac.runner-*", holder({ name: "iac.runner-0" })],
    [
      "a name with a dot, fully qualified",
      "iac.runner-0.r.iac.svc.cluster.local",
      "iac.runner-*",
      holder({ name: "iac.runner-0", subdomain: "r", setHostnameAsFqdn: true }),
    ],
    ["exactly 63 characters", `iac-${xs(59)}`, "iac-*", holder({ name: `iac-${xs(59)}` })],
    ["64 characters, cut", `iac-${xs(59)}`, "iac-*", holder({ name: `iac-${xs(59)}y` })],
    ["cut behind a dash", `iac-${xs(58)}`, "iac-*", holder({ name: `iac-${xs(58)}-0` })],
    ["cut behind dashes and dots", `iac-${xs(57)}`, "iac-*", holder({ name: `iac-${xs(57)}-.-0` })],
    ["upper case in the lock", "IAC-A", "*AC-*", holder({ hostname: "iac-a" })],
    ["another namespace", "iac-a", "iac-*", holder({ namespace: "elsewhere", name: "iac-a" })],
    ["hostNetwork, its node deleted", "iac-node-3", "iac-*", holder({ hostNetwork: true, nodeName: "iac-node-3" })],
    ["hostNetwork, the node called by its address", "10.0.0.7", "10.*", holder({ hostNetwork: true }, [aNode({ hostnames: ["node-1", "10.0.0.7"] })])],
  ])("%s: %s", (_, hostname, glob, cluster) => {
    const judgement = judge(aLock({ hostname }), { settings: { owners: [{ glob, profile: "explicit" }] }, clusters: [cluster] });
    expect(["held", "undetermined", "foreign"]).toContain(judgement.verdict);
  });
});

describe("P1: containers that are easily overlooked", () => {
  const later = aContainer(running("2026-03-10T11:00:00Z"), { restartCount: 1, last: aRun("2026-03-01T00:00:10Z", "2026-03-10T10:59:00Z") });
  const before = running("2026-03-10T09:00:00Z");
  const judgePod = (pod: Partial<Pod>, owners?: readonly string[]): string =>
    verdictOf(judge(workspaceLock, { clusters: [aCluster({ pods: [aPod(pod)] })], ...(owners === undefined ? {} : { owners }) }));
  it.each<[string, Partial<Pod>, readonly string[] | undefined]>([
    ["an ephemeral one, under a profile", { containers: [later, aContainer(before, { name: "debug", kind: "ephemeral" })] }, undefined],
    ["an ephemeral one without a status, under a profile", { containers: [later, aContainer(unreported, { name: "debug", kind: "ephemeral" })] }, undefined],
    ["one that does not say since when it runs", { containers: [aContainer({ kind: "running" }, { restartCount: 3 })] }, undefined],
    ["one without a status", { containers: [later, aContainer(unreported, { name: "b" })] }, ["app-*-?"]],
    ["a native sidecar", { containers: [later, aContainer(before, { name: "b", kind: "sidecar" })] }, ["app-*-?"]],
    ["an init container that still runs", { phase: "Pending", containers: [later, aContainer(before, { name: "b", kind: "init" })] }, ["app-*-?"]],
    ["the profile's own is missing: any other may be it", { containers: [{ ...later, name: "agent" }, aContainer(before, { name: "b" })] }, undefined],
    ["of two patterns one names none", { containers: [later, aContainer(before, { name: "b" })] }, ["app-*-?=pulumi", "app-workspace-?"]],
    ["of two patterns each names another", { containers: [later, aContainer(before, { name: "b" })] }, ["app-*-?=pulumi", "app-workspace-?=b"]],
    ["ended by its phase, yet one of its containers runs", { phase: "Failed", containers: [later, aContainer(before, { name: "b" })] }, ["app-*-?"]],
    [
      "ended by its phase, yet one of its containers says nothing",
      { phase: "Failed", containers: [aContainer(terminated("2026-03-10T11:00:00Z")), aContainer(unreported, { name: "b" })] },
      ["app-*-?"],
    ],
    ["no container at all, by what is told", { containers: [] }, ["app-*-?"]],
  ])("%s", (_, pod, owners) => {
    expect(judgePod(pod, owners)).toMatch(/^held/);
  });
});

describe("P1: several pods, several clusters", () => {
  const gone = aPod({ uid: "2", createdAt: at("2026-03-10T11:00:00Z"), containers: [aContainer(running("2026-03-10T11:00:05Z"))] });
  const silentPod = aPod({ uid: "3", nodeName: "node-2", containers: [aContainer(waiting, { restartCount: 1 })] });
  const nodes = [aNode(), aNode({ name: "node-2", ready: "False" })];
  it.each<[string, readonly ClusterObservation[], RegExp]>([
    ["one lives", [aCluster({ pods: [gone, aPod()] })], /^held/],
    ["one lives in the second cluster", [aCluster({ pods: [gone] }), aCluster({ name: "green", pods: [aPod()] })], /^held/],
    ["one cannot be judged", [aCluster({ pods: [gone, silentPod], nodes })], /^undetermined/],
    ["one lives, one cannot be judged", [aCluster({ pods: [silentPod, aPod()], nodes })], /^held/],
    [
      "none is left here, and the second cluster's list is not whole",
      [aCluster({ pods: [gone] }), { ...aCluster({ name: "green" }), pods: { kind: "incomplete", problem: "403", pods: [], total: 9 } }],
      /^undetermined: list-incomplete/,
    ],
    [
      "none is left here, and the second cluster shows nothing at all",
      [aCluster({ pods: [gone] }), { ...aCluster({ name: "green" }), pods: { kind: "complete", pods: [], total: 0 } }],
      /^undetermined: empty-cluster/,
    ],
    [
      "none is left here, and a node of the second cluster is silent",
      [aCluster({ pods: [gone] }), aCluster({ name: "green", nodes: [silentSinceFive] })],
      /^undetermined: node-unreachable/,
    ],
    [
      "none is left here, and the second cluster is an old file",
      [aCluster({ pods: [gone] }), aCluster({ name: "file", source: { kind: "snapshot", takenAt: at("2026-03-10T09:00:00Z"), stated: true } })],
      /^undetermined: snapshot-older/,
    ],
  ])("%s", (_, clusters, expected) => {
    expect(verdictOf(judge(workspaceLock, { clusters }))).toMatch(expected);
    expect(verdictOf(judge(workspaceLock, { clusters: clusters.toReversed() }))).toMatch(expected);
  });

  it("the Stack is in one cluster, the pod in another", () => {
    const clusters = [aCluster({ stacks: [aStack()] }), aCluster({ name: "green", stacks: [], pods: [aPod()] })];
    expect(verdictOf(judge(workspaceLock, { clusters }))).toBe("held: container-running");
  });
});

describe("P5: no lock can stop the judging of others", () => {
  it("a hostname as long as a lock may be is matched in the blink of an eye", () => {
    const hostname = `runner-${"-project-".repeat(800)}${"-concurrent-".repeat(600)}/`;
    const began = performance.now();
    judge(aLock({ hostname }), { owners: ["runner-*-project-*-concurrent-*-????????"] });
    expect(performance.now() - began).toBeLessThan(500);
  });
});

describe("P1: found by random histories", () => {
  const killed: Partial<Pod> = { containers: [aContainer(running("2026-03-01T00:00:10Z"), { containerId: "c1" })], processes: aLook() };
  const crashing = aContainer(waiting, { restartCount: 1, last: aRun("2026-03-10T09:00:00Z", "2026-03-10T09:59:58Z") });

  it("the writer was force-deleted on a node of the other cluster that is cut off; a pod of its name lives on here without that process", () => {
    const here = aCluster({ name: "blue", pods: [aPod(killed)] });
    const there = (nodes: readonly Node[]): ClusterObservation => aCluster({ name: "green", nodes });
    expect(verdictOf(judge(workspaceLock, { clusters: [here, there([aNode(), silentSinceFive])] }))).toBe("undetermined: node-unreachable");
    expect(verdictOf(judge(workspaceLock, { clusters: [here, there([aNode()])] }))).toBe("stale: process-gone");
  });

  it.each<[string, ObservedLock, string]>([
    ["has no time of the lock", workspaceLock, "undetermined: clock-contradiction"],
    ["saw the lock after the pod was made", aLock({ storedAt: "2026-03-10T10:00:40Z" }), "undetermined: clock-contradiction"],
    ["saw the lock before", aLock({ storedAt: "2026-03-10T10:00:01Z" }), "stale: pod-recreated"],
  ])("a guest's clock is slow, so its pod seems to be younger than its lock; the store %s", (_, lock, expected) => {
    const pod = aPod({ runtimeClassName: "kata", createdAt: at("2026-03-10T10:00:30Z"), containers: [aContainer(running("2026-03-10T10:00:32Z"))] });
    expect(verdictOf(judge(lock, { clusters: [aCluster({ pods: [pod] })] }))).toBe(expected);
  });

  const dated = aLock({ storedAt: "2026-03-10T10:00:01Z" });
  const beside = [aContainer(running("2026-03-01T00:00:10Z"), { containerId: "c1" }), { ...crashing, name: "debug" }];
  it.each<[string, ObservedLock, bigint | "untold", Partial<Pod>, string]>([
    ["the store has no time of the lock", workspaceLock, 0n, { containers: [crashing] }, "undetermined: lock-undated"],
    ["the store has a time by a clock that it does not tell", dated, "untold", { containers: [crashing] }, "undetermined: lock-undated"],
    [
      "the store does not, yet nothing starts that container again",
      workspaceLock,
      0n,
      { containers: [{ ...crashing, state: terminated("2026-03-10T10:03:00Z"), final: true }] },
      "stale: container-restarted",
    ],
    ["the store says how old the lock is", dated, 0n, { containers: [crashing] }, "stale: container-restarted"],
    ["a container beside it rests, and no store says so", workspaceLock, 0n, { ...killed, containers: beside }, "undetermined: lock-undated"],
  ])(
    "a node whose clock is two hours slow fell silent a moment ago, before it told that its container runs again and holds the lock: %s",
    (_, lock, storeClockOffset, pod, expected) => {
      expect(verdictOf(judge(lock, { storeClockOffset, clusters: [aCluster({ pods: [aPod(pod)] })] }))).toBe(expected);
    },
  );

  it.each([
    ["its kubelet", undefined, "stale: pod-ended"],
    ["pod GC, which asks no kubelet", "DeletionByPodGC", "undetermined: node-unreachable"],
  ])("a node fell silent long after the pod was made, and the pod has failed by the word of %s", (_, disruption, expected) => {
    const run = terminated("2026-03-10T10:20:00Z", "2026-03-10T09:00:00Z");
    const ended = aPod({ phase: "Failed", containers: [aContainer(run)], ...(disruption === undefined ? {} : { disruption }) });
    expect(verdictOf(judge(workspaceLock, { clusters: [aCluster({ pods: [ended], nodes: [aNode(), silentSinceFive] })] }))).toBe(expected);
  });

  it("a node's clock is an hour slow, the runtime noted the start a second after the lock, and the store has no time of it", () => {
    const pod = aPod({ createdAt: at("2026-03-10T11:00:00Z"), containers: [aContainer(running("2026-03-10T10:00:02Z"))] });
    expect(verdictOf(judge(workspaceLock, { clusters: [aCluster({ pods: [pod] })] }))).toBe("held: container-running");
  });
});

describe("P7: no text of a stranger acts on a terminal, whichever way it came", () => {
  const hostile = "\u001b[2J\u202eexe.\u0007";
  const hostileCluster = (cluster: Partial<ClusterObservation>): CaseWords => ({ ...RUNNERS, clusters: [{ ...aCluster(), ...cluster }] });
  it.each<[string, ObservedLock, CaseWords]>([
    ["a store's refusal to give the lock", { ...runnerLock, content: { kind: "unread", problem: hostile } }, RUNNERS],
    ["a list of pods that broke", runnerLock, hostileCluster({ pods: { kind: "incomplete", problem: hostile, pods: [], total: 1 } })],
    ["a list of nodes that was refused", runnerLock, hostileCluster({ nodes: { kind: "unlisted", problem: hostile } })],
    ["a list of Stacks that was refused", workspaceLock, { clusters: [{ ...aCluster(), stacks: { kind: "unlisted", problem: hostile } }] }],
    [
      "a look at processes that failed",
      workspaceLock,
      {
        clusters: [
          aCluster({
            pods: [
              aPod({
                containers: [aContainer(running("2026-03-01T00:00:10Z"), { containerId: "c1" })],
                processes: { kind: "could-not-look", problem: hostile },
              }),
            ],
          }),
        ],
      },
    ],
  ])("%s", (_, lock, circumstances) => {
    const { message, evidence } = judge(lock, circumstances);
    const shown = [message, ...evidence.rules.map(({ note }) => note), ...evidence.candidates.map((candidate) => candidate.message)].join("");
    expect(shown).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });
});

describe("P1: a node's clock is slow, so a lock of a moment ago seems old and older than its own pod", () => {
  const lock = aLock({ hostname: "iac-runner-0", timestamp: "2026-03-10T11:58:30Z" });
  const pod = (createdAt: string, container = aContainer(waiting)): Pod => aPod({ name: "iac-runner-0", createdAt: at(createdAt), containers: [container] });

  it("its kubelet has not told of its containers yet: nothing says that they are not the writer's", () => {
    expect(judgeRunners([pod("2026-03-10T11:59:10Z")], [aNode()], lock)).toBe("undetermined: status-older");
    expect(judgeRunners([pod("2026-03-10T11:59:10Z", aContainer(unreported))], [aNode()], lock)).toBe("undetermined: status-older");
  });

  it("its runtime hangs, which costs its node Ready after minutes only: the same for as long as the store has no time of the lock", () => {
    expect(judgeRunners([pod("2026-03-10T11:58:50Z")], [aNode()], lock)).toBe("undetermined: lock-undated");
    expect(judgeRunners([pod("2026-03-10T11:58:50Z")], [aNode()], { ...lock, storedAt: at("2026-03-10T11:58:31Z") })).toBe("stale: pod-recreated");
  });
});
