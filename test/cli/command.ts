import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { resolve } from "node:path";

const MAIN = resolve("dist/main.js");

/** What a run of the command gave. */
export interface CommandResult {
  readonly exitCode: number | undefined;
  readonly signal: NodeJS.Signals | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly nodeArguments?: readonly string[];
  readonly cwd?: string;
  /** Told of all that the command has written to stdout so far. */
  readonly onOutput?: (stdout: string) => void;
  /** Sends a signal to the command when told to. */
  readonly stop?: { readonly when: AbortSignal; readonly signal: NodeJS.Signals };
}

/** Runs the built command as a child process, without a terminal and without the caller's own configuration. */
export async function runCommand(words: readonly string[], { env = {}, nodeArguments = [], cwd, stop, onOutput }: CommandOptions = {}): Promise<CommandResult> {
  if (!existsSync(MAIN)) throw new Error("dist/main.js is missing: npm test builds it first");
  const child = spawn(process.execPath, [...nodeArguments, MAIN, ...words], {
    env: { PATH: process.env["PATH"] ?? "", HOME: "/nonexistent", ...env },
    stdio: ["ignore", "pipe", "pipe"],
    ...(cwd === undefined ? {} : { cwd }),
  });
  stop?.when.addEventListener("abort", () => child.kill(stop.signal));
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    onOutput?.(stdout);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  return await new Promise((done, fail) => {
    child.once("error", fail);
    child.once("close", (exitCode, killedBy) => done({ exitCode: exitCode ?? undefined, signal: killedBy ?? undefined, stdout, stderr }));
  });
}
