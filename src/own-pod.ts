import type { Backend } from "./backends/backend.ts";
import { completeRecords } from "./complete-records.ts";
import { formatIdentity } from "./core/backend-identity.ts";
import type { ObservedLock } from "./core/lock.ts";
import {
  findAmbiguous,
  findWriter,
  isAlive,
  judgeAlive,
  judgeGone,
  judgePutBack,
  mayHoldLock,
  nameWriter,
  type Attributed,
  type OwnProcess,
} from "./core/own-pod.ts";
import type { SweepReport } from "./core/report.ts";
import { HOUR, type EpochNanoseconds, type Nanoseconds } from "./core/time.ts";
import { compareReport, type Told, type WatchEvent } from "./core/watch-event.ts";
import { describeError, describeWithHint, JanitorError } from "./errors.ts";
import { readLock } from "./read-locks.ts";
import { removeLock, type Remover } from "./remove-lock.ts";
import { composeReport, type SweptBackend, type SweptLock } from "./sweep-report.ts";
import { nameOfBackend, type OpenedBackend } from "./sweep.ts";

/** What a sidecar works with. */
export interface OwnPodParts extends Omit<Remover, "runId" | "overrides"> {
  readonly delete: boolean;
  readonly hostname: string;
  readonly skew: Nanoseconds;
  readonly backends: readonly OpenedBackend[];
  readonly readProcesses: () => Promise<readonly OwnProcess[]>;
  readonly newRunId: () => string;
  readonly sleep: (milliseconds: number, signal?: AbortSignal) => Promise<void>;
  /** Aborted when the pod, or the sidecar alone, is told to stop. */
  readonly stop: AbortSignal;
  readonly onEvent: (event: WatchEvent) => void;
  /** Told once that it was told to stop, and how many locks it stays for then until their processes end. */
  readonly onStopping: (held: number) => void;
  /** Told what was found of runs that had crashed, or why that could not be looked at. */
  readonly onWarning: (message: string) => void;
}

/** Milliseconds between two looks at the processes. */
const PACE = 1_000;
/** Once told to stop there may be no more than two seconds left. */
const LAST_PACE = 50;
/** How long it stays after that, while writers of locks still run. */
const LONGEST_STAY = 25_000;
/** Milliseconds until the store is asked for the lock of a process that has none yet: the first time, and at most. */
const FIRST_LOOK = 500;
const LONGEST_LOOK = 60_000;
/** Milliseconds until a removal that failed is tried again: the first time, and at most, since each try may write a record. */
const FIRST_RETRY = 2_000;
const LONGEST_RETRY = 600_000;

/**
 * Watches the processes of its own pod, and removes a lock once the very process is gone that it saw alive together with it. It asks no cluster, and waits for nothing: what it
 * has seen is proof. Told to stop, it goes on for as long as such a process runs, and releases only what those leave that end.
 */
export async function watchOwnPod(parts: OwnPodParts): Promise<void> {
  await new OwnPodWatch(parts).run();
}

const NEVER: Nanoseconds = 1_000_000n * HOUR;

type Opened = Extract<OpenedBackend, { kind: "open" }>;

interface Held extends Attributed {
  readonly opened: Opened;
  /** Set once its removal has failed. */
  readonly retry?: Retry;
  /** The record of an earlier try to remove it. */
  readonly record?: string;
}

/** When a removal that failed is tried again, and the pause should that fail too. */
interface Retry {
  readonly due: number;
  readonly pause: number;
}

/** A process that may take a lock, and when to look for it. */
interface Awaited {
  readonly nextLook: number;
  readonly pause: number;
}

class OwnPodWatch {
  readonly #parts: OwnPodParts;
  #held: readonly Held[] = [];
  #awaited = new Map<string, Awaited>();
  /** Processes that more than one lock named, and for good: of which of them they are is not known. */
  readonly #ambiguous = new Set<string>();
  /** Keys of locks that are of no process here. */
  readonly #others = new Set<string>();
  #told: Told = { locks: new Map(), problems: new Map() };
  #clock = 0;
  #stopping = false;

  constructor(parts: OwnPodParts) {
    this.#parts = parts;
  }

  async run(): Promise<void> {
    const completed = this.#completeAll();
    await this.#keepLooking();
    await completed;
  }

