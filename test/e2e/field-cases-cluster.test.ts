// What people really met between their pods and their locks, each situation by its id, through the whole command: a folder of locks, and a cluster
// whose API server answers with the very objects of the case. Every time is moved so that the case's now, 2026-03-10T12:00:00Z, is the test's.
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { CaseWorld, keyOf, REMOVE, type LockBody, type ToldNode, type ToldPod, type ToldStack } from "./field-case.ts";

interface Facts {
  readonly lock: LockBody;
  readonly key?: string;
  readonly storedAt?: string;
  readonly owners?: readonly string[];
  readonly pods?: readonly ToldPod[];
  readonly nodes?: readonly ToldNode[];
  readonly stacks?: readonly ToldStack[];
}

let world: CaseWorld;
beforeEach(async () => {
  world = new CaseWorld();
  await world.start();
});
afterEach(() => world.stop());

const NODES: readonly ToldNode[] = [{ name: "node-1" }];

/** What must come of a verdict when the command is told to remove. */
const CONSEQUENCES = {
  stale: "deleted, exit 0, gone",
  held: "keep, exit 0, still there",
  foreign: "keep, exit 0, still there",
  undetermined: "keep, exit 3, still there",
} as const;

type Expected = `${keyof typeof CONSEQUENCES}: ${string}`;
type Case = readonly [title: string, expected: Expected, facts: Facts];

/** The verdict with what must come of it. */
function withConsequence(expected: Expected): string {
  const [, consequence] = Object.entries(CONSEQUENCES).find(([verdict]) => expected.startsWith(`${verdict}:`)) ?? [];
  return `${expected}, ${consequence ?? ""}`;
}

/** Tells the facts to cluster and folder, lets the command remove what it may, and says what became of the lock. */
async function sweepFor({ lock, key, storedAt, owners = [], pods = [], nodes = NODES, stacks = [] }: Facts): Promise<string> {
  const put = world.addLock(lock, { ...(key === undefined ? {} : { key }), ...(storedAt === undefined ? {} : { storedAt }) });
  world.addPods(...pods);
  world.addNodes(...nodes);
  world.addStacks(...stacks);
  const { verdicts, exitCode } = await world.sweep(...owners.flatMap((owner) => ["--owner", owner]), ...REMOVE);
  return `${verdicts.join("; ")}, exit ${exitCode ?? "none"}, ${world.keys.includes(put) ? "still there" : "gone"}`;
}

const running = (startedAt: string): object => ({ running: { startedAt } });

const operator = {
  lock: {
    pid: 28_841,
    username: "pulumi-kubernetes-operator",
    hostname: "pulumi-kubernetes-operator-4d81c3fa-6b8d5f7c9d-q4x7n",
    timestamp: "2026-03-09T21:33:18.104Z",
  },
  key: ".pulumi/locks/edge-dns.qa.region1/6f0e2a4c-91d7-4c0b-8a55-2d1b7c9e4f10.json",
};
const replacement: ToldPod = {
  namespace: "pulumi",
  name: "pulumi-kubernetes-operator-4d81c3fa-6b8d5f7c9d-zz9mk",
  creationTimestamp: "2026-03-09T21:36:02Z",
  containerStatuses: [{ name: "pulumi-kubernetes-operator", restartCount: 0, state: running("2026-03-09T21:36:04Z") }],
};
const edgeDns: ToldStack = { name: "edge-dns", stack: "edge-dns.qa.region1" };

const network = {
  lock: { pid: 211, username: "pulumi", hostname: "network-dev-workspace-0", timestamp: "2026-03-10T09:02:11.500Z" },
  key: ".pulumi/locks/organization/network/dev/0b9f3f1e-4a44-4a3e-9d2a-9c1d5b7a2e61.json",
  stacks: [{ name: "network-dev", stack: "organization/network/dev" }],
};
const restarted = (startedAt: string, finishedAt: string): ToldPod => ({
  name: "network-dev-workspace-0",
  uid: "5a1e",
  creationTimestamp: "2026-02-20T08:00:00Z",
  containerStatuses: [
    {
      name: "pulumi",
      restartCount: 3,
      state: running(startedAt),
      lastState: { terminated: { reason: "OOMKilled", exitCode: 137, finishedAt } },
    },
  ],
});

const dns = {
  lock: { pid: 1_904, username: "pulumi", hostname: "dns-prod-workspace-0", timestamp: "2026-03-10T08:30:00Z" },
  pods: [
    {
      name: "dns-prod-workspace-0",
      containerStatuses: [{ name: "pulumi", restartCount: 0, state: running("2026-03-01T00:00:20Z") }],
    },
  ],
  stacks: [{ name: "dns-prod", stack: "organization/shop/prod" }],
};

