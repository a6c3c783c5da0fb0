import { Writable } from "node:stream";

import { runCommandLine } from "../../src/cli.ts";
import { JanitorError } from "../../src/errors.ts";
import type { Surroundings } from "../../src/surroundings.ts";

/** What a run of the command in this process gave. */
export interface InProcessResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** What stdout held when the test told the command to stop, or all of it when it ended by itself. */
  readonly beforeStop: string;
}

export interface InProcessOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** As if a person sat at a terminal. */
  readonly interactive?: boolean;
  /** Milliseconds after which the command is told to stop, as by SIGTERM. */
  readonly stopAfter?: number;
  /** Told what stdout holds after each piece: true stops the command. */
  readonly stopWhen?: (stdout: string) => boolean;
}

/** Runs the command line as `src/main.ts` does, without a process of its own: a table of a hundred runs takes seconds. */
export async function runInProcess(
  words: readonly string[],
  { env = {}, interactive = false, stopAfter, stopWhen }: InProcessOptions = {},
): Promise<InProcessResult> {
  const stop = new AbortController();
  const text = { stdout: "", stderr: "" };
  let beforeStop: string | undefined;
  stop.signal.addEventListener("abort", () => {
    beforeStop = text.stdout;
  });
  const timer = stopAfter === undefined ? undefined : setTimeout(() => stop.abort(), stopAfter);
  const collect = (name: "stdout" | "stderr"): NodeJS.WriteStream =>
    collector((piece) => {
      text[name] += piece;
      if (name === "stdout" && stopWhen?.(text.stdout) === true) stop.abort();
    });
  const log: Surroundings["log"] = (level, message) => {
    text.stderr += `${level}: ${message}\n`;
    return Promise.resolve();
  };
  const surroundings = { env: { HOME: "/nonexistent", ...env }, stdout: collect("stdout"), stderr: collect("stderr"), interactive, stop: stop.signal, log };
  try {
    const exitCode = await runCommandLine(words, surroundings);
    return { exitCode, ...text, beforeStop: beforeStop ?? text.stdout };
  } catch (error) {
    if (!(error instanceof JanitorError)) throw error;
    return {
      exitCode: error.exitCode,
      stdout: text.stdout,
      stderr: `${text.stderr}${error.message}. ${error.hint ?? ""}`,
      beforeStop: beforeStop ?? text.stdout,
    };
  } finally {
    clearTimeout(timer);
  }
}

function collector(take: (piece: string) => void): NodeJS.WriteStream {
  const stream = new Writable({
    decodeStrings: false,
    write: (piece: string | Buffer, _encoding, done) => {
      take(piece.toString());
      done();
    },
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of a stream that is no terminal, nothing but a Writable is used.
  return stream as unknown as NodeJS.WriteStream;
}
