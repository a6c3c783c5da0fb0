// Histories that break careless rules: how a live lock would be removed (1.x), how a stale one would be kept for ever (2.x).
import { describe, expect, it } from "vitest";

import type { Process } from "../../src/core/cluster.ts";
import {
  aCluster,
  aContainer,
  aLock,
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

const LOCKED = "2026-03-10T10:00:00.5Z";
const lock = aLock({ timestamp: LOCKED, storedAt: "2026-03-10T10:00:01Z" });
const named = aLock({ hostname: "iac-runner-0", timestamp: LOCKED });
const RUNNERS: CaseWords = { owners: ["iac-runner-*"] };

/** What the one candidate, a workspace pod, leads to. */
function judgePod(pod: Parameters<typeof aPod>[0], circumstances: CaseWords = {}): string {
  return verdictOf(judge(lock, { clusters: [aCluster({ pods: [aPod(pod)] })], ...circumstances }));
}

describe("1.3 a force-deleted pod may run on", () => {
  const recreated = aPod({ name: "iac-runner-0", createdAt: at("2026-03-10T10:30:00Z"), containers: [aContainer(running("2026-03-10T10:30:05Z"))] });
  const byPodGc = aPod({
    name: "iac-runner-0",
    phase: "Failed",
    disruption: "DeletionByPodGC",
    containers: [aContainer(terminated("2026-03-10T10:20:00Z", "2026-03-10T09:00:00Z"))],
  });
  it.each([
    ["its node is silent", aNode({ name: "node-7", ready: "Unknown" })],
    ["its node says that it is not Ready", aNode({ name: "node-7", ready: "False" })],
    ["its node is Ready again, but not for 10 min 30 s", aNode({ name: "node-7", readySince: at("2026-03-10T11:50:00Z") })],
    [
      "its node does not say since when",
      { name: "node-7", hostnames: ["node-7"], createdAt: at("2026-01-01T00:00:00Z"), ready: "True" as const, outOfService: false },
    ],
  ])("%s: absence, a successor and pod GC's word prove nothing", (_, node) => {
    const nodes = [aNode(), node];
    expect(verdictOf(judge(named, { ...RUNNERS, clusters: [aCluster({ nodes })] }))).toBe("undetermined: node-unreachable");
    expect(verdictOf(judge(named, { ...RUNNERS, clusters: [aCluster({ nodes, pods: [recreated] })] }))).toBe("undetermined: node-unreachable");
    expect(verdictOf(judge(named, { ...RUNNERS, clusters: [aCluster({ nodes, pods: [byPodGc] })] }))).toBe("undetermined: node-unreachable");
  });

  it.each([
    ["is Ready for longer", aNode({ name: "node-7", readySince: at("2026-03-10T11:49:00Z") })],
    ["has just joined", aNode({ name: "node-7", createdAt: at("2026-03-10T09:00:00Z"), readySince: at("2026-03-10T09:00:40Z") })],
    ["joined after the lock", aNode({ name: "node-7", createdAt: at("2026-03-10T11:00:00Z"), ready: "False" })],
    ["is off, as a person said (2.1)", aNode({ name: "node-7", ready: "Unknown", outOfService: true })],
  ])("a node that %s does not stand in the way", (_, node) => {
    expect(verdictOf(judge(named, { ...RUNNERS, clusters: [aCluster({ nodes: [aNode(), node] })] }))).toBe("stale: pod-not-found");
  });

  it("a successor proves nothing before it has settled", () => {
    const young = aPod({ ...recreated, createdAt: at("2026-03-10T11:59:45Z"), containers: [aContainer(running("2026-03-10T11:59:50Z"))] });
    expect(verdictOf(judge(named, { ...RUNNERS, clusters: [aCluster({ pods: [young] })] }))).toBe("undetermined: not-settled");
  });

  it("the restart of a successor's container is no way around that", () => {
    const young = aPod({
      ...recreated,
      createdAt: at("2026-03-10T11:59:45Z"),
      containers: [aContainer(running("2026-03-10T11:59:58Z"), { restartCount: 1, last: aRun("2026-03-10T11:59:50Z", "2026-03-10T11:59:57Z") })],
    });
    expect(verdictOf(judge(named, { ...RUNNERS, clusters: [aCluster({ pods: [young] })] }))).toBe("undetermined: not-settled");
  });

  it("a pod that ended before the lock says nothing of its successor that is gone", () => {
    const earlier = aPod({ name: "iac-runner-0", phase: "Succeeded", containers: [aContainer(terminated("2026-03-10T08:00:00Z", "2026-03-10T07:00:00Z"))] });
    const nodes = [aNode(), aNode({ name: "node-7", ready: "Unknown" })];
    expect(verdictOf(judge(named, { ...RUNNERS, clusters: [aCluster({ nodes, pods: [earlier] })] }))).toBe("undetermined: node-unreachable");
  });
});

describe("1.4 a second container runs pulumi", () => {
  const restarted = aContainer(running("2026-03-10T11:00:00Z"), { restartCount: 1, last: aRun("2026-03-01T00:00:10Z", "2026-03-10T10:59:00Z") });
  it("an ephemeral one counts whatever the profile names", () => {
    const debug = aContainer(running("2026-03-10T09:59:00Z"), { name: "debugger", kind: "ephemeral" });
    expect(judgePod({ containers: [restarted, debug] })).toBe("held: container-running");
  });
  it("an ordinary one does not where a profile names another", () => {
    expect(judgePod({ containers: [restarted, aContainer(running("2026-03-01T00:00:10Z"), { name: "istio-proxy" })] })).toBe("stale: container-restarted");
  });
  it.each(["init", "sidecar", "main"] as const)("of kind %s counts where none is named", (kind) => {
    const other = aContainer(running("2026-03-01T00:00:10Z"), { name: "other", kind });
    expect(verdictOf(judge(named, { ...RUNNERS, clusters: [aCluster({ pods: [aPod({ name: "iac-runner-0", containers: [restarted, other] })] })] }))).toBe(
      "held: container-running",
    );
  });
});

describe("1.5 to 1.7 the process probe", () => {
  const seen = (processes: readonly Partial<Process>[]): string =>
    judgePod({
      containers: [aContainer(running("2026-03-01T00:00:10Z"), { containerId: "c1" })],
      processes: {
        kind: "looked",
        containers: [
          {
            container: "pulumi",
            containerId: "c1",
            processes: [
              { pid: 1, name: "tini", zombie: false, startedAt: at("2026-03-01T00:00:10Z"), innerPids: [] },
              ...processes.map((process) => ({ pid: 7, name: "node", zombie: false, startedAt: at("2026-03-10T11:00:00Z"), innerPids: [], ...process })),
            ],
          },
        ],
      },
    });
  it.each<[string, readonly Partial<Process>[], string]>([
    ["no such pid", [], "stale: process-gone"],
    ["a zombie", [{ name: "pulumi", zombie: true, startedAt: at("2026-03-10T09:59:00Z") }], "stale: process-gone"],
    ["the pid is another program's now", [{ name: "git" }], "stale: process-gone"],
    ["the process itself", [{ name: "pulumi", startedAt: at("2026-03-10T09:59:00Z") }], "held: container-running"],
    ["1.5 a stepped clock makes pulumi look younger than the lock", [{ name: "pulumi", startedAt: at("2026-03-10T10:00:10Z") }], "held: container-running"],
    ["another program older than the lock under that pid", [{ name: "automation", startedAt: at("2026-03-10T09:00:00Z") }], "held: container-running"],
    ["1.6 another pulumi as old as the lock", [{ pid: 99, name: "pulumi", startedAt: at("2026-03-10T09:00:00Z") }], "held: container-running"],
    ["1.6 the pid inside a nested namespace", [{ pid: 4_711, name: "x", innerPids: [7] }], "held: container-running"],
    ["a pulumi that is younger, under another pid", [{ pid: 99, name: "pulumi", startedAt: at("2026-03-10T11:00:00Z") }], "stale: process-gone"],
  ])("%s", (_, processes, expected) => {
    expect(seen(processes)).toBe(expected);
  });
  it.each([
    ["1.7 could not look", { kind: "could-not-look" as const, problem: "no shell" }],
    ["another container id", { kind: "looked" as const, containers: [{ container: "pulumi", containerId: "c0", processes: [] }] }],
    ["no container seen", { kind: "looked" as const, containers: [] }],
  ])("%s proves nothing", (_, processes) => {
    expect(judgePod({ containers: [aContainer(running("2026-03-01T00:00:10Z"), { containerId: "c1" })], processes })).toBe("held: container-running");
  });
  it("proves nothing on a node that is not Ready", () => {
    const pod = aPod({
      containers: [aContainer(running("2026-03-01T00:00:10Z"), { containerId: "c1" })],
      processes: { kind: "looked", containers: [{ container: "pulumi", containerId: "c1", processes: [] }] },
    });
    expect(verdictOf(judge(lock, { clusters: [aCluster({ pods: [pod], nodes: [aNode({ ready: "Unknown" })] })] }))).toBe("undetermined: node-not-ready");
  });
});

describe("1.9 startedAt is noted after the process already runs", () => {
  it.each([
    ["2 s after the lock", "2026-03-10T10:00:02Z", "held: container-running"],
    ["5 s after", "2026-03-10T10:00:05Z", "held: container-running"],
    ["6 s after: more than the skew", "2026-03-10T10:00:06Z", "stale: container-restarted"],
  ])("%s", (_, startedAt, expected) => {
    expect(judgePod({ containers: [aContainer(running(startedAt), { restartCount: 2, last: aRun("2026-03-10T09:00:00Z", "2026-03-10T10:00:00Z") })] })).toBe(
      expected,
    );
  });

  it.each([
    ["the run before ended in a later second: no overlap is possible", "2026-03-10T10:00:01Z", undefined, "stale: container-restarted"],
    ["it ended in the lock's own second: the new one may have written it (2.6)", "2026-03-10T10:00:00Z", undefined, "held: container-running"],
    ["with a runtime class the clocks are two", "2026-03-10T10:00:01Z", "kata", "held: container-running"],
  ])("the strong form: %s", (_, finishedAt, runtimeClassName, expected) => {
    const containers = [aContainer(running("2026-03-10T10:00:02Z"), { restartCount: 1, last: aRun("2026-03-10T09:00:00Z", finishedAt) })];
    expect(judgePod({ containers, ...(runtimeClassName === undefined ? {} : { runtimeClassName }) })).toBe(expected);
  });

  it("a container that never restarted, in a pod older than the lock, cannot have started after it: a clock was set back", () => {
    expect(judgePod({ containers: [aContainer(running("2026-03-10T10:10:00Z"))] })).toBe("undetermined: clock-contradiction");
  });

  it("unless another container of the pod was there to write it", () => {
    const containers = [
      aContainer(terminated("2026-03-10T10:09:00Z", "2026-03-10T09:00:00Z"), { name: "fetch", kind: "init" }),
      aContainer(running("2026-03-10T10:10:00Z")),
    ];
    expect(judgePod({ containers })).toBe("stale: container-restarted");
  });

  it("a guest whose clock is slow: the store's time must agree", () => {
    const pod = { runtimeClassName: "kata", containers: [aContainer(running("2026-03-10T10:30:00Z"), { restartCount: 1 })] };
    const clusters = [aCluster({ pods: [aPod(pod)] })];
    expect(verdictOf(judge(aLock({ timestamp: LOCKED, storedAt: "2026-03-10T11:00:00Z" }), { clusters }))).toBe("undetermined: clock-contradiction");
    expect(verdictOf(judge(aLock({ timestamp: LOCKED, storedAt: "2026-03-10T10:00:01Z" }), { clusters }))).toBe("stale: container-restarted");
  });
});

describe("1.10 a status is worth what its node is", () => {
  const gone = { containers: [aContainer(waiting, { restartCount: 4 })] };
  it.each([
    ["Ready", [aNode()], "stale: container-restarted"],
    ["not Ready", [aNode({ ready: "False" })], "undetermined: node-not-ready"],
    ["silent", [aNode({ ready: "Unknown" })], "undetermined: node-not-ready"],
    ["deleted", [aNode({ name: "node-2" })], "undetermined: node-deleted"],
  ])("a waiting container on a node that is %s", (_, nodes, expected) => {
    expect(verdictOf(judge(lock, { clusters: [aCluster({ pods: [aPod(gone)], nodes })] }))).toBe(expected);
  });

  it("without the right to list nodes nothing of a status is believed", () => {
    expect(
      verdictOf(
        judge(lock, { clusters: [aCluster({ pods: [aPod(gone)] })].map((cluster) => ({ ...cluster, nodes: { kind: "unlisted" as const, problem: "403" } })) }),
      ),
    ).toBe("undetermined: nodes-not-listed");
  });

  it("a status may be older than a lock that is younger than a silent node is found out, whatever --min-age says", () => {
    const young = aLock({ timestamp: "2026-03-10T11:59:30Z", storedAt: "2026-03-10T11:59:30Z" });
    expect(verdictOf(judge(young, { settings: { minAge: 0n }, clusters: [aCluster({ pods: [aPod(gone)] })] }))).toBe("undetermined: status-older");
  });

  it("a container without any status may run", () => {
    expect(judgePod({ containers: [aContainer(unreported)] })).toBe("held: status-missing");
  });
});

describe("1.11 and 1.14 by hostname, not by name", () => {
  it("an ended pod of that name does not hide a living one of that hostname elsewhere", () => {
    const pods = [
      aPod({ phase: "Succeeded", containers: [aContainer(terminated("2026-03-10T09:00:00Z"))] }),
      aPod({ name: "other", namespace: "ci", hostname: "app-workspace-0", uid: "2" }),
    ];
    expect(verdictOf(judge(lock, { clusters: [aCluster({ pods })] }))).toBe("held: container-running");
  });

  it("nor in another cluster", () => {
    const other = aCluster({ name: "green", pods: [aPod()] });
    expect(
      verdictOf(
        judge(lock, {
          clusters: [aCluster({ pods: [aPod({ createdAt: at("2026-03-10T10:30:00Z"), containers: [aContainer(running("2026-03-10T10:30:05Z"))] })] }), other],
        }),
      ),
    ).toBe("held: container-running");
  });

  it("a name over 63 characters is cut, and what may not end it removed", () => {
    const long = `${"x".repeat(50)}-${"y".repeat(11)}-workspace-0`;
    const cut = `${"x".repeat(50)}-${"y".repeat(11)}`;
    expect(verdictOf(judge(aLock({ hostname: cut }), { owners: ["x*-y*"], clusters: [aCluster({ pods: [aPod({ name: long })] })] }))).toBe(
      "held: container-running",
    );
  });

  it.each(["node-1", "NODE-1", "node-1.example.internal", "10.0.0.7"])("a host called %s is a node's, so its absence among pods means nothing", (hostname) => {
    const nodes = [aNode({ hostnames: ["node-1", "node-1.eu.compute.internal", "10.0.0.7"] })];
    expect(verdictOf(judge(aLock({ hostname }), { settings: { owners: [{ glob: "*", profile: "explicit" }] }, clusters: [aCluster({ nodes })] }))).toBe(
      "foreign: node-name",
    );
  });
});

describe("1.12 a snapshot is as old as it is", () => {
  const snapshotAt = (time: string, stated = true): CaseWords => ({
    ...RUNNERS,
    clusters: [aCluster({ source: { kind: "snapshot", takenAt: at(time), stated } })],
  });
  it.each([
    ["older than the lock", named, "2026-03-10T09:00:00Z", "undetermined: snapshot-older"],
    ["as old as the lock", named, "2026-03-10T10:00:04Z", "undetermined: snapshot-older"],
    ["younger than the lock", named, "2026-03-10T10:30:00Z", "stale: pod-not-found"],
    [
      "younger than the lock, but not by the store's clock",
      { ...named, storedAt: at("2026-03-10T10:45:00Z") },
      "2026-03-10T10:30:00Z",
      "undetermined: snapshot-older",
    ],
  ])("%s", (_, given, time, expected) => {
    expect(verdictOf(judge(given, snapshotAt(time)))).toBe(expected);
  });

  it("a cluster without any pod proves nothing", () => {
    expect(verdictOf(judge(named, { ...RUNNERS, clusters: [{ ...aCluster(), pods: { kind: "complete", pods: [], total: 0 } }] }))).toBe(
      "undetermined: empty-cluster",
    );
  });
});

describe("2. provably stale, yet kept by a careless rule", () => {
  it("2.1 a dead node can be vouched for, by name or all at once", () => {
    const clusters = [aCluster({ nodes: [aNode(), aNode({ name: "node-7", ready: "Unknown" })] })];
    expect(verdictOf(judge(named, { ...RUNNERS, clusters, settings: { ignoredNodes: { all: false, names: ["node-7"] } } }))).toBe("stale: pod-not-found");
    expect(verdictOf(judge(named, { ...RUNNERS, clusters, settings: { ignoredNodes: { all: false, names: ["node-8"] } } }))).toBe(
      "undetermined: node-unreachable",
    );
    expect(verdictOf(judge(named, { ...RUNNERS, clusters, settings: { ignoredNodes: { all: true, names: [] } } }))).toBe("stale: pod-not-found");
  });

  it("2.1 a missing right to list nodes is its own reason, which names the verb", () => {
    const cluster = { ...aCluster(), nodes: { kind: "unlisted" as const, problem: 'the verb "list" on nodes is not allowed' } };
    const judgement = judge(named, { ...RUNNERS, clusters: [cluster] });
    expect(verdictOf(judgement)).toBe("undetermined: nodes-not-listed");
    expect(judgement.message).toContain('the verb "list" on nodes');
  });

  it("2.4 a copied bucket has new store times: they do not veto a restarted container", () => {
    const copied = { ...lock, storedAt: at("2026-03-10T11:30:00Z") };
    const pod = aPod({ containers: [aContainer(running("2026-03-10T10:30:00Z"), { restartCount: 1 })] });
    expect(verdictOf(judge(copied, { clusters: [aCluster({ pods: [pod] })] }))).toBe("stale: container-restarted");
  });

  it("2.4 but a pod that is merely younger by its creation is vetoed, with the figures shown", () => {
    const copied = { ...lock, storedAt: at("2026-03-10T11:30:00Z") };
    const pod = aPod({ createdAt: at("2026-03-10T10:30:00Z"), containers: [aContainer(running("2026-03-10T10:00:03Z"))] });
    const judgement = judge(copied, { clusters: [aCluster({ pods: [pod] })] });
    expect(verdictOf(judgement)).toBe("undetermined: clock-contradiction");
    expect(judgement.message).toContain("2026-03-10T11:30:00Z");
  });

  it("2.6 a pod not recreated by a hair may still have restarted", () => {
    const pod = aPod({ createdAt: at("2026-03-10T10:00:03Z"), containers: [aContainer(running("2026-03-10T10:00:08Z"))] });
    expect(verdictOf(judge(lock, { clusters: [aCluster({ pods: [pod] })] }))).toBe("stale: container-restarted");
  });

  it("2.9 several pods of one hostname: held by any that is older", () => {
    const pods = [
      aPod({ hostname: "app-workspace-0", name: "a", uid: "1" }),
      aPod({ name: "app-workspace-0", uid: "2", createdAt: at("2026-03-10T11:00:00Z"), containers: [aContainer(running("2026-03-10T11:00:05Z"))] }),
    ];
    expect(verdictOf(judge(lock, { clusters: [aCluster({ pods })] }))).toBe("held: container-running");
  });

  it("2.9 Terminating on a dead node: the reason names the node", () => {
    const pod = aPod({ deletionAt: at("2026-03-10T11:00:00Z") });
    expect(judge(lock, { clusters: [aCluster({ pods: [pod], nodes: [aNode({ ready: "Unknown" })] })] }).message).toContain('"node-1" is not Ready');
  });

  it("2.9 Terminating and everything in it terminated: gone", () => {
    expect(judgePod({ deletionAt: at("2026-03-10T12:10:00Z"), containers: [aContainer(terminated("2026-03-10T11:30:00Z", "2026-03-01T00:00:10Z"))] })).toBe(
      "stale: container-restarted",
    );
  });
});

describe("3. where two engineers would differ", () => {
  it.each([
    ["3.3 no cluster at all", [], "undetermined: no-cluster"],
    [
      "3.6 held in one cluster, incomplete in another",
      [aCluster({ pods: [aPod()] }), { ...aCluster({ name: "b" }), pods: { kind: "incomplete" as const, problem: "403", pods: [], total: 0 } }],
      "held: container-running",
    ],
  ])("%s", (_, clusters, expected) => {
    expect(verdictOf(judge(lock, { clusters }))).toBe(expected);
  });

  it.each([
    ["2 s ahead", 2n, undefined, "stale: pod-not-found"],
    ["6 s ahead of the janitor", 6n, undefined, "undetermined: clock-contradiction"],
    ["6 s behind the janitor", -6n, undefined, "undetermined: clock-contradiction"],
    ["the API server's 6 s ahead", 0n, 6n, "undetermined: clock-contradiction"],
  ])("3.8 the store's clock %s", (_, store, api, expected) => {
    const cluster = aCluster(api === undefined ? {} : { clockOffset: api * 1_000_000_000n });
    expect(verdictOf(judge(named, { ...RUNNERS, storeClockOffset: store * 1_000_000_000n, clusters: [cluster] }))).toBe(expected);
  });

  it.each([
    ["30 s by the writer's clock", "2026-03-10T11:59:30Z", undefined, "too-young: min-age"],
    ["30 s by the store's clock only", LOCKED, "2026-03-10T11:59:30Z", "too-young: min-age"],
    ["a lock from the future by less than the skew", "2026-03-10T12:00:04Z", undefined, "too-young: min-age"],
    ["a lock from the future by more", "2026-03-10T12:00:06Z", undefined, "undetermined: clock-contradiction"],
  ])("3.11 an age of %s", (_, timestamp, storedAt, expected) => {
    expect(verdictOf(judge(aLock({ hostname: "iac-runner-0", timestamp, ...(storedAt === undefined ? {} : { storedAt }) }), RUNNERS))).toBe(expected);
  });

  it("3.6 every cluster must be complete, and its nodes trusted, for an absence", () => {
    const doubtful = aCluster({ name: "green", nodes: [aNode({ ready: "Unknown" })] });
    expect(verdictOf(judge(named, { ...RUNNERS, clusters: [aCluster(), doubtful] }))).toBe("undetermined: node-unreachable");
  });
});

describe("1.1 blue/green: no fact in a lock names a cluster", () => {
  it("without a Stack here it is another cluster's, whatever its pod is called", () => {
    expect(verdictOf(judge(lock, { clusters: [aCluster({ stacks: [] })] }))).toBe("foreign: no-stack");
    expect(verdictOf(judge(lock, { clusters: [aCluster({ stacks: [aStack({ name: "other" })] })] }))).toBe("foreign: no-stack");
  });

  it("the other cluster, configured here too, holds it", () => {
    const clusters = [aCluster({ name: "blue", pods: [aPod()] }), aCluster({ name: "green" })];
    expect(verdictOf(judge(lock, { clusters }))).toBe("held: container-running");
  });

  it.each(["yes", "no"] as const)("--require-stack=%s overrides, for profiles and patterns alike", (requireStack) => {
    const clusters = [aCluster({ stacks: [] })];
    const expected = requireStack === "yes" ? "foreign: no-stack" : "stale: pod-not-found";
    expect(verdictOf(judge(lock, { clusters, settings: { requireStack } }))).toBe(expected);
    expect(verdictOf(judge(named, { ...RUNNERS, clusters, settings: { requireStack } }))).toBe(expected);
  });
});

describe("1.13 and 1.17 machines of the same shape, and namespaces that were not asked", () => {
  const docker = aLock({ hostname: "runner-t1abc-project-42-concurrent-0" });
  it("1.13 the recipe of GitLab's pods does not match its docker executor", () => {
    const owners = ["runner-*-project-*-concurrent-*-????????"];
    expect(verdictOf(judge(docker, { owners }))).toBe("foreign: no-pattern");
    expect(verdictOf(judge(aLock({ hostname: "runner-t1abc-project-42-concurrent-0-x7k2m9qp" }), { owners }))).toBe("stale: pod-not-found");
  });

  it("1.17 a message says so where only some namespaces were asked", () => {
    expect(judge(named, { ...RUNNERS, clusters: [aCluster({ namespaces: ["iac"] })] }).message).toContain("of the namespaces asked");
  });
});

describe("2.3 how people write the Stack of a lock", () => {
  const shop = aLock({ key: ".pulumi/locks/organization/shop/dev/1.json" });
  it.each([
    ["dev", undefined, "stale: pod-not-found"],
    ["organization/dev", undefined, "stale: pod-not-found"],
    ["organization/shop/dev", "azblob://state", "stale: pod-not-found"],
    ["myorg/shop/dev", "azblob://state/?storage_account=acme", "stale: pod-not-found"],
    ["dev", "azblob://state?domain=blob.core.windows.net", "stale: pod-not-found"],
    ["organization/dns/dev", undefined, "foreign: no-stack"],
    ["dev", "azblob://state/team", "foreign: no-stack"],
    ["dev", "azblob://state?storage_account=other", "foreign: no-stack"],
    ["dev", "s3://state", "foreign: no-stack"],
  ])("spec.stack %s, spec.backend %s: %s", (name, backend, expected) => {
    const stack = aStack({ stacks: [name], ...(backend === undefined ? {} : { backend }) });
    expect(verdictOf(judge(shop, { clusters: [aCluster({ stacks: [stack] })] }))).toBe(expected);
  });

  it("a Workspace counts like a Stack; a name over 63 characters is cut as its pod's hostname is", () => {
    expect(verdictOf(judge(shop, { clusters: [aCluster({ stacks: [aStack({ kind: "Workspace", stacks: ["dev"] })] })] }))).toBe("stale: pod-not-found");
    const long = "x".repeat(55);
    const cut = aLock({ hostname: `${long}-workspa`, key: ".pulumi/locks/dev/1.json" });
    const settings = { owners: [{ glob: "x*-workspa", container: "pulumi", profile: "operator-v2" as const }] };
    expect(verdictOf(judge(cut, { settings, clusters: [aCluster({ stacks: [aStack({ name: long, stacks: ["dev"] })] })] }))).toBe("stale: pod-not-found");
  });

  it("the message of a lock whose Stack was deleted names the way around", () => {
    expect(judge(shop, { clusters: [aCluster({ stacks: [] })] }).message).toContain("--require-stack=no");
    const stacks = { kind: "listed" as const, stacks: [], withoutWorkspaces: 'the verb "list" on workspaces is not allowed' };
    expect(judge(shop, { clusters: [{ ...aCluster(), stacks }] }).message).toContain('Workspaces might, but the verb "list" on workspaces is not allowed');
  });
});

describe("2.5 an old node's clock is 3 s fast", () => {
  it("a successor 1 s older than the lock by the API server's clock is not called contradictory: its containers are later", () => {
    const pod = { createdAt: at("2026-03-10T09:59:59Z"), containers: [aContainer(running("2026-03-10T10:00:07Z"))] };
    expect(judgePod(pod)).toBe("stale: container-restarted");
  });
});
