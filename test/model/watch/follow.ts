import type { Pod } from "../../../src/core/cluster.ts";
import { podHostname } from "../../../src/core/hostname.ts";
import type { ClusterSign } from "../../../src/kubernetes/cluster-source.ts";
import type { SimulatedCluster } from "../cluster.ts";
import type { World } from "../world.ts";

/** Seconds between two attempts to get a stream again, as they grow. */
const PAUSES = [1, 2, 4, 8, 16, 32, 60];

/** The changes of a cluster's pods on their way to a watch: late, more than once, in a gap, or never. */
export class Follow {
  readonly #world: World;
  readonly #cluster: SimulatedCluster;
  /** Seconds from a change to its sign. */
  readonly #lag: number;
  #sink: ((sign: ClusterSign) => void) | undefined;
  /** Of each pod that the API showed: what matters of it. */
  #seen: ReadonlyMap<string, Sight> = new Map();
  /** What has happened since the stream was interrupted; undefined while it flows. */
  #waiting: ClusterSign[] | undefined;
  #interruptions = 0;
  #last: ClusterSign | undefined;
  #dropping = false;

  constructor(world: World, cluster: SimulatedCluster, lag: number) {
    this.#world = world;
    this.#cluster = cluster;
    this.#lag = lag;
    this.#seen = this.#look();
  }

  /** A janitor begins to follow: it is told nothing of what was before. */
  attach(sink: (sign: ClusterSign) => void): void {
    this.#sink = sink;
    if (this.#waiting === undefined) this.tell({ kind: "followed", what: "pods" });
    else {
      this.#waiting = undefined;
      this.interrupt("the request failed (ECONNREFUSED)", false);
    }
  }

  detach(): void {
    this.#sink = undefined;
  }

  /** Compares with what was there before, and sends a sign of each change that may have ended a process. */
  notice(): void {
    const now = this.#look();
    for (const [uid, { hostname }] of this.#seen) if (!now.has(uid)) this.#send(hostname);
    for (const [uid, { hostname, state, stopped }] of now) {
      const before = this.#seen.get(uid);
      if (before !== undefined && before.state !== state && stopped) this.#send(hostname);
    }
    this.#seen = now;
  }

  /** The stream breaks off; attempts to get it again fail until it goes on. */
  interrupt(problem: string, denied: boolean): void {
    if (this.#waiting !== undefined) return;
    this.#waiting = [];
    this.#interruptions += 1;
    this.#fail(this.#interruptions, 0, { kind: "unfollowed", what: "pods", problem, denied });
  }

  /** It goes on where it was: whatever has happened is told now. */
  goOn(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    this.#waiting = undefined;
    this.tell({ kind: "followed", what: "pods" });
    for (const sign of waiting) this.#deliver(sign);
  }

  /** Where it was is no longer known (410): what has happened meanwhile is never told. */
  beginAnew(): void {
    this.#waiting = undefined;
    this.tell({ kind: "lost", problem: "the watch of pods ended (410)" });
    this.tell({ kind: "followed", what: "pods" });
  }

  /** Something between loses the next change, and nobody is told. */
  drop(): void {
    this.#dropping = true;
  }

  repeat(): void {
    if (this.#last !== undefined) this.#deliver(this.#last);
  }

  /** Hands a sign to the janitor; false where there is none. */
  tell(sign: ClusterSign): boolean {
    this.#world.oracle.tally.add(`sign: ${sign.kind}`);
    this.#sink?.(sign);
    return this.#sink !== undefined;
  }

  #fail(interruption: number, attempt: number, sign: ClusterSign): void {
    if (interruption !== this.#interruptions || this.#waiting === undefined) return;
    this.tell(sign);
    this.#world.timeline.after(PAUSES[attempt] ?? 60, () => this.#fail(interruption, attempt + 1, sign));
  }

  #send(hostname: string | undefined): void {
    if (hostname === undefined) return;
    const sign: ClusterSign = { kind: "pod", hostname };
    if (this.#dropping) {
      this.#dropping = false;
      this.#world.oracle.tally.add("signs that were dropped in silence");
    } else if (this.#waiting === undefined) this.#deliver(sign);
    else this.#waiting.push(sign);
  }

  #deliver(sign: ClusterSign): void {
    this.#last = sign;
    const sink = this.#sink;
    this.#world.timeline.after(this.#lag, () => {
      // A janitor that was started meanwhile follows from its own beginning.
      if (sink === this.#sink) this.tell(sign);
    });
  }

  #look(): ReadonlyMap<string, Sight> {
    return new Map(this.#cluster.pods.filter(({ inApi }) => inApi).map((pod) => [pod.uid, describePod(pod.toApi())]));
  }
}

/** What a stream shows of a pod. */
interface Sight {
  readonly hostname: string | undefined;
  readonly state: string;
  readonly stopped: boolean;
}

function describePod(pod: Pod): Sight {
  const { phase, containers } = pod;
  return {
    hostname: podHostname(pod),
    state: `${phase} ${containers.map(({ state, restartCount = 0 }) => `${state.kind} ${restartCount}`).join()}`,
    stopped:
      phase === "Failed" ||
      phase === "Succeeded" ||
      containers.some(({ state, last }) => state.kind === "terminated" || state.kind === "waiting" || last !== undefined),
  };
}
