import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

import type { OwnProcess } from "./core/own-pod.ts";
import { TICK } from "./core/process-probe.ts";
import { SECOND, type EpochNanoseconds } from "./core/time.ts";
import { systemCode } from "./errors.ts";

/** Field 22 of `stat`, `starttime`, counted from field 3, `state` (https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html). */
const START_TIME = 19;

/** All processes that `/proc` shows. One that ends while it is read is left out. Throws where the list itself cannot be read. */
export async function readOwnProcesses(proc: string): Promise<readonly OwnProcess[]> {
  const stat = await readFile(join(proc, "stat"), "utf8");
  const bootedAt = BigInt(/^btime (\d+)$/m.exec(stat)?.[1] ?? "0") * SECOND;
  const pids = (await readdir(proc)).filter((name) => /^[1-9]\d*$/.test(name));
  const processes = await Promise.all(pids.map((pid) => readProcess(proc, pid, bootedAt)));
  return processes.filter((process) => process !== undefined);
}

async function readProcess(proc: string, pid: string, bootedAt: EpochNanoseconds): Promise<OwnProcess | undefined> {
  try {
    const [stat, status, line] = await Promise.all(["stat", "status", "cmdline"].map((file) => readFile(join(proc, pid, file), "utf8")));
    if (stat === undefined || status === undefined || line === undefined) return undefined;
    // The name may hold spaces and parentheses, so what follows it begins behind the last one.
    const name = stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"));
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const ticks = BigInt(fields[START_TIME] ?? "");
    const [, ...inner] = (/^NSpid:\t(.*)$/m.exec(status)?.[1] ?? "").split("\t");
    const dead = fields[0] === "Z" || fields[0] === "X";
    return {
      pid: Number(pid),
      ticks,
      name,
      zombie: dead && !(await hasLivingThread(proc, pid)),
      startedAt: bootedAt + ticks * TICK,
      innerPids: inner.map(Number),
      words: line.split("\0").slice(1),
    };
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT" || code === "ESRCH") return undefined;
    throw error;
  }
}

/** The first thread of a process may have ended while others go on. */
async function hasLivingThread(proc: string, pid: string): Promise<boolean> {
  const threads = await readdir(join(proc, pid, "task"));
  const states = await Promise.all(threads.map(async (thread) => await readFile(join(proc, pid, "task", thread, "stat"), "utf8").catch(() => "")));
  return states.some((stat) => stat !== "" && !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2)));
}
