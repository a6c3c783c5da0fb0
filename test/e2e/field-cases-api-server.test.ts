// The cases whose objects a real API server takes, all at once in one real cluster: what it makes of a status, a deletion or an overridden hostname is read
// from it, not invented. Pods are created now, so the cases that need an old pod are told to a stub instead.
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { CaseWorld, keyOf, REMOVE, type CaseOutcome, type LockBody } from "./field-case.ts";
import { ControlPlane } from "./peers/control-plane.ts";
import { Workloads } from "./peers/workloads.ts";

/** A pod as it is created, with the status that its kubelet would report. */
interface RealPod {
  readonly name: string;
  readonly spec?: object;
  readonly containers?: readonly string[];
  readonly status: object;
  /** Seconds to end in: a person deletes it. */
  readonly deleted?: number;
}

type Case = readonly [title: string, expected: string, hostname: string, timestamp: string, pod?: RealPod];

const running = (container: string, startedAt = "2026-03-01T00:00:10Z"): object => ({
  ...statusOf(container),
  state: { running: { startedAt } },
});
const terminated = (container: string, exitCode: number, finishedAt: string): object => ({
  ...statusOf(container),
  state: { terminated: { exitCode, finishedAt } },
});
const alive = { phase: "Running", containerStatuses: [running("pulumi")] };

const OPERATOR = "pulumi-kubernetes-operator-4d81c3fa-6b8d5f7c9d";
const MACHINE = "ip-10-8-31-77.eu-west-1.compute.internal";
const NODE_LISTED = { hostNetwork: true, nodeName: MACHINE };

