import { setTimeout as sleep } from "node:timers/promises";

import { waitFor } from "../e2e/peers/child.ts";
import { PULUMI_IMAGE } from "./images.ts";
import { ORPHAN } from "./probe.ts";
import { deleteByForce, killContainer, openGates, signalWriter, type Scenario } from "./scenario.ts";
import { findParent, signalProcess } from "./truth.ts";

const LONG_NAME = `field-${"a-name-that-is-longer-than-a-hostname-can-be-".repeat(2)}end`;

const GONE = "stale: pod-not-found";
const RUNS = "held: container-running";

/** Deaths: the process that wrote the lock is gone in each, and its lock is to go, or the README names why it cannot. */
const DEATHS: readonly Scenario[] = [
  {
    name: "asked-to-stop",
    scheme: "azblob",
    happens: "deleted gracefully; the agent interrupts pulumi, which gives its lock back",
    shape: (shapes) => shapes.bare("field-asked-to-stop", { grace: 60 }),
    act: async ({ field, placed }) => void (await field.kubectl("delete", "pod", "-n", placed.namespace, placed.pod)),
    after: "no lock",
  },
  {
    name: "grace-ran-out",
    scheme: "s3",
    happens: "deleted gracefully; pulumi is not done at the end of the grace period",
    shape: (shapes) => shapes.bare("field-grace-ran-out", { grace: 2, agentWaits: true }),
    act: async ({ field, placed }) => void (await field.kubectl("delete", "pod", "-n", placed.namespace, placed.pod)),
    after: GONE,
  },
  {
    name: "force-deleted",
    scheme: "postgres",
    happens: "deleted by force",
    shape: (shapes) => shapes.bare("field-force-deleted"),
    act: deleteByForce,
    after: GONE,
  },
  {
    name: "rolled-out",
    stacks: ["rolled-out-a", "rolled-out-b"],
    scheme: "s3",
    happens: "the Deployment is rolled with two updates in one container",
    shape: (shapes) => shapes.operator("rolled-out", ["rolled-out-a", "rolled-out-b"], { grace: 2, agentWaits: true }),
    act: async ({ field, shape, placed }) => {
      const uid = await field.uidOf(placed);
      await field.kubectl("rollout", "restart", "-n", placed.namespace, "deployment/rolled-out-pulumi-kubernetes-operator");
      await field.findRunning(shape, uid);
    },
    after: GONE,
  },
  {
    name: "pod-recreated",
    scheme: "file",
    happens: "deleted by force; the StatefulSet makes a pod of the same name",
    shape: (shapes) => shapes.workspace("pod-recreated"),
    act: async (scene) => {
      const uid = await scene.field.uidOf(scene.placed);
      await deleteByForce(scene);
      await scene.field.findRunning(scene.shape, uid);
    },
    after: "stale: pod-recreated",
  },
  {
    name: "container-killed",
    scheme: "azblob",
    happens: "the container's process 1 is killed; it restarts in its place",
    shape: (shapes) => shapes.workspace("container-killed"),
    act: async (scene) => {
      // A lock of the same second as the start of the next run is told from it by the end of the run before.
      await killContainer(scene);
      await waitForRestart(scene);
    },
    after: "stale: container-restarted",
  },
  {
    name: "out-of-memory",
    scheme: "file",
    happens: "the container goes over its memory limit",
    shape: (shapes) => shapes.workspace("out-of-memory", { container: { resources: { limits: { memory: "600Mi" } } } }),
    act: async (scene) => {
      await scene.field.order(scene.placed, "hog");
      await waitForRestart(scene);
    },
    after: "stale: container-restarted",
  },
  {
    name: "child-killed",
    scheme: "s3",
    happens: "pulumi is killed with its language host, and its parent takes note",
    shape: (shapes) => shapes.workspace("child-killed"),
    act: async (scene) => {
      await killWriter(scene);
      await scene.field.order(scene.placed, "reap");
    },
    after: ORPHAN,
  },
  {
    name: "host-left-behind",
    scheme: "azblob",
    happens: "pulumi alone is killed, and its language host hangs on",
    shape: (shapes) => shapes.workspace("host-left-behind"),
    act: async (scene) => {
      await signalWriter(scene, "KILL");
      await sleep(1_000);
      await scene.field.order(scene.placed, "reap");
    },
    after: ORPHAN,
  },
  {
    name: "zombie",
    scheme: "file",
    happens: "pulumi is killed with its language host, and stays a zombie",
    shape: (shapes) => shapes.workspace("zombie"),
    act: killWriter,
    after: ORPHAN,
  },
  {
    name: "pid-reused",
    scheme: "postgres",
    happens: "pulumi is killed with its language host, and another process gets its number",
    shape: (shapes) => shapes.workspace("pid-reused"),
    act: async (scene) => {
      const [writer] = scene.writers;
      if (writer === undefined) return;
      const agent = await findParent(writer);
      await killWriter(scene);
      // Beyond the clock skew, as in the field, where numbers come round after hours.
      await sleep(7_000);
      await scene.field.order(scene.placed, "reap");
      await sleep(1_000);
      const script = `echo ${writer.innerPid - 1} > /proc/sys/kernel/ns_last_pid; sleep 100000 > /dev/null 2>&1 &`;
      await agent.machine.sh(`nsenter -t ${agent.pid} -p sh -c '${script}'`);
    },
    after: ORPHAN,
  },
  {
    name: "failed",
    scheme: "file",
    happens: "the container ends with an error; the pod is Failed",
    shape: (shapes) => shapes.bare("field-failed"),
    act: killContainer,
    after: "stale: pod-ended",
  },
  {
    name: "succeeded",
    scheme: "azblob",
    happens: "the Job's container ends well while pulumi still runs in it; the pod has Succeeded",
    shape: (shapes) => shapes.job("field-succeeded"),
    act: async ({ field, placed }) => await field.order(placed, "quit"),
    after: "stale: pod-ended",
  },
  {
    name: "evicted",
    scheme: "s3",
    happens: "the kubelet evicts the pod over its local storage",
    shape: (shapes) => {
      const shape = shapes.bare("field-evicted", { container: { resources: { limits: { "ephemeral-storage": "32Mi" } } } });
      return shape;
    },
    act: async ({ field, placed }) => {
      await field.exec(placed, "dd if=/dev/zero of=/tmp/large bs=1M count=64 2> /dev/null || true");
      await waitFor(
        "the eviction",
        async () => ((await field.kubectl("get", "pod", "-n", placed.namespace, placed.pod, "-o", "jsonpath={.status.phase}")) === "Failed" ? true : undefined),
        { every: 1_000 },
      );
    },
    after: "stale: pod-ended",
  },
  {
    name: "other-hostname",
    scheme: "file",
    happens: "deleted by force; its hostname was not its name",
    shape: (shapes) => shapes.bare("unlike-its-hostname", { spec: { hostname: "field-other-hostname" } }),
    act: deleteByForce,
    after: GONE,
  },
  {
    name: "twin-of-the-dead",
    scheme: "file",
    happens: "deleted by force; a pod of its name in another namespace runs on",
    shape: (shapes) => {
      const twin = shapes.bare("field-twin-of-the-dead", { namespace: "other" });
      const shape = shapes.bare("field-twin-of-the-dead");
      return { ...shape, objects: [...twin.objects, ...shape.objects] };
    },
    act: deleteByForce,
    after: ORPHAN,
  },
  {
    name: "host-network",
    scheme: "file",
    happens: "deleted by force; its hostname was its node's",
    shape: (shapes) => shapes.bare("field-host-network", { spec: { hostNetwork: true } }),
    act: deleteByForce,
    before: "foreign: no-pattern",
    after: "foreign: no-pattern",
  },
];

