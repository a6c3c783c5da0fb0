import fc from "fast-check";

import { perform } from "./actions.ts";
import { histories, type History } from "./history.ts";
import { judgeLiveness, sweepInHealth } from "./liveness.ts";
import type { Tally } from "./tally.ts";
import { World } from "./world.ts";

/** What became of one history. */
export interface Ending {
  readonly violations: readonly string[];
  readonly tally: Tally;
}

/** Lets a history happen, then heals the world and looks whether everything that should go has gone. */
async function runHistory({ setup, actions }: History, tell?: (line: string) => void): Promise<Ending> {
  const world = new World(setup);
  world.tell = tell;
  const { oracle } = world;
  for (const action of actions) {
    await perform(world, action);
    if (oracle.violations.length > 0) break;
  }
  if (oracle.violations.length === 0) {
    await sweepInHealth(world);
    judgeLiveness(world);
  }
  return closeHistory(world);
}

/** Counts what a history held. */
export function closeHistory({ oracle, stores }: World): Ending {
  const { tally } = oracle;
  tally.add("histories");
  if (tally.get("removals") > 0) tally.add("histories with a removal");
  if (tally.get("live locks judged") > 0) tally.add("histories that judged a live lock");
  for (const limit of oracle.limits) tally.add(`known limit: ${limit}`);
  for (const { departures } of stores) for (const { by } of departures) tally.add(`left by ${by}`);
  return { violations: oracle.violations, tally };
}

/** The seed of one history of a range: near numbers give histories that have nothing in common. */
function seedOf(base: number, index: number): number {
  let mixed = (Math.imul(index + 1, 0x9e_37_79_b1) ^ Math.imul(base + 1, 0x85_eb_ca_6b)) | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0xc2_b2_ae_35);
  return mixed ^ (mixed >>> 13);
}

/** A history in which something happened that must not, shrunk. */
export interface Counterexample {
  readonly index: number;
  readonly seed: number;
  readonly text: string;
}

/** Lets a history happen. */
type Play<Kind> = (history: Kind, tell?: (line: string) => void) => Promise<Ending>;

/** Runs one history of a range. A counter-example is shrunk, unless that is not worth the time. */
export type RunIndex = (base: number, index: number, total: Tally, shrink?: boolean) => Promise<Counterexample | undefined>;

/** What runs histories of one kind. */
export function createRunner<Kind extends { readonly setup: object }>(arbitrary: fc.Arbitrary<Kind>, play: Play<Kind>): RunIndex {
  return async (base, index, total, shrink = true) => {
    const seed = seedOf(base, index);
    let first = true;
    const property = fc.asyncProperty(arbitrary, async (history) => {
      const { violations, tally } = await play(history);
      // What the shrinking tries is no history of the range.
      if (first) total.merge(tally);
      first = false;
      return violations.length === 0;
    });
    const details = await fc.check(property, { seed, numRuns: 1, endOnFailure: !shrink });
    const history = details.counterexample?.[0];
    if (!details.failed || history === undefined) return undefined;
    const lines: string[] = [];
    const violations = await play(history, (line) => lines.push(line)).then(
      (ending) => ending.violations,
      (error: unknown) => [String(error)],
    );
    return { index, seed, text: describeHistory(history, lines, violations) };
  };
}

/** Histories of sweeps. */
export const runIndex = createRunner(histories, runHistory);

function describeHistory({ setup }: { readonly setup: object }, lines: readonly string[], violations: readonly string[]): string {
  return [`setup ${JSON.stringify(setup)}`, ...lines, ...violations.map((violation) => `! ${violation}`)].join("\n");
}
