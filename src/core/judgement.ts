import type { UnreadableReason } from "./lock.ts";

export type StaleReason = "pod-not-found" | "pod-ended" | "pod-recreated" | "container-restarted" | "process-gone";
export type HeldReason = "container-running" | "pod-terminating" | "status-missing" | "restored";
export type ForeignReason = "no-pattern" | "no-stack" | "node-name";
export type UndeterminedReason =
  | "clock-contradiction"
  | "empty-cluster"
  | "interrupted"
  | "list-incomplete"
  | "lock-not-read"
  | "no-cluster"
  | "node-deleted"
  | "node-not-ready"
  | "node-unreachable"
  | "nodes-not-listed"
  | "not-settled"
  | "snapshot-older"
  | "stacks-not-listed"
  | "status-older"
  | "lock-undated";

/** What the rules say of a lock: exactly one verdict, one reason code and one sentence. */
export type Judgement = Verdict & { readonly message: string; readonly evidence: Evidence };

export type Verdict =
  | { readonly verdict: "held"; readonly reason: HeldReason }
  | { readonly verdict: "stale"; readonly reason: StaleReason }
  | { readonly verdict: "foreign"; readonly reason: ForeignReason }
  | { readonly verdict: "too-young"; readonly reason: "min-age" }
  | { readonly verdict: "unreadable"; readonly reason: UnreadableReason }
  | { readonly verdict: "undetermined"; readonly reason: UndeterminedReason };

/** What a judgement rests on, as plain data for report and record. */
export interface Evidence {
  /** Every rule that was tried, in order, the one that applied last. */
  readonly rules: readonly TriedRule[];
  readonly candidates: readonly CandidateEvidence[];
  readonly clusters: readonly ClusterEvidence[];
}

export interface TriedRule {
  readonly rule: string;
  readonly applied: boolean;
  readonly note: string;
}

export interface CandidateEvidence {
  readonly cluster: string;
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
  readonly finding: "held" | "gone" | "undetermined";
  readonly reason: string;
  readonly message: string;
  /** What a look at the pod's processes gave; absent when none was made. */
  readonly probe?: ProbeEvidence;
}

export interface ProbeEvidence {
  /** False when the processes could not all be seen; then `problem` says why. */
  readonly looked: boolean;
  readonly problem?: string;
  readonly containers: readonly { readonly container: string; readonly containerId: string; readonly processes: number }[];
  /** The processes that have the lock's number or are called pulumi, the first of them. */
  readonly suspects: readonly {
    readonly container: string;
    readonly pid: number;
    readonly name: string;
    readonly zombie: boolean;
    readonly startedAt: string;
    readonly innerPids: readonly number[];
  }[];
}

export interface ClusterEvidence {
  readonly name: string;
  readonly uid?: string;
  readonly pods: number;
  readonly complete: boolean;
}

/** What is said of a lock that a sweep did not come to judge: it stays. */
export const NOT_JUDGED: Judgement = {
  verdict: "undetermined",
  reason: "interrupted",
  message: "the sweep was stopped before this lock was judged",
  evidence: { rules: [], candidates: [], clusters: [] },
};

/** Why a lock that is `restored` is held. */
export const PUT_BACK = "a person put this lock back with restore: only a person removes it";

/** The verdicts that `--fail-on` may name. */
export const FAIL_ON = ["stale", "undetermined", "unreadable"] as const;
export type FailOn = (typeof FAIL_ON)[number];
