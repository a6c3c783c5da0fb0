// What really happens: machines, pods, their processes and the locks that they write. Nothing here knows what the janitor makes of it. Times are
// seconds since the beginning, by a clock that is right; each node has its own.
import { MemoryBackend } from "../memory-backend.ts";
import { toTime } from "./clock.ts";

/** One life of a container, from its start to its end. */
export interface Run {
  readonly startedAt: number;
  /** As the runtime notes it: whole seconds of the node's clock, up to two seconds late. */
  readonly notedStart: number;
  endedAt?: number;
  notedEnd?: number;
}

export interface ModelContainer {
  readonly name: string;
  readonly kind: "main" | "init" | "sidecar" | "ephemeral";
  /** The latest is the last. */
  readonly runs: Run[];
}

/** What the kubelet last told of a pod. */
export interface Reported {
  readonly phase: string;
  readonly containers: readonly { readonly runs: readonly Run[]; readonly running: boolean }[];
}

export interface ModelPod {
  readonly cluster: number;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly hostname?: string;
  readonly hostnameOverride?: string;
  readonly node: ModelNode;
  readonly createdAt: number;
  readonly containers: ModelContainer[];
  /** Makes the pod again under its name when it is gone. */
  readonly statefulSet: boolean;
  /** The API server has it. */
  listed: boolean;
  deletionAt?: number;
  phase: "Running" | "Succeeded" | "Failed";
  disruption?: string;
  reported: Reported;
  /** Set when it was removed from the API while its kubelet could not be reached. */
  orphanedSince?: number;
}

export interface ModelNode {
  readonly cluster: number;
  readonly name: string;
  readonly createdAt: number;
  /** What its clock shows less the right time. */
  clock: number;
  /** When its clock was last set back by more than clocks may differ. */
  setBackAt?: number;
  /** The kubelet cannot reach the API server since then; its containers run on. */
  silentSince?: number;
  ready: "True" | "Unknown";
  readySince: number;
  listed: boolean;
  outOfService: boolean;
  /** False once the machine is off. */
  on: boolean;
}

export interface ModelProcess {
  readonly pid: number;
  /** Its number in a nested namespace, which is what it knows itself by. */
  readonly innerPid?: number;
  readonly name: string;
  readonly pod: ModelPod;
  readonly container: ModelContainer;
  readonly startedAt: number;
  alive: boolean;
  /** Dead, but not yet reaped. */
  zombie: boolean;
  /** The key of its lock while that is there. */
  key?: string;
}

/** A lock as its writer wrote it. */
export interface WrittenLock {
  readonly key: string;
  readonly body: string;
  readonly writer: ModelProcess | undefined;
  /** By the writer's clock, and by the right one. */
  readonly lockedAt: number;
  readonly writtenAt: number;
}

export interface Update {
  readonly stack: string;
  /** Seconds from its start to its end. */
  readonly takes: number;
  /** It runs in a PID namespace of its own. */
  readonly nested: boolean;
  /** At its end the store does not take the lock away. */
  readonly unlockFails: boolean;
}

interface Due {
  readonly at: number;
  readonly run: () => void;
}

/** A silent node loses Ready after this. */
const READY_LASTS = 47;

export class World {
  now = 0;
  readonly nodes: ModelNode[] = [];
  readonly pods: ModelPod[] = [];
  readonly processes: ModelProcess[] = [];
  /** Every lock ever written, by its body. */
  readonly written = new Map<string, WrittenLock>();
  readonly store = new MemoryBackend();
  /** What the store's clock shows less the right time; undefined where the store tells no times. */
  storeClock: number | undefined = 0;
  #due: Due[] = [];
  #ids = 0;

  /** A number that was not given before. */
  nextId(): number {
    this.#ids += 1;
    return this.#ids;
  }

  after(seconds: number, run: () => void): void {
    this.#due.push({ at: this.now + seconds, run });
  }

  /** Lets time pass, and everything happen that is due. */
  pass(seconds: number): void {
    const until = this.now + seconds;
    for (;;) {
      const next = this.#due.reduce<Due | undefined>((first, due) => (due.at <= until && (first === undefined || due.at < first.at) ? due : first), undefined);
      if (next === undefined) break;
      this.#due = this.#due.filter((due) => due !== next);
      this.now = Math.max(this.now, next.at);
      next.run();
    }
    this.now = until;
  }

