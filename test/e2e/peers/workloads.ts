import { waitFor } from "./child.ts";
import type { ControlPlane } from "./control-plane.ts";

const PODS = "/api/v1/namespaces/iac/pods";

/** What pods look like at the API: a test plays scheduler and kubelet, the controllers are real. */
export class Workloads {
  readonly #plane: ControlPlane;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  /** The namespace, the operator's Stack kind, and one node that has been Ready for long. */
  async prepare(): Promise<void> {
    await this.#plane.create("/api/v1/namespaces", { metadata: { name: "iac" } });
    await this.#plane.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", STACK_KIND);
    await this.#plane.create("/api/v1/nodes", { metadata: { name: "node-1" } });
    await this.setNodeReady("node-1", "True", 24 * 60);
    await waitFor("the Stack kind", async () => ((await this.#plane.get("/apis/pulumi.com/v1/stacks")) === undefined ? undefined : true));
  }

  /** A node's Ready, as it has been for the given minutes. */
  async setNodeReady(name: string, status: "True" | "False" | "Unknown", minutes: number): Promise<void> {
    const since = new Date(Date.now() - minutes * 60_000).toISOString();
    await this.#plane.patch(`/api/v1/nodes/${name}/status`, {
      status: { conditions: [{ type: "Ready", status, reason: "Test", message: "", lastTransitionTime: since, lastHeartbeatTime: new Date().toISOString() }] },
    });
  }

  /** `message`: what its latest update failed with, as the operator writes it. */
  async addStack(name: string, stack: string, { backend, message }: { readonly backend?: string; readonly message?: string } = {}): Promise<void> {
    await this.#plane.create("/apis/pulumi.com/v1/namespaces/iac/stacks", {
      apiVersion: "pulumi.com/v1",
      kind: "Stack",
      metadata: { name },
      spec: { stack, ...(backend === undefined ? {} : { backend }) },
      ...(message === undefined ? {} : { status: { lastUpdate: { state: "failed", message } } }),
    });
  }

  /** The StatefulSet of an operator v2 workspace; gives its pod's name once the pod runs. */
  async addWorkspace(name: string): Promise<string> {
    await this.#plane.create("/apis/apps/v1/namespaces/iac/statefulsets", {
      metadata: { name: `${name}-workspace` },
      spec: {
        serviceName: "x",
        podManagementPolicy: "Parallel",
        selector: { matchLabels: { workspace: name } },
        template: podTemplate("pulumi", { workspace: name }),
      },
    });
    const pod = `${name}-workspace-0`;
    await this.waitForPod(pod);
    await this.setRunning(pod, "pulumi");
    return pod;
  }

  /** The Deployment of an operator v1; gives its pod's name once the pod runs. */
  async addOperator(name: string): Promise<string> {
    await this.#plane.create("/apis/apps/v1/namespaces/iac/deployments", {
      metadata: { name },
      spec: { selector: { matchLabels: { name } }, template: podTemplate("pulumi-kubernetes-operator", { name }) },
    });
    const pod = await waitFor(`a pod of ${name}`, async () => (await this.#podNames(name))[0]);
    await this.setRunning(pod, "pulumi-kubernetes-operator");
    return pod;
  }

  /** A pod without a controller. */
  async addBarePod(name: string): Promise<string> {
    await this.#plane.create(PODS, { metadata: { name }, spec: { ...podTemplate("pulumi", {}).spec, restartPolicy: "Never" } });
    await this.setRunning(name, "pulumi");
    return name;
  }

  async setRunning(pod: string, container: string, startedAt = new Date()): Promise<void> {
    await this.#setStatus(pod, {
      phase: "Running",
      containerStatuses: [{ ...statusOf(container), state: { running: { startedAt: startedAt.toISOString() } } }],
    });
  }

  /** The container was killed and started again in its place, as a kubelet reports it. */
  async setRestarted(pod: string, container: string): Promise<void> {
    const at = new Date().toISOString();
    const lastState = { terminated: { exitCode: 137, reason: "OOMKilled", startedAt: new Date(Date.now() - 600_000).toISOString(), finishedAt: at } };
    await this.#setStatus(pod, {
      phase: "Running",
      containerStatuses: [{ ...statusOf(container), restartCount: 1, lastState, state: { running: { startedAt: at } } }],
    });
  }

  async setFailed(pod: string, container: string): Promise<void> {
    const at = new Date().toISOString();
    await this.#setStatus(pod, {
      phase: "Failed",
      reason: "Evicted",
      containerStatuses: [{ ...statusOf(container), state: { terminated: { exitCode: 137, startedAt: at, finishedAt: at } } }],
    });
  }

  /** Deletes a pod as a person does: bound to a node, it stays Terminating until its kubelet has ended it. */
  async terminate(pod: string): Promise<void> {
    await this.#plane.remove(`${PODS}/${pod}`);
  }

  /** What the kubelet does once a pod has ended. */
  async finish(pod: string): Promise<void> {
    await this.#plane.remove(`${PODS}/${pod}`, 0);
  }

  /** Removes a workspace with its pod. */
  async removeWorkspace(name: string): Promise<void> {
    await this.#plane.remove(`/apis/apps/v1/namespaces/iac/statefulsets/${name}-workspace`);
    await waitFor(`the end of ${name}-workspace`, async () =>
      (await this.#plane.get(`/apis/apps/v1/namespaces/iac/statefulsets/${name}-workspace`)) === undefined ? true : undefined,
    );
    await this.finish(`${name}-workspace-0`).catch(() => undefined);
  }

  /** Removes an operator v1 with its pod. */
  async removeOperator(name: string): Promise<void> {
    await this.#plane.remove(`/apis/apps/v1/namespaces/iac/deployments/${name}`);
    await waitFor(`the end of ${name}`, async () => {
      const pods = await this.#podNames(name);
      for (const pod of pods) await this.finish(pod).catch(() => undefined);
      return pods.length === 0 ? true : undefined;
    });
  }

  async uidOf(pod: string): Promise<string | undefined> {
    const found = await this.#plane.get(`${PODS}/${pod}`);
    return found === undefined ? undefined : JSON.stringify(found).match(/"uid":"([^"]+)"/)?.[1];
  }

  async waitForPod(pod: string, otherThan?: string): Promise<void> {
    await waitFor(`pod ${pod}`, async () => {
      const uid = await this.uidOf(pod);
      return uid === undefined || uid === otherThan ? undefined : uid;
    });
  }

  /** The pods of a Deployment. */
  async #podNames(label: string): Promise<readonly string[]> {
    const list = await this.#plane.get(`${PODS}?labelSelector=name%3D${label}`);
    return Array.from(JSON.stringify(list).matchAll(/"metadata":\{"name":"([^"]+)"/g), ([, name = ""]) => name);
  }

  async #setStatus(pod: string, status: object): Promise<void> {
    await this.#plane.patch(`${PODS}/${pod}/status`, { status });
  }
}

function statusOf(name: string): object {
  return { name, image: "test", imageID: "", ready: true, restartCount: 0, containerID: `containerd://${name}` };
}

function podTemplate(container: string, labels: Readonly<Record<string, string>>): { readonly metadata: object; readonly spec: object } {
  return {
    metadata: { labels },
    spec: { nodeName: "node-1", terminationGracePeriodSeconds: 600, automountServiceAccountToken: false, containers: [{ name: container, image: "test" }] },
  };
}

/** The operator's kind, as far as the janitor reads it. */
export const STACK_KIND = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "stacks.pulumi.com" },
  spec: {
    group: "pulumi.com",
    scope: "Namespaced",
    names: { kind: "Stack", plural: "stacks", singular: "stack", listKind: "StackList" },
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } } }],
  },
};