const billing = { lock: { pid: 57, username: "runner", hostname: "billing-runner", timestamp: "2026-03-10T07:11:48.020Z" }, owners: ["billing-*"] };
const billingPod: ToldPod = {
  name: "billing-runner",
  uid: "new-uid",
  creationTimestamp: "2026-03-10T07:55:12Z",
  containerStatuses: [{ name: "runner", state: running("2026-03-10T07:55:20Z") }],
};

const runner = {
  lock: { pid: 340, username: "runner", hostname: "shop-build-4xk2w-runner-q8zt5", timestamp: "2026-03-10T10:20:00Z" },
  owners: ["shop-build-*-runner-*"],
};
const endedRunner = (status: Partial<ToldPod>): Facts => ({
  ...runner,
  pods: [{ name: "shop-build-4xk2w-runner-q8zt5", creationTimestamp: "2026-03-10T10:00:00Z", phase: "Failed", containerStatuses: [], ...status }],
});

const apply = { lock: { pid: 22, username: "root", hostname: "iac-apply-29x4d", timestamp: "2026-03-10T11:00:00Z" } };
const applyPod: ToldPod = { name: "iac-apply-29x4d", creationTimestamp: "2026-03-10T10:57:00Z", spec: { restartPolicy: "Never" } };
const applied: ToldPod = {
  ...applyPod,
  phase: "Succeeded",
  containerStatuses: [{ name: "apply", state: { terminated: { exitCode: 0, finishedAt: "2026-03-10T11:04:00Z" } } }],
};
const sidecarLives: ToldPod = {
  ...applyPod,
  containerStatuses: [
    { name: "apply", state: { terminated: { exitCode: 137, finishedAt: "2026-03-10T11:03:10Z" } } },
    { name: "istio-proxy", state: running("2026-03-10T10:58:01Z") },
  ],
};

const cdn = {
  lock: { pid: 41, username: "pulumi", hostname: "cdn-stage-workspace-0", timestamp: "2026-03-10T11:40:00Z" },
  stacks: [{ name: "cdn-stage", stack: "organization/shop/prod" }],
};

const iacRunner = { lock: { pid: 19, username: "root", hostname: "iac-runner-0", timestamp: "2026-03-10T04:00:00Z" }, owners: ["iac-runner-*"] };
const silent: ToldNode = { name: "node-7", ready: "Unknown", since: "2026-03-10T05:00:00Z" };

const MACHINE = "ip-10-8-31-77.eu-west-1.compute.internal";
const machine = { lock: { pid: 512, username: "root", hostname: MACHINE, timestamp: "2026-03-10T08:44:02Z" } };
const agent: ToldPod = { name: "iac-agent-x2x7b", spec: { hostNetwork: true, nodeName: MACHINE } };

