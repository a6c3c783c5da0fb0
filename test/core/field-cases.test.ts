// Situations that people really met, each by its id; "now" is 2026-03-10T12:00:00Z.
import { describe, expect, it } from "vitest";

import { formatIdentity } from "../../src/core/backend-identity.ts";
import { keyPrefix, splitBackendUrl } from "../../src/core/backend-url.ts";
import type { ClusterObservation, Pod } from "../../src/core/cluster.ts";
import { parseLockKey, stackFolder } from "../../src/core/key.ts";
import type { ObservedLock } from "../../src/core/lock.ts";
import { readPod } from "../../src/kubernetes/read-objects.ts";
import {
  aCluster,
  aContainer,
  aLock,
  aLockWithBody,
  aNode,
  aPod,
  aRun,
  aStack,
  at,
  judge,
  running,
  terminated,
  verdictOf,
  type CaseWords,
} from "./builders.ts";

type Case = readonly [id: string, expected: string, lock: ObservedLock, circumstances: CaseWords];

const OPERATOR = "pulumi-kubernetes-operator-4d81c3fa-6b8d5f7c9d-q4x7n";
const operatorLock = aLock({
  hostname: OPERATOR,
  timestamp: "2026-03-09T21:33:18.104Z",
  pid: 28_841,
  username: "pulumi-kubernetes-operator",
  key: ".pulumi/locks/edge-dns.qa.region1/6f0e2a4c-91d7-4c0b-8a55-2d1b7c9e4f10.json",
});
const replacement = aPod({ namespace: "pulumi", name: "pulumi-kubernetes-operator-4d81c3fa-6b8d5f7c9d-zz9mk", createdAt: at("2026-03-09T21:36:02Z") });
const edgeDns = aStack({ name: "edge-dns", stacks: ["edge-dns.qa.region1"] });

const networkLock = aLock({
  hostname: "network-dev-workspace-0",
  timestamp: "2026-03-10T09:02:11.500Z",
  pid: 211,
  key: ".pulumi/locks/organization/network/dev/0b9f3f1e.json",
});
const restarted = aPod({
  name: "network-dev-workspace-0",
  createdAt: at("2026-02-20T08:00:00Z"),
  containers: [aContainer(running("2026-03-10T09:41:03Z"), { restartCount: 3, last: aRun(undefined, "2026-03-10T09:40:58Z") })],
});
const networkStack = aStack({ name: "network-dev", stacks: ["organization/network/dev"] });

const billingLock = aLock({ hostname: "billing-runner", timestamp: "2026-03-10T07:11:48.020Z", storedAt: "2026-03-10T07:11:48Z", pid: 57, username: "runner" });
const billingPod = aPod({
  name: "billing-runner",
  createdAt: at("2026-03-10T07:55:12Z"),
  containers: [aContainer(running("2026-03-10T07:55:20Z"), { name: "runner" })],
});

const evictedLock = aLock({ hostname: "shop-build-4xk2w-runner-q8zt5", timestamp: "2026-03-10T10:20:00Z", pid: 340, username: "runner" });
const ended = (status: object): ClusterObservation =>
  aCluster({
    pods: [
      readPod({
        metadata: { name: "shop-build-4xk2w-runner-q8zt5", namespace: "ci", uid: "u", creationTimestamp: "2026-03-10T10:00:00Z" },
        spec: { nodeName: "node-1", containers: [{ name: "runner" }] },
        status,
      }),
    ],
  });

const applyLock = aLock({ hostname: "iac-apply-29x4d", timestamp: "2026-03-10T11:00:00Z", storedAt: "2026-03-10T11:00:00Z", pid: 22, username: "root" });
const applyPod = (phase: string, containers: Pod["containers"]): ClusterObservation =>
  aCluster({ pods: [aPod({ name: "iac-apply-29x4d", phase, createdAt: at("2026-03-10T10:57:00Z"), containers })] });
