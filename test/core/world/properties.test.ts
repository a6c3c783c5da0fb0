// True histories, judged by what the API shows of them: the rules must be right about what they cannot see.
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";

import { judge, verdictOf } from "../builders.ts";
import { HISTORY_SKEW, writerGone, writerLives, type History } from "./world.ts";

const RUNS = { numRuns: 2_000 };
const seen = new Map<string, number>();

function judged({ story, lock, clusters }: History, fate: string): string {
  const verdict = verdictOf(judge(lock, { clusters, settings: { clockSkew: HISTORY_SKEW } }));
  const line = `${fate}, ${story} -> ${verdict}`;
  seen.set(line, (seen.get(line) ?? 0) + 1);
  return verdict;
}

describe("P1: whatever happened to its pod, its node and its namesakes", () => {
  it("a lock whose writer lives is never stale", () => {
    fc.assert(
      fc.property(writerLives, (history) => {
        expect(judged(history, "lives")).not.toMatch(/^stale/);
      }),
      RUNS,
    );
  });

  it("a lock whose writer is gone, in a healthy cluster, is stale: the rules are not merely timid", () => {
    fc.assert(
      fc.property(writerGone, (history) => {
        const verdict = judged(history, "gone");
        // Too close to the lock to be told apart: at the next sweep it is older.
        if (!["too-young: min-age", "undetermined: not-settled", "undetermined: status-older"].includes(verdict)) expect(verdict).toMatch(/^stale/);
      }),
      RUNS,
    );
  });

  afterAll(() => {
    const told = Array.from(seen.keys());
    // Every way to be judged was taken, so the histories above were no monotony.
    for (const expected of [
      "lives, in plain sight -> held: container-running",
      "lives, in plain sight -> held: pod-terminating",
      "lives, cut off -> held: container-running",
      "lives, cut off -> undetermined: node-not-ready",
      "lives, force-deleted -> undetermined: node-unreachable",
      "lives, replaced -> undetermined: node-unreachable",
      "lives, replaced -> undetermined: not-settled",
      "gone, deleted -> stale: pod-not-found",
      "gone, restarted -> stale: container-restarted",
      "gone, replaced -> stale: pod-recreated",
      "gone, killed -> stale: process-gone",
      "gone, ended -> stale: pod-ended",
    ]) {
      expect(told).toContain(expected);
    }
  });
});
