import fc from "fast-check";

import { history, type History } from "./actions.ts";
import { runHistory } from "./run-history.ts";
import { Tally } from "./tally.ts";

export const HISTORIES_PER_BLOCK = 100;

export type BlockResult = { readonly kind: "kept"; readonly tally: Tally } | { readonly kind: "broken"; readonly report: string };

/** Runs the histories of a block; where one breaks a promise, gives the smallest that does, to be read by a person. */
export async function checkBlock(block: number): Promise<BlockResult> {
  const tally = new Tally();
  const property = fc.asyncProperty(history, async (one) => tally.merge(await runHistory(one)));
  const result = await fc.check(property, { seed: block, numRuns: HISTORIES_PER_BLOCK });
  if (!result.failed) return { kind: "kept", tally };
  const [smallest] = result.counterexample ?? [];
  const error = result.errorInstance instanceof Error ? result.errorInstance.message : String(result.errorInstance);
  const story = smallest === undefined ? "" : describeHistory(smallest);
  return { kind: "broken", report: `block ${block}, path ${result.counterexamplePath ?? ""}: ${error}\n${story}` };
}

function describeHistory({ actions, ...world }: History): string {
  return [JSON.stringify(world), ...actions.map((action) => `  ${JSON.stringify(action)}`)].join("\n");
}