/** Non-deaths: pulumi runs on, and its lock stays. */
const LIVES: readonly Scenario[] = [
  {
    name: "slow",
    scheme: "azblob",
    happens: "nothing: the update is slow",
    shape: (shapes) => shapes.workspace("slow"),
    act: () => Promise.resolve(),
    after: RUNS,
    finish: openGates,
  },
  {
    name: "stopped",
    scheme: "file",
    happens: "pulumi is stopped (SIGSTOP)",
    shape: (shapes) => shapes.workspace("stopped"),
    act: async (scene) => await signalWriter(scene, "STOP"),
    after: RUNS,
    finish: async (scene) => {
      await signalWriter(scene, "CONT");
      await openGates(scene);
    },
  },
  {
    name: "finishing",
    scheme: "postgres",
    happens: "deleted gracefully; pulumi finishes its update meanwhile",
    shape: (shapes) => shapes.bare("field-finishing", { agentWaits: true }),
    act: async ({ field, placed }) => void (await field.kubectl("delete", "pod", "-n", placed.namespace, placed.pod, "--wait=false")),
    after: "held: pod-terminating",
    finish: async ({ field, placed, writers }) => {
      // Its agent waits, and takes no orders.
      for (const { stack } of writers) await field.exec(placed, `echo opened > /tmp/projects/${stack}/gate`);
    },
  },
  {
    name: "neighbour-restarted",
    scheme: "file",
    happens: "another container of the pod is killed and restarts",
    shape: (shapes) => shapes.workspace("neighbour-restarted", { neighbour: true }),
    act: async (scene) => {
      await killBeside(scene);
      await waitForRestart(scene);
    },
    after: RUNS,
    finish: openGates,
  },
  {
    name: "debugging",
    scheme: "s3",
    happens: "pulumi runs in an ephemeral container; the pod's own container is killed and restarts",
    shape: (shapes) => shapes.workspace("debugging"),
    begin: async (field, placed) => [await field.beginUpdate(await addDebugContainer({ field, placed }), "s3", "debugging")],
    act: async (scene) => {
      const { field, placed } = scene;
      await signalProcess(await field.findFirstProcess(placed), "KILL");
      await waitForRestart(scene);
    },
    after: RUNS,
    finish: async ({ field, placed, writers }) => {
      for (const { stack } of writers) await field.order({ ...placed, container: "debug" }, `open ${stack}`);
    },
  },
  {
    name: "nested",
    scheme: "file",
    happens: "pulumi runs in a PID namespace within the container's, as under docker-in-docker",
    shape: (shapes) => shapes.workspace("nested", { container: { securityContext: { privileged: true, runAsUser: 0 } } }),
    begin: async (field, placed) => [await field.beginUpdate(placed, "file", "nested", "nested")],
    act: () => Promise.resolve(),
    after: RUNS,
    finish: openGates,
  },
  {
    name: "long-name",
    scheme: "file",
    happens: "nothing: the pod's name is cut at 63 characters to be its hostname",
    shape: (shapes) => shapes.bare(LONG_NAME),
    act: () => Promise.resolve(),
    after: RUNS,
    finish: openGates,
  },
  {
    name: "qualified",
    scheme: "azblob",
    happens: "nothing: the hostname is fully qualified",
    shape: (shapes) => shapes.bare("field-qualified", { spec: { subdomain: "runners", setHostnameAsFQDN: true } }),
    act: () => Promise.resolve(),
    after: RUNS,
    finish: openGates,
  },
  {
    name: "twin-of-the-living",
    scheme: "file",
    happens: "a pod of its name in another namespace is deleted by force",
    shape: (shapes) => {
      const twin = shapes.bare("field-twin-of-the-living", { namespace: "other" });
      const shape = shapes.bare("field-twin-of-the-living");
      return { ...shape, objects: [...twin.objects, ...shape.objects] };
    },
    act: async (scene) => await deleteByForce({ ...scene, placed: { ...scene.placed, namespace: "other" } }),
    after: RUNS,
    finish: openGates,
  },
];

