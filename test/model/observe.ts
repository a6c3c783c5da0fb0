// What the API server shows of a cluster: of a pod what its kubelet last reported, of a node whether it is Ready.
import type { ClusterObservation, Container, ContainerState, Node, Pod, Process, ProcessObservation, StackResource } from "../../src/core/cluster.ts";
import { SECOND } from "../../src/core/time.ts";
import { toTime } from "./clock.ts";
import type { ModelContainer, ModelNode, ModelPod, ModelProcess, Reported, Run, World } from "./world.ts";

/** What an API server does not show although it should. */
export interface Blindness {
  /** The list of pods breaks off after some. */
  readonly podsCutShort: boolean;
  readonly nodesDenied: boolean;
  readonly stacksDenied: boolean;
  /** No container's processes can be looked at. */
  readonly probeFails: boolean;
}

/** The Stacks of a cluster: of every workspace, and of the stack that it runs. */
export type StacksOf = (cluster: number) => readonly StackResource[];

export function showPods(world: World, cluster: number, probed: boolean, { podsCutShort, probeFails }: Blindness): ClusterObservation["pods"] {
  const listed = world.pods.filter((pod) => pod.cluster === cluster && pod.listed);
  const pods = listed.map((pod) => showPod(world, pod, probed ? (probeFails ? "fails" : "works") : "off"));
  // Every cluster has pods of its own beside those in question.
  const total = pods.length + 1;
  if (!podsCutShort) return { kind: "complete", pods, total };
  return { kind: "incomplete", problem: "410 Expired", pods: pods.slice(0, Math.floor(pods.length / 2)), total };
}

export function showNodes(world: World, cluster: number, { nodesDenied }: Blindness): ClusterObservation["nodes"] {
  if (nodesDenied) return { kind: "unlisted", problem: "403" };
  return { kind: "listed", nodes: world.nodes.filter((node) => node.cluster === cluster && node.listed).map(showNode) };
}

export function showPod(world: World, pod: ModelPod, probe: "off" | "works" | "fails"): Pod {
  const containers = pod.containers.map((container, index) => showContainer(pod, container, pod.reported.containers[index]));
  const live = pod.containers.some((container) => world.isRunning(container)) && pod.node.silentSince === undefined;
  return {
    namespace: pod.namespace,
    name: pod.name,
    uid: pod.uid,
    createdAt: toTime(Math.floor(pod.createdAt)),
    phase: pod.reported.phase,
    nodeName: pod.node.name,
    hostNetwork: false,
    setHostnameAsFqdn: false,
    containers,
    ...(pod.hostname === undefined ? {} : { hostname: pod.hostname }),
    ...(pod.hostnameOverride === undefined ? {} : { hostnameOverride: pod.hostnameOverride }),
    ...(pod.deletionAt === undefined ? {} : { deletionAt: toTime(pod.deletionAt) }),
    ...(pod.disruption === undefined ? {} : { disruption: pod.disruption }),
    ...(probe !== "off" && live ? { processes: probe === "fails" ? { kind: "could-not-look", problem: "no shell" } : lookAtProcesses(world, pod) } : {}),
  };
}

function showContainer(pod: ModelPod, { name, kind }: ModelContainer, reported: Reported["containers"][number] | undefined): Container {
  const runs = reported?.runs ?? [];
  const last = runs.at(-1);
  const before = reported?.running === true ? runs.at(-2) : undefined;
  return {
    name,
    kind,
    restartCount: Math.max(0, runs.length - 1),
    containerId: `containerd://${pod.uid}-${name}-${runs.length}`,
    state: stateOf(last, reported?.running === true),
    ...(before === undefined ? {} : { last: ended(before) }),
  };
}

function stateOf(run: Run | undefined, running: boolean): ContainerState {
  if (run === undefined) return { kind: "waiting", reason: "ContainerCreating" };
  return running ? { kind: "running", startedAt: toTime(run.notedStart) } : { kind: "terminated", run: ended(run) };
}

function ended(run: Run): { readonly startedAt: bigint; readonly finishedAt?: bigint } {
  return { startedAt: toTime(run.notedStart), ...(run.notedEnd === undefined ? {} : { finishedAt: toTime(run.notedEnd) }) };
}

/** As a probe sees them now: each running container with a shell as its first process. */
function lookAtProcesses(world: World, pod: ModelPod): ProcessObservation {
  const show = (process: ModelProcess): Process => ({
    pid: process.pid,
    name: process.name,
    zombie: process.zombie,
    // btime moves with every step of the clock.
    startedAt: toTime(process.startedAt + pod.node.clock),
    innerPids: process.innerPid === undefined ? [] : [process.innerPid],
  });
  return {
    kind: "looked",
    containers: pod.containers
      .map((container, index) => ({ container, reported: pod.reported.containers[index]?.runs.length ?? 0 }))
      .filter(({ container }) => world.isRunning(container))
      .map(({ container, reported }) => ({
        container: container.name,
        // Of another run than the one that is told of: then it is another container.
        containerId: `containerd://${pod.uid}-${container.name}-${container.runs.length === reported ? reported : container.runs.length}`,
        processes: [
          { pid: 1, name: "tini", zombie: false, startedAt: toTime((container.runs.at(-1)?.startedAt ?? 0) + pod.node.clock), innerPids: [] },
          ...world.processes.filter((process) => process.container === container && (process.alive || process.zombie)).map(show),
        ],
      })),
  };
}

function showNode(node: ModelNode): Node {
  return {
    name: node.name,
    hostnames: [node.name],
    createdAt: toTime(Math.floor(node.createdAt)),
    ready: node.ready,
    readySince: (toTime(node.readySince) / SECOND) * SECOND,
    outOfService: node.outOfService,
  };
}
