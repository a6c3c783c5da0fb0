import { PUT_BACK, type Judgement } from "./judgement.ts";
import { parseLockKey } from "./key.ts";
import type { ObservedLock, Owner } from "./lock.ts";
import { quoteUntrusted } from "./text.ts";
import type { EpochNanoseconds, Nanoseconds } from "./time.ts";

/** A process of the janitor's own pod, as its `/proc` shows it. */
export interface OwnProcess {
  readonly pid: number;
  /** When it started, in ticks since the machine's: with the pid it names a process, whatever clocks do. */
  readonly ticks: bigint;
  readonly name: string;
  /** Dead, with no thread left alive. */
  readonly zombie: boolean;
  /** By the machine's clock, which can be set. */
  readonly startedAt: EpochNanoseconds;
  /** Its numbers in nested PID namespaces. */
  readonly innerPids: readonly number[];
  /** Its command line. */
  readonly words: readonly string[];
}

/** A process that was alive both before and after a lock of its own was read: the lock's writer. */
export interface Writer {
  readonly pid: number;
  readonly ticks: bigint;
}

/** The commands of pulumi that take a lock (pkg/backend/diy/backend.go); `preview`, `config`, `logs` take none. */
const LOCKING = new Set(["up", "update", "destroy", "down", "dn", "refresh", "import", "stack", "state", "watch"]);

/** True for a process that may hold a lock: a pulumi that lives, in the janitor's own PID namespace, where the pid that it writes is its pid here. */
export function mayHoldLock({ name, zombie, innerPids, words }: OwnProcess): boolean {
  return name === "pulumi" && !zombie && innerPids.length === 0 && words.some((word) => LOCKING.has(word));
}

/** False when its command line names another stack than the lock's. */
function mayBeOfStack({ words }: OwnProcess, stack: string): boolean {
  const named = words.flatMap((word, index) => {
    const value = /^(?:--stack|-s)=(.*)$/s.exec(word)?.[1];
    if (value !== undefined) return [value];
    return word === "--stack" || word === "-s" ? [words[index + 1] ?? ""] : [];
  });
  return named.every((name) => lastSegment(name) === lastSegment(stack));
}

function lastSegment(stack: string): string {
  return stack.slice(stack.lastIndexOf("/") + 1);
}

/** Whether the very process is still there and alive. */
export function isAlive({ pid, ticks }: Writer, processes: readonly OwnProcess[]): boolean {
  return processes.some((process) => process.pid === pid && process.ticks === ticks && !process.zombie);
}

/** What a lock is compared with. */
export interface OwnPod {
  /** The hostname that the pod gives its processes. */
  readonly hostname: string;
  /** How far the machine's clock may have been set since. */
  readonly skew: Nanoseconds;
  readonly before: readonly OwnProcess[];
  readonly after: readonly OwnProcess[];
}

/**
 * The process that wrote a lock: of this hostname and pid, a pulumi, started before the lock, alive before and after the lock was read. Undefined where there is none. A
 * hostname can exist in another namespace too, so a lock whose process was never seen here is nobody's business here.
 */
export function findWriter(key: string, { hostname, pid, lockedAt }: Owner, own: OwnPod): Writer | undefined {
  if (hostname !== own.hostname) return undefined;
  const process = own.before.find((candidate) => candidate.pid === pid && mayHoldLock(candidate));
  if (process === undefined || process.startedAt > lockedAt + own.skew || !isAlive(process, own.after)) return undefined;
  if (!mayBeOfStack(process, parseLockKey(key).stack)) return undefined;
  return { pid, ticks: process.ticks };
}

/** A lock with its writer. */
export interface Attributed {
  readonly lock: ObservedLock;
  readonly writer: Writer;
}

/**
 * The processes that several locks name. A pulumi holds one lock at a time, so one of those is of another pod with the same hostname, and nobody can tell which.
 */
export function findAmbiguous(items: readonly Attributed[]): ReadonlySet<string> {
  const names = items.map(({ writer }) => nameWriter(writer));
  return new Set(names.filter((name, index) => names.indexOf(name) !== index));
}

export function nameWriter({ pid, ticks }: Writer): string {
  return `${pid} ${ticks}`;
}

/** What is to be said of a lock whose writer was seen alive together with it, and is gone. */
export function judgeGone({ pid }: Writer, hostname: string): Judgement {
  const message = `process ${pid} of this pod was seen alive together with the lock, and is gone`;
  return {
    verdict: "stale",
    reason: "process-gone",
    message,
    evidence: {
      rules: [{ rule: "own pod", applied: true, note: message }],
      candidates: [
        {
          cluster: "own pod",
          namespace: "",
          pod: hostname,
          uid: "",
          finding: "gone",
          reason: "process-gone",
          message: `seen by ${quoteUntrusted(hostname)} in its own /proc`,
        },
      ],
      clusters: [],
    },
  };
}

/** What is to be said of a lock whose writer is gone, and that a person put back since. */
export function judgePutBack(): Judgement {
  return {
    verdict: "held",
    reason: "restored",
    message: PUT_BACK,
    evidence: { rules: [{ rule: "own pod", applied: true, note: PUT_BACK }], candidates: [], clusters: [] },
  };
}

/** What is to be said of a lock whose writer lives. */
export function judgeAlive({ pid }: Writer): Judgement {
  const message = `process ${pid} of this pod still runs`;
  return {
    verdict: "held",
    reason: "container-running",
    message,
    evidence: { rules: [{ rule: "own pod", applied: true, note: message }], candidates: [], clusters: [] },
  };
}