  /** Ends what crashed runs left half done, beside everything else: where only sidecars run, nobody else would. */
  async #completeAll(): Promise<void> {
    if (!this.#parts.delete) return;
    await Promise.all(this.#parts.backends.flatMap((opened) => (opened.kind === "failed" ? [] : [this.#complete(opened)])));
  }

  /** A record that cannot be completed stops nothing: it is told, and tried again by the next run. */
  async #complete({ backend, audit }: Opened): Promise<void> {
    const { stop, onWarning } = this.#parts;
    try {
      for (const text of await completeRecords(backend, audit, this.#newRemover(), stop)) onWarning(`${formatIdentity(backend.identity)}: ${text}`);
    } catch (error) {
      if (!stop.aborted) onWarning(`earlier records were not completed: ${describeWithHint(error)}`);
    }
  }

  async #keepLooking(): Promise<void> {
    const { stop, sleep } = this.#parts;
    let stay = 0;
    for (;;) {
      this.#noticeStop();
      await this.#look();
      this.#noticeStop();
      if (stop.aborted && (this.#held.length === 0 || stay > LONGEST_STAY)) return;
      const pace = stop.aborted ? LAST_PACE : PACE;
      if (stop.aborted) stay += pace;
      this.#clock += pace;
      await sleep(pace, stop.aborted ? undefined : stop).catch(() => undefined);
    }
  }

  #noticeStop(): void {
    if (!this.#parts.stop.aborted || this.#stopping) return;
    this.#stopping = true;
    this.#parts.onStopping(this.#held.filter(({ retry }) => retry === undefined).length);
    // There is no time left to wait for a better moment.
    this.#held = this.#held.map((held) => (held.retry === undefined ? held : { ...held, retry: { due: this.#clock, pause: LAST_PACE } }));
  }

  async #look(): Promise<void> {
    const processes = await this.#parts.readProcesses();
    const gone = this.#held.filter(({ writer, retry }) => !isAlive(writer, processes) && (retry === undefined || retry.due <= this.#clock));
    if (gone.length > 0) await this.#release(gone);
    if (this.#parts.stop.aborted) return;
    if (this.#isLookDue(processes)) await this.#attribute(processes);
  }

  /** True when some process may have taken a lock since the store was asked; each is waited for a little longer every time. */
  #isLookDue(processes: readonly OwnProcess[]): boolean {
    const waiting = processes.filter((process) => mayHoldLock(process) && !this.#held.some(({ writer }) => nameWriter(writer) === nameWriter(process)));
    const before = this.#awaited;
    this.#awaited = new Map(
      waiting.map(({ pid, ticks }) => {
        const name = nameWriter({ pid, ticks });
        return [name, before.get(name) ?? { nextLook: this.#clock + FIRST_LOOK, pause: PACE }];
      }),
    );
    const due = Array.from(this.#awaited).filter(([, { nextLook }]) => nextLook <= this.#clock);
    for (const [name, { pause }] of due) this.#awaited.set(name, { nextLook: this.#clock + pause, pause: Math.min(pause * 2, LONGEST_LOOK) });
    return due.length > 0;
  }

  /** Reads the locks that are new, and finds the writers of those that have one here. */
  async #attribute(before: readonly OwnProcess[]): Promise<void> {
    const { backends, readProcesses, hostname, skew, stop } = this.#parts;
    const read: { readonly opened: Opened; readonly lock: ObservedLock }[] = [];
    const asked: { readonly opened: Opened; readonly error?: JanitorError }[] = [];
    for (const opened of backends) {
      if (opened.kind === "failed") continue;
      try {
        for (const lock of await this.#readNew(opened.backend)) read.push({ opened, lock });
        asked.push({ opened });
      } catch (error) {
        if (stop.aborted) return;
        asked.push({ opened, error: asError(error) });
      }
    }
    const after = await readProcesses();
    const found = read.flatMap(({ opened, lock }): readonly Held[] => {
      const writer = lock.content.kind === "readable" ? findWriter(lock.key, lock.content.owner, { hostname, skew, before, after }) : undefined;
      // The content of a lock never changes, so one that names another host or process need not be read again.
      if (writer === undefined && lock.content.kind === "readable" && !couldBeOurs(lock, hostname, after)) this.#others.add(nameLock(opened.backend, lock.key));
      return writer === undefined ? [] : [{ opened, lock, writer }];
    });
    const known = this.#held.filter(({ lock, opened }) => !found.some((item) => item.lock.key === lock.key && item.opened === opened));
    const all = [...known, ...found];
    for (const name of findAmbiguous(all)) this.#ambiguous.add(name);
    this.#held = all.filter(({ writer }) => !this.#ambiguous.has(nameWriter(writer)));
    this.#tell(
      asked.map(({ opened, error }) => ({
        ...named(opened),
        ...(error === undefined ? {} : { error }),
        // One whose process is gone waits for its removal: that is told by its tries.
        locks: this.#held
          .filter((held) => held.opened === opened && isAlive(held.writer, after))
          .map(({ lock, writer }) => ({ lock, judgement: judgeAlive(writer), action: "keep" })),
      })),
    );
  }

  async #readNew(backend: Backend): Promise<readonly ObservedLock[]> {
    const { stop } = this.#parts;
    const locks: ObservedLock[] = [];
    for await (const page of backend.listLocks(stop)) {
      for (const entry of page) {
        if (this.#others.has(nameLock(backend, entry.key))) continue;
        const lock = await readLock(backend, entry, stop);
        if (lock !== undefined) locks.push(lock);
      }
    }
    return locks;
  }

  async #release(gone: readonly Held[]): Promise<void> {
    this.#held = this.#held.filter((held) => !gone.includes(held));
    const remover = this.#newRemover();
    const swept = await Promise.all(gone.map(async (held) => ({ held, lock: await this.#releaseOne(held, remover) })));
    this.#held = [...this.#held, ...swept.flatMap(({ held, lock }) => (mayBeTriedAgain(lock) ? [this.#postpone(held, lock)] : []))];
    const backends = Array.from(new Set(gone.map(({ opened }) => opened)));
    this.#tell(backends.map((opened) => ({ ...named(opened), locks: swept.filter(({ held }) => held.opened === opened).map(({ lock }) => lock) })));
  }

  async #releaseOne(held: Held, remover: Remover): Promise<SweptLock> {
    const { opened, lock, writer } = held;
    const { backend, audit } = opened;
    const judgement = judgeGone(writer, this.#parts.hostname);
    try {
      const kept = await this.#findReasonToKeep(held);
      if (kept !== undefined) return { lock, judgement, ...kept };
    } catch (error) {
      return { lock, judgement, action: "failed", note: describeError(error) };
    }
    if (!this.#parts.delete) return { lock, judgement, action: "would-delete" };
    return { lock, judgement, ...(await removeLock(backend, audit, lock, judgement, remover)) };
  }

  /** Reads the lock again: only the one that was seen together with its process may be removed. */
  async #findReasonToKeep({ opened: { backend, audit }, lock, record, retry }: Held): Promise<(Pick<SweptLock, "action"> & Partial<SweptLock>) | undefined> {
    const { signal } = new AbortController();
    // Since an earlier try somebody may have removed the lock and put it back; where a version is but a digest of the content, it is the same then.
    const [found, restored] = await Promise.all([backend.readLock(lock.key, signal), retry === undefined ? undefined : audit.findRestored([lock.key], signal)]);
    // What pulumi released itself needs no record.
    if (found.kind === "gone") return { action: "vanished", note: record === undefined ? "its process released it" : "an earlier try may have removed it" };
    // A lock that could not be read says nothing of its version.
    if (found.content.kind === "unread") return { action: "failed", note: found.content.problem };
    if (found.version !== lock.version) return { action: "changed", note: "another version of the lock is there now; it stays" };
    return restored?.has(lock.key) === true ? { judgement: judgePutBack(), action: "keep" } : undefined;
  }

  /** What was seen of its process stays true, so the lock is tried again: after a pause that grows with every failure. */
  #postpone({ retry, ...held }: Held, { record }: SweptLock): Held {
    const pause = retry?.pause ?? (this.#stopping ? LAST_PACE : FIRST_RETRY);
    return { ...held, retry: { due: this.#clock + pause, pause: Math.min(pause * 2, LONGEST_RETRY) }, ...(record === undefined ? {} : { record }) };
  }

  #newRemover(): Remover {
    const { janitor, now, newRunId } = this.#parts;
    return { runId: newRunId(), janitor, overrides: [], now };
  }

  #tell(backends: readonly SweptBackend[]): void {
    const report = this.#compose(backends);
    const { events, told } = compareReport(this.#told, report, false);
    this.#told = told;
    for (const event of events) this.#parts.onEvent(event);
  }

  #compose(backends: readonly SweptBackend[]): SweepReport {
    const now: EpochNanoseconds = this.#parts.now();
    return composeReport({
      runId: this.#parts.newRunId(),
      dryRun: !this.#parts.delete,
      startedAt: now,
      finishedAt: now,
      overrides: [],
      backends,
      clusters: [],
      selective: true,
      refusals: [],
      warnings: [],
      leftOut: 0,
      warnHeldAfter: NEVER,
      cutShort: false,
      failOn: [],
    });
  }
}

/**
 * True where a later try may remove the lock. A delete that met another version is tried again too: on `file://` another run's recovery may have held the lock for a moment and
 * put it back as it was. What really changed is found by the read before the next delete.
 */
function mayBeTriedAgain({ action, record }: SweptLock): boolean {
  return action === "failed" || (action === "changed" && record !== undefined);
}

function named(opened: Opened): Pick<SweptBackend, "name" | "identity"> {
  return { name: nameOfBackend(opened), identity: opened.backend.identity };
}

function nameLock({ identity }: Backend, key: string): string {
  return `${JSON.stringify(identity)} ${key}`;
}

/** Whether its process may yet turn out to be here: its lock was read before the process was seen. */
function couldBeOurs({ content }: ObservedLock, hostname: string, processes: readonly OwnProcess[]): boolean {
  return content.kind === "readable" && content.owner.hostname === hostname && processes.some(({ pid }) => pid === content.owner.pid);
}

function asError(error: unknown): JanitorError {
  return error instanceof JanitorError ? error : new JanitorError("backend-failed", describeError(error), { cause: error });
}
