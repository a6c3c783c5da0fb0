import type { Machine } from "./site.ts";

/** A process of pulumi that updates a stack, as the node's kernel shows it; a zombie is none. */
export interface Updating {
  readonly stack: string;
  readonly machine: Machine;
  /** The number in the namespace of the container. */
  readonly innerPid: number;
  /** The number on the machine. */
  readonly pid: number;
  /** By which one process is told from a later one of the same number. */
  readonly startTicks: string;
}

/** Each carries its stack's name in its environment. The last line says that the list is whole. */
const LIST_UPDATING = `
for folder in /proc/[0-9]*; do
  name=
  { read -r name < "$folder/comm"; } 2> /dev/null
  [ "$name" = pulumi ] || continue
  stack=$(tr '\\0' '\\n' < "$folder/environ" | sed -n 's/^FIELD_STACK=//p')
  echo "$stack|$(grep ^NSpid: "$folder/status")|$(cat "$folder/stat")"
done 2> /dev/null
echo whole`;

/** What really runs, by the `/proc` of every node. */
export class Truth {
  readonly #machines: readonly Machine[];

  constructor(machines: readonly Machine[]) {
    this.#machines = machines;
  }

  /** The updates that run. */
  async readUpdating(): Promise<readonly Updating[]> {
    const found = await Promise.all(
      this.#machines.map(async (machine) => {
        const lines = (await machine.sh(LIST_UPDATING)).trimEnd().split("\n");
        if (lines.pop() !== "whole") throw new Error(`the list of processes of ${machine.node} was cut off`);
        return lines.flatMap((line) => parseUpdating(machine, line));
      }),
    );
    return found.flat();
  }

  /** Those of the processes that still run. */
  async findAlive(writers: readonly Updating[]): Promise<readonly Updating[]> {
    const now = await this.readUpdating();
    return writers.filter((writer) =>
      now.some(({ machine, pid, startTicks }) => machine === writer.machine && pid === writer.pid && startTicks === writer.startTicks),
    );
  }

  /** A container's process 1, on its machine. */
  async findFirstProcess(containerId: string): Promise<Pick<Updating, "machine" | "pid">> {
    for (const machine of this.#machines) {
      const pids = (await machine.sh(`grep -l ${containerId} /proc/[0-9]*/cgroup 2> /dev/null || true`)).matchAll(/^\/proc\/(\d+)\//gm);
      const pid = Array.from(pids, ([, number]) => Number(number)).toSorted((a, b) => a - b)[0];
      if (pid !== undefined) return { machine, pid };
    }
    throw new Error(`no process of container ${containerId} was found`);
  }
}

/** Sends a signal to one process of a machine, and to nothing else. */
export async function signalProcess({ machine, pid }: Pick<Updating, "machine" | "pid">, signal: "KILL" | "STOP" | "CONT" | "TERM"): Promise<void> {
  await machine.sh(`kill -${signal} ${pid}`);
}

/** The process that started another one. */
export async function findParent({ machine, pid }: Pick<Updating, "machine" | "pid">): Promise<Pick<Updating, "machine" | "pid">> {
  return { machine, pid: Number(/^PPid:\s+(\d+)$/m.exec(await machine.sh(`cat /proc/${pid}/status`))?.[1]) };
}

function parseUpdating(machine: Machine, line: string): readonly Updating[] {
  const [, stack = "", inner, stat = ""] = /^([^|]*)\|NSpid:.*\s(\d+)\|(.*)$/.exec(line) ?? [];
  const pid = Number(stat.split(" ")[0]);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state = "", startTicks = ""] = [fields[0], fields[19]];
  // One that ended while it was read is in pieces.
  if (stack === "" || startTicks === "" || state === "Z" || state === "X") return [];
  return [{ stack, machine, pid, innerPid: Number(inner), startTicks }];
}
