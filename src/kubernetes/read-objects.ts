import * as z from "zod";

import type { Container, ContainerKind, ContainerState, Node, Pod, StackResource, TerminatedRun } from "../core/cluster.ts";
import type { PodIdentity } from "../core/hostname.ts";
import { parseTimestamp, type EpochNanoseconds } from "../core/time.ts";
import { pickDefined } from "./pick-defined.ts";

// The API's JSON, reduced to the fields that prove something. Fields of a later Kubernetes are let through unread.
const timestamp = z.string().transform((text, context): EpochNanoseconds => {
  const at = parseTimestamp(text);
  if (at !== undefined) return at;
  context.issues.push({ code: "custom", message: "not an RFC 3339 timestamp", input: text });
  return z.NEVER;
});
const optional = <Schema extends z.ZodType>(schema: Schema) => schema.nullish().transform((value) => value ?? undefined);
const list = <Schema extends z.ZodType>(schema: Schema) =>
  z
    .array(schema)
    .nullish()
    .transform((value) => value ?? []);

const metadata = z.object({
  name: z.string(),
  namespace: z.string().default(""),
  uid: z.string().default(""),
  creationTimestamp: timestamp,
  deletionTimestamp: optional(timestamp),
  labels: optional(z.record(z.string(), z.string())),
});
const run = z.object({ startedAt: optional(timestamp), finishedAt: optional(timestamp) });
const state = z.object({
  running: optional(z.object({ startedAt: optional(timestamp) })),
  waiting: optional(z.object({ reason: optional(z.string()) })),
  terminated: optional(run),
});
const containerStatus = z.object({
  name: z.string(),
  state: optional(state),
  lastState: optional(state),
  restartCount: optional(z.number()),
  containerID: optional(z.string()),
});
const condition = z.object({
  type: z.string(),
  status: z.string(),
  reason: optional(z.string()),
  lastTransitionTime: optional(timestamp),
  lastHeartbeatTime: optional(timestamp),
});
const containerSpec = z.object({ name: z.string(), restartPolicy: optional(z.string()), restartPolicyRules: list(z.unknown()) });

const identitySpec = z.object({
  nodeName: optional(z.string()),
  hostNetwork: optional(z.boolean()),
  hostname: optional(z.string()),
  hostnameOverride: optional(z.string()),
});

const podObject = z.object({
  metadata,
  spec: identitySpec.extend({
    subdomain: optional(z.string()),
    setHostnameAsFQDN: optional(z.boolean()),
    runtimeClassName: optional(z.string()),
    restartPolicy: optional(z.string()),
    containers: list(containerSpec),
    initContainers: list(containerSpec),
    ephemeralContainers: list(containerSpec),
  }),
  status: z
    .object({
      phase: z.string().default("Unknown"),
      conditions: list(condition),
      containerStatuses: list(containerStatus),
      initContainerStatuses: list(containerStatus),
      ephemeralContainerStatuses: list(containerStatus),
    })
    .prefault({}),
});

type ContainerStatus = z.infer<typeof containerStatus>;

const podIdentity = z.object({
  metadata: z.object({ name: z.string(), namespace: z.string() }),
  spec: identitySpec,
});

/**
 * Reads of a pod only what tells whether it is in question: of a hundred thousand hardly one is, and to read them whole takes longer than to fetch them. Throws a ZodError where
 * that cannot be told.
 */
export function readPodIdentity(value: unknown): PodIdentity & Pick<Pod, "namespace"> {
  return pickDefined(pickIdentity(podIdentity.parse(value)));
}

function pickIdentity({ metadata: { namespace, name }, spec }: z.infer<typeof podIdentity>) {
  const { nodeName, hostNetwork = false, hostname, hostnameOverride } = spec;
  return { namespace, name, nodeName: nodeName === "" ? undefined : nodeName, hostNetwork, hostname, hostnameOverride };
}

/** Reads a pod from the API's JSON. Throws a ZodError when it is none. */
export function readPod(value: unknown): Pod {
  const pod = podObject.parse(value);
  const { metadata: meta, spec, status } = pod;
  const disruption = status.conditions.find(({ type, status: holds }) => type === "DisruptionTarget" && holds === "True");
  const containers = [
    ...readContainers(spec.containers, status.containerStatuses, () => "main", spec.restartPolicy),
    ...readContainers(spec.initContainers, status.initContainerStatuses, (restartPolicy) => (restartPolicy === "Always" ? "sidecar" : "init")),
    ...readContainers(spec.ephemeralContainers, status.ephemeralContainerStatuses, () => "ephemeral"),
  ];
  return pickDefined({
    ...pickIdentity(pod),
    uid: meta.uid,
    createdAt: meta.creationTimestamp,
    deletionAt: meta.deletionTimestamp,
    phase: status.phase,
    subdomain: spec.subdomain,
    setHostnameAsFqdn: spec.setHostnameAsFQDN ?? false,
    runtimeClassName: spec.runtimeClassName,
    disruption: disruption?.reason,
    containers,
  });
}

