import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { NODE_CGROUP } from "./config.ts";

const ROOT = "/sys/fs/cgroup";

/** The cgroup that the node's own processes are put into, so that they can be found again after the test was killed. */
export const NODE_PROCESSES = join(ROOT, "pids", NODE_CGROUP, "node");

/** Makes the node's folder in every cgroup hierarchy. */
export function makeCgroups(): void {
  if (existsSync(join(ROOT, "cgroup.controllers"))) throw new Error("the test's own node needs cgroups v1 (or hybrid), as this machine has not");
  for (const folder of ownFolders()) mkdirSync(folder, { recursive: true });
  mkdirSync(NODE_PROCESSES, { recursive: true });
  const cpuset = join(ROOT, "cpuset");
  for (const file of ["cpuset.cpus", "cpuset.mems"]) writeFileSync(join(cpuset, NODE_CGROUP, file), readFileSync(join(cpuset, file)));
}

/** Ends every process that is left in the node's cgroups, each by its number, and removes the cgroups. */
export async function removeCgroups(): Promise<void> {
  const until = Date.now() + 20_000;
  for (;;) {
    const folders = ownFolders().filter(existsSync).flatMap(listFolders);
    const pids = new Set(folders.flatMap(readProcesses));
    for (const pid of pids) kill(pid);
    const left = folders.filter((folder) => !removed(folder));
    if (left.length === 0) return;
    if (Date.now() > until) throw new Error(`these cgroups of an earlier node cannot be removed: ${left.join(" ")}`);
    await sleep(50);
  }
}

function ownFolders(): readonly string[] {
  return readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(ROOT, entry.name, "cgroup.procs")))
    .map(({ name }) => join(ROOT, name, NODE_CGROUP));
}

/** The folder and all below it, the deepest first. */
function listFolders(folder: string): readonly string[] {
  const below = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return [...below.flatMap(({ name }) => listFolders(join(folder, name))), folder];
}

function readProcesses(folder: string): readonly number[] {
  try {
    return readFileSync(join(folder, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}

function removed(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return !existsSync(folder);
  }
}