  addNode(cluster: number, clock: number): ModelNode {
    const age = this.now === 0 ? 100_000 : 0;
    const node: ModelNode = {
      cluster,
      name: `node-${this.nextId()}`,
      createdAt: this.now - age,
      clock,
      ready: "True",
      readySince: this.now - age + 10,
      listed: true,
      outOfService: false,
      on: true,
    };
    this.nodes.push(node);
    return node;
  }

  addPod(
    wanted: Pick<ModelPod, "cluster" | "namespace" | "name" | "node" | "statefulSet" | "hostname" | "hostnameOverride"> & {
      readonly containers: readonly ModelContainer["kind"][];
    },
  ): ModelPod {
    const containers = wanted.containers.map((kind, index): ModelContainer => ({ name: index === 0 ? "pulumi" : `${kind}-${index}`, kind, runs: [] }));
    const pod: ModelPod = {
      ...wanted,
      uid: `uid-${this.nextId()}`,
      createdAt: this.now,
      containers,
      listed: true,
      phase: "Running",
      reported: { phase: "Pending", containers: containers.map(() => ({ runs: [], running: false })) },
    };
    this.pods.push(pod);
    for (const container of containers) this.after(1, () => this.startRun(pod, container, 0));
    return pod;
  }

  /** Starts a container, again or for the first time. */
  startRun(pod: ModelPod, container: ModelContainer, late: number): void {
    if (!pod.node.on || pod.phase !== "Running" || container.runs.some(({ endedAt }) => endedAt === undefined)) return;
    container.runs.push({ startedAt: this.now, notedStart: Math.floor(this.now + late + pod.node.clock) });
    this.#reportSoon(pod);
  }

  /** Ends a container with all its processes. */
  endRun(pod: ModelPod, container: ModelContainer): void {
    const run = container.runs.at(-1);
    if (run === undefined || run.endedAt !== undefined) return;
    run.endedAt = this.now;
    run.notedEnd = Math.floor(this.now + pod.node.clock);
    for (const process of this.processes) {
      if (process.container !== container) continue;
      process.alive = false;
      process.zombie = false;
    }
    this.#reportSoon(pod);
  }

  isRunning(container: ModelContainer): boolean {
    const run = container.runs.at(-1);
    return run !== undefined && run.endedAt === undefined;
  }

  /** The pod's containers all end, and it with them. */
  endPod(pod: ModelPod, phase: "Succeeded" | "Failed"): void {
    for (const container of pod.containers) this.endRun(pod, container);
    pod.phase = phase;
    this.#reportSoon(pod);
  }

  /** Removes it from the API, and makes it again where a StatefulSet wants it. */
  unlist(pod: ModelPod): void {
    if (!pod.listed) return;
    pod.listed = false;
    const { cluster, namespace, name, statefulSet, hostname, hostnameOverride } = pod;
    if (!statefulSet) return;
    this.after(1, () => {
      const node = this.nodes.find(
        (candidate) => candidate.cluster === cluster && candidate.listed && candidate.on && candidate.silentSince === undefined && !candidate.outOfService,
      );
      if (node === undefined) return;
      this.addPod({
        cluster,
        namespace,
        name,
        node,
        statefulSet,
        containers: pod.containers.filter(({ kind }) => kind !== "ephemeral").map(({ kind }) => kind),
        ...(hostname === undefined ? {} : { hostname }),
        ...(hostnameOverride === undefined ? {} : { hostnameOverride }),
      });
    });
  }

  /** What the kubelet does once it knows that the pod is to go: TERM, and KILL at the end of the grace period. */
  terminate(pod: ModelPod, grace: number): void {
    const updates = this.processes.filter((process) => process.pod === pod && process.alive && process.key !== undefined);
    for (const process of updates) if (grace > 20) this.after(grace / 2, () => this.finishUpdate(process));
    this.after(grace, () => {
      for (const container of pod.containers) this.endRun(pod, container);
      if (pod.phase === "Running") pod.phase = "Failed";
      this.unlist(pod);
    });
  }

  /** The machine goes off, with everything on it. */
  turnOff(node: ModelNode): void {
    for (const pod of this.pods) if (pod.node === node) for (const container of pod.containers) this.endRun(pod, container);
    node.on = false;
    this.silence(node);
  }

