import { PROBE } from "./probe.ts";
import type { Look } from "./run-cuts.ts";
import type { Outcome } from "./run-scenarios.ts";

/** What the run showed, as a page. It holds no time, so that it is the same after each run. */
export function writeFieldPage(outcomes: readonly Outcome[], looks: readonly Look[]): string {
  return [
    "# The field test",
    "",
    "Written by `npm run test:field`, which fails where it no longer agrees with this page. Real pods on a real node (Kubernetes 1.37, containerd, runc), the",
    "real Pulumi CLI in them on real backends; each lock was written by Pulumi. Whether Pulumi ran is read from the node's `/proc`, never from the",
    "name of a row. The janitor swept with `--delete --min-age 0s` while everything ran, at once after what happened (as a pod, from its own image), and",
    "twice once a minute had passed; then `pulumi up` was run again for every stack.",
    "",
    PROBE.length > 0
      ? "It looked at the processes too (`--probe-processes --probe-after 0s`)."
      : "It did not look at processes: where only Pulumi's process died, in a pod that runs on, the lock is held until a person removes it.",
    "",
    "| Stack | Backend | Pod | What happens | Verdict before | Verdict after | Pulumi runs | Its lock | `pulumi up` |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ...outcomes.map(({ stack, scenario, kind, before, after, ranAfter, up, ...rest }) =>
      row([
        stack,
        scenario.scheme,
        kind,
        scenario.happens,
        before,
        after,
        ranAfter ? "yes" : "no",
        tellLock({ after, ranAfter, ...rest }),
        up.ok ? "goes through" : "fails",
      ]),
    ),
    "",
    "## A node that is cut off",
    "",
    "The kubelet stands still and its connections to the API server are cut; containers run on. Pods are deleted by force meanwhile.",
    "",
    "| Stack | Moment | Pulumi runs | Verdict | Action |",
    "| --- | --- | --- | --- | --- |",
    ...looks.map(({ stack, moment, ran, verdict, action }) => row([stack, moment, ran ? "yes" : "no", verdict, action])),
    "",
  ].join("\n");
}

function tellLock({ after, ranAfter, removedBy, byHand }: Pick<Outcome, "after" | "ranAfter" | "removedBy" | "byHand">): string {
  if (removedBy !== undefined) return "removed within two sweeps";
  if (byHand) return "kept; a person removed it (`unlock --force`)";
  if (ranAfter) return "kept, and given back by Pulumi at its end";
  return after === "no lock" ? "given back by Pulumi" : "kept";
}

/** A row of a table. */
export function row(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}
