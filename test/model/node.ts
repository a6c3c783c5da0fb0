import type { Node } from "../../src/core/cluster.ts";
import { truncateToSecond, type EpochNanoseconds } from "../../src/core/time.ts";
import { seconds, type Clock, type Timeline } from "./clock.ts";

const REPORT_EVERY = seconds(300);

/** How quickly things come about on a node, in seconds. */
export interface NodePace {
  /** After this silence the control plane takes Ready from it. */
  readonly notice: number;
  /** After this time a runtime that hangs costs it Ready. */
  readonly hangNotice: number;
  /** From a change to its report, 1 to 10. */
  readonly report: number;
  /** By how much a container's `startedAt` is later than its start, 0 to 2. */
  readonly startNoted: number;
  /** From a force delete to the kill, where nothing is in the way. */
  readonly kill: number;
}

/** A time in which a kubelet could not act. */
export interface Trouble {
  /** When it cost the node its Ready; undefined while it has not. */
  costReadyAt: EpochNanoseconds | undefined;
}

/** A machine and its Node object. */
export class SimulatedNode {
  readonly name: string;
  readonly clock: Clock;
  readonly pace: NodePace;
  readonly createdAt: EpochNanoseconds;
  inApi = true;
  on = true;
  cut = false;
  hung = false;
  ready: Node["ready"] = "True";
  readySince: EpochNanoseconds;
  outOfService = false;
  /** Every change of Ready, in true time: the API tells of the last one only. */
  readonly changes: { readonly at: EpochNanoseconds; readonly ready: Node["ready"] }[] = [];
  /** The trouble it is in. */
  trouble: Trouble | undefined;
  /** Called when its kubelet can act and report again. */
  onReturn: () => void = () => undefined;
  readonly #timeline: Timeline;
  readonly #apiClock: Clock;
  #change = 0;
  /** In true time, since when its kubelet reports what it reports, and until when it did. */
  #reporting: { readonly since: EpochNanoseconds; readonly until: EpochNanoseconds | undefined };

  constructor(words: {
    readonly name: string;
    readonly clock: Clock;
    readonly pace: NodePace;
    readonly timeline: Timeline;
    readonly apiClock: Clock;
    readonly createdAt: EpochNanoseconds;
    readonly readySince: EpochNanoseconds;
  }) {
    this.name = words.name;
    this.clock = words.clock;
    this.pace = words.pace;
    this.createdAt = words.createdAt;
    this.readySince = words.readySince;
    this.#timeline = words.timeline;
    this.#apiClock = words.apiClock;
    this.#reporting = { since: words.readySince - words.clock.offset, until: undefined };
  }

  /** Its kubelet hears of changes, and tells of them. */
  get reachable(): boolean {
    return this.on && !this.cut;
  }

  /** Its kubelet can start and stop containers as well. */
  get able(): boolean {
    return this.reachable && !this.hung;
  }

  change(words: { readonly cut?: boolean; readonly hung?: boolean; readonly on?: boolean }): void {
    const couldAct = this.able;
    this.cut = words.cut ?? this.cut;
    this.hung = words.hung ?? this.hung;
    this.on = words.on ?? this.on;
    if (this.able) this.trouble = undefined;
    else this.trouble ??= { costReadyAt: undefined };
    this.#reporting = { since: this.#reporting.since, until: this.reachable ? undefined : (this.#reporting.until ?? this.#timeline.now) };
    this.#change += 1;
    const change = this.#change;
    const unlessChanged = (delay: number, ready: Node["ready"]): void =>
      this.#timeline.after(delay, () => {
        if (change === this.#change) this.#setReady(ready);
      });
    if (!this.reachable) unlessChanged(this.pace.notice, "Unknown");
    else if (this.hung) unlessChanged(this.pace.hangNotice, "False");
    else {
      unlessChanged(1.5, "True");
      if (!couldAct) this.onReturn();
    }
  }

  toApi(): Node {
    const { name, createdAt, ready, readySince, outOfService } = this;
    return { name, createdAt, hostnames: [name, `10.0.0.${name.length}`], ready, readySince, reportedAt: this.#findReport(), outOfService };
  }

  /** The latest of the reports that it writes every five minutes, by its clock as it was then. */
  #findReport(): EpochNanoseconds {
    const { since, until = this.#timeline.now } = this.#reporting;
    const at = until - ((until - since) % REPORT_EVERY);
    return truncateToSecond(at + this.clock.offsetAt(at));
  }

  #setReady(ready: Node["ready"]): void {
    if (this.ready === ready) return;
    this.changes.push({ at: this.#timeline.now, ready });
    if (this.trouble !== undefined && ready !== "True") this.trouble.costReadyAt ??= this.#timeline.now;
    this.ready = ready;
    // A kubelet says it by its own clock; what it does not say any more, the control plane by its own.
    this.readySince = (ready === "Unknown" ? this.#apiClock : this.clock).readSecond();
    if (ready !== "Unknown") this.#reporting = { since: this.#timeline.now, until: undefined };
  }
}
