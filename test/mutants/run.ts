// Applies each mutant to a copy of the tree and expects the model or the tests of the rules to fail: npm run test:mutants [-- part-of-a-name]
import { spawn } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { MUTANTS, type Mutant } from "./mutants.ts";

const AT_ONCE = 2;
const UNIT_TESTS = ["test/model/histories.test.ts", "test/core", "test/sweep.test.ts", "test/races.test.ts", "test/restore.test.ts", "test/kubernetes"];
const WATCH_TESTS = [
  "test/watch.test.ts",
  "test/model/watch/watch-histories.test.ts",
  "test/kubernetes/follow-objects.test.ts",
  "test/kubernetes/connection.test.ts",
];
const COPIED = ["src", "test", "schemas", "package.json", "tsconfig.json", "vitest.config.ts"];

interface Outcome {
  readonly mutant: Mutant;
  /** Undefined: it survived. */
  readonly killedBy: string | undefined;
  readonly seconds: number;
}

const root = process.cwd();
const vitest = join(root, "node_modules/vitest/vitest.mjs");
const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** Runs a program of ours in a folder; gives its exit code and what it said. */
async function run(folder: string, args: readonly string[]): Promise<{ readonly code: number; readonly output: string }> {
  return await new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, NO_COLOR: "1" } });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code: code ?? 1, output }));
  });
}

async function apply(folder: string, { name, edits }: Mutant): Promise<void> {
  for (const { file, find, replace } of edits) {
    const path = join(folder, file);
    const text = await readFile(path, "utf8");
    const [before, after, ...more] = text.split(find);
    if (before === undefined || after === undefined || more.length > 0)
      throw new Error(`mutant "${name}" does not apply: ${file} does not hold its text exactly once`);
    await writeFile(path, before + replace + after);
  }
}

async function findKiller(folder: string, { ofWatch = false }: Mutant): Promise<string | undefined> {
  const model = await run(folder, ["test/model/run-range.ts", ...(ofWatch ? ["--watch", "--count", "600"] : ["--count", "2000"]), "--no-shrink"]);
  const violation = /^(?:! |too rare: )(.*)$/m.exec(model.output)?.[1];
  if (model.code !== 0 && violation !== undefined) return `model: ${shorten(violation)}`;
  // A mutant that does not even run proves nothing.
  if (model.code !== 0) throw new Error(`the model did not run: ${model.output.slice(-400)}`);
  const unit = await run(folder, [vitest, "run", "--bail", "1", ...(ofWatch ? WATCH_TESTS : UNIT_TESTS)]);
  if (unit.code === 0) return undefined;
  return `test: ${shorten(/FAIL\s+(.*)$/m.exec(unit.output)?.[1] ?? unit.output.slice(-200))}`;
}

function shorten(text: string): string {
  return text.replace(/[0-9a-f]{8}-0000-4000-8000-000000000000/g, "…").slice(0, 150);
}

async function tryMutant(mutant: Mutant): Promise<Outcome> {
  const begun = performance.now();
  const folder = await mkdtemp(join(tmpdir(), "mutant-"));
  try {
    for (const name of COPIED) await cp(join(root, name), join(folder, name), { recursive: true });
    await symlink(join(root, "node_modules"), join(folder, "node_modules"));
    await apply(folder, mutant);
    return { mutant, killedBy: await findKiller(folder, mutant), seconds: (performance.now() - begun) / 1_000 };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const wanted = MUTANTS.filter(({ name }) => name.includes(process.argv[2] ?? ""));
const waiting = [...wanted];
const outcomes: Outcome[] = [];
const begun = performance.now();
await Promise.all(
  Array.from({ length: AT_ONCE }, async () => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const outcome = await tryMutant(mutant);
      outcomes.push(outcome);
      say(
        `${outcome.seconds.toFixed(0).padStart(4)} s  ${outcome.killedBy === undefined ? "SURVIVED" : "killed  "}  ${mutant.name}\n          ${outcome.killedBy ?? ""}`,
      );
    }
  }),
);
const survivors = outcomes.filter(({ killedBy }) => killedBy === undefined);
say(`${wanted.length} mutants, ${survivors.length} survived, ${((performance.now() - begun) / 60_000).toFixed(1)} min`);
if (survivors.length > 0 || wanted.length === 0) process.exitCode = 1;
