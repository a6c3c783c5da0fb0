import { accountForLock, wantsStack, type RequireStack } from "./accounting.ts";
import type { BackendIdentity } from "./backend-identity.ts";
import { findExcessSkew } from "./clock-skew.ts";
import type { ClusterObservation } from "./cluster.ts";
import { judgeCandidate, type Finding } from "./finding.ts";
import { findNodeNamed, mayHaveHostname } from "./hostname.ts";
import {
  PUT_BACK,
  type CandidateEvidence,
  type ClusterEvidence,
  type Judgement,
  type StaleReason,
  type TriedRule,
  type UndeterminedReason,
  type Verdict,
} from "./judgement.ts";
import { latestTimeOf, type ObservedLock, type Owner } from "./lock.ts";
import { findDoubtfulNodes, type IgnoredNodes } from "./node-trust.ts";
import { matchOwners, type OwnerPattern } from "./owner.ts";
import type { ProbeRules } from "./probe-due.ts";
import { reportProbe } from "./processes.ts";
import { compareText, escapeUntrusted, joinSome, quoteUntrusted } from "./text.ts";
import { formatDuration, formatTimestamp, type EpochNanoseconds, type Nanoseconds } from "./time.ts";

/** What a person may set about the rules. */
export interface RuleSettings {
  readonly owners: readonly OwnerPattern[];
  readonly requireStack: RequireStack;
  readonly minAge: Nanoseconds;
  readonly clockSkew: Nanoseconds;
  readonly settle: Nanoseconds;
  readonly ignoredNodes: IgnoredNodes;
  /** Absent where nothing is said of the processes of pods. */
  readonly probe?: ProbeRules;
}

/** Everything that a judgement is made from, beside the lock. */
export interface Circumstances {
  readonly backend: BackendIdentity;
  /** The janitor's clock. */
  readonly now: EpochNanoseconds;
  /** The store's clock less the janitor's, where the store tells it. */
  readonly storeClockOffset?: Nanoseconds;
  /** The clusters as seen after the lock was read; `not-asked` while the rules that need none are tried. */
  readonly clusters: readonly ClusterObservation[] | "not-asked";
  readonly settings: RuleSettings;
  /** Keys of locks that a person put back with `restore`. */
  readonly restored: ReadonlySet<string>;
}

/** What one rule makes of a lock: a verdict, or why it does not apply. */
type Outcome =
  | { readonly kind: "applies"; readonly verdict: Verdict; readonly message: string; readonly candidates?: readonly CandidateEvidence[] }
  | { readonly kind: "passes"; readonly note: string };

type Rule = (lock: ObservedLock, circumstances: Circumstances) => Outcome;

type OwnerRule = (owner: Owner, lock: ObservedLock, circumstances: Circumstances) => Outcome;

const RULES: readonly (readonly [name: string, rule: Rule])[] = [
  ["1 unreadable", judgeBody],
  ["2 foreign: no-pattern", forOwner(judgePattern)],
  ["2 foreign: node-name", forOwner(judgeNodeName)],
  ["2 foreign: no-stack", forOwner(judgeStack)],
  ["3 clock-contradiction", forOwner(judgeClocks)],
  ["4 too-young", forOwner(judgeAge)],
  ["5 restored", judgeRestored],
];

/**
 * Judges one lock by the numbered rules; the first that applies wins. Undefined only while the clusters are not asked and no rule
 * applies that needs none of them.
 */
export function decide(lock: ObservedLock, circumstances: Circumstances): Judgement | undefined {
  const tried: TriedRule[] = [];
  const clusters = circumstances.clusters === "not-asked" ? [] : circumstances.clusters;
  const conclude = (outcome: Extract<Outcome, { kind: "applies" }>): Judgement => ({
    ...outcome.verdict,
    message: outcome.message,
    evidence: { rules: tried, candidates: outcome.candidates ?? [], clusters: clusters.map(describeCluster).toSorted(byName) },
  });
  for (const [name, rule] of RULES) {
    const outcome = rule(lock, circumstances);
    tried.push({ rule: name, applied: outcome.kind === "applies", note: outcome.kind === "applies" ? outcome.message : outcome.note });
    if (outcome.kind === "applies") return conclude(outcome);
  }
  if (circumstances.clusters === "not-asked" || lock.content.kind !== "readable") return undefined;
  const outcome = judgeOwner(lock.content.owner, lock, circumstances);
  tried.push({ rule: "5 candidates", applied: true, note: outcome.message });
  return conclude(outcome);
}

/**
 * Judges one lock by some of its candidates only: pods that were looked up by name. Such a look may conclude that the lock is held,
 * and nothing else, so undefined stands for everything else.
 */
