// A world with janitors in it: what they remove is checked against what really runs.
import type { StackResource } from "../../src/core/cluster.ts";
import type { SweepReport } from "../../src/core/report.ts";
import { runSweep, type SweepPlan } from "./janitor.ts";
import { findExcuse } from "./known-limits.ts";
import type { Tally } from "./tally.ts";
import { World } from "./world.ts";

/** The names that workspaces of the configured clusters have; each has its Stack. */
export const APPS = ["app0", "app1", "app2"] as const;

/** The folder of a stack's locks. */
export function stackOf(app: string): string {
  return `organization/shop/${app}`;
}

const STACKS: readonly StackResource[] = APPS.map((name) => ({ kind: "Stack", namespace: "iac", name, stacks: [stackOf(name)] }));

/** A fault of the janitor: what it did, and why that is wrong. */
export class Violation extends Error {
  override name = "Violation";
}

export class Field {
  readonly world = new World();
  readonly tally: Tally;
  /** How many clusters the janitors are told of. */
  readonly clusters: number;
  #runs = 0;
  #violation: Violation | undefined;

  constructor(tally: Tally, clusters: number) {
    this.tally = tally;
    this.clusters = clusters;
  }

  /** One sweep; what it removes is checked as it happens. */
  async sweep(plan: Omit<SweepPlan, "clusters">): Promise<SweepReport | undefined> {
    this.#runs += 1;
    const runId = `run-${this.#runs}`;
    const report = await runSweep(
      this.world,
      () => STACKS,
      { ...plan, clusters: this.clusters },
      { onRemoved: (key, body) => this.#checkRemoval(key, body) },
      runId,
    );
    this.tally.countReport(report, this.world);
    return report;
  }

  /** Throws what a janitor did wrong, if it did: thrown in its midst, it would take it for a failure of the store. */
  throwViolation(): void {
    if (this.#violation !== undefined) throw this.#violation;
  }

  /** P1 and P3: what was just removed had no living writer, and a record that holds it. */
  #checkRemoval(key: string, body: string): void {
    const lock = this.world.written.get(body);
    const bytes = `"body":"${Buffer.from(body).toString("base64")}"`;
    const recorded = Array.from(this.world.store.recordObjects.values()).some((record) => {
      const text = new TextDecoder().decode(record).replaceAll(/":\s+/g, '":');
      return text.includes('"event":"intent"') && text.includes(bytes) && text.includes(`"key":"${key}"`);
    });
    if (!recorded) this.#violation ??= new Violation(`P3: ${key} was removed without a record of it`);
    this.tally.removals += 1;
    const { writer } = lock ?? {};
    if (lock === undefined || writer === undefined || !writer.alive) return;
    const excuse = findExcuse(this.world, lock, writer);
    if (excuse === undefined)
      this.#violation ??= new Violation(`P1: ${key} was removed, and process ${writer.pid} of ${writer.pod.name} on ${writer.pod.node.name} still runs`);
    else this.tally.countExcuse(excuse);
  }
}