const applied = aContainer(terminated("2026-03-10T11:04:00Z"), { name: "apply" });
const killed = [aContainer(terminated("2026-03-10T11:03:10Z"), { name: "apply" }), aContainer(running("2026-03-10T10:58:01Z"), { name: "istio-proxy" })];

const cdnLock = aLock({ hostname: "cdn-stage-workspace-0", timestamp: "2026-03-10T11:40:00Z", pid: 41 });
const cdnPod = aPod({ name: "cdn-stage-workspace-0", deletionAt: at("2026-03-10T12:29:00Z") });

const runnerLock = aLock({ hostname: "iac-runner-0", timestamp: "2026-03-10T04:00:00Z", pid: 19, username: "root" });
const silent = aNode({ name: "node-7", ready: "Unknown", readySince: at("2026-03-10T05:00:00Z") });

const nodeLock = aLock({ hostname: "ip-10-8-31-77.eu-west-1.compute.internal", timestamp: "2026-03-10T08:44:02Z", pid: 512, username: "root" });

describe("A. is the pod that took the lock gone?", () => {
  it.each<Case>([
    [
      "C01 an operator pod replaced during an upgrade",
      "stale: pod-not-found",
      operatorLock,
      { clusters: [aCluster({ pods: [replacement], stacks: [edgeDns] })] },
    ],
    ["C01 variant: no Stack of this cluster accounts for it", "foreign: no-stack", operatorLock, { clusters: [aCluster({ stacks: [] })] }],
    [
      "C01 trap: the replacement of the same stem is not the owner, though it runs since before the lock",
      "stale: pod-not-found",
      operatorLock,
      { clusters: [aCluster({ pods: [aPod({ ...replacement, createdAt: at("2026-03-09T20:00:00Z") })], stacks: [edgeDns] })] },
    ],
    [
      "C01 variant: the bucket is another cluster's too, whose Stack it is",
      "foreign: no-stack",
      operatorLock,
      { clusters: [aCluster({ stacks: [aStack({ stacks: ["edge-dns.qa.region1"], backend: "azblob://elsewhere" })] })] },
    ],
    ["C01 variant: no pattern matches", "foreign: no-pattern", operatorLock, { owners: ["iac-runner-*"] }],
    [
      "C02 the workspace's container restarted after the lock",
      "stale: container-restarted",
      networkLock,
      { clusters: [aCluster({ pods: [restarted], stacks: [networkStack] })] },
    ],
    [
      "C03 nothing in Kubernetes shows that the process died",
      "held: container-running",
      aLock({ hostname: "dns-prod-workspace-0", timestamp: "2026-03-10T08:30:00Z", pid: 1_904 }),
      { clusters: [aCluster({ pods: [aPod({ name: "dns-prod-workspace-0" })], stacks: [aStack({ name: "dns-prod" })] })] },
    ],
    [
      "C02 trap: it restarted before the lock",
      "held: container-running",
      networkLock,
      {
        clusters: [
          aCluster({
            pods: [
              aPod({
                ...restarted,
                containers: [aContainer(running("2026-03-10T09:02:10Z"), { restartCount: 3, last: aRun(undefined, "2026-03-10T09:02:05Z") })],
              }),
            ],
            stacks: [networkStack],
          }),
        ],
      },
    ],
    ["C04 a pod made again under the same name", "stale: pod-recreated", billingLock, { owners: ["billing-*"], clusters: [aCluster({ pods: [billingPod] })] }],
    [
      "C04 trap: the store says that the lock is younger than the pod",
      "held: container-running",
      { ...billingLock, storedAt: at("2026-03-10T08:00:00Z") },
      { owners: ["billing-*"], clusters: [aCluster({ pods: [aPod({ ...billingPod, containers: [aContainer(running("2026-03-10T07:11:00Z"))] })] })] },
    ],
    [
      "C04 trap: so it says, and the container has been running since the pod is there",
      "undetermined: clock-contradiction",
      { ...billingLock, storedAt: at("2026-03-10T08:00:00Z") },
      { owners: ["billing-*"], clusters: [aCluster({ pods: [billingPod] })] },
    ],
    [
      "C06 evicted",
      "stale: pod-ended",
      evictedLock,
      { owners: ["shop-build-*-runner-*"], clusters: [ended({ phase: "Failed", reason: "Evicted", containerStatuses: [] })] },
    ],
    [
      "C06 ended by the kubelet",
      "stale: pod-ended",
      evictedLock,
      {
        owners: ["shop-build-*-runner-*"],
        clusters: [
          ended({ phase: "Failed", reason: "Terminated", conditions: [{ type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet" }] }),
        ],
      },
    ],
    [
      "C06 shut down with its node",
      "stale: pod-ended",
      evictedLock,
      { owners: ["shop-build-*-runner-*"], clusters: [ended({ phase: "Failed", reason: "Shutdown" })] },
    ],
    ["C06 preempted", "stale: pod-ended", evictedLock, { owners: ["shop-build-*-runner-*"], clusters: [ended({ phase: "Failed", reason: "Preempting" })] }],
    ["C07a completed", "stale: pod-ended", applyLock, { owners: ["iac-apply-*"], clusters: [applyPod("Succeeded", [applied])] }],
    [
      "C07b the sidecar lives on, and any container may run pulumi",
      "held: container-running",
      applyLock,
      { owners: ["iac-apply-*"], clusters: [applyPod("Running", killed)] },
    ],
    [
      "C07b the owner's container is named",
      "stale: container-restarted",
      applyLock,
      { owners: ["iac-apply-*=apply"], clusters: [applyPod("Running", killed)] },
    ],
    [
      "C07b a named container that the pod does not have names nothing",
      "held: container-running",
      applyLock,
      { owners: ["iac-apply-*=aply"], clusters: [applyPod("Running", killed)] },
    ],
    [
      "C10 Terminating, pulumi finishes its step",
      "held: pod-terminating",
      cdnLock,
      { clusters: [aCluster({ pods: [cdnPod], stacks: [aStack({ name: "cdn-stage" })] })] },
    ],
    [
      "C11a Terminating on a node that cannot be reached",
      "held: pod-terminating",
      runnerLock,
      {
        owners: ["iac-runner-*"],
        clusters: [
          aCluster({
            nodes: [silent],
            pods: [
              aPod({
                name: "iac-runner-0",
                nodeName: "node-7",
                deletionAt: at("2026-03-10T05:10:00Z"),
                containers: [aContainer(running("2026-03-10T03:58:00Z"))],
              }),
            ],
          }),
        ],
      },
    ],
    [
      "C11b force-deleted, its node silent",
      "undetermined: node-unreachable",
      runnerLock,
      { owners: ["iac-runner-*"], clusters: [aCluster({ nodes: [silent] })] },
    ],
    ["C11c force-deleted, its node gone", "stale: pod-not-found", runnerLock, { owners: ["iac-runner-*"], clusters: [aCluster({ nodes: [aNode()] })] }],
    [
      "C13a a node's own name",
      "foreign: node-name",
      nodeLock,
      {
        owners: ["ip-10-8-31-77.eu-west-1.compute.internal"],
        clusters: [
          aCluster({
            nodes: [aNode({ name: "ip-10-8-31-77.eu-west-1.compute.internal" })],
            pods: [aPod({ hostNetwork: true, nodeName: "ip-10-8-31-77.eu-west-1.compute.internal" })],
          }),
        ],
      },
    ],
    [
      "C13b a machine that is no node here",
      "foreign: no-pattern",
      nodeLock,
      { clusters: [aCluster({ nodes: [aNode({ name: "ip-10-8-9-12.eu-west-1.compute.internal" })] })] },
    ],
    [
      "C18 the dead one of two locks on one stack",
      "stale: pod-not-found",
      aLock({ hostname: "iac-runner-aaaaa", timestamp: "2026-03-09T20:00:00Z" }),
      {
        owners: ["iac-runner-*"],
        clusters: [
          aCluster({
            pods: [aPod({ name: "iac-runner-bbbbb", createdAt: at("2026-03-10T11:59:28Z"), containers: [aContainer(running("2026-03-10T11:59:30Z"))] })],
          }),
        ],
      },
    ],
    [
      "C18 the living one of two locks on one stack",
      "held: container-running",
      aLock({ hostname: "iac-runner-bbbbb", timestamp: "2026-03-10T11:59:58Z" }),
      {
        owners: ["iac-runner-*"],
        settings: { minAge: 0n },
        clusters: [
          aCluster({
            pods: [aPod({ name: "iac-runner-bbbbb", createdAt: at("2026-03-10T11:59:28Z"), containers: [aContainer(running("2026-03-10T11:59:30Z"))] })],
          }),
        ],
      },
    ],
    [
      "C19 the unlock failed in the store, the pod is fine: at any age",
      "held: container-running",
      aLock({ hostname: "deploy-api-6c5f9d7b84-2lkqz", timestamp: "2026-03-07T16:27:08.310522Z", pid: 9_912 }),
      { owners: ["deploy-api-*"], clusters: [aCluster({ pods: [aPod({ name: "deploy-api-6c5f9d7b84-2lkqz" })] })] },
    ],
    [
      "C22 a pod that started with its lock holds it, once it is old enough to be judged",
      "held: container-running",
      aLock({ hostname: "iac-runner-x9k2p", timestamp: "2026-03-10T11:58:30.2Z" }),
      {
        owners: ["iac-runner-*"],
        clusters: [
          aCluster({
            pods: [aPod({ name: "iac-runner-x9k2p", createdAt: at("2026-03-10T11:58:28Z"), containers: [aContainer(running("2026-03-10T11:58:30Z"))] })],
          }),
        ],
      },
    ],
    [
      "C22 the lock is young: left alone whatever the list says",
      "too-young: min-age",
      aLock({ hostname: "iac-runner-x9k2p", timestamp: "2026-03-10T11:59:30Z" }),
      { owners: ["iac-runner-*"] },
    ],
    [
      "C23 a list that broke half-way",
      "undetermined: list-incomplete",
      aLock({ hostname: "iac-runner-x9k2p" }),
      {
        owners: ["iac-runner-*"],
        clusters: [aCluster({}), { ...aCluster({ name: "b" }), pods: { kind: "incomplete", problem: "410", pods: [], total: 500 } }],
      },
    ],
  ])("%s: %s", (_, expected, lock, circumstances) => {
    expect(verdictOf(judge(lock, circumstances))).toBe(expected);
  });

  it("C09 an event of the node is no evidence: as C03, held", () => {
    const lock = aLock({ hostname: "dns-prod-workspace-0", timestamp: "2026-03-10T08:30:00Z", pid: 1_904 });
    expect(verdictOf(judge(lock, { clusters: [aCluster({ pods: [aPod({ name: "dns-prod-workspace-0" })], stacks: [aStack({ name: "dns-prod" })] })] }))).toBe(
      "held: container-running",
    );
  });
});

describe("C14 pods that override their hostname", () => {
  const pods = [
    aPod({ name: "worker-7d4c", hostname: "iac-a", subdomain: "runners" }),
    aPod({ name: "worker-8f1b", hostname: "iac-b", subdomain: "runners", setHostnameAsFqdn: true, namespace: "ci" }),
    aPod({ name: "worker-9a2e", setHostnameAsFqdn: true }),
    aPod({ name: "worker-b3b3", hostnameOverride: "ci7.corp.example" }),
  ];
  it.each(["iac-a", "iac-b.runners.ci.svc.cluster.local", "worker-9a2e", "ci7.corp.example"])("the lock of %s is held", (hostname) => {
    expect(verdictOf(judge(aLock({ hostname }), { owners: ["iac-?", "iac-?.*.svc.*", "worker-*", "ci?.corp.example"], clusters: [aCluster({ pods })] }))).toBe(
      "held: container-running",
    );
  });

  it.each(["worker-7d4c", "worker-b3b3"])("a pod's name alone, %s, is no hostname where it is overridden", (hostname) => {
    expect(verdictOf(judge(aLock({ hostname }), { owners: ["worker-*"], clusters: [aCluster({ pods })] }))).toBe("stale: pod-not-found");
  });
});

describe("B. owners outside the cluster, and odd contents", () => {
  it("C15 a suspended laptop, hours old by its offset: foreign at any age", () => {
    const lock = aLock({
      hostname: "Mirrens-MacBook-Pro.local",
      timestamp: "2026-03-10T02:17:21.406113-08:00",
      pid: 1,
      username: "m.okafor",
      key: ".pulumi/locks/sandbox-freeze/manual.json",
    });
    expect(verdictOf(judge(lock))).toBe("foreign: no-pattern");
    expect(lock.content).toMatchObject({ owner: { timestamp: "2026-03-10T02:17:21.406113-08:00", lockedAt: at("2026-03-10T10:17:21.406113Z") } });
  });

  it.each([
    [
      "C17 an empty user is fine",
      '{"pid":31,"username":"","hostname":"iac-runner-5f7c8b9d6c-m2x4q","timestamp":"2026-03-10T00:41:09Z"}',
      "stale: pod-not-found",
    ],
    ["C17 localhost", '{"pid":31,"username":"root","hostname":"localhost","timestamp":"2026-03-10T00:41:09Z"}', "foreign: no-pattern"],
    ["C17 an empty host", '{"pid":31,"username":"root","hostname":"","timestamp":"2026-03-10T00:41:09Z"}', "unreadable: empty-hostname"],
    ["C20 an empty body", "", "unreadable: empty"],
    ["C20 a body that is cut off", '{"pid":61,"username":"pulumi","hostn', "unreadable: not-json"],
    ["C20 a byte order mark", '\ufeff{"pid":61,"username":"pulumi","hostname":"iac-runner-x","timestamp":"2026-03-10T00:00:00Z"}', "unreadable: not-json"],
    [
      "C20 more fields than expected",
      '{"pid":61,"username":"pulumi","hostname":"iac-runner-x","timestamp":"2026-03-10T00:00:00Z","pipeline":"4711","message":"nightly"}',
      "stale: pod-not-found",
    ],
    ["C20 null", "null", "unreadable: not-a-lock"],
  ])("%s: %s gives %s", (_, body, expected) => {
    expect(verdictOf(judge(aLockWithBody(body), { owners: ["iac-runner-*"] }))).toBe(expected);
  });

  it("C20 the message names the key, since Pulumi's own does not", () => {
    expect(judge(aLockWithBody("", { key: ".pulumi/locks/organization/shop/prod/2b77.json" })).message).toContain(
      ".pulumi/locks/organization/shop/prod/2b77.json",
    );
  });
});

describe("C. keys and layouts", () => {
  it.each([
    [".pulumi/locks/shop-cache-prod/9d0c.json", "shop-cache-prod", "9d0c"],
    [".pulumi/locks/organization/shop/prod/2b77.json", "organization/shop/prod", "2b77"],
    [".pulumi/locks/organization/9e01.json", "organization", "9e01"],
    [".pulumi/locks/sandbox-freeze/manual.json", "sandbox-freeze", "manual"],
    [".pulumi/locks/organization/shop/prod/83aa.json.189c2f4e6b1d3a00.tmp", "organization/shop/prod", "83aa.json.189c2f4e6b1d3a00.tmp"],
    [".pulumi/locks/stray.json", "", "stray"],
    [".pulumi/locks/a__0x1f__b/1.json", "a\u001fb", "1"],
  ])("C25 %s is of stack %j", (key, stack, id) => {
    expect(parseLockKey(key)).toEqual({ stack, id });
  });

  it.each([
    [".pulumi/locks/shop-cache-prod/1.json", "shop-cache-prod"],
    [".pulumi/locks/organization/shop/prod/1.json", "organization/shop/prod"],
    [".pulumi/locks/organization/1.json", "organization"],
  ])("C25 the layout of %s does not matter to the verdict", (key, stack) => {
    const lock = aLock({ hostname: OPERATOR, key });
    expect(verdictOf(judge(lock, { clusters: [aCluster({ stacks: [aStack({ stacks: [stack] })] })] }))).toBe("stale: pod-not-found");
  });
});

describe("C27 side files of the local file backend", () => {
  const FOLDER = ".pulumi/locks/organization/shop/prod";
  const stranded = `${FOLDER}/83aa.json.189c2f4e6b1d3a00.tmp`;
  const body = '{"pid":61,"username":"pulumi","hostname":"iac-runner-x","timestamp":"2026-03-10T00:00:00Z"}';
  it.each([
    ["whole: judged by its owner", body, "stale: pod-not-found"],
    ["cut off", body.slice(0, 40), "unreadable: not-json"],
    ["empty", "", "unreadable: empty"],
  ])("a stranded temporary file counts for Pulumi, so it is a lock: %s", (_, text, expected) => {
    expect(verdictOf(judge(aLockWithBody(text, { key: stranded }), { owners: ["iac-runner-*"] }))).toBe(expected);
  });

  it.each([`${FOLDER}/2b77.json`, stranded, `${FOLDER}/README.txt`])("%s locks the stack organization/shop/prod", (key) => {
    expect(parseLockKey(key).stack).toBe("organization/shop/prod");
    expect(stackFolder(key)).toBe(`${FOLDER}/`);
  });
});

describe("C29 the database's name is part of the key, and the column holds base64", () => {
  const url = splitBackendUrl("postgres://janitor:secret@pg.internal.example:5432/iac_state_db?sslmode=require&table=iac_state");
  const data =
    "eyJwaWQiOjg4LCJ1c2VybmFtZSI6ImRlcGxveSIsImhvc3RuYW1lIjoiaWFjLXJ1bm5lci01ZjdjOGI5ZDZjLW0yeDRxIiwidGltZXN0YW1wIjoiMjAyNi0wMy0xMFQwOToxNDoyNy4xMTgyMDQ1MTFaIn0=";

  it("the prefix of every key is the database", () => {
    expect(url === undefined ? undefined : keyPrefix(url)).toBe("iac_state_db/");
  });

  it("the lock in the row is judged as any other", () => {
    const lock = aLockWithBody(Buffer.from(data, "base64"));
    expect(lock.content).toMatchObject({
      owner: { pid: 88, username: "deploy", hostname: "iac-runner-5f7c8b9d6c-m2x4q", lockedAt: at("2026-03-10T09:14:27.118204511Z") },
    });
    expect(verdictOf(judge(lock, { owners: ["iac-runner-*"] }))).toBe("stale: pod-not-found");
  });

  it("the base64 itself, taken for the lock, is none", () => {
    expect(verdictOf(judge(aLockWithBody(data)))).toBe("unreadable: not-json");
    expect(verdictOf(judge(aLockWithBody(JSON.stringify({ data }))))).toBe("unreadable: not-a-lock");
  });

  it("P7: no password is in the backend's name", () => {
    const name = formatIdentity({
      scheme: "postgres",
      endpoint: "pg.internal.example:5432",
      database: "iac_state_db",
      table: "iac_state",
      prefix: "iac_state_db/",
    });
    expect(name).toBe("postgres://pg.internal.example:5432/iac_state_db (table iac_state)");
  });
});
