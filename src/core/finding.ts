import type { ClusterObservation, Container, Pod } from "./cluster.ts";
import type { HeldReason, StaleReason, UndeterminedReason } from "./judgement.ts";
import { latestTimeOf, type Owner } from "./lock.ts";
import { stateOfNode, type NodeState } from "./node-trust.ts";
import type { OwnerPattern } from "./owner.ts";
import { isDueForProbe, type ProbeRules } from "./probe-due.ts";
import { judgeProcesses } from "./processes.ts";
import { escapeUntrusted, quoteUntrusted } from "./text.ts";
import { formatDuration, formatTimestamp, MINUTE, truncateToSecond, type EpochNanoseconds, type Nanoseconds } from "./time.ts";

/**
 * A node that falls silent loses Ready after 40 to 50 s, so a status of a Ready node may be this old. A finding that says "does not
 * run" is believed only for a lock older than that, whatever `--min-age` says.
 */
const OLDEST_STATUS: Nanoseconds = MINUTE;

/** What one candidate pod says of a lock. */
export type Finding =
  | { readonly kind: "held"; readonly reason: HeldReason; readonly message: string }
  | { readonly kind: "gone"; readonly reason: StaleReason; readonly message: string; readonly rest: Rest }
  | { readonly kind: "undetermined"; readonly reason: UndeterminedReason; readonly message: string };

/**
 * What must be believed beside the finding itself. `absence`: the pod cannot be shown to be the writer's, so that the writer's own pod is gone must be believed
 * like any absence. `forerunner`: the pod was there to write the lock; only a pod of its name that was force-deleted before this one was created could have done so instead.
 */
export type Rest = { readonly kind: "absence" } | { readonly kind: "forerunner"; readonly before: EpochNanoseconds };

/** Everything that a finding about one pod is made from. */
export interface Suspect {
  readonly pod: Pod;
  readonly cluster: ClusterObservation;
  /** Whether a pod is told with its cluster: there is more than one. */
  readonly nameCluster: boolean;
  readonly owner: Owner;
  readonly storedAt: EpochNanoseconds | undefined;
  /** Whether the store has told its own clock, which agrees: a folder's times are the writer's. */
  readonly storeClockKnown: boolean;
  readonly patterns: readonly OwnerPattern[];
  /** The time at which the cluster was seen, at the earliest: now, or when the snapshot was taken. */
  readonly seenAt: EpochNanoseconds;
  /** What is later than this is in the future, by any clock. */
  readonly notAfter: EpochNanoseconds;
  readonly skew: Nanoseconds;
  readonly settle: Nanoseconds;
  readonly probe: ProbeRules | undefined;
}

/** Judges one candidate: gone if any rule proves it, else undetermined if any rule nearly did, else held. */
export function judgeCandidate(suspect: Suspect): Finding {
  const findings = [judgeEnded, judgeRecreated, judgeRestarted, judgeProcessGone].map((rule) => rule(suspect)).filter((finding) => finding !== undefined);
  return findings.find(({ kind }) => kind === "gone") ?? findings.find(({ kind }) => kind === "undetermined") ?? describeHolder(suspect);
}

type Rule = (suspect: Suspect) => Finding | undefined;

const judgeEnded: Rule = (suspect) => {
  const { pod } = suspect;
  if (pod.phase !== "Succeeded" && pod.phase !== "Failed") return undefined;
  const reported = pod.containers.filter(({ state }) => state.kind !== "unreported");
  const node = stateOfNode(pod, suspect.cluster);
  const allTerminated = reported.length === pod.containers.length && reported.every(({ state }) => state.kind === "terminated");
  if (reported.length > 0 && !allTerminated) return undefined;
  const doubt = doubtNode(node, { deletedIsFine: true });
  if (doubt !== undefined) return doubt;
  return {
    kind: "gone",
    reason: "pod-ended",
    message: `pod ${describePod(suspect)} has ended (${pod.phase}) and all its containers with it`,
    // Pod GC writes Failed without the kubelet (pkg/controller/podgc/gc_controller.go): the containers may run on.
    rest: pod.disruption === "DeletionByPodGC" || node.kind === "deleted" || node.kind === "unscheduled" ? { kind: "absence" } : findRest(suspect),
  };
};

