// npm run bench:death [-- trials [kind …]]: seconds from the end of a lock's owner to the lock's removal, on a real node, with the real Pulumi. Writes
// bench/results/death-to-removal.*; nothing is asserted.
import { mkdirSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import { Field } from "../test/field/field.ts";
import { setup } from "../test/field/setup.ts";
import { KINDS, STACKS, type Kind } from "./death-kinds.ts";
import { Lane, makeStacks, type Measured } from "./death-lane.ts";
import { renderPage, type Tried } from "./death-page.ts";
import { watcherOf, watcherRights } from "./death-watcher.ts";
import { MACHINE } from "./machine.ts";

const LANES = 8;

const [asked = "200", ...wanted] = process.argv.slice(2);
const kinds = KINDS.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
if (!/^\d+$/.test(asked) || kinds.length < wanted.length)
  throw new Error(`wanted: a number of trials, then any of ${KINDS.map(({ name }) => name).join(", ")}`);

const began = Date.now();
const say = (line: string): void => void process.stderr.write(`${Math.round((Date.now() - began) / 1_000)} s: ${line}\n`);
setup();
const field = await Field.start();
const all: Tried[] = [];
try {
  const lanes = Array.from({ length: LANES }, (_, number) => new Lane(field, number));
  const [first] = lanes;
  if (first !== undefined) await makeStacks(first, STACKS);
  for (const lane of lanes.slice(1)) if (first !== undefined) lane.copyStacks(first);
  let watched = false;
  for (const kind of kinds) {
    if (kind.janitor === "watch" && !watched) {
      await field.apply(...watcherRights(), ...lanes.map(watcherOf));
      for (const { number } of lanes) await field.kubectl("rollout", "status", "-n", "field", `deployment/watcher-${number}`, "--timeout=120s");
      await sleep(5_000);
      watched = true;
    }
    const trials: Measured[] = [];
    const loads = [loadavg()[0] ?? 0];
    try {
      await kind.run(lanes, trialsOf(kind), (measured) => {
        trials.push(measured);
        loads.push(loadavg()[0] ?? 0);
        if (trials.length % 20 === 0) say(`${kind.name}: ${trials.length}`);
      });
    } finally {
      // After each kind, and after a trial that failed too: what has been measured is not lost with it.
      const { name, dies, janitor } = kind;
      all.push({ name, dies, janitor, trials, load: loads.reduce((sum, load) => sum + load, 0) / loads.length });
      writeResults();
    }
    say(`${kind.name}: done, ${trials.length} trials`);
  }
} finally {
  await field.stop();
}
process.stdout.write(renderPage(MACHINE, LANES, all));

function trialsOf({ share }: Kind): number {
  return Math.ceil(Number(asked) * share);
}

/** A run of some kinds is for whoever is at work on them, and so is one that failed: it takes the place of no whole one. */
function writeResults(): void {
  const whole = KINDS.every((kind) => all.some(({ name, trials }) => name === kind.name && trials.length === trialsOf(kind)));
  const file = `bench/results/death-to-removal${whole ? "" : "-partial"}`;
  mkdirSync("bench/results", { recursive: true });
  writeFileSync(`${file}.md`, renderPage(MACHINE, LANES, all));
  writeFileSync(`${file}.json`, `${JSON.stringify({ at: new Date(began).toISOString(), machine: MACHINE, lanes: LANES, kinds: all })}\n`);
}
