import type { ForeignReason, HeldReason, UndeterminedReason } from "../core/judgement.ts";
import type { ReportedLock } from "../core/report.ts";

/** A piece of advice: words, and what is typed or read as it is. */
export type AdvicePart = { readonly kind: "text" | "code"; readonly value: string };
export type Advice = readonly AdvicePart[];

type AdvisedReason = UndeterminedReason | ForeignReason | HeldReason;

/** A person may know what the janitor cannot: the two commands that remove a lock on somebody's word. */
const BY_HAND =
  "If you know that its update is over: `pulumi cancel` (all locks of the stack) or `pulumi-lock-janitor unlock --force <id>` (this one, with a record).";

const ADVICE: Readonly<Record<AdvisedReason, string | undefined>> = {
  "clock-contradiction": `A clock is wrong, or the bucket was copied; the figures are in the message. Mend the clock of the node it names. ${BY_HAND}`,
  "empty-cluster": "A cluster without any pod is likely the wrong one: look at `--context` and at the rights with `pulumi-lock-janitor check`.",
  interrupted: "The sweep ended before it was judged: run it again, with a longer `--timeout`.",
  "list-incomplete": "Not all pods could be listed: see what is missing with `pulumi-lock-janitor check`, then run again.",
  "lock-not-read": "The lock is there and could not be read: see what is missing with `pulumi-lock-janitor check`, then run again.",
  "no-cluster": "No cluster was asked: give `--kubeconfig`, `--context` or `--pods-from`.",
  "node-deleted": `The pod's node is no longer in the cluster; once Kubernetes has removed the pod too, the next run decides. ${BY_HAND}`,
  "node-not-ready": `Bring the node back, or taint it \`node.kubernetes.io/out-of-service\`. If nothing runs on it: \`--unreachable-nodes=ignore:<node>\`. ${BY_HAND}`,
  "node-unreachable": `Bring the node back, or taint it \`node.kubernetes.io/out-of-service\`. If nothing runs on it: \`--unreachable-nodes=ignore:<node>\`. ${BY_HAND}`,
  "nodes-not-listed": "The right to list nodes is missing: `pulumi-lock-janitor check` tells which; or write them to the file of `--pods-from` too.",
  "not-settled": "The pod has just been made: run again in a minute.",
  "snapshot-older": "The file of `--pods-from` is older than the lock: write it anew with `kubectl`, then run again.",
  "stacks-not-listed":
    "The right to list Stacks is missing (`pulumi-lock-janitor check`), or they are not in the file of `--pods-from`. Without them: `--require-stack=no`.",
  "status-older": "The pod's status may be older than the lock: run again in a minute.",
  "lock-undated": `Wait until the pod is over or runs again, or look at the pod yourself. ${BY_HAND}`,
  "no-pattern": "No owner pattern matches its host. If that is a pod of a runner of yours: `--owner`.",
  "no-stack": "A lock without a Stack here belongs to another cluster, or its Stack was deleted: then `--require-stack=no`.",
  "node-name": `Its host is a node's name: a pod in the host's network may have written it, or the node itself. ${BY_HAND}`,
  "container-running": "A held lock whose update died inside a pod that lives on: look with `--probe-processes`, or restart the pod.",
  "pod-terminating": undefined,
  "status-missing": "The pod's status does not tell of its containers yet: run again in a minute.",
  restored: "A person put it back: only a person removes it, with `pulumi-lock-janitor unlock --force <id>`.",
};

const UNREADABLE =
  "Nobody can tell whose an unreadable lock is. If no update runs on its stack: `pulumi cancel`, or `pulumi-lock-janitor unlock --force <id>` for this file alone.";

const KNOWN: ReadonlyMap<string, string | undefined> = new Map(Object.entries(ADVICE));

/** What a person can do about a lock that is kept; undefined where nothing is to be done but wait. */
export function adviseOn({ verdict, reason }: Pick<ReportedLock, "verdict" | "reason">): Advice | undefined {
  const words = verdict === "unreadable" ? UNREADABLE : KNOWN.get(reason);
  return words === undefined ? undefined : parseAdvice(words);
}

/** Splits words at their backquotes: every second piece is code. */
function parseAdvice(words: string): Advice {
  return words
    .split("`")
    .map((value, index): AdvicePart => ({ kind: index % 2 === 0 ? "text" : "code", value }))
    .filter(({ value }) => value !== "");
}