export function decideHeld(lock: ObservedLock, circumstances: Circumstances): Judgement | undefined {
  const judgement = decide(lock, { ...circumstances, clusters: "not-asked" });
  if (judgement !== undefined || lock.content.kind !== "readable") return undefined;
  const outcome = judgeOwner(lock.content.owner, lock, circumstances);
  if (outcome.verdict.verdict !== "held") return undefined;
  const rules = [{ rule: "5 candidates", applied: true, note: outcome.message }];
  return { ...outcome.verdict, message: outcome.message, evidence: { rules, candidates: outcome.candidates ?? [], clusters: [] } };
}

function forOwner(rule: OwnerRule): Rule {
  return (lock, circumstances) => (lock.content.kind === "readable" ? rule(lock.content.owner, lock, circumstances) : passes("the lock was not read"));
}

function judgeBody({ content, key }: ObservedLock): Outcome {
  if (content.kind === "readable") return passes("the body is a lock");
  if (content.kind === "unread")
    return applies({ verdict: "undetermined", reason: "lock-not-read" }, `the lock could not be read: ${escapeUntrusted(content.problem)}`);
  return applies({ verdict: "unreadable", reason: content.reason }, `${quoteUntrusted(key, 300)} blocks its stack, yet is no lock: ${content.problem}`);
}

function judgePattern(owner: Owner, _lock: ObservedLock, { settings }: Circumstances): Outcome {
  const matching = matchOwners(owner.hostname, settings.owners);
  if (matching.length > 0) return passes(`host ${quoteUntrusted(owner.hostname)} matches ${matching.map(({ glob }) => glob).join(", ")}`);
  return applies(
    { verdict: "foreign", reason: "no-pattern" },
    `host ${quoteUntrusted(owner.hostname)} matches no owner pattern, so it is not known to be a pod`,
  );
}

function judgeNodeName(owner: Owner, _lock: ObservedLock, { clusters }: Circumstances): Outcome {
  if (clusters === "not-asked") return passes("no cluster was asked");
  const node = clusters
    .flatMap(({ nodes }) => (nodes.kind === "listed" ? nodes.nodes : []))
    .find((candidate) => findNodeNamed(owner.hostname, [candidate]) !== undefined);
  if (node === undefined) return passes("no node is called like the host");
  return applies(
    { verdict: "foreign", reason: "node-name" },
    `host ${quoteUntrusted(owner.hostname)} is the name or address of node ${quoteUntrusted(node.name)}: no pod is called like that`,
  );
}

function judgeStack(owner: Owner, lock: ObservedLock, { clusters, settings, backend }: Circumstances): Outcome {
  if (clusters === "not-asked" || clusters.length === 0) return passes("no cluster was asked");
  const patterns = matchOwners(owner.hostname, settings.owners);
  if (!wantsStack(patterns, settings.requireStack)) return passes("no Stack is required");
  const accounting = accountForLock(lock.key, owner.hostname, patterns, backend, clusters);
  switch (accounting.kind) {
    case "accounted":
      return passes(`${escapeUntrusted(accounting.by)} accounts for it`);
    case "not-listed":
      return applies(
        { verdict: "undetermined", reason: "stacks-not-listed" },
        `whether a Stack here accounts for the lock is not known: ${escapeUntrusted(accounting.problem)}`,
      );
    case "unaccounted":
      return applies(
        { verdict: "foreign", reason: "no-stack" },
        `no Stack here accounts for the lock (--require-stack=no if its Stack was deleted)${accounting.unseen === undefined ? "" : `; Workspaces might, but ${escapeUntrusted(accounting.unseen)}`}`,
      );
  }
}

function judgeClocks(owner: Owner, _lock: ObservedLock, { now, storeClockOffset, clusters, settings }: Circumstances): Outcome {
  const skew = settings.clockSkew;
  const contradiction = (message: string): Outcome => applies({ verdict: "undetermined", reason: "clock-contradiction" }, message);
  if (owner.lockedAt > now + skew) {
    return contradiction(`the lock's time ${escapeUntrusted(owner.timestamp)} is ${formatDuration(owner.lockedAt - now)} in the future`);
  }
  if (storeClockOffset !== undefined && abs(storeClockOffset) > skew) {
    return contradiction(`the clocks of the janitor (${formatTimestamp(now)}) and of the store (${formatTimestamp(now + storeClockOffset)}) disagree`);
  }
  const cluster = clusters === "not-asked" ? undefined : clusters.find(({ clockOffset }) => clockOffset !== undefined && abs(clockOffset) > skew);
  if (cluster?.clockOffset !== undefined) {
    return contradiction(
      `the clocks of the janitor (${formatTimestamp(now)}) and of cluster ${quoteUntrusted(cluster.name)} (${formatTimestamp(now + cluster.clockOffset)}) disagree`,
    );
  }
  return passes("no clock contradicts another");
}