export const SCENARIOS: readonly Scenario[] = [...DEATHS, ...LIVES];

type Site = Parameters<Scenario["act"]>[0];

/** Kills pulumi, and its language host, which goes on for minutes when it has nobody to talk to. */
async function killWriter(scene: Site): Promise<void> {
  await signalWriter(scene, "KILL");
  await scene.field.exec(scene.placed, "killall -9 pulumi-language-yaml");
}

async function waitForRestart({ field, placed }: Site): Promise<void> {
  await waitFor(
    `a restart in ${placed.pod}`,
    async () => {
      const counts = await field.kubectl(
        "get",
        "pod",
        "-n",
        placed.namespace,
        placed.pod,
        "-o",
        "jsonpath={.status.containerStatuses[*].restartCount} {.status.containerStatuses[*].ready}",
      );
      return /[1-9]/.test(counts) && !counts.includes("false") ? true : undefined;
    },
    { every: 500 },
  );
}

async function killBeside({ field, placed }: Site): Promise<void> {
  await signalProcess(await field.findFirstProcess({ ...placed, container: "beside" }), "KILL");
}

/** What `kubectl debug` does: a container that comes into the pod while it runs. */
async function addDebugContainer({ field, placed }: Pick<Site, "field" | "placed">): Promise<Site["placed"]> {
  await field.addEphemeralContainer(placed, "debug", PULUMI_IMAGE);
  return { ...placed, container: "debug" };
}

/** Whether all of a scene's updates have ended. */
export async function haveEnded({ field, writers }: Site): Promise<boolean> {
  return (await field.truth.findAlive(writers)).length === 0;
}
