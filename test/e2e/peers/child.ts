import { spawn, type ChildProcess } from "node:child_process";
import { openSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";

/** A port on 127.0.0.1 that is free now. */
export async function findFreePort(): Promise<number> {
  return await new Promise((done, fail) => {
    const server = createServer();
    server.once("error", fail);
    server.listen(0, "127.0.0.1", () => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address.
      const { port } = server.address() as AddressInfo;
      server.close(() => done(port));
    });
  });
}

/** A long-running child whose output goes to a file. */
export function startChild(command: string, words: readonly string[], logFile: string): ChildProcess {
  const log = openSync(logFile, "a");
  return spawn(command, words, { stdio: ["ignore", log, log] });
}

/** Ends a child by its pid, and waits until it is gone. */
export async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((done) => {
    child.once("exit", () => done());
  });
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 5_000);
  await ended;
  clearTimeout(timer);
}

/** Tries again until the check gives something; throws after a minute, unless said otherwise. In milliseconds: between two tries, and in all. */
export async function waitFor<Value>(what: string, check: () => Promise<Value | undefined>, { every = 50, within = 60_000 } = {}): Promise<Value> {
  const until = Date.now() + within;
  for (;;) {
    const value = await check();
    if (value !== undefined) return value;
    if (Date.now() > until) throw new Error(`waited ${within / 1_000} s in vain for ${what}`);
    await new Promise((done) => {
      setTimeout(done, every);
    });
  }
}
