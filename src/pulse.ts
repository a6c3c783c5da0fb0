import type { Following } from "./core/following.ts";
import { TIMED_OUT, type SweepReport } from "./core/report.ts";
import { hasFailed } from "./core/watch-due.ts";
import type { Probe } from "./output/serve-status.ts";

/** Whether a watch goes on, and whether it sees: what `/healthz` and `/readyz` say. */
export class Pulse {
  readonly #longest: number;
  readonly #now: () => number;
  #beatAt: number;
  #problem: string | undefined = "no sweep has ended yet";
  /** Why changes do not come although they may be asked for, by cluster and kind. */
  readonly #blind = new Map<string, string>();

  /** `longest`: milliseconds without a sweep after which something is wrong. */
  constructor(longest: number, now: () => number = () => performance.now()) {
    this.#longest = longest;
    this.#now = now;
    this.#beatAt = now();
  }

  /** Takes in a sweep of every lock that has ended. */
  beat(report: SweepReport): void {
    this.#beatAt = this.#now();
    this.#problem = hasFailed(report) ? describeFailure(report) : undefined;
  }

  /** Without the right to follow changes a watch does by its interval, and sees all the same. */
  follow({ cluster, what, trouble }: Following): void {
    const name = `${what} of cluster ${cluster}`;
    if (trouble === undefined || trouble.denied) this.#blind.delete(name);
    else this.#blind.set(name, `could not follow ${name}: ${trouble.problem}`);
  }

  readonly healthy: Probe = () => {
    const silent = this.#now() - this.#beatAt;
    return silent < this.#longest ? { ok: true, message: "ok" } : { ok: false, message: `no sweep has ended for ${Math.trunc(silent / 1_000)} s` };
  };

  readonly ready: Probe = () => {
    const problems = [...(this.#problem === undefined ? [] : [this.#problem]), ...this.#blind.values()];
    return problems.length === 0 ? { ok: true, message: "ok" } : { ok: false, message: problems.join("; ") };
  };
}

function describeFailure({ backends, clusters, timedOut = false }: SweepReport): string {
  const unread = [...backends, ...clusters].filter(({ error }) => error !== undefined).map(({ name }) => name);
  return [...(unread.length === 0 ? [] : [`could not read ${unread.join(", ")}`]), ...(timedOut ? [TIMED_OUT] : [])].join("; ");
}