const judgeRecreated: Rule = (suspect) => {
  const { pod, owner, skew } = suspect;
  if (!isYoungerThanLock(suspect)) return undefined;
  const contradiction = doubtTimes(suspect);
  if (contradiction !== undefined) return contradiction;
  // Noted late, the start of the writer's own container may be a little later than the lock; its node's clock may be far behind the API server's.
  if (pod.containers.some((container) => startsOf(container).some((start) => start <= owner.lockedAt + skew))) return undefined;
  const doubt =
    doubtGuestClock(suspect, [pod.createdAt]) ??
    doubtUnreported(suspect) ??
    doubtSettled(suspect) ??
    doubtNode(stateOfNode(pod, suspect.cluster), { deletedIsFine: false });
  if (doubt !== undefined) return doubt;
  const later = formatDuration(pod.createdAt - owner.lockedAt);
  return {
    kind: "gone",
    reason: "pod-recreated",
    message: `pod ${describePod(suspect)} was created ${later} after the lock: the writer was an earlier pod of that name`,
    rest: { kind: "absence" },
  };
};

const judgeRestarted: Rule = (suspect) => {
  const { pod, notAfter } = suspect;
  const relevant = relevantContainers(pod, suspect.patterns);
  if (relevant.length === 0 || relevant.some((container) => !isProvablyLater(container, suspect))) return undefined;
  const doubt =
    doubtNode(stateOfNode(pod, suspect.cluster), { deletedIsFine: false }) ??
    doubtStatusAge(suspect, relevant.some(mayStartAgain)) ??
    doubtUnreported(suspect) ??
    doubtTimes(suspect);
  if (doubt !== undefined) return doubt;
  const starts = relevant.flatMap(({ state }) => (state.kind === "running" && state.startedAt !== undefined ? [state.startedAt] : []));
  if (starts.some((start) => start > notAfter))
    return undetermined("clock-contradiction", `a container of pod ${describePod(suspect)} has started in the future: the node's clock is not to be trusted`);
  const guest = doubtGuestClock(suspect, starts);
  if (guest !== undefined) return guest;
  const existed = existedAtLock(suspect);
  if (existed && !pod.containers.some((container) => mayHaveRunAt(container, suspect))) {
    return undetermined(
      "clock-contradiction",
      `pod ${describePod(suspect)} is older than the lock, yet by its status no container of it ran when the lock was written: a clock was set back, or the writer was another pod`,
    );
  }
  const unsettled = existed ? undefined : doubtSettled(suspect);
  if (unsettled !== undefined) return unsettled;
  return {
    kind: "gone",
    reason: "container-restarted",
    message: `no container of pod ${describePod(suspect)} that could have written the lock still runs${describeStarts(starts)}`,
    rest: findRest(suspect),
  };
};

const judgeProcessGone: Rule = (suspect) => {
  const { pod, owner, skew } = suspect;
  if (pod.processes === undefined) return undefined;
  const seen = judgeProcesses(pod, pod.processes, owner, skew);
  if (seen.kind !== "gone") return undefined;
  const unsettled = existedAtLock(suspect) ? undefined : doubtSettled(suspect);
  // A container that was not looked at since it did not run may have been started again, and have written the lock, before its status said so.
  const unseen = pod.containers.filter(({ kind, state }) => (kind === "main" || kind === "sidecar") && state.kind !== "running");
  const doubt =
    doubtNode(stateOfNode(pod, suspect.cluster), { deletedIsFine: false }) ??
    (unseen.length > 0 ? doubtStatusAge(suspect, unseen.some(mayStartAgain)) : undefined) ??
    unsettled;
  if (doubt !== undefined) return doubt;
  return {
    kind: "gone",
    reason: "process-gone",
    message: `${seen.message} in pod ${describePod(suspect)}`,
    rest: findRest(suspect),
  };
};

/** True when the pod was there, beyond doubt, before the lock was written. */
function existedAtLock({ pod, owner, skew }: Suspect): boolean {
  return pod.createdAt <= owner.lockedAt - skew;
}

/** True when the pod was created after the lock beyond doubt, and none of its containers says otherwise. */
function isYoungerThanLock({ pod, owner, skew }: Suspect): boolean {
  return pod.createdAt > owner.lockedAt + skew && !pod.containers.some((container) => startsOf(container).some((start) => start < owner.lockedAt));
}

/** The containers of a pod that may run pulumi: those the patterns name and every ephemeral one, or all where a pattern names none that is there. */
function relevantContainers(pod: Pod, patterns: readonly OwnerPattern[]): readonly Container[] {
  const named = patterns.map(({ container }) => container);
  if (named.some((name) => name === undefined || !pod.containers.some((container) => container.name === name))) return pod.containers;
  return pod.containers.filter(({ name, kind }) => kind === "ephemeral" || named.includes(name));
}

/** True when the container cannot be the writer now: it does not run, or started after the lock beyond doubt. */
function isProvablyLater(container: Container, { owner, skew, pod }: Suspect): boolean {
  const { state } = container;
  if (state.kind === "unreported") return pod.nodeName === undefined;
  if (state.kind !== "running") return true;
  if (state.startedAt === undefined) return false;
  if (state.startedAt > owner.lockedAt + skew) return true;
  return pod.runtimeClassName === undefined && wasWrittenBefore(container, state.startedAt, owner.lockedAt);
}