function judgeAge(owner: Owner, { storedAt }: ObservedLock, { now, settings }: Circumstances): Outcome {
  const age = now - latestTimeOf(owner, storedAt);
  const minAge = settings.minAge + findExcessSkew(settings.clockSkew);
  if (age >= minAge) return passes(`it is ${formatDuration(age)} old`);
  return applies(
    { verdict: "too-young", reason: "min-age" },
    // Within the clock skew a lock may be ahead of the janitor's clock.
    `it is ${formatDuration(age > 0n ? age : 0n)} old, and left alone until it is ${formatDuration(minAge)} old`,
  );
}

function judgeRestored({ key }: ObservedLock, { restored }: Circumstances): Outcome {
  if (!restored.has(key)) return passes("it was not put back by a person");
  return applies({ verdict: "held", reason: "restored" }, PUT_BACK);
}

interface CandidateFinding {
  readonly evidence: CandidateEvidence;
  readonly finding: Finding;
}

function judgeOwner(owner: Owner, lock: ObservedLock, circumstances: Circumstances): Extract<Outcome, { kind: "applies" }> {
  const { clusters, settings } = circumstances;
  if (clusters === "not-asked" || clusters.length === 0) return undetermined("no-cluster", "no cluster was asked, so nothing is known of its owner", []);
  const findings = clusters.flatMap((cluster) => judgeCandidates(owner, lock, cluster, circumstances)).toSorted(byEvidence);
  const candidates = findings.map(({ evidence }) => evidence);
  const held = findings.find(({ finding }) => finding.kind === "held")?.finding;
  if (held?.kind === "held") return { kind: "applies", verdict: { verdict: "held", reason: held.reason }, message: held.message, candidates };
  const doubtful = findings.find(({ finding }) => finding.kind === "undetermined")?.finding;
  if (doubtful?.kind === "undetermined") return undetermined(doubtful.reason, doubtful.message, candidates);
  for (const cluster of clusters.toSorted(byName)) {
    const doubt = doubtObservation(cluster, lock, owner, settings) ?? doubtRest(findings, cluster, lock, owner, circumstances);
    if (doubt !== undefined) return undetermined(doubt.reason, doubt.message, candidates);
  }
  const gone = GONE_ORDER.flatMap((reason) => findings.filter(({ finding }) => finding.kind === "gone" && finding.reason === reason))[0]?.finding;
  if (gone?.kind === "gone") return { kind: "applies", verdict: { verdict: "stale", reason: gone.reason }, message: gone.message, candidates };
  const total = clusters.reduce((sum, { pods }) => sum + pods.total, 0);
  const where = clusters.some(({ namespaces }) => namespaces !== undefined) ? " of the namespaces asked" : "";
  return {
    kind: "applies",
    verdict: { verdict: "stale", reason: "pod-not-found" },
    message: `none of the ${total} pods${where} gives its processes the hostname ${quoteUntrusted(owner.hostname)}`,
    candidates,
  };
}

// Where several candidates are gone, the reason that rests most on observation is the one to tell.
const GONE_ORDER: readonly StaleReason[] = ["process-gone", "container-restarted", "pod-recreated", "pod-ended"];

function judgeCandidates(
  owner: Owner,
  lock: ObservedLock,
  cluster: ClusterObservation,
  { settings, now, clusters, storeClockOffset }: Circumstances,
): readonly CandidateFinding[] {
  const nodes = cluster.nodes.kind === "listed" ? cluster.nodes.nodes : [];
  const patterns = matchOwners(owner.hostname, settings.owners);
  return cluster.pods.pods
    .filter((pod) => mayHaveHostname(pod, owner.hostname, nodes))
    .map((pod) => {
      const finding = judgeCandidate({
        pod,
        cluster,
        nameCluster: clusters.length > 1,
        owner,
        storedAt: lock.storedAt,
        storeClockKnown: storeClockOffset !== undefined,
        patterns,
        seenAt: seenAt(cluster, now, settings),
        notAfter: now + settings.clockSkew,
        skew: settings.clockSkew,
        settle: settings.settle,
        probe: settings.probe,
      });
      const evidence = {
        cluster: cluster.name,
        namespace: pod.namespace,
        pod: pod.name,
        uid: pod.uid,
        finding: finding.kind,
        reason: finding.reason,
        message: finding.message,
        ...(pod.processes === undefined ? {} : { probe: reportProbe(pod.processes, owner) }),
      };
      return { finding, evidence };
    });
}

interface Doubt {
  readonly reason: UndeterminedReason;
  readonly message: string;
}

