import { readdirSync, readFileSync } from "node:fs";

/** One process of the machine, told from a later one of the same number by its start. */
export interface MachineProcess {
  readonly pid: number;
  readonly ticks: string;
}

/** The processes with this name that have every one of these variables in their environment; a zombie has none. */
export function findProcesses(name: string, variables: readonly string[]): readonly MachineProcess[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      try {
        if (readFileSync(`/proc/${entry}/comm`, "utf8") !== `${name}\n`) return [];
        const environment = readFileSync(`/proc/${entry}/environ`, "utf8").split("\0");
        const pid = Number(entry);
        const ticks = readStart(pid);
        return ticks !== undefined && variables.every((variable) => environment.includes(variable)) ? [{ pid, ticks }] : [];
      } catch {
        // It ended while it was read.
        return [];
      }
    });
}

/** Whether the very process runs. */
export function isRunning({ pid, ticks }: MachineProcess): boolean {
  return readStart(pid) === ticks;
}

/** When a process started, in ticks; undefined for one that is gone or a zombie. */
function readStart(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
