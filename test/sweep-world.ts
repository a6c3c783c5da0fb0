import type { Node, Pod } from "../src/core/cluster.ts";
import type { RuleSettings } from "../src/core/decide.ts";
import { BUILTIN_OWNERS, type OwnerPattern } from "../src/core/owner.ts";
import type { RemovalHistory } from "../src/core/record.ts";
import type { ReportedLock, SweepReport } from "../src/core/report.ts";
import { HOUR, MINUTE, parseTimestamp, SECOND, type EpochNanoseconds } from "../src/core/time.ts";
import type { LockSelection } from "../src/core/wanted-lock.ts";
import { openBackendAuditLog } from "../src/output/backend-audit-log.ts";
import { sweep, type SweepParts, type SweepSettings } from "../src/sweep.ts";
import { MemoryBackend } from "./memory-backend.ts";
import { MemoryCluster } from "./memory-cluster.ts";

const NOON = parseTimestamp("2026-03-10T12:00:00Z") ?? 0n;

const RUNNERS: OwnerPattern = { glob: "iac-runner-*", profile: "explicit" };

/** A small world in memory: one backend, one cluster with a Ready node, a clock that only sleeping moves. */
export class SweepWorld {
  readonly backend = new MemoryBackend();
  readonly cluster = new MemoryCluster();
  readonly audit = openBackendAuditLog(this.backend.records);
  readonly stop = new AbortController();
  now: EpochNanoseconds = NOON;
  /** Runs while the sweep waits for its second look. */
  whileWaiting: () => void = () => undefined;

  constructor() {
    this.cluster.nodes = [aReadyNode("node-1")];
  }

  /** Puts a lock of the given host into the store, an hour old unless said otherwise; gives its key. */
  addLock(hostname: string, { age = HOUR, stack = "organization/shop/prod", pid = 7 } = {}): string {
    const key = `.pulumi/locks/${stack}/lock-of-${hostname}-${pid}.json`;
    const lockedAt = this.now - age;
    this.backend.put(key, aLockBody(hostname, pid, lockedAt), lockedAt);
    return key;
  }

  /** A pod that has been running since before any lock. */
  addHolder(name: string, createdAt: EpochNanoseconds = this.now - 48n * HOUR): Pod {
    const pod = aRunningPod(name, createdAt);
    this.cluster.pods.push(pod);
    return pod;
  }

  async sweep(settings: Partial<SweepSettings> = {}, parts: Partial<SweepParts> = {}): Promise<SweepReport> {
    return await sweep(
      {
        delete: true,
        rules: RULES,
        confirmDelay: 3_000,
        maxDeletions: 50,
        failOn: ["undetermined", "unreadable"],
        overrides: [{ option: "--exclusive", value: "" }],
        selection: EVERY_LOCK,
        warnHeldAfter: 100n * HOUR,
        ...settings,
      },
      {
        backends: [{ kind: "open", backend: this.backend, audit: this.audit }],
        clusters: [this.cluster],
        now: () => this.now,
        sleep: (milliseconds) => {
          this.now += BigInt(milliseconds) * 1_000_000n;
          this.whileWaiting();
          return Promise.resolve();
        },
        runId: "run-1",
        janitor: { version: "0.0.0-test", hostname: "test" },
        deadline: new AbortController().signal,
        stop: this.stop.signal,
        onProgress: () => undefined,
        ...parts,
      },
    );
  }

  /** A sweep whose deadline comes while its cluster gives no answer. */
  async sweepPastDeadline(settings: Partial<SweepSettings> = {}): Promise<SweepReport> {
    const deadline = new AbortController();
    this.cluster.before = () => {
      deadline.abort();
      throw new Error("aborted");
    };
    return await this.sweep(settings, { deadline: deadline.signal });
  }

  async readRecords(): Promise<readonly RemovalHistory[]> {
    return await this.audit.readAll(new AbortController().signal);
  }
}

export const EVERY_LOCK: LockSelection = { projects: [], stacks: [], locks: [] };

export const RULES: RuleSettings = {
  owners: [...BUILTIN_OWNERS, RUNNERS],
  requireStack: undefined,
  minAge: MINUTE,
  clockSkew: 5n * SECOND,
  settle: 30n * SECOND,
  ignoredNodes: { all: false, names: [] },
};

/** The one lock of a report. */
export function onlyLock(report: SweepReport): ReportedLock {
  const [lock, ...others] = report.locks;
  if (lock === undefined || others.length > 0) throw new Error(`the report has ${report.locks.length} locks`);
  return lock;
}

function aLockBody(hostname: string, pid: number, lockedAt: EpochNanoseconds): string {
  const timestamp = new Date(Number(lockedAt / 1_000_000n)).toISOString();
  return JSON.stringify({ pid, username: "pulumi", hostname, timestamp });
}

function aRunningPod(name: string, createdAt: EpochNanoseconds): Pod {
  return {
    namespace: "iac",
    name,
    uid: `uid-of-${name}`,
    createdAt,
    phase: "Running",
    nodeName: "node-1",
    hostNetwork: false,
    setHostnameAsFqdn: false,
    containers: [{ name: "pulumi", kind: "main", restartCount: 0, state: { kind: "running", startedAt: createdAt + 5n * SECOND } }],
  };
}

function aReadyNode(name: string): Node {
  return { name, hostnames: [name], createdAt: NOON - 1_000n * HOUR, ready: "True", readySince: NOON - 999n * HOUR, reportedAt: NOON, outOfService: false };
}
