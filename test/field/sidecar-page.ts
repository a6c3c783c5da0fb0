import { row } from "./document.ts";
import type { SidecarOutcome } from "./run-sidecars.ts";

const SHAPES = { native: "native (`initContainers`, `restartPolicy: Always`)", ordinary: "ordinary (`extraSidecars`)" } as const;

/** What the run showed of sidecars, as a page. It holds no time and no number, so that it is the same after each run. */
export function writeSidecarPage(outcomes: readonly SidecarOutcome[]): string {
  return [
    "# The sidecar on a real node",
    "",
    "Written by `npm run test:field`, which fails where it no longer agrees with this page. Real pods on a real node, the real Pulumi CLI in them on real",
    "backends, and beside it the janitor's own image with `watch --own-pod --delete`, by the recipes of the README. Each lock was written by Pulumi, and",
    "whether Pulumi ran is read from the node's `/proc`. While all of this happened no update ran without its lock at any look (one each second, about).",
    "",
    "| Stack | Backend | Pod | Sidecar | What happens | Pulumi runs | Its lock | `pulumi up` |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ...outcomes.map(({ scenario: { name, scheme, sidecar, happens, end }, kind, ran, locked, podOutlivedLock, up }) =>
      row([
        name,
        scheme,
        kind,
        SHAPES[sidecar],
        happens,
        ran ? "yes" : "no",
        locked ? "kept" : end === "pod-gone" && podOutlivedLock ? "gone before the pod" : "gone",
        up.ok ? "goes through" : "fails",
      ]),
    ),
    "",
    "## In the words of the sidecars",
    "",
    "The log of each, in its order. Where its pod ends with it, a native sidecar is told to stop once pulumi's container has ended, and may have seen that",
    "before it is told: the two are in the order here that is the usual one. Where the grace period is used up by then it has two seconds, which a busy",
    "machine may not leave it: what it does not get done is left to a sweep, and is not shown here.",
    ...outcomes.flatMap(({ scenario: { name, happens }, told }) => [
      "",
      `**${name}**: ${happens}`,
      "",
      ...putInUsualOrder(told).map((line, index) => `${index + 1}. ${line}`),
    ]),
    "",
  ].join("\n");
}

function putInUsualOrder(told: readonly string[]): readonly string[] {
  const stop = told.findIndex((line) => line.startsWith("told to stop"));
  const [before, line] = [told[stop - 1], told[stop]];
  if (line === undefined || before?.startsWith("stale") !== true) return told;
  return [...told.slice(0, stop - 1), line, before, ...told.slice(stop + 1)];
}