/** The containers of one kind: those of the spec, and any that only the status knows. */
function readContainers(
  specs: readonly z.infer<typeof containerSpec>[],
  statuses: readonly ContainerStatus[],
  kindOf: (restartPolicy: string | undefined) => ContainerKind,
  restartPolicyOfPod?: string,
): readonly Container[] {
  const names = new Set([...specs.map(({ name }) => name), ...statuses.map(({ name }) => name)]);
  return Array.from(names, (name) => {
    const status = statuses.find((candidate) => candidate.name === name);
    const spec = specs.find((candidate) => candidate.name === name);
    return pickDefined({
      name,
      kind: kindOf(spec?.restartPolicy),
      state: readState(status?.state),
      last: status?.lastState?.terminated === undefined ? undefined : readRun(status.lastState.terminated),
      restartCount: status?.restartCount,
      containerId: status?.containerID,
      final: status?.state?.terminated !== undefined && neverStartsAgain(spec, restartPolicyOfPod) ? (true as const) : undefined,
    });
  });
}

/** A container may have a policy of its own, and rules for some exit codes (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#container-restart-rules). */
function neverStartsAgain(spec: z.infer<typeof containerSpec> | undefined, restartPolicyOfPod: string | undefined): boolean {
  return spec !== undefined && (spec.restartPolicy ?? restartPolicyOfPod) === "Never" && spec.restartPolicyRules.length === 0;
}

function readState(value: z.infer<typeof state> | undefined): ContainerState {
  if (value?.running !== undefined) return pickDefined({ kind: "running" as const, startedAt: value.running.startedAt });
  if (value?.terminated !== undefined) return { kind: "terminated", run: readRun(value.terminated) };
  if (value?.waiting !== undefined) return { kind: "waiting", reason: value.waiting.reason ?? "" };
  return { kind: "unreported" };
}

function readRun({ startedAt, finishedAt }: z.infer<typeof run>): TerminatedRun {
  return pickDefined({ startedAt, finishedAt });
}

const nodeObject = z.object({
  metadata,
  spec: z.object({ taints: list(z.object({ key: z.string() })) }).prefault({}),
  status: z.object({ conditions: list(condition), addresses: list(z.object({ address: z.string() })) }).prefault({}),
});

/** Reads a node from the API's JSON. Throws a ZodError when it is none. */
export function readNode(value: unknown): Node {
  const { metadata: meta, spec, status } = nodeObject.parse(value);
  const ready = status.conditions.find(({ type }) => type === "Ready");
  const label = meta.labels?.["kubernetes.io/hostname"];
  return pickDefined<Loose<Node>>({
    name: meta.name,
    createdAt: meta.creationTimestamp,
    hostnames: Array.from(new Set([meta.name, ...(label === undefined ? [] : [label]), ...status.addresses.map(({ address }) => address)])),
    ready: ready?.status === "True" || ready?.status === "False" ? ready.status : "Unknown",
    readySince: ready?.lastTransitionTime,
    reportedAt: ready?.lastHeartbeatTime,
    outOfService: spec.taints.some(({ key }) => key === "node.kubernetes.io/out-of-service"),
  });
}

/** Characters of a Stack's message that are kept: Pulumi's error with some dozens of locks. */
const LONGEST_MESSAGE = 16 * 1_024;

// A status proves nothing, so one of another shape must not make the Stack itself unreadable.
const stackStatus = optional(z.object({ lastUpdate: optional(z.object({ state: optional(z.string()), message: optional(z.string()) })) })).catch(undefined);

const stackObject = z.object({
  kind: optional(z.string()),
  metadata: z.object({ name: z.string(), namespace: z.string().default(""), uid: optional(z.string()) }),
  spec: z.object({ stack: optional(z.string()), backend: optional(z.string()), stacks: list(z.object({ name: z.string() })) }).prefault({}),
  status: stackStatus,
});

/** Reads a Stack or a Workspace from the API's JSON. Throws a ZodError when it is none. */
export function readStack(value: unknown): StackResource {
  const { kind, metadata: meta, spec, status } = stackObject.parse(value);
  return pickDefined({
    kind: kind === "Workspace" ? ("Workspace" as const) : ("Stack" as const),
    namespace: meta.namespace,
    name: meta.name,
    uid: meta.uid,
    stacks: [...(spec.stack === undefined ? [] : [spec.stack]), ...spec.stacks.map(({ name }) => name)],
    backend: spec.backend === "" ? undefined : spec.backend,
    lastUpdateState: status?.lastUpdate?.state,
    lastUpdateMessage: status?.lastUpdate?.message?.slice(0, LONGEST_MESSAGE),
  });
}

type Loose<Value> = { readonly [Key in keyof Value]-?: undefined extends Value[Key] ? Value[Key] | undefined : Value[Key] };
