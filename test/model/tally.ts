import type { SweepReport } from "../../src/core/report.ts";
import { World } from "./world.ts";

/** How often each thing occurred in a run of histories: a model in which nothing happens proves nothing. */
export class Tally {
  histories = 0;
  sweeps = 0;
  crashes = 0;
  removals = 0;
  /** Histories in which something was removed, and in which a lock was judged while its writer lived. */
  withRemoval = 0;
  withLiveLock = 0;
  liveJudged = 0;
  readonly verdicts = new Map<string, number>();
  readonly actions = new Map<string, number>();
  readonly happened = new Map<string, number>();
  readonly excuses = new Map<string, number>();

  countReport(report: SweepReport | undefined, world: World): void {
    this.sweeps += 1;
    if (report === undefined) {
      this.crashes += 1;
      return;
    }
    for (const { verdict, reason, action, key } of report.locks) {
      add(this.verdicts, `${verdict}: ${reason}`);
      add(this.actions, action);
      if (world.processes.some((process) => process.alive && process.key === key)) this.liveJudged += 1;
    }
  }

  countAction(kind: string): void {
    add(this.happened, kind);
  }

  countExcuse(excuse: string): void {
    add(this.excuses, excuse);
  }

  /** Adds another run's figures. */
  merge(other: Tally): void {
    for (const name of ["histories", "sweeps", "crashes", "removals", "withRemoval", "withLiveLock", "liveJudged"] as const) this[name] += other[name];
    for (const name of ["verdicts", "actions", "happened", "excuses"] as const) for (const [key, count] of other[name]) add(this[name], key, count);
  }

  format(): string {
    const list = (title: string, counts: ReadonlyMap<string, number>): string =>
      `${title}\n${Array.from(counts)
        .toSorted(([, a], [, b]) => b - a)
        .map(([name, count]) => `  ${String(count).padStart(9)}  ${name}\n`)
        .join("")}`;
    return [
      `${this.histories} histories, ${this.sweeps} sweeps (${this.crashes} crashed), ${this.removals} removals`,
      `${this.withRemoval} histories removed something, in ${this.withLiveLock} a live lock was judged (${this.liveJudged} times)`,
      list("verdicts", this.verdicts),
      list("actions", this.actions),
      list("what happened", this.happened),
      list("known limits met", this.excuses),
    ].join("\n");
  }
}

function add(counts: Map<string, number>, name: string, by = 1): void {
  counts.set(name, (counts.get(name) ?? 0) + by);
}
