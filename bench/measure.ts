import { spawn } from "node:child_process";
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** Something to be timed as a whole process. */
export interface Command {
  readonly name: string;
  readonly words: readonly [string, ...string[]];
  readonly env?: Readonly<Record<string, string>>;
  /** What its output has to show, at its beginning or end, for the run to count: a sweep that gave up, or had nothing to do, is fast. */
  readonly proof?: readonly RegExp[];
}

/** What some runs of one command took. */
export interface Series {
  readonly name: string;
  /** Milliseconds of each run, in the order of the rounds. */
  readonly milliseconds: readonly number[];
  /** The highest peak of resident memory of the process, without its children. */
  readonly megabytes: number;
}

/** A bare start of the same Node, which every other start is measured by. */
export const BARE_NODE: Command = { name: "node -e ''", words: [process.execPath, "-e", ""] };

/** The built command. What it has to show is not left out for any of them. */
export function janitor(name: string, words: readonly string[], proof: readonly RegExp[], env: Readonly<Record<string, string>> = {}): Command {
  return { name, words: [process.execPath, resolve("dist/main.js"), ...words], proof, env };
}

/** Runs the commands in turn, round by round, so that what else the machine does falls on all of them. Throws where one fails. */
export async function interleave(commands: readonly Command[], rounds: number): Promise<readonly Series[]> {
  const series = commands.map(({ name }) => ({ name, milliseconds: Array.of<number>(), megabytes: 0 }));
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, command] of commands.entries()) {
      const { milliseconds, megabytes } = await runOnce(command);
      const one = series[index];
      one?.milliseconds.push(milliseconds);
      if (one !== undefined) one.megabytes = Math.max(one.megabytes, megabytes);
    }
  }
  return series;
}

/** The series of that name; throws when there is none. */
export function pick(series: readonly Series[], name: string): Series {
  const found = series.find((one) => one.name === name);
  if (found === undefined) throw new Error(`nothing called ${name} was measured`);
  return found;
}

export function minimum({ milliseconds }: Series): number {
  return Math.min(...milliseconds);
}

export function median({ milliseconds }: Series): number {
  return milliseconds.toSorted((a, b) => a - b)[Math.floor(milliseconds.length / 2)] ?? Number.NaN;
}

async function runOnce({ name, words, env = {}, proof = [] }: Command): Promise<{ readonly milliseconds: number; readonly megabytes: number }> {
  const [program, ...rest] = words;
  const folder = mkdtempSync(join(tmpdir(), "bench-output-"));
  const output = openSync(join(folder, "stdout"), "w+");
  try {
    const began = performance.now();
    const child = spawn(program, rest, {
      env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "/", ...env },
      stdio: ["ignore", proof.length === 0 ? "ignore" : output, "pipe"],
    });
    let complaint = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      complaint += text;
    });
    let megabytes = 0;
    const watching = setInterval(() => {
      megabytes = readPeak(child.pid) ?? megabytes;
    }, 20);
    const exitCode = await new Promise<number | null>((done, fail) => {
      child.once("error", fail);
      child.once("exit", done);
    });
    const milliseconds = performance.now() - began;
    clearInterval(watching);
    const shown = readEnds(output);
    if (exitCode !== 0) throw new Error(`${name} ended with ${exitCode}: ${complaint.slice(0, 500)}\n${shown.slice(0, 1_500)}`);
    const missing = proof.find((pattern) => !pattern.test(shown));
    if (missing !== undefined) throw new Error(`${name} did not do its work: nothing it says is like ${String(missing)}\n${shown.slice(-1_000)}`);
    return { milliseconds, megabytes };
  } finally {
    closeSync(output);
    rmSync(folder, { recursive: true });
  }
}

/** The beginning and the end of a file, which may have a hundred megabytes. */
function readEnds(file: number): string {
  const { size } = fstatSync(file);
  const read = (from: number): string => {
    const bytes = Buffer.alloc(8_192);
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, from)).toString();
  };
  return size <= 8_192 ? read(0) : `${read(0)}\n${read(Math.max(8_192, size - 8_192))}`;
}

/** The kernel's high-water mark of a process that still runs. */
function readPeak(pid: number | undefined): number | undefined {
  try {
    const kilobytes = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid ?? 0}/status`, "utf8"))?.[1];
    return kilobytes === undefined ? undefined : Number(kilobytes) / 1_024;
  } catch {
    return undefined;
  }
}
