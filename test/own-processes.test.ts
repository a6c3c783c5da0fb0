import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, describe, expect, it, onTestFinished } from "vitest";

import type { OwnProcess } from "../src/core/own-pod.ts";
import { readOwnProcesses } from "../src/own-processes.ts";

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

/** Starts a program under the given name; gives its pid. */
function start(name: string, ...words: readonly string[]): number {
  const folder = mkdtempSync(join(tmpdir(), "own-processes-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  symlinkSync("/bin/sleep", join(folder, name));
  const child = spawn(join(folder, name), words, { stdio: "ignore" });
  children.push(child);
  return child.pid ?? 0;
}

async function find(pid: number): Promise<OwnProcess | undefined> {
  return (await readOwnProcesses("/proc")).find((process) => process.pid === pid);
}

describe.runIf(process.platform === "linux")("the real /proc", () => {
  it("shows a living process with its name, command line and start", async () => {
    const pid = start("pulumi", "60", "61");
    const found = await find(pid);
    expect(found).toMatchObject({ pid, name: "pulumi", zombie: false, innerPids: [], words: expect.arrayContaining(["60", "61"]) });
    const age = Date.now() - Number((found?.startedAt ?? 0n) / 1_000_000n);
    expect(Math.abs(age)).toBeLessThan(5_000);
  });

  it("a name with spaces and parentheses is read whole", async () => {
    expect(await find(start("a) S 1 (b", "60"))).toMatchObject({ name: "a) S 1 (b", zombie: false });
  });

  it("a stopped process is alive", async () => {
    const pid = start("pulumi", "60");
    process.kill(pid, "SIGSTOP");
    expect(await find(pid)).toMatchObject({ zombie: false });
  });

  it("a process that nobody reaps is a zombie", async () => {
    const parent = spawn("/bin/sh", ["-c", "sleep 0 & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] });
    children.push(parent);
    const pid = await new Promise<number>((done) => parent.stdout.once("data", (text: Buffer) => done(Number(text.toString()))));
    await expect.poll(async () => (await find(pid))?.zombie).toBe(true);
  });

  it("a process that is gone is not shown", async () => {
    const pid = start("pulumi", "60");
    const child = children.at(-1);
    const ended = new Promise((done) => child?.once("exit", done));
    child?.kill("SIGKILL");
    await ended;
    expect(await find(pid)).toBeUndefined();
  });
});
