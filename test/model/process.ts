import type { EpochNanoseconds } from "../../src/core/time.ts";
import type { Clock } from "./clock.ts";
import type { Container, SimulatedPod } from "./pod.ts";
import type { ModelStore } from "./store.ts";

/** How a process takes SIGTERM: it ends in order after so many seconds, or goes on until it is killed. */
export type Manners = { readonly kind: "ends-after"; readonly seconds: number } | { readonly kind: "ignores" };

/** Where a process runs; outside every cluster when there is no pod. */
export interface Place {
  readonly pod: SimulatedPod;
  readonly container: Container;
}

/** A pulumi process. It may write state for as long as it is neither gone nor a zombie: also while it is stopped, since it may go on. */
export class PulumiProcess {
  readonly hostname: string;
  readonly clock: Clock;
  readonly place: Place | undefined;
  /** Its number in the PID namespace of its container, or in a namespace inside of that. */
  readonly pid: number;
  /** What it is called in the container when it runs in a nested namespace. */
  readonly outerPid: number | undefined;
  readonly startedAt: EpochNanoseconds;
  readonly manners: Manners;
  state: "running" | "stopped" | "zombie" | "gone" = "running";
  /** Its language host runs on without it. */
  leavesHost = false;
  /** The lock it holds, or believes to hold. */
  holds: { readonly store: ModelStore; readonly key: string } | undefined;

  constructor(words: {
    readonly hostname: string;
    readonly clock: Clock;
    readonly place?: Place;
    readonly pid: number;
    readonly outerPid?: number;
    readonly startedAt: EpochNanoseconds;
    readonly manners: Manners;
  }) {
    this.hostname = words.hostname;
    this.clock = words.clock;
    this.place = words.place;
    this.pid = words.pid;
    this.outerPid = words.outerPid;
    this.startedAt = words.startedAt;
    this.manners = words.manners;
  }

  get lives(): boolean {
    return this.state === "running" || this.state === "stopped";
  }

  /** The update is over: the lock is removed, unless that delete fails, and the process ends. */
  finish(deleteFails: boolean): void {
    if (this.state !== "running") return;
    if (this.holds !== undefined && !deleteFails) this.holds.store.removeByWriter(this.holds.key);
    this.state = "gone";
  }

  /** Killed: its lock stays, and so does its language host (seen on a real node). A child that nobody reaps stays as a zombie. */
  kill(reaped = true): void {
    if (!this.lives) return;
    this.state = reaped ? "gone" : "zombie";
    this.leavesHost = true;
  }
}