const CASES: readonly Case[] = [
  [
    "C01 an operator pod replaced",
    "stale: pod-not-found, deleted",
    `${OPERATOR}-q4x7n`,
    "2026-03-09T21:33:18.104Z",
    { name: `${OPERATOR}-zz9mk`, status: alive },
  ],
  [
    "C06 evicted",
    "stale: pod-ended, deleted",
    "shop-build-4xk2w-runner-q8zt5",
    "2026-03-10T10:20:00Z",
    { name: "shop-build-4xk2w-runner-q8zt5", status: { phase: "Failed", reason: "Evicted", containerStatuses: [] } },
  ],
  [
    "C06 ended by the kubelet",
    "stale: pod-ended, deleted",
    "shop-build-4xk2w-runner-q8zt6",
    "2026-03-10T10:20:00Z",
    {
      name: "shop-build-4xk2w-runner-q8zt6",
      status: { phase: "Failed", reason: "Terminated", conditions: [{ type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet" }] },
    },
  ],
  [
    "C06 shut down with its node",
    "stale: pod-ended, deleted",
    "shop-build-4xk2w-runner-q8zt7",
    "2026-03-10T10:20:00Z",
    { name: "shop-build-4xk2w-runner-q8zt7", status: { phase: "Failed", reason: "Shutdown" } },
  ],
  [
    "C06 preempted",
    "stale: pod-ended, deleted",
    "shop-build-4xk2w-runner-q8zt8",
    "2026-03-10T10:20:00Z",
    { name: "shop-build-4xk2w-runner-q8zt8", status: { phase: "Failed", reason: "Preempting" } },
  ],
  [
    "C07 a: completed",
    "stale: pod-ended, deleted",
    "iac-apply-29x4c",
    "2026-03-10T11:00:00Z",
    { name: "iac-apply-29x4c", containers: ["apply"], status: { phase: "Succeeded", containerStatuses: [terminated("apply", 0, "2026-03-10T11:04:00Z")] } },
  ],
  [
    "C07 b: the sidecar lives on",
    "held: container-running, keep",
    "iac-apply-29x4d",
    "2026-03-10T11:00:00Z",
    {
      name: "iac-apply-29x4d",
      containers: ["apply", "istio-proxy"],
      status: { phase: "Running", containerStatuses: [terminated("apply", 137, "2026-03-10T11:03:10Z"), running("istio-proxy", "2026-03-10T10:58:01Z")] },
    },
  ],
  ["C10 Terminating", "held: pod-terminating, keep", "iac-runner-ending", "2026-03-10T11:40:00Z", { name: "iac-runner-ending", status: alive, deleted: 1_800 }],
  [
    "C11 a: Terminating on a node that cannot be reached",
    "held: pod-terminating, keep",
    "iac-runner-0",
    "2026-03-10T04:00:00Z",
    {
      name: "iac-runner-0",
      spec: { nodeName: "node-7" },
      status: { phase: "Running", containerStatuses: [running("pulumi", "2026-03-10T03:58:00Z")] },
      deleted: 30,
    },
  ],
  [
    "C13 a: with hostNetwork the host is a node",
    "foreign: node-name, keep",
    MACHINE,
    "2026-03-10T08:44:02Z",
    { name: "iac-agent-x2x7b", spec: NODE_LISTED, status: alive },
  ],
  [
    "C14 spec.hostname",
    "held: container-running, keep",
    "iac-a",
    "2026-03-10T10:00:00Z",
    { name: "worker-7d4c", spec: { hostname: "iac-a", subdomain: "runners" }, status: alive },
  ],
  [
    "C14 setHostnameAsFQDN with a subdomain",
    "held: container-running, keep",
    "iac-b.runners.iac.svc.cluster.local",
    "2026-03-10T10:00:00Z",
    { name: "worker-8f1b", spec: { hostname: "iac-b", subdomain: "runners", setHostnameAsFQDN: true }, status: alive },
  ],
  [
    "C14 setHostnameAsFQDN alone",
    "held: container-running, keep",
    "worker-9a2e",
    "2026-03-10T10:00:00Z",
    { name: "worker-9a2e", spec: { setHostnameAsFQDN: true }, status: alive },
  ],
  [
    "C14 hostnameOverride",
    "held: container-running, keep",
    "ci7.corp.example",
    "2026-03-10T10:00:00Z",
    { name: "worker-b3b3", spec: { hostnameOverride: "ci7.corp.example" }, status: alive },
  ],
  ["C18 the dead one of two locks", "stale: pod-not-found, deleted", "iac-runner-aaaaa", "2026-03-09T20:00:00Z"],
  [
    "C18 the living one of two locks",
    "held: container-running, keep",
    "iac-runner-bbbbb",
    "2026-03-10T11:58:00Z",
    { name: "iac-runner-bbbbb", status: { phase: "Running", containerStatuses: [running("pulumi", "2026-03-10T11:57:30Z")] } },
  ],
];

const OWNERS = ["shop-build-*-runner-*", "iac-apply-*", "iac-runner-*", MACHINE, "iac-?", "iac-?.*.svc.*", "worker-*", "ci?.corp.example"];

const plane = new ControlPlane();
const workloads = new Workloads(plane);
const world = new CaseWorld();
let outcome: CaseOutcome;

beforeAll(async () => {
  await Promise.all([plane.start(), world.start()]);
  await workloads.prepare();
  for (const name of [MACHINE, "node-7"]) {
    await plane.create("/api/v1/nodes", { metadata: { name } });
    await workloads.setNodeReady(name, name === "node-7" ? "Unknown" : "True", 7 * 60);
  }
  await workloads.addStack("shop", "organization/shop/prod");
  for (const [, , hostname, timestamp, pod] of CASES) {
    const body: LockBody = { pid: 7, username: "pulumi", hostname, timestamp };
    world.addLock(body);
    if (pod !== undefined) await addPod(pod);
  }
  outcome = await world.sweep("--kubeconfig", plane.writeKubeconfig("admin"), ...OWNERS.flatMap((owner) => ["--owner", owner]), ...REMOVE);
});
afterAll(async () => {
  await Promise.all([plane.stop(), world.stop()]);
});

async function addPod({ name, spec = {}, containers = ["pulumi"], status, deleted }: RealPod): Promise<void> {
  const path = "/api/v1/namespaces/iac/pods";
  await plane.create(path, {
    metadata: { name },
    spec: {
      nodeName: "node-1",
      restartPolicy: "Never",
      automountServiceAccountToken: false,
      containers: containers.map((container) => ({ name: container, image: "test" })),
      ...spec,
    },
  });
  const moved: object = JSON.parse(world.tell(JSON.stringify({ status })));
  await plane.patch(`${path}/${name}/status`, moved);
  if (deleted !== undefined) await plane.remove(`${path}/${name}`, deleted);
}

function statusOf(name: string): object {
  return { name, image: "test", imageID: "", ready: true, restartCount: 0, containerID: `containerd://${name}` };
}

describe("told to a real API server", () => {
  it.each(CASES.map(([title, expected, hostname]) => [title, expected, hostname] as const))("%s: %s", (_title, expected, hostname) => {
    const lock = outcome.report.locks.find(({ key }) => key === keyOf(hostname));
    expect(`${lock?.verdict ?? "none"}: ${lock?.reason ?? ""}, ${lock?.action ?? ""}`).toBe(expected);
    expect(world.keys.includes(keyOf(hostname))).toBe(!expected.startsWith("stale"));
  });

  it("nothing else is there, and all went well", () => {
    expect({ exitCode: outcome.exitCode, locks: outcome.report.summary.locks, failed: outcome.report.summary.failed }).toEqual({
      exitCode: 0,
      locks: CASES.length,
      failed: 0,
    });
  });
});
