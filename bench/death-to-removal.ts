// npm run bench:death [-- trials [kind …]]: seconds from the end of a lock's owner to the lock's removal, on a real node, with the real Pulumi. Writes
// bench/results/death-to-removal.*; nothing is asserted.
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import { Field } from "../test/field/field.ts";
import { setup } from "../test/field/setup.ts";
import { KINDS, STACKS } from "./death-kinds.ts";
import { Lane, makeStacks, type Measured } from "./death-lane.ts";
import { renderPage, type Tried } from "./death-page.ts";
import { watcherOf, watcherRights } from "./death-watcher.ts";

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
/** Writes the figures that there are. A run of some kinds is for whoever is at work on them, and so is one that failed: it takes the place of no whole one. */
function writeResults(part: "" | "-partial"): string {
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? "?"}, ${Math.round(totalmem() / 1_073_741_824)} GB, Linux ${release()}, Node ${process.version}`;
  const page = renderPage(machine, LANES, all);
  mkdirSync("bench/results", { recursive: true });
  const file = `bench/results/death-to-removal${part}`;
  writeFileSync(`${file}.md`, page);
  writeFileSync(`${file}.json`, `${JSON.stringify({ at: new Date(began).toISOString(), machine, lanes: LANES, kinds: all })}\n`);
  return page;
}
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
      await kind.run(lanes, Math.ceil(Number(asked) * kind.share), (measured) => {
        trials.push(measured);
        loads.push(loadavg()[0] ?? 0);
        if (trials.length % 20 === 0) say(`${kind.name}: ${trials.length}`);
      });
    } finally {
      // An hour's figures are not lost with the one trial that fails.
      const { name, dies, janitor } = kind;
      all.push({ name, dies, janitor, trials: [...trials], load: loads.reduce((sum, load) => sum + load, 0) / loads.length });
      writeResults("-partial");
    }
    say(`${kind.name}: done, ${trials.length} trials`);
  }
} finally {
  await field.stop();
}
process.stdout.write(writeResults(wanted.length === 0 ? "" : "-partial"));
