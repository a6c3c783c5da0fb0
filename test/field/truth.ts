import { readdirSync, readFileSync } from "node:fs";

/** A process of pulumi that updates a stack, as the node's kernel shows it; a zombie is none. */
export interface Updating {
  readonly stack: string;
  /** The number in the namespace of the container. */
  readonly innerPid: number;
  /** The number on the machine. */
  readonly pid: number;
  /** By which one process is told from a later one of the same number. */
  readonly startTicks: string;
  readonly state: string;
}

/** Reads from `/proc` which updates really run. Each carries its stack's name in its environment. */
export function readUpdating(): readonly Updating[] {
  return readEvery(readOne);
}

/** The numbers of a container's processes on the machine, the lowest first. */
export function findProcessesOf(containerId: string): readonly number[] {
  return readEvery((pid) => (readFileSync(`/proc/${pid}/cgroup`, "utf8").includes(containerId) ? [pid] : [])).toSorted((a, b) => a - b);
}

function readEvery<Found>(read: (pid: number) => readonly Found[]): readonly Found[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .flatMap((pid) => {
      try {
        return read(pid);
      } catch {
        // It ended while it was read.
        return [];
      }
    });
}

function readOne(pid: number): readonly Updating[] {
  if (readFileSync(`/proc/${pid}/comm`, "utf8") !== "pulumi\n") return [];
  const stack = readFileSync(`/proc/${pid}/environ`, "utf8")
    .split("\0")
    .find((variable) => variable.startsWith("FIELD_STACK="))
    ?.slice("FIELD_STACK=".length);
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const inner = /^NSpid:.*\s(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  const [state = "", startTicks = ""] = [fields[0], fields[19]];
  if (stack === undefined || inner === undefined || state === "Z" || state === "X") return [];
  return [{ stack, pid, innerPid: Number(inner), startTicks, state }];
}
