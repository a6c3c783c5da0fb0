import type { TerminatedRun } from "../../src/core/cluster.ts";
import { truncateToSecond } from "../../src/core/time.ts";
import { seconds, type Clock, type Timeline } from "./clock.ts";
import type { SimulatedNode } from "./node.ts";
import { Container, SimulatedPod, type PodPlan } from "./pod.ts";

/** Something that makes pods: again under the same name, under another one, or once. */
export interface Workload {
  readonly kind: "stateful-set" | "deployment" | "job";
  readonly name: string;
  readonly plan: PodPlan;
}

/** A cluster: its controllers, and the kubelets of its nodes. */
export class SimulatedCluster {
  readonly name: string;
  readonly clock: Clock;
  readonly nodes: SimulatedNode[] = [];
  /** Those that the API no longer shows but whose containers may run on included. */
  readonly pods: SimulatedPod[] = [];
  readonly workloads: readonly Workload[];
  readonly #timeline: Timeline;
  readonly #guestOf: () => Clock;
  #made = 0;

  constructor(name: string, timeline: Timeline, clock: Clock, workloads: readonly Workload[], guestOf: () => Clock) {
    this.name = name;
    this.#timeline = timeline;
    this.clock = clock;
    this.workloads = workloads;
    this.#guestOf = guestOf;
  }

  addNode(node: SimulatedNode): void {
    this.nodes.push(node);
    node.onReturn = () => this.#actAgain(node);
  }

