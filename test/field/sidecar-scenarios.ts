import { setTimeout as sleep } from "node:timers/promises";

import { waitFor } from "../e2e/peers/child.ts";
import type { Scheme } from "./backends.ts";
import { killContainer, openGates, signalWriter, type Scene } from "./scenario.ts";
import { SIDECAR, type PodOptions, type Shape, type Shapes } from "./shapes.ts";
import { signalProcess } from "./truth.ts";

/** What happens to a pod in which a sidecar looks after the locks. */
export interface SidecarScenario {
  readonly name: string;
  readonly scheme: Scheme;
  readonly sidecar: NonNullable<PodOptions["sidecar"]>["kind"];
  readonly happens: string;
  readonly shape: (shapes: Shapes, options: PodOptions) => Shape;
  readonly act: (scene: Scene) => Promise<void>;
  /** `pod-gone`: the lock must be gone before the pod is. */
  readonly end: "lock-gone" | "pod-gone" | "lives";
  /** Whether the sidecar itself is ended and started again. */
  readonly restarts?: true;
}

const v2 =
  (name: string, more: PodOptions = {}) =>
  (shapes: Shapes, options: PodOptions): Shape =>
    shapes.workspace(name, { ...options, ...more });
const v1 =
  (name: string, more: PodOptions = {}) =>
  (shapes: Shapes, options: PodOptions): Shape =>
    shapes.operator(name, [name], { ...options, ...more });

export const SIDECAR_SCENARIOS: readonly SidecarScenario[] = [
  {
    name: "killed-beside",
    scheme: "azblob",
    sidecar: "native",
    happens: "pulumi alone is killed",
    shape: v2("killed-beside"),
    act: async (scene) => await signalWriter(scene, "KILL"),
    end: "lock-gone",
  },
  {
    name: "killed-in-operator",
    scheme: "s3",
    sidecar: "ordinary",
    happens: "pulumi alone is killed",
    shape: v1("killed-in-operator"),
    act: async (scene) => await signalWriter(scene, "KILL"),
    end: "lock-gone",
  },
  {
    name: "restarted-beside",
    scheme: "postgres",
    sidecar: "native",
    happens: "pulumi's container is killed; it restarts in its place",
    shape: v2("restarted-beside"),
    act: killContainer,
    end: "lock-gone",
  },
  {
    name: "restarted-operator",
    scheme: "file",
    sidecar: "ordinary",
    happens: "pulumi's container is killed; it restarts in its place",
    shape: v1("restarted-operator"),
    act: killContainer,
    end: "lock-gone",
  },
  {
    name: "ended-beside",
    scheme: "s3",
    sidecar: "native",
    happens: "the pod is deleted gracefully; its container ends at once, and pulumi with it",
    shape: v2("ended-beside", { grace: 60, agentLeaves: true }),
    act: deleteGracefully,
    end: "pod-gone",
  },
  {
    name: "ended-operator",
    scheme: "azblob",
    sidecar: "native",
    happens: "the pod is deleted gracefully; its container ends at once, and pulumi with it",
    shape: v1("ended-operator", { grace: 60, agentLeaves: true }),
    act: deleteGracefully,
    end: "pod-gone",
  },
  {
    name: "killed-on-the-way-out",
    scheme: "file",
    sidecar: "ordinary",
    happens: "the pod is deleted gracefully; pulumi is killed while the pod ends",
    shape: v1("killed-on-the-way-out", { grace: 15, agentWaits: true }),
    act: async (scene) => {
      await deleteGracefully(scene);
      await sleep(3_000);
      await signalWriter(scene, "KILL");
    },
    end: "pod-gone",
  },
  {
    name: "janitor-told-to-stop",
    scheme: "postgres",
    sidecar: "native",
    happens: "the sidecar alone gets SIGTERM; it stops after a while, and is started again",
    shape: v2("janitor-told-to-stop"),
    act: async ({ field, placed }) => {
      await signalProcess(await field.findFirstProcess({ ...placed, container: SIDECAR }), "TERM");
      await waitFor(
        "the sidecar's next run",
        async () => {
          const path = "jsonpath={.status.initContainerStatuses[0].restartCount} {.status.initContainerStatuses[0].state.running.startedAt}";
          return /^1 \d/.test(await field.kubectl("get", "pod", "-n", placed.namespace, placed.pod, "-o", path)) ? true : undefined;
        },
        { every: 1_000 },
      );
    },
    end: "lives",
    restarts: true,
  },
  {
    name: "slow-beside",
    scheme: "azblob",
    sidecar: "native",
    happens: "nothing: the update is slow",
    shape: v2("slow-beside"),
    act: () => Promise.resolve(),
    end: "lives",
  },
  {
    name: "slow-in-operator",
    scheme: "file",
    sidecar: "ordinary",
    happens: "nothing: the update is slow",
    shape: v1("slow-in-operator"),
    act: () => Promise.resolve(),
    end: "lives",
  },
];

/** Lets the update of a pod that lives come to its end, and waits for it. */
export async function letFinish(scene: Scene): Promise<void> {
  await openGates(scene);
  await waitFor(
    `the end of the update in ${scene.placed.pod}`,
    async () => ((await scene.field.truth.findAlive(scene.writers)).length === 0 ? true : undefined),
    { every: 200 },
  );
}

async function deleteGracefully({ field, placed }: Scene): Promise<void> {
  await field.kubectl("delete", "pod", "-n", placed.namespace, placed.pod, "--wait=false");
}
