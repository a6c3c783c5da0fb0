// npm run bench [-- row …]: measures each row against what people use now, in the same run, and writes bench/results/.
import { mkdirSync, writeFileSync } from "node:fs";

import { buildPeers } from "../test/e2e/peers/build-peers.ts";
import { HUNDRED_THOUSAND_LOCKS } from "./hundred-thousand-locks.ts";
import { IDLE_SWEEP } from "./idle-sweep.ts";
import { MACHINE } from "./machine.ts";
import { MANY_BACKENDS } from "./many-backends.ts";
import { median, minimum, type Series } from "./measure.ts";
import { PODS_REAL, PODS_STUB } from "./pods.ts";
import type { Comparison, Row } from "./row.ts";
import { START_UP } from "./start-up.ts";
import { TEN_LOCKS } from "./ten-locks.ts";
import { TEN_THOUSAND_LOCKS } from "./ten-thousand-locks.ts";

const ROWS: readonly Row[] = [START_UP, IDLE_SWEEP, TEN_LOCKS, MANY_BACKENDS, TEN_THOUSAND_LOCKS, PODS_STUB, PODS_REAL, HUNDRED_THOUSAND_LOCKS];

const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => ROWS.every((row) => row.name !== name));
if (unknown !== undefined) throw new Error(`there is no row ${unknown}, but ${ROWS.map(({ name }) => name).join(", ")}`);
buildPeers();
const comparisons: Comparison[] = [];
const series: Record<string, readonly Series[]> = {};
for (const row of ROWS) {
  if (wanted.length > 0 && !wanted.includes(row.name)) continue;
  const began = performance.now();
  const measured = await row.run();
  comparisons.push(...measured.comparisons);
  series[row.name] = measured.series;
  // After each row: a run takes minutes, and one that is cut off has measured something all the same.
  writeResults();
  process.stderr.write(`${row.name}: ${Math.round((performance.now() - began) / 1_000)} s\n`);
}
process.stdout.write(`${MACHINE}\n\n${renderTable(comparisons)}`);

/** A run of some rows is for whoever is at work on them, and takes the place of no whole one. */
function writeResults(): void {
  const whole = ROWS.every(({ name }) => series[name] !== undefined);
  const name = whole ? "latest" : "partial";
  mkdirSync("bench/results", { recursive: true });
  writeFileSync(`bench/results/${name}.json`, `${JSON.stringify({ at: new Date().toISOString(), machine: MACHINE, comparisons, series }, undefined, 2)}\n`);
  writeFileSync(`bench/results/${name}.md`, `# What \`npm run bench\` showed\n\n${MACHINE}\n\n${renderTable(comparisons)}\n${renderFigures(series)}`);
}

function renderTable(lines: readonly Comparison[]): string {
  const show = (value: number | undefined, unit: string): string =>
    value === undefined ? "" : unit === "MB" ? `${Math.round(value)} MB` : `${value.toFixed(2)} ×`;
  const rows = lines.map(
    ({ work, against, aim, value, byMedian, unit, met, note }) =>
      `| ${work} | ${against}${note === undefined ? "" : ` (${note})`} | ${aim} | ${show(value, unit)} | ${show(byMedian, unit)} | ${met ? "yes" : "**no**"} |\n`,
  );
  return `| work | against | aim | by the smallest | by the median | met |\n| --- | --- | --- | --- | --- | --- |\n${rows.join("")}`;
}

function renderFigures(all: Readonly<Record<string, readonly Series[]>>): string {
  const rows = Object.entries(all).flatMap(([row, measured]) =>
    measured.map(
      (one) =>
        `| ${row} | ${one.name} | ${one.milliseconds.length} | ${Math.round(minimum(one))} | ${Math.round(median(one))} | ${Math.round(one.megabytes)} |\n`,
    ),
  );
  return `\n| row | command | runs | smallest, ms | median, ms | peak, MB |\n| --- | --- | --- | --- | --- | --- |\n${rows.join("")}`;
}