  silence(node: ModelNode): void {
    if (node.silentSince !== undefined) return;
    node.silentSince = this.now;
    this.after(READY_LASTS, () => {
      if (node.silentSince === undefined || node.silentSince > this.now - READY_LASTS || node.ready !== "True") return;
      node.ready = "Unknown";
      node.readySince = this.now;
    });
  }

  /** The kubelet reaches the API server again: it tells all it knows, and learns which of its pods were to go. */
  rejoin(node: ModelNode): void {
    if (node.silentSince === undefined || !node.on || !node.listed) return;
    delete node.silentSince;
    if (node.ready !== "True") {
      node.ready = "True";
      node.readySince = this.now;
    }
    for (const pod of this.pods) {
      if (pod.node !== node) continue;
      // The kubelet ends what it does not find in the API in its whole grace period: seen on a real node.
      if (!pod.listed) this.terminate(pod, 600);
      else if (pod.deletionAt !== undefined) this.terminate(pod, Math.max(1, pod.deletionAt - this.now));
      this.#reportSoon(pod);
    }
  }

  /** Pulumi begins an update: its lock is there a moment later, if no other is. */
  startUpdate(pod: ModelPod, container: ModelContainer, { stack, takes, nested, unlockFails }: Update): void {
    if (!this.isRunning(container) || !pod.node.on) return;
    const pid = 100 + this.nextId();
    const process: ModelProcess = {
      pid,
      name: "pulumi",
      pod,
      container,
      startedAt: this.now,
      alive: true,
      zombie: false,
      ...(nested ? { innerPid: 7 } : {}),
    };
    this.processes.push(process);
    this.after(0.5, () => this.#lock(process, stack));
    this.after(takes, () => {
      if (unlockFails) process.alive = false;
      else this.finishUpdate(process);
    });
  }

  /** The update ends, and takes its lock away. */
  finishUpdate(process: ModelProcess): void {
    if (!process.alive) return;
    if (process.key !== undefined) this.store.objects.delete(process.key);
    delete process.key;
    process.alive = false;
  }

  /** As pkg/backend/diy/lock.go: writes its own file, then looks for others, and takes its own back where there is one. */
  #lock(process: ModelProcess, stack: string): void {
    if (!process.alive) return;
    const { pod, pid, innerPid } = process;
    const folder = `.pulumi/locks/${stack}/`;
    const key = `${folder}${process.startedAt}-${pid}.json`;
    const lockedAt = this.now + pod.node.clock;
    const body = JSON.stringify({ pid: innerPid ?? pid, username: "pulumi", hostname: hostnameOf(pod), timestamp: toTimestamp(lockedAt), id: this.nextId() });
    const others = Array.from(this.store.objects.keys()).some((other) => other.startsWith(folder));
    this.putLock({ key, body, writer: process, lockedAt, writtenAt: this.now });
    process.key = key;
    if (others) this.finishUpdate(process);
  }

  putLock(lock: WrittenLock): void {
    this.written.set(lock.body, lock);
    this.putBody(lock.key, lock.body);
  }

  /** Puts a body into the store at the store's time. */
  putBody(key: string, body: string): void {
    this.store.put(key, body, this.storeClock === undefined ? undefined : toTime(this.now + this.storeClock));
  }

  #reportSoon(pod: ModelPod): void {
    const lag = 1 + (this.nextId() % 4) * 3;
    this.after(lag, () => {
      if (pod.node.silentSince !== undefined || !pod.node.on) return;
      pod.reported = {
        phase: pod.phase === "Running" && pod.containers.every(({ runs }) => runs.length === 0) ? "Pending" : pod.phase,
        containers: pod.containers.map((container) => ({ runs: container.runs.map((run) => ({ ...run })), running: this.isRunning(container) })),
      };
    });
  }
}

/** The hostname that the kernel gives the processes of a pod. */
export function hostnameOf({ name, hostname, hostnameOverride }: ModelPod): string {
  return hostnameOverride ?? (hostname ?? name).slice(0, 63).replace(/[-.]+$/, "");
}

function toTimestamp(at: number): string {
  return new Date(Number(toTime(at) / 1_000_000n)).toISOString();
}
