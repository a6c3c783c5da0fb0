import type { Measured } from "./death-lane.ts";

/** All trials of one kind of death. */
export interface Tried {
  readonly name: string;
  readonly dies: string;
  readonly janitor: "watch" | "sidecar";
  readonly trials: readonly Measured[];
  /** The mean of the machine's load meanwhile. */
  readonly load: number;
}

/** The operator tries again this long after an update has failed. */
const FIRST_RETRY = 10;

/** The figures, as a page. */
export function renderPage(machine: string, lanes: number, all: readonly Tried[]): string {
  return [
    "# From the owner's death to the lock's removal",
    "",
    `${machine}; written by \`npm run bench:death\`, and asserted nowhere.`,
    "",
    "A real node (Kubernetes 1.37, containerd, runc), the real Pulumi in its pods, the janitor's own image beside it or in a Deployment. The clock starts when the",
    "node's `/proc` no longer shows the process that wrote the lock, and stops when the lock's file is gone; both are looked at a hundred times a second. The",
    `backend is a folder, so a store's round trips come on top. ${lanes} lanes, each with a backend of its own, go on side by side, one death at a time in each.`,
    "Every duration is at its default; `watch` was given locks that are older than `--min-age` (1 m).",
    "",
    `| death | janitor | trials | median | 95 of 100 | maximum | before the operator's first retry (${FIRST_RETRY} s) | lock left | load |`,
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ...all.map(renderRow),
    "",
    ...all.map(({ name, dies }) => `- **${name}**: ${dies}.`),
    "",
  ].join("\n");
}

function renderRow({ name, janitor, trials, load }: Tried): string {
  const seconds = trials.flatMap(({ seconds }) => seconds ?? []).toSorted((a, b) => a - b);
  const at = (share: number): string => `${(seconds[Math.max(0, Math.ceil(seconds.length * share) - 1)] ?? Number.NaN).toFixed(2)} s`;
  const early = seconds.filter((one) => one < FIRST_RETRY).length;
  const cells = [name, janitor, trials.length, at(0.5), at(0.95), at(1), `${early} of ${trials.length}`, trials.length - seconds.length, load.toFixed(1)];
  return `| ${cells.join(" | ")} |`;
}