/**
 * The strong form, free of any margin: the run before the present one ended in a later second than the lock's, so it was still there when
 * the lock was written, and two runs of one container never overlap.
 */
function wasWrittenBefore({ last }: Container, startedAt: EpochNanoseconds, lockedAt: EpochNanoseconds): boolean {
  if (last?.startedAt === undefined || last.finishedAt === undefined) return false;
  const second = truncateToSecond(lockedAt);
  return last.startedAt <= second && second < last.finishedAt && last.finishedAt <= startedAt;
}

/** What a finding that the pod's own containers are gone leaves to be believed. */
function findRest(suspect: Suspect): Rest {
  const { pod, owner, skew, patterns } = suspect;
  const wrote =
    existedAtLock(suspect) && relevantContainers(pod, patterns).some((container) => knownRuns(container, pod).some((run) => covers(run, owner.lockedAt, skew)));
  return wrote ? { kind: "forerunner", before: pod.createdAt } : { kind: "absence" };
}

/** A run of a container; without an end while it goes on. */
interface Run {
  readonly start: EpochNanoseconds;
  readonly end: EpochNanoseconds | undefined;
}

/** The runs of a container that its status tells of: the present one and the one before. */
function knownRuns({ state, last }: Container, pod: Pod): readonly Run[] {
  const ended = [last, state.kind === "terminated" ? state.run : undefined]
    .filter((run) => run?.finishedAt !== undefined)
    .map((run): Run => ({ start: run?.startedAt ?? pod.createdAt, end: run?.finishedAt }));
  return state.kind === "running" ? [...ended, { start: state.startedAt ?? pod.createdAt, end: undefined }] : ended;
}

function covers({ start, end }: Run, at: EpochNanoseconds, skew: Nanoseconds): boolean {
  return start <= at + skew && (end === undefined || end >= at - skew);
}

/** True when some run of the container may have been there at the time of the lock: one that is told of, or an earlier one that no longer is. */
function mayHaveRunAt(container: Container, { pod, owner, skew }: Suspect): boolean {
  const { restartCount, last, state } = container;
  if (state.kind === "unreported") return true;
  const runs = knownRuns(container, pod);
  if (runs.some((run) => covers(run, owner.lockedAt, skew))) return true;
  const forgotten = restartCount === undefined || restartCount > (last === undefined ? 0 : 1);
  return forgotten && runs.every(({ start }) => owner.lockedAt <= start + skew);
}

function startsOf({ state, last }: Container): readonly EpochNanoseconds[] {
  const present = state.kind === "running" ? state.startedAt : state.kind === "terminated" ? state.run.startedAt : undefined;
  return [present, last?.startedAt].filter((start) => start !== undefined);
}

function doubtNode(node: NodeState, { deletedIsFine }: { readonly deletedIsFine: boolean }): Finding | undefined {
  switch (node.kind) {
    case "ready":
    case "unscheduled":
      return undefined;
    case "deleted":
      return deletedIsFine
        ? undefined
        : undetermined("node-deleted", `the pod's node ${quoteUntrusted(node.name)} is no longer in the cluster, so the pod's status says nothing`);
    case "not-ready":
      return undetermined("node-not-ready", `node ${quoteUntrusted(node.name)} is not Ready, so the pod's status may be out of date`);
    case "unlisted":
      return undetermined("nodes-not-listed", `the nodes could not be listed, so the pod's status cannot be trusted: ${escapeUntrusted(node.problem)}`);
  }
}

function doubtSettled(suspect: Suspect): Finding | undefined {
  if (suspect.pod.createdAt <= suspect.seenAt - suspect.settle) return undefined;
  return undetermined(
    "not-settled",
    `pod ${describePod(suspect)} was created less than ${formatDuration(suspect.settle)} ago: its forerunner may still be stopping`,
  );
}

/** By the store the pod was there when the lock came, by the lock it was not: if the writer's clock was set back, its container may be this very one. */
function doubtTimes(suspect: Suspect): Finding | undefined {
  const { pod, owner, skew, storedAt } = suspect;
  if (!isYoungerThanLock(suspect) || storedAt === undefined || storedAt < pod.createdAt - skew) return undefined;
  return undetermined(
    "clock-contradiction",
    `the lock says ${owner.timestamp}, its store ${formatTimestamp(storedAt)}, and pod ${describePod(suspect)} was created at ${formatTimestamp(pod.createdAt)}: the times contradict each other`,
  );
}