describe("is the pod that took the lock gone?", () => {
  it.each<Case>([
    ["C01 an operator pod replaced during an upgrade", "stale: pod-not-found", { ...operator, pods: [replacement], stacks: [edgeDns] }],
    ["C01 variant: the bucket is shared, and no Stack of this cluster accounts for it", "foreign: no-stack", operator],
    [
      "C01 variant: the Stack of that name has another backend",
      "foreign: no-stack",
      { ...operator, pods: [replacement], stacks: [{ ...edgeDns, backend: "azblob://elsewhere" }] },
    ],
    ["C01 trap: 404 for a name that no pattern of this cluster matches", "foreign: no-pattern", { ...iacRunner, owners: [] }],
    [
      "C01 trap: the replacement is not the owner, though it has been running since before the lock",
      "stale: pod-not-found",
      { ...operator, pods: [{ ...replacement, creationTimestamp: "2026-03-01T00:00:00Z" }], stacks: [edgeDns] },
    ],
    [
      "C02 the workspace's container restarted after the lock",
      "stale: container-restarted",
      { ...network, pods: [restarted("2026-03-10T09:41:03Z", "2026-03-10T09:40:58Z")] },
    ],
    ["C02 trap: it restarted before the lock", "held: container-running", { ...network, pods: [restarted("2026-03-10T09:02:10Z", "2026-03-10T09:02:05Z")] }],
    ["C03 nothing in Kubernetes shows that the process died", "held: container-running", dns],
    ["C04 a pod made again under the same name", "stale: pod-recreated", { ...billing, storedAt: "2026-03-10T07:11:48Z", pods: [billingPod] }],
    [
      "C04 trap: by the store's time the lock is younger than the pod",
      "undetermined: clock-contradiction",
      { ...billing, storedAt: "2026-03-10T08:00:00Z", pods: [billingPod] },
    ],
    [
      "C04 trap: so it says, and a container has been running since before the lock",
      "held: container-running",
      {
        ...billing,
        storedAt: "2026-03-10T08:00:00Z",
        pods: [{ ...billingPod, containerStatuses: [{ name: "runner", state: running("2026-03-10T07:11:00Z") }] }],
      },
    ],
    ["C06 evicted", "stale: pod-ended", endedRunner({ reason: "Evicted" })],
    [
      "C06 ended by the kubelet",
      "stale: pod-ended",
      endedRunner({ reason: "Terminated", conditions: [{ type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet" }] }),
    ],
    ["C06 shut down with its node", "stale: pod-ended", endedRunner({ reason: "Shutdown" })],
    ["C06 preempted", "stale: pod-ended", endedRunner({ reason: "Preempting" })],
    ["C07 a: completed", "stale: pod-ended", { ...apply, owners: ["iac-apply-*"], pods: [applied] }],
    ["C07 b: the sidecar lives on, and any container may run pulumi", "held: container-running", { ...apply, owners: ["iac-apply-*"], pods: [sidecarLives] }],
    ["C07 b: the owner's container is named", "stale: container-restarted", { ...apply, owners: ["iac-apply-*=apply"], pods: [sidecarLives] }],
    ["C07 b: the container that is named lives on", "held: container-running", { ...apply, owners: ["iac-apply-*=istio-proxy"], pods: [sidecarLives] }],
    ["C07 b: a name that no container has names nothing", "held: container-running", { ...apply, owners: ["iac-apply-*=aply"], pods: [sidecarLives] }],
    [
      "C10 Terminating with the end of its grace period to come: pulumi finishes its step",
      "held: pod-terminating",
      {
        ...cdn,
        pods: [
          {
            name: "cdn-stage-workspace-0",
            deletionTimestamp: "2026-03-10T12:29:00Z",
            deletionGracePeriodSeconds: 1_800,
            containerStatuses: [{ name: "pulumi", state: running("2026-03-01T00:00:10Z") }],
          },
        ],
      },
    ],
    [
      "C11 a: Terminating for hours on a node that cannot be reached",
      "held: pod-terminating",
      {
        ...iacRunner,
        nodes: [...NODES, silent],
        pods: [
          {
            name: "iac-runner-0",
            deletionTimestamp: "2026-03-10T05:10:00Z",
            spec: { nodeName: "node-7" },
            containerStatuses: [{ name: "pulumi", state: running("2026-03-10T03:58:00Z") }],
          },
        ],
      },
    ],
    ["C11 b: force-deleted, and its node is silent", "undetermined: node-unreachable", { ...iacRunner, nodes: [...NODES, silent] }],
    ["C11 c: force-deleted, and its node is gone", "stale: pod-not-found", iacRunner],
    [
      "C13 a: with hostNetwork the host is a node",
      "foreign: node-name",
      { ...machine, owners: [MACHINE], nodes: [...NODES, { name: MACHINE }], pods: [agent] },
    ],
    ["C13 a: no pattern says that it is a pod", "foreign: no-pattern", { ...machine, nodes: [...NODES, { name: MACHINE }], pods: [agent] }],
    ["C13 b: a machine that is no node here", "foreign: no-pattern", { ...machine, nodes: [{ name: "ip-10-8-9-12.eu-west-1.compute.internal" }] }],
  ])("%s: %s", async (_title, expected, facts) => {
    expect(await sweepFor(facts)).toBe(withConsequence(expected));
  });

  it("C03 the age is told, so that a person can act", async () => {
    world.addLock(dns.lock);
    world.addPods(...dns.pods);
    world.addNodes(...NODES);
    world.addStacks(...dns.stacks);
    const { report } = await world.sweep();
    expect(report.warnings).toEqual([expect.stringMatching(/held for longer than 2 h.*organization\/shop\/prod by dns-prod-workspace-0 for 3 h 30 min/)]);
  });

  it("C09 the kernel of the node killed something: that names no lock, as C03 held", async () => {
    world.api.objects.set("/api/v1/events", [{ reason: "OOMKilling", involvedObject: { kind: "Node", name: "node-1" } }]);
    expect(await sweepFor(dns)).toBe(withConsequence("held: container-running"));
    expect(world.api.calls.map(({ path }) => path).filter((path) => path.includes("events"))).toEqual([]);
  });

  it("C13 a: without the right to list nodes the lock stays as well", async () => {
    world.api.answer = ({ path }) => (path === "/api/v1/nodes" ? { kind: "status", status: 403 } : undefined);
    expect(await sweepFor({ ...machine, owners: [MACHINE], pods: [agent] })).toBe(withConsequence("held: container-running"));
  });
});

describe("C14 pods that override their hostname", () => {
  const overriding: readonly ToldPod[] = [
    { name: "worker-7d4c", spec: { hostname: "iac-a", subdomain: "runners" } },
    { name: "worker-8f1b", namespace: "ci", spec: { hostname: "iac-b", subdomain: "runners", setHostnameAsFQDN: true } },
    { name: "worker-9a2e", spec: { setHostnameAsFQDN: true } },
    { name: "worker-b3b3", spec: { hostnameOverride: "ci7.corp.example" } },
  ];
  const owners = ["iac-?", "iac-?.*.svc.*", "worker-*", "ci?.corp.example"];

  it("C14 each lock is held by the pod whose processes have that hostname, or begin with it", async () => {
    const hostnames = ["ci7.corp.example", "iac-a", "iac-a.elsewhere.svc.x", "iac-b.runners.ci.svc.cluster.local", "worker-9a2e"];
    const keys = hostnames.map((hostname) => world.addLock({ pid: 7, username: "pulumi", hostname, timestamp: "2026-03-10T10:00:00.5Z" }));
    world.addPods(...overriding);
    world.addNodes(...NODES);
    const { verdicts, exitCode } = await world.sweep(...owners.flatMap((owner) => ["--owner", owner]), ...REMOVE);
    expect({ verdicts, exitCode }).toEqual({ verdicts: hostnames.map(() => "held: container-running, keep"), exitCode: 0 });
    expect(world.keys).toEqual(keys.toSorted());
  });
});

describe("who else is there", () => {
  const DEAD = ".pulumi/locks/organization/shop/prod/1c0a7d52-3a52-4a1e-8f0f-5f5c6f0000a1.json";
  const LIVING = ".pulumi/locks/organization/shop/prod/77fe5b0c-0d6e-4a2b-9a52-1f3c6f0000b2.json";

  it("C18 of two locks on one stack the dead one goes alone, and the stack is told to be locked by the other", async () => {
    world.addLock({ pid: 1, username: "root", hostname: "iac-runner-aaaaa", timestamp: "2026-03-09T20:00:00Z" }, { key: DEAD });
    world.addLock({ pid: 1, username: "root", hostname: "iac-runner-bbbbb", timestamp: "2026-03-10T11:59:58Z" }, { key: LIVING });
    world.addPods({
      name: "iac-runner-bbbbb",
      creationTimestamp: "2026-03-10T11:59:28Z",
      containerStatuses: [{ name: "pulumi", state: running("2026-03-10T11:59:30Z") }],
    });
    world.addNodes(...NODES);
    const blocked = [DEAD, LIVING].map((key) => `  ${world.backend}/${key}: created by root@pod (pid 1) at 2026-03-10T12:00:00Z`).join("\n");
    world.addStacks({ name: "shop", stack: "organization/shop/prod", message: `the stack is currently locked by 2 lock(s).\n${blocked}` });
    // Without a minimum age, so that it is the living pod that holds the young lock.
    const { verdicts, exitCode, report } = await world.sweep("--owner", "iac-runner-*", "--min-age", "0s", ...REMOVE);
    expect(verdicts).toEqual(["stale: pod-not-found, deleted", "held: container-running, keep"]);
    expect({ exitCode, left: world.keys }).toEqual({ exitCode: 0, left: [LIVING] });
    expect(report.stacks).toMatchObject([{ name: "shop", blockedBy: [{ key: LIVING, verdict: "held" }] }]);
  });

  it("C22 locks are listed before pods: a pod that starts in between cannot lose its lock", async () => {
    const old = world.addLock({ pid: 1, username: "root", hostname: "iac-runner-old", timestamp: "2026-03-10T09:00:00Z" });
    world.addNodes(...NODES);
    const newborn = { pid: 1, username: "root", hostname: "iac-runner-x9k2p", timestamp: "2026-03-10T12:00:00Z" };
    world.api.answer = () => {
      // Before the cluster's first answer, which does not have the pod yet.
      if (!world.keys.includes(keyOf(newborn.hostname))) world.addLock(newborn);
      return undefined;
    };
    const { report, exitCode } = await world.sweep("--owner", "iac-runner-*", "--min-age", "0s", ...REMOVE);
    expect(report.locks.map(({ key, action }) => [key, action])).toEqual([[old, "deleted"]]);
    expect({ exitCode, left: world.keys }).toEqual({ exitCode: 0, left: [keyOf(newborn.hostname)] });
  });

  it("C22 a pod that the first list did not have is seen at the second look, which asks for no cached answer", async () => {
    const key = world.addLock({ pid: 1, username: "root", hostname: "iac-runner-x9k2p", timestamp: "2026-03-10T11:00:00Z" });
    world.addNodes(...NODES);
    world.addPods({ name: "iac-runner-x9k2p", containerStatuses: [{ name: "pulumi", state: running("2026-03-10T10:59:59Z") }] });
    let lists = 0;
    world.api.answer = ({ path, query }) => {
      if (path !== "/api/v1/pods" || lists > 0) return undefined;
      if (!query.has("fieldSelector")) lists += 1;
      return {
        kind: "body",
        body: { kind: "PodList", metadata: {}, items: query.has("fieldSelector") ? [] : (world.api.objects.get(path) ?? []).slice(0, 1) },
      };
    };
    const { verdicts, exitCode } = await world.sweep("--owner", "iac-runner-*", ...REMOVE);
    expect({ verdicts, exitCode, left: world.keys }).toEqual({ verdicts: ["held: container-running, keep"], exitCode: 0, left: [key] });
    expect(lists).toBe(1);
    expect(world.api.calls.filter(({ query }) => query.has("resourceVersion"))).toEqual([]);
  });

  it("C22 a young lock stays whatever the list says", async () => {
    const key = world.addLock({ pid: 1, username: "root", hostname: "iac-runner-x9k2p", timestamp: "2026-03-10T11:59:30Z" });
    world.addNodes(...NODES);
    const { verdicts, exitCode } = await world.sweep("--owner", "iac-runner-*", ...REMOVE);
    expect({ verdicts, exitCode, left: world.keys }).toEqual({ verdicts: ["too-young: min-age, keep"], exitCode: 0, left: [key] });
  });
});

describe("C23 a list of pods that breaks half-way", () => {
  const owner = { pid: 1, username: "root", hostname: "iac-runner-x9k2p", timestamp: "2026-03-10T09:00:00Z" };
  // Its own name does not tell its hostname, so that only the whole list has it.
  const onSecondPage: ToldPod = { name: "worker-1", spec: { hostname: "iac-runner-x9k2p" } };
  let starts = 0;
  beforeEach(() => {
    starts = 0;
    world.addLock(owner);
    world.addLock({ ...owner, hostname: "iac-runner-gone" });
    world.addNodes(...NODES);
    world.addPods(...Array.from({ length: 500 }, (_, index): ToldPod => ({ name: `web-${index}`, containerStatuses: [] })));
  });

  /** Lets the second page of the list fail for the first `times` times. */
  function expire(times: number): void {
    world.api.answer = ({ path, query }) => {
      if (path !== "/api/v1/pods" || query.has("fieldSelector")) return undefined;
      if (!query.has("continue")) starts += 1;
      return query.has("continue") && starts <= times
        ? { kind: "status", status: 410, body: { kind: "Status", reason: "Expired", metadata: { continue: "a-token-that-is-not-to-be-used" } } }
        : undefined;
    };
  }

  it("C23 on and on: every lock of the run is undetermined, exit 1, and no list is begun for ever", async () => {
    world.addPods(onSecondPage);
    expire(Infinity);
    const { verdicts, exitCode, report } = await world.sweep("--owner", "iac-runner-*", ...REMOVE);
    expect({ verdicts, exitCode }).toEqual({ verdicts: Array.from({ length: 2 }, () => "undetermined: list-incomplete, keep"), exitCode: 1 });
    expect(report.clusters).toMatchObject([{ complete: false, error: expect.stringContaining("410") }]);
    expect({ starts, left: world.keys.length }).toEqual({ starts: 3, left: 2 });
  });

  it("C23 once: the list begins anew, finds the owner on its second page, and the other lock goes", async () => {
    world.addPods(onSecondPage);
    expire(1);
    const { verdicts, exitCode } = await world.sweep("--owner", "iac-runner-*", ...REMOVE);
    expect({ verdicts, exitCode }).toEqual({ verdicts: ["stale: pod-not-found, deleted", "held: container-running, keep"], exitCode: 0 });
    expect(world.keys).toEqual([keyOf(owner.hostname)]);
  });

  it("C23 an owner that has its own name is found by it, whatever becomes of the list", async () => {
    world.addPods({ name: owner.hostname });
    expire(Infinity);
    const { verdicts, exitCode } = await world.sweep("--owner", "iac-runner-*", ...REMOVE);
    expect({ verdicts, exitCode }).toEqual({ verdicts: ["undetermined: list-incomplete, keep", "held: container-running, keep"], exitCode: 1 });
    expect(world.keys).toHaveLength(2);
  });
});