  /** Makes a pod of a workload, on the given node if the scheduler may choose it. */
  create(index: number, wish: number): SimulatedPod | undefined {
    const workload = this.workloads[index];
    const fit = this.nodes.filter(({ inApi, ready, outOfService }) => inApi && ready === "True" && !outOfService);
    const node = fit[wish % Math.max(fit.length, 1)];
    if (workload === undefined || node === undefined) return undefined;
    this.#made += 1;
    const name = workload.kind === "stateful-set" ? `${workload.name}-0` : `${workload.name}-${String(this.#made).padStart(5, "x")}`;
    if (this.pods.some((pod) => pod.inApi && pod.name === name && pod.plan.namespace === workload.plan.namespace)) return undefined;
    const pod = new SimulatedPod({
      plan: workload.plan,
      name,
      uid: `${this.name}-${this.#made}`,
      workload: index,
      createdAt: this.clock.readSecond(),
      node,
      ...(workload.plan.runtimeClassName === undefined ? {} : { guest: this.#guestOf() }),
    });
    this.pods.push(pod);
    this.#timeline.after(0.3, () => this.#start(pod));
    return pod;
  }

  /** Takes the pod from the API, whatever still runs; its controller makes another. */
  remove(pod: SimulatedPod): void {
    if (!pod.inApi) return;
    pod.inApi = false;
    if (this.workloads[pod.workload]?.kind !== "job") this.#recreate(pod.workload, this.nodes.indexOf(pod.node) + 1);
  }

  delete(pod: SimulatedPod, disruption?: string): void {
    if (!pod.inApi || pod.deletionAt !== undefined) return;
    pod.deletionAt = this.clock.readSecond() + seconds(pod.plan.grace);
    if (disruption !== undefined) pod.disruption = disruption;
    this.#endSoon(pod, pod.plan.grace);
  }

  forceDelete(pod: SimulatedPod): void {
    if (!pod.inApi) return;
    const { node } = pod;
    pod.forceDeletion = { at: this.#timeline.now, trouble: node.trouble };
    this.remove(pod);
    if (node.able) {
      pod.ending = true;
      this.#timeline.after(node.pace.kill, () => this.#end(pod));
    }
  }

  /** Pod GC writes Failed without asking the kubelet, then force-deletes after a while. */
  collect(pod: SimulatedPod, pause: number): void {
    if (!pod.inApi || (pod.node.inApi && !pod.node.outOfService)) return;
    pod.disruption = "DeletionByPodGC";
    pod.reported = { ...pod.reported, phase: "Failed" };
    this.#timeline.after(pause, () => this.forceDelete(pod));
  }

  restart(pod: SimulatedPod, container: Container, backOff: number): void {
    if (container.state.kind !== "running" || pod.over || container.kind === "init") return;
    const run = this.#stop(pod, container);
    if (container.kind !== "ephemeral") {
      container.restarts += 1;
      container.last = run;
      container.state = { kind: "waiting", reason: "CrashLoopBackOff" };
      this.#timeline.after(backOff, () => {
        if (!pod.over && pod.node.able && container.state.kind === "waiting") this.#run(pod, container);
      });
    }
    this.report(pod);
  }

  debug(pod: SimulatedPod): void {
    if (pod.over || !pod.inApi || !pod.node.able) return;
    const container = new Container(`debugger-${pod.containers.length}`, "ephemeral");
    pod.containers.push(container);
    pod.reported = { ...pod.reported, containers: [...pod.reported.containers, { name: container.name, kind: "ephemeral", state: { kind: "unreported" } }] };
    this.#timeline.after(1, () => {
      if (!pod.over && pod.node.able) this.#run(pod, container);
    });
  }

  /** All its containers come to their end by themselves. */
  complete(pod: SimulatedPod, succeeded: boolean): void {
    if (pod.over || pod.phase !== "Running") return;
    pod.succeeded = succeeded;
    this.#end(pod);
  }

  powerOff(node: SimulatedNode): void {
    node.change({ on: false });
    for (const pod of this.pods) {
      if (pod.node !== node || pod.over) continue;
      for (const process of pod.processes) process.kill();
      for (const container of pod.containers) {
        if (container.state.kind !== "running") continue;
        container.last = undefined;
        container.restarts += 1;
        container.runsSince = undefined;
        container.state = { kind: "waiting", reason: "ContainerCreating" };
      }
      if (!pod.inApi) pod.over = true;
    }
  }

  report(pod: SimulatedPod): void {
    this.#timeline.after(pod.node.pace.report, () => {
      if (!pod.inApi || !pod.node.able || !pod.node.inApi) return;
      if (pod.disruption !== "DeletionByPodGC") pod.reported = { phase: pod.phase, containers: pod.containers.map((container) => container.toApi(pod)) };
      if (pod.ending && pod.over && pod.deletionAt !== undefined) this.remove(pod);
    });
  }

  #recreate(workload: number, wish: number, attempts = 0): void {
    this.#timeline.after(attempts === 0 ? 0.5 : 20, () => {
      if (this.create(workload, wish) === undefined && attempts < 3) this.#recreate(workload, wish, attempts + 1);
    });
  }

  #start(pod: SimulatedPod): void {
    if (pod.over || pod.ending || !pod.node.able || pod.containers.some(({ runs }) => runs > 0)) return;
    const of = (...kinds: readonly string[]): readonly Container[] => pod.containers.filter(({ kind }) => kinds.includes(kind));
    for (const container of of("init", "sidecar")) this.#run(pod, container);
    this.#timeline.after(2, () => {
      if (pod.over || !pod.node.able) return;
      for (const container of of("init")) this.#stop(pod, container);
      for (const container of of("main")) this.#run(pod, container);
    });
  }

  #run(pod: SimulatedPod, container: Container): void {
    const { node } = pod;
    container.runs += 1;
    container.runsSince = this.#timeline.now;
    container.state = { kind: "running", startedAt: truncateToSecond(node.clock.read() + seconds(node.pace.startNoted)) };
    this.report(pod);
  }

  #stop(pod: SimulatedPod, container: Container): TerminatedRun | undefined {
    if (container.state.kind !== "running") return undefined;
    for (const process of pod.processes) if (process.place?.container === container) process.kill();
    const { startedAt } = container.state;
    container.runsSince = undefined;
    const run = { ...(startedAt === undefined ? {} : { startedAt }), finishedAt: pod.node.clock.readSecond() };
    container.state = { kind: "terminated", run };
    return run;
  }

  /** SIGTERM now, SIGKILL after the grace period or once everything has ended. */
  #endSoon(pod: SimulatedPod, grace: number): void {
    if (pod.ending || !pod.node.able) return;
    pod.ending = true;
    let last = 0.5;
    for (const process of pod.processes.filter(({ lives }) => lives)) {
      const { manners } = process;
      if (process.state === "stopped" || manners.kind === "ignores" || manners.seconds >= grace) last = grace;
      else {
        last = Math.max(last, manners.seconds + 0.5);
        this.#timeline.after(manners.seconds, () => process.finish(false));
      }
    }
    this.#timeline.after(Math.min(last, grace), () => this.#end(pod));
  }

  #end(pod: SimulatedPod): void {
    if (!pod.node.on || pod.over) return;
    for (const container of pod.containers) {
      if (container.state.kind === "running") this.#stop(pod, container);
      else if (container.state.kind === "waiting") container.state = { kind: "terminated", run: {} };
    }
    pod.over = true;
    this.report(pod);
  }

  /** What a kubelet does once it can act and hear again: a pod that is no longer there gets its whole grace period. */
  #actAgain(node: SimulatedNode): void {
    for (const pod of this.pods.filter((candidate) => candidate.node === node)) {
      if (!pod.over && (!pod.inApi || pod.deletionAt !== undefined)) this.#endSoon(pod, pod.plan.grace);
      else if (!pod.over) {
        this.#start(pod);
        for (const container of pod.containers) if (container.state.kind === "waiting" && container.runs > 0) this.#run(pod, container);
      }
      this.report(pod);
    }
  }
}