/** Why a list of pods proves no absence, if so. */
function doubtObservation(cluster: ClusterObservation, lock: ObservedLock, owner: Owner, settings: RuleSettings): Doubt | undefined {
  const { pods, source } = cluster;
  const name = quoteUntrusted(cluster.name);
  if (pods.kind === "incomplete")
    return { reason: "list-incomplete", message: `the pods of cluster ${name} are not all known: ${escapeUntrusted(pods.problem)}` };
  if (pods.total === 0) return { reason: "empty-cluster", message: `cluster ${name} shows no pod at all, which proves nothing` };
  if (source.kind === "live") return undefined;
  if (latestTimeOf(owner, lock.storedAt) < source.takenAt - settings.clockSkew) return undefined;
  const known = source.stated ? "was taken at" : "holds nothing later than";
  return { reason: "snapshot-older", message: `the snapshot ${known} ${formatTimestamp(source.takenAt)}, and the lock is not older than that` };
}

/** What the findings leave to be believed of one cluster, and why it cannot be, if so. */
function doubtRest(
  findings: readonly CandidateFinding[],
  cluster: ClusterObservation,
  lock: ObservedLock,
  owner: Owner,
  circumstances: Circumstances,
): Doubt | undefined {
  const rests = findings.flatMap(({ finding, evidence }) => (finding.kind === "gone" ? [{ rest: finding.rest, here: evidence.cluster === cluster.name }] : []));
  // In a cluster without any such pod the writer's may have been force-deleted, whatever another cluster's pod of that hostname shows.
  const unseenHere = findings.every(({ evidence }) => evidence.cluster !== cluster.name);
  if (unseenHere || rests.some(({ rest }) => rest.kind === "absence")) return doubtNodes(cluster, lock, owner, undefined, circumstances);
  // A pod's forerunner has its name in the same cluster; of several pods the youngest leaves the most time to be deleted in.
  const befores = rests.flatMap(({ rest, here }) => (here && rest.kind === "forerunner" ? [rest.before] : []));
  const latest = befores.toSorted((a, b) => (a > b ? -1 : 1))[0];
  return latest === undefined ? undefined : doubtNodes(cluster, lock, owner, latest, circumstances);
}

/** Why a pod that is no longer shown may still run on one of the nodes, if so. `deletedBefore`: only one that was deleted before that time is in question. */
function doubtNodes(
  cluster: ClusterObservation,
  lock: ObservedLock,
  owner: Owner,
  deletedBefore: EpochNanoseconds | undefined,
  { settings, now }: Circumstances,
): Doubt | undefined {
  const name = quoteUntrusted(cluster.name);
  if (settings.ignoredNodes.all) return undefined;
  if (cluster.nodes.kind === "unlisted") {
    return {
      reason: "nodes-not-listed",
      message: `the nodes of cluster ${name} could not be listed, so a pod may still run on one that is cut off: ${escapeUntrusted(cluster.nodes.problem)}`,
    };
  }
  // A writer with a slow clock makes its lock seem older than the node it ran on: the store knows better.
  const doubtful = findDoubtfulNodes(cluster.nodes.nodes, {
    lockedAt: latestTimeOf(owner, lock.storedAt),
    now: seenAt(cluster, now, settings),
    skew: settings.clockSkew,
    ignored: settings.ignoredNodes,
    deletedBefore,
  });
  const [first] = doubtful;
  if (first === undefined) return undefined;
  const names = joinSome(doubtful.map((node) => quoteUntrusted(node.name)));
  return {
    reason: "node-unreachable",
    message: `node ${names} ${first.why}, and a pod that was force-deleted may still run there (--unreachable-nodes=ignore:<node> if you know it does not)`,
  };
}

/** When a cluster was seen, at the earliest. */
function seenAt({ source }: ClusterObservation, now: EpochNanoseconds, { clockSkew }: RuleSettings): EpochNanoseconds {
  return (source.kind === "snapshot" ? source.takenAt : now) - findExcessSkew(clockSkew);
}

function applies(verdict: Verdict, message: string): Outcome {
  return { kind: "applies", verdict, message };
}

function passes(note: string): Outcome {
  return { kind: "passes", note };
}

function undetermined(reason: UndeterminedReason, message: string, candidates: readonly CandidateEvidence[]): Extract<Outcome, { kind: "applies" }> {
  return { kind: "applies", verdict: { verdict: "undetermined", reason }, message, candidates };
}

function describeCluster({ name, uid, pods }: ClusterObservation): ClusterEvidence {
  return { name, ...(uid === undefined ? {} : { uid }), pods: pods.total, complete: pods.kind === "complete" };
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return compareText(a.name, b.name);
}

function byEvidence(a: CandidateFinding, b: CandidateFinding): number {
  const path = ({ evidence }: CandidateFinding): string => [evidence.cluster, evidence.namespace, evidence.pod, evidence.uid].join("\0");
  return compareText(path(a), path(b));
}

function abs(length: Nanoseconds): Nanoseconds {
  return length < 0n ? -length : length;
}
