import type { Cutter, Machine } from "./site.ts";

/** The kubelet has a process of its own on most nodes; k3s runs it within the API server's. */
const FIND_KUBELET = `
for folder in /proc/[0-9]*; do
  tr '\\0' ' ' < "$folder/cmdline" 2> /dev/null | grep -qE '^([^ ]*/)?(kube )?kubelet ' && echo "\${folder#/proc/}"
done
command -v ss || true`;

/** The kubelet's process; in words, why it cannot be cut off. */
export async function findKubelet(machine: Machine): Promise<{ readonly pid: number } | string> {
  const lines = (await machine.sh(FIND_KUBELET)).trim().split("\n");
  const pids = lines.filter((line) => /^\d+$/.test(line)).map(Number);
  if (pids[0] === undefined || pids.length > 1) return `there is no one process that is the kubelet of ${machine.node}`;
  return lines.some((line) => line.endsWith("ss")) ? { pid: pids[0] } : `the node ${machine.node} lacks ss, which cuts connections`;
}

/** Stops the kubelet, and cuts its connections: what is sent to it meanwhile must not wait for it in them. */
export function cutKubelet(machine: Machine, kubelet: number): Cutter {
  const cut = `
kill -STOP ${kubelet}
ss -H --tcp --numeric --processes state established | grep "pid=${kubelet}," | awk '{ print $4 }' | sort -u | while read -r peer; do
  ss --kill --tcp dst "$peer" > /dev/null
done`;
  return {
    node: machine.node,
    cutOff: async () => void (await machine.sh(cut)),
    joinAgain: async () => void (await machine.sh(`kill -CONT ${kubelet}`)),
  };
}
