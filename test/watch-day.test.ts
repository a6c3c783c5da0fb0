import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { expect, it } from "vitest";
import { z } from "zod";

const day = z.object({
  beats: z.number(),
  sweeps: z.number(),
  removed: z.number(),
  left: z.number(),
  alive: z.boolean(),
  heap: z.array(z.number()),
  metrics: z.number(),
});

it("24 hours of events: everything provable is removed, nothing else, and memory does not grow", { timeout: 60_000 }, async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--expose-gc", "test/watch-day.ts"]);
  // A listener that stays behind at each sweep would be warned of there.
  expect(stderr).toBe("");
  const { beats, removed, left, alive, heap, metrics } = day.parse(JSON.parse(stdout));
  expect(beats).toBeGreaterThan(4_000);
  expect(alive).toBe(true);
  expect(removed).toBeGreaterThan(1_600);
  expect(left).toBeLessThanOrEqual(2);
  expect(metrics).toBeLessThan(20_000);
  // The first hours load and compile what the later ones use.
  const [from, to] = [Math.min(...heap.slice(2, 8)), Math.min(...heap.slice(-6))];
  expect((to - from) / 1_048_576, `MiB hour by hour: ${heap.map((bytes) => (bytes / 1_048_576).toFixed(1)).join(" ")}`).toBeLessThan(0.5);
});
