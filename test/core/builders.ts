import type { BackendIdentity } from "../../src/core/backend-identity.ts";
import type {
  ClusterObservation,
  Container,
  ContainerState,
  Node,
  Pod,
  Process,
  ProcessObservation,
  StackResource,
  TerminatedRun,
} from "../../src/core/cluster.ts";
import { decide, type Circumstances, type RuleSettings } from "../../src/core/decide.ts";
import type { Judgement } from "../../src/core/judgement.ts";
import { parseLockBody, type ObservedLock } from "../../src/core/lock.ts";
import { BUILTIN_OWNERS, parseOwnerPattern, type OwnerPattern } from "../../src/core/owner.ts";
import { MINUTE, parseTimestamp, SECOND, type EpochNanoseconds, type Nanoseconds } from "../../src/core/time.ts";

/** "Now" of every test that does not say otherwise. */
export const NOW = at("2026-03-10T12:00:00Z");

/** A time as text; throws on what is none, so that a typo fails its test. */
export function at(text: string): EpochNanoseconds {
  const time = parseTimestamp(text);
  if (time === undefined) throw new Error(`${text} is no time`);
  return time;
}

export function ownerPattern(text: string): OwnerPattern {
  const parsed = parseOwnerPattern(text);
  if (parsed.kind === "refused") throw new Error(parsed.problem);
  return parsed.pattern;
}

/** A lock from its body's text. */
export function aLockWithBody(body: string | Uint8Array, lock: Partial<ObservedLock> = {}): ObservedLock {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  return { key: ".pulumi/locks/organization/shop/prod/1.json", version: "v1", content: parseLockBody(bytes), ...lock };
}

export interface LockWords {
  readonly hostname?: string;
  readonly timestamp?: string;
  readonly pid?: number;
  readonly username?: string;
  readonly key?: string;
  readonly storedAt?: string;
}

/** A lock; by default of a workspace pod, two hours old. */
export function aLock({
  hostname = "app-workspace-0",
  timestamp = "2026-03-10T10:00:00.5Z",
  pid = 7,
  username = "pulumi",
  key,
  storedAt,
}: LockWords = {}): ObservedLock {
  return aLockWithBody(JSON.stringify({ pid, username, hostname, timestamp }), {
    ...(key === undefined ? {} : { key }),
    ...(storedAt === undefined ? {} : { storedAt: at(storedAt) }),
  });
}

export function running(startedAt?: string): ContainerState {
  return { kind: "running", ...(startedAt === undefined ? {} : { startedAt: at(startedAt) }) };
}

export function terminated(finishedAt?: string, startedAt?: string): ContainerState {
  return { kind: "terminated", run: aRun(startedAt, finishedAt) };
}

export const waiting: ContainerState = { kind: "waiting", reason: "CrashLoopBackOff" };
export const unreported: ContainerState = { kind: "unreported" };

export function aRun(startedAt?: string, finishedAt?: string): TerminatedRun {
  return { ...(startedAt === undefined ? {} : { startedAt: at(startedAt) }), ...(finishedAt === undefined ? {} : { finishedAt: at(finishedAt) }) };
}

export function aContainer(state: ContainerState, container: Partial<Container> = {}): Container {
  return { name: "pulumi", kind: "main", state, restartCount: 0, ...container };
}

/** A process in a container; by default one that any container has, and that no lock is of. */
export function aProcess(process: Partial<Process> = {}): Process {
  return { pid: 1, name: "tini", zombie: false, startedAt: at("2026-03-01T00:00:10Z"), innerPids: [], ...process };
}

/** A whole look into the pod's only container, `pulumi` with the id `c1`: its process 1 and those given. */
export function aLook(processes: readonly Partial<Process>[] = []): ProcessObservation {
  return { kind: "looked", containers: [{ container: "pulumi", containerId: "c1", processes: [aProcess(), ...processes.map(aProcess)] }] };
}

/** A pod on a Ready node; by default it has been running since long before the lock. */
export function aPod(pod: Partial<Pod> = {}): Pod {
  return {
    namespace: "iac",
    name: "app-workspace-0",
    uid: "uid-1",
    createdAt: at("2026-03-01T00:00:00Z"),
    phase: "Running",
    nodeName: "node-1",
    hostNetwork: false,
    setHostnameAsFqdn: false,
    containers: [aContainer(running("2026-03-01T00:00:10Z"))],
    ...pod,
  };
}

export function aNode(node: Partial<Node> = {}): Node {
  const name = node.name ?? "node-1";
  return {
    name,
    hostnames: [name],
    createdAt: at("2026-01-01T00:00:00Z"),
    ready: "True",
    readySince: at("2026-01-01T00:01:00Z"),
    reportedAt: NOW,
    outOfService: false,
    ...node,
  };
}

export function aStack(stack: Partial<StackResource> = {}): StackResource {
  return { kind: "Stack", namespace: "iac", name: "app", stacks: ["organization/shop/prod"], ...stack };
}

/** A live cluster, completely seen, with one Ready node and many pods that concern no lock. */
export function aCluster({
  pods = [],
  nodes = [aNode()],
  stacks = [aStack()],
  ...cluster
}: { pods?: readonly Pod[]; nodes?: readonly Node[]; stacks?: readonly StackResource[] } & Partial<
  Omit<ClusterObservation, "pods" | "nodes" | "stacks">
> = {}): ClusterObservation {
  return {
    name: "prod",
    uid: "uid-of-prod",
    source: { kind: "live" },
    pods: { kind: "complete", pods, total: pods.length + 40 },
    nodes: { kind: "listed", nodes },
    stacks: { kind: "listed", stacks },
    ...cluster,
  };
}

export const SETTINGS: RuleSettings = {
  owners: BUILTIN_OWNERS,
  requireStack: undefined,
  minAge: MINUTE,
  clockSkew: 5n * SECOND,
  settle: 30n * SECOND,
  ignoredNodes: { all: false, names: [] },
};

const BACKEND: BackendIdentity = { scheme: "azblob", account: "acme", container: "state", prefix: "" };

export interface CaseWords extends Omit<Partial<Circumstances>, "settings" | "clusters" | "storeClockOffset"> {
  /** `untold` for a folder. */
  readonly storeClockOffset?: Nanoseconds | "untold";
  readonly clusters?: Circumstances["clusters"];
  readonly settings?: Partial<RuleSettings>;
  /** `--owner` values, in place of the built-in profiles. */
  readonly owners?: readonly string[];
}

/** Judges one lock; everything that a test does not name is as it is when a removal is right. */
export function judge(
  lock: ObservedLock,
  { clusters = [aCluster()], settings = {}, owners, storeClockOffset = 0n, ...circumstances }: CaseWords = {},
): Judgement {
  const judgement = decide(lock, {
    backend: BACKEND,
    now: NOW,
    ...(storeClockOffset === "untold" ? {} : { storeClockOffset }),
    restored: new Set(),
    ...circumstances,
    clusters,
    settings: { ...SETTINGS, ...(owners === undefined ? {} : { owners: owners.map(ownerPattern) }), ...settings },
  });
  if (judgement === undefined) throw new Error("the clusters were not asked, and no rule applied");
  return judgement;
}

/** "verdict: reason", as tables have it. */
export function verdictOf(judgement: Judgement): string {
  return `${judgement.verdict}: ${judgement.reason}`;
}