/** With a runtime class the lock's time is the guest's clock and every other the host's (Kata, Hyper-V): only the store's can say which came first. */
function doubtGuestClock(suspect: Suspect, starts: readonly EpochNanoseconds[]): Finding | undefined {
  const { pod, storedAt, skew } = suspect;
  if (pod.runtimeClassName === undefined || starts.every((start) => storedAt !== undefined && storedAt < start - skew)) return undefined;
  const why = storedAt === undefined ? "its store has no time of the lock" : "the store's time of the lock is not earlier than its containers";
  return undetermined("clock-contradiction", `pod ${describePod(suspect)} has a runtime class, so another clock, and ${why}`);
}

/**
 * A pod whose kubelet has not told of its containers yet may be the writer's own, whose node's clock is slow: only a start could contradict the lock's time. A runtime
 * that hangs costs its node Ready after minutes, so where no store tells when the lock came such a pod is never proof.
 */
function doubtUnreported(suspect: Suspect): Finding | undefined {
  const { pod, seenAt } = suspect;
  const told = pod.nodeName === undefined || pod.containers.some((container) => startsOf(container).length > 0);
  const dated = isDatedByStore(suspect);
  const young = pod.createdAt > seenAt - OLDEST_STATUS;
  if (told || (dated && !young)) return undefined;
  const why = young ? `it is younger than ${formatDuration(OLDEST_STATUS)}` : UNDATED;
  return undetermined(young ? "status-older" : "lock-undated", `the node of the pod of that name has not told of a start of its containers yet, and ${why}`);
}

/**
 * A status from before the lock says nothing. `resting`: the finding needs that a container does not run. It may have been started since, on a node whose clock is so slow that
 * a lock of a moment ago seems old; only a store with a clock of its own tells how old it is.
 */
function doubtStatusAge(suspect: Suspect, resting: boolean): Finding | undefined {
  const { owner, storedAt, seenAt } = suspect;
  if (seenAt - latestTimeOf(owner, storedAt) < OLDEST_STATUS)
    return undetermined("status-older", `the lock is younger than ${formatDuration(OLDEST_STATUS)}: the pod's status may be older than it`);
  if (!resting || isDatedByStore(suspect)) return undefined;
  return undetermined("lock-undated", `by its status a container of the pod does not run, but the status may be older than the lock: ${UNDATED}`);
}

const UNDATED = "its store has no time of the lock by a clock of its own, and the writer's may be slow";

/** True for a container that does not run by its status, and that its kubelet may have started since. */
function mayStartAgain({ state, final }: Container): boolean {
  return state.kind !== "running" && final !== true;
}

function isDatedByStore({ storedAt, storeClockKnown }: Suspect): boolean {
  return storedAt !== undefined && storeClockKnown;
}

function undetermined(reason: UndeterminedReason, message: string): Finding {
  return { kind: "undetermined", reason, message };
}

function describeHolder(suspect: Suspect): Finding {
  const { pod } = suspect;
  const name = describePod(suspect);
  if (pod.deletionAt !== undefined) {
    const node = stateOfNode(pod, suspect.cluster);
    const stuck = node.kind === "not-ready" ? `; its node ${quoteUntrusted(node.name)} is not Ready, so it stays until a person acts` : "";
    return { kind: "held", reason: "pod-terminating", message: `pod ${name} is Terminating and pulumi may be finishing${stuck}` };
  }
  const running = relevantContainers(pod, suspect.patterns)
    .filter((container) => container.state.kind === "running" && !isProvablyLater(container, suspect))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))[0];
  if (running === undefined)
    return { kind: "held", reason: "status-missing", message: `pod ${name} exists, and its status does not say whether its containers run` };
  return {
    kind: "held",
    reason: "container-running",
    message: `container ${quoteUntrusted(running.name)} of pod ${name} has been running since before the lock${describeProcesses(suspect)}`,
  };
}

/** What a look at the processes gave, or that one would settle it. */
function describeProcesses({ pod, cluster, owner, storedAt, seenAt, skew, probe }: Suspect): string {
  if (pod.processes !== undefined) return `; ${judgeProcesses(pod, pod.processes, owner, skew).message}`;
  if (probe === undefined || probe.enabled || cluster.source.kind !== "live" || !isDueForProbe(owner, storedAt, seenAt, probe)) return "";
  return "; enable --probe-processes to see whether its process still runs";
}

function describePod({ pod, cluster, nameCluster }: Suspect): string {
  return `${quoteUntrusted(`${pod.namespace}/${pod.name}`, 160)}${nameCluster ? ` (cluster ${quoteUntrusted(cluster.name)})` : ""}`;
}

function describeStarts(starts: readonly EpochNanoseconds[]): string {
  const earliest = starts.toSorted((a, b) => (a < b ? -1 : 1))[0];
  return earliest === undefined ? "" : `: the earliest started at ${formatTimestamp(earliest)}`;
}
