import { JANITOR_IMAGE, PULUMI_IMAGE } from "./images.ts";

/** A Kubernetes object as `kubectl apply` takes it. */
export type Manifest = Readonly<Record<string, unknown>>;

/** Pods of one shape: what is applied, and which of them is told to run pulumi. */
export interface Shape {
  readonly kind: string;
  readonly objects: readonly Manifest[];
  readonly namespace: string;
  /** The pod's name, or the label by which the pod of a controller is found. */
  readonly pod: { readonly name: string } | { readonly label: string };
  readonly container: string;
}

export interface PodOptions {
  readonly namespace?: string;
  readonly grace?: number;
  /** On SIGTERM the agent waits for its updates in place of stopping them. */
  readonly agentWaits?: boolean;
  /** On SIGTERM the agent ends at once, and everything in its container with it. */
  readonly agentLeaves?: boolean;
  readonly restartPolicy?: "Always" | "Never";
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly container?: Readonly<Record<string, unknown>>;
  readonly neighbour?: boolean;
  /** The janitor beside pulumi, with the URL of its backend. */
  readonly sidecar?: { readonly kind: SidecarKind; readonly url: string };
}

/** `native`: an init container that goes on, and is stopped after the others. */
export type SidecarKind = "native" | "ordinary";
export const SIDECAR = "lock-janitor";

/** What every container that runs pulumi has in its environment, set when the backends are known. */
export type Environment = Readonly<Record<string, string>>;

const STATE_VOLUME = "state";

/** The volumes of a pod that has the folder that is a backend, if there is one. */
export function volumesOf(stateFolder: string | undefined): readonly Manifest[] {
  return stateFolder === undefined ? [] : [{ name: STATE_VOLUME, hostPath: { path: stateFolder } }];
}

/** Where a container has that folder: at the same path. */
export function mountsOf(stateFolder: string | undefined): readonly Manifest[] {
  return stateFolder === undefined ? [] : [{ name: STATE_VOLUME, mountPath: stateFolder }];
}

export class Shapes {
  readonly #env: Environment;
  readonly #stateFolder: string | undefined;

  /** `stateFolder`: the folder of the node that is a backend, at the same path in every pod, if there is one. */
  constructor(env: Environment, stateFolder: string | undefined) {
    this.#env = env;
    this.#stateFolder = stateFolder;
  }

  /** A pod without a controller. */
  bare(name: string, options: PodOptions = {}): Shape {
    const namespace = options.namespace ?? "field";
    const object = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace }, spec: this.#spec("pulumi", { restartPolicy: "Never", ...options }) };
    return { kind: "bare pod", objects: [object], namespace, pod: { name }, container: "pulumi" };
  }

  /** The StatefulSet and the Stack of an operator v2 workspace. */
  workspace(name: string, options: PodOptions = {}): Shape {
    const namespace = options.namespace ?? "field";
    const labels = { "auto.pulumi.com/component": "workspace", "auto.pulumi.com/workspace-name": name };
    const set = {
      apiVersion: "apps/v1",
      kind: "StatefulSet",
      metadata: { name: `${name}-workspace`, namespace },
      spec: {
        serviceName: "none",
        podManagementPolicy: "Parallel",
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: this.#spec("pulumi", options) },
      },
    };
    return { kind: "operator v2", objects: [stackOf(name, namespace), set], namespace, pod: { name: `${name}-workspace-0` }, container: "pulumi" };
  }

  /** The Deployment of an operator v1, with the Stacks that it updates. */
  operator(name: string, stacks: readonly string[], options: PodOptions = {}): Shape {
    const namespace = options.namespace ?? "field";
    const labels = { field: name };
    const container = "pulumi-kubernetes-operator";
    const deployment = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: `${name}-pulumi-kubernetes-operator`, namespace },
      spec: {
        strategy: { type: "Recreate" },
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: this.#spec(container, options) },
      },
    };
    return {
      kind: "operator v1",
      objects: [...stacks.map((stack) => stackOf(stack, namespace)), deployment],
      namespace,
      pod: { label: `field=${name}` },
      container,
    };
  }

  job(name: string, options: PodOptions = {}): Shape {
    const namespace = options.namespace ?? "field";
    const job = {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name, namespace },
      spec: { backoffLimit: 0, template: { metadata: { labels: { field: name } }, spec: this.#spec("pulumi", { restartPolicy: "Never", ...options }) } },
    };
    return { kind: "Job", objects: [job], namespace, pod: { label: `field=${name}` }, container: "pulumi" };
  }

  #spec(
    container: string,
    { grace = 600, agentWaits = false, agentLeaves = false, restartPolicy = "Always", spec = {}, container: more = {}, neighbour = false, sidecar }: PodOptions,
  ): Manifest {
    const image = { image: PULUMI_IMAGE, imagePullPolicy: "Never" };
    const main = {
      name: container,
      ...image,
      env: Object.entries({ ...this.#env, AGENT_WAITS: agentWaits ? "yes" : "", AGENT_LEAVES: agentLeaves ? "yes" : "" }).map(([name, value]) => ({
        name,
        value,
      })),
      volumeMounts: mountsOf(this.#stateFolder),
      ...more,
    };
    const janitor = sidecar === undefined ? [] : [this.#sidecar(sidecar)];
    const beside = { name: "beside", ...image, command: ["/bin/sleep", "1000000"] };
    return {
      restartPolicy,
      terminationGracePeriodSeconds: grace,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsUser: 1_000, runAsGroup: 1_000, seccompProfile: { type: "RuntimeDefault" } },
      ...(sidecar === undefined ? {} : { shareProcessNamespace: true }),
      ...(sidecar?.kind === "native" ? { initContainers: janitor } : {}),
      containers: [main, ...(neighbour ? [beside] : []), ...(sidecar?.kind === "ordinary" ? janitor : [])],
      volumes: volumesOf(this.#stateFolder),
      ...spec,
    };
  }

  /** As the README has it. */
  #sidecar({ kind, url }: NonNullable<PodOptions["sidecar"]>): Manifest {
    return {
      name: SIDECAR,
      image: JANITOR_IMAGE,
      imagePullPolicy: "Never",
      ...(kind === "native" ? { restartPolicy: "Always" } : {}),
      args: ["watch", "--own-pod", "--delete"],
      env: Object.entries({ ...this.#env, PULUMI_BACKEND_URL: url }).map(([name, value]) => ({ name, value })),
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] }, readOnlyRootFilesystem: true },
      volumeMounts: mountsOf(this.#stateFolder),
    };
  }
}

function stackOf(name: string, namespace: string): Manifest {
  return { apiVersion: "pulumi.com/v1", kind: "Stack", metadata: { name, namespace }, spec: { stack: `organization/demo/${name}` } };
}
