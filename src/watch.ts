import { formatIdentity } from "./core/backend-identity.ts";
import type { Following } from "./core/following.ts";
import { findLockReferences } from "./core/lock-reference.ts";
import { matchOwners } from "./core/owner.ts";
import type { PlannedRemoval } from "./core/plan.ts";
import type { SweepReport } from "./core/report.ts";
import { isRemoved } from "./core/report.ts";
import { fromMilliseconds, MINUTE, SECOND, type EpochNanoseconds } from "./core/time.ts";
import { isWanted, type LockSelection, type WantedLock } from "./core/wanted-lock.ts";
import { findNextDue, hasFailed, LossPace } from "./core/watch-due.ts";
import { compareReport, type Told, type WatchEvent } from "./core/watch-event.ts";
import type { ClusterSign } from "./kubernetes/cluster-source.ts";
import { sweep, type OpenedBackend, type SweepParts, type SweepSettings } from "./sweep.ts";

/** What a watch is told to do. */
export interface WatchSettings {
  /** Each of its sweeps. */
  readonly sweep: Omit<SweepSettings, "selection" | "earlierRemovals">;
  /** Milliseconds between two sweeps when nothing happens. */
  readonly interval: number;
}

/** What a watch works with. */
export interface WatchParts extends Omit<SweepParts, "backends" | "discovery" | "runId" | "confirm" | "onProgress" | "deadline"> {
  /** The backends, opened, and what discovery found; what could not be opened is tried again by the next call. */
  readonly openBackends: (signal: AbortSignal) => Promise<Pick<SweepParts, "backends" | "discovery">>;
  readonly newRunId: () => string;
  /** Aborts one sweep when it takes too long. */
  readonly newDeadline: () => AbortSignal;
  /** Told of each change. */
  readonly onEvent: (event: WatchEvent) => void;
  /** Told whenever changes of some kind of object stop to come, for another reason than before, or come again. */
  readonly onFollow: (following: Following) => void;
  /** Told of each sweep that has ended. `whole`: it was about every lock. */
  readonly onSweep: (report: SweepReport, whole: boolean) => void;
}

/** The valve counts what was removed this long before along. */
const VALVE_WINDOW = 10n * MINUTE;

/** Between the beginnings of two sweeps that signs ask for: what many signs have in common is looked at once. */
const SHORTEST_GAP = 2n * SECOND;

const EVERY_LOCK: LockSelection = { projects: [], stacks: [], locks: [] };

/** Sweeps at an interval, and at once when something happens that may make a lock stale or shows one, until `stop` aborts. Every verdict is made from fresh requests. */
export async function watch(settings: WatchSettings, parts: WatchParts): Promise<void> {
  const watching = new Watch(settings, parts);
  await Promise.all([watching.run(), ...parts.clusters.map((cluster) => cluster.follow?.((sign) => watching.notice(sign, cluster.name), parts.stop))]);
}

class Watch {
  readonly #settings: WatchSettings;
  readonly #parts: WatchParts;
  #opened: readonly OpenedBackend[] = [];
  #told: Told = { locks: new Map(), problems: new Map() };
  #removals: readonly (PlannedRemoval & { readonly at: EpochNanoseconds })[] = [];
  /** When every lock is looked at next. */
  #dueAt: EpochNanoseconds;
  #begunAt: EpochNanoseconds | undefined;
  /** Locks that a Stack's message has named since the last sweep, by their keys. */
  readonly #named = new Map<string, WantedLock>();
  #wake = new AbortController();
  /** Why changes do not come, by cluster and kind. */
  readonly #troubles = new Map<string, string>();
  readonly #losses: LossPace;
  /** Sweeps of every lock, one after the other, that could not read something. */
  #failures = 0;

  constructor(settings: WatchSettings, parts: WatchParts) {
    this.#settings = settings;
    this.#parts = parts;
    this.#losses = new LossPace(fromMilliseconds(settings.interval));
    this.#dueAt = parts.now();
  }

  /** Takes a sign for what it is: a reason to look. */
  notice(sign: ClusterSign, cluster: string): void {
    const now = this.#parts.now();
    switch (sign.kind) {
      case "pod":
        if (matchOwners(sign.hostname, this.#settings.sweep.rules.owners).length > 0) this.#hasten(now);
        return;
      case "stack":
        for (const [key, wanted] of this.#findNamed(sign.message)) {
          this.#named.set(key, wanted);
          this.#wake.abort();
        }
        return;
      case "lost":
        this.#hasten(this.#losses.note(now));
        return;
      case "unfollowed":
        this.#tellFollowing(cluster, sign.what, { problem: sign.problem, denied: sign.denied });
        return;
      case "followed":
        this.#tellFollowing(cluster, sign.what);
    }
  }

  /** Has every lock looked at by then at the latest. */
  #hasten(at: EpochNanoseconds): void {
    if (at < this.#dueAt) this.#dueAt = at;
    this.#wake.abort();
  }

  #tellFollowing(cluster: string, what: string, trouble?: Following["trouble"]): void {
    const name = `${cluster} ${what}`;
    if (this.#troubles.get(name) === trouble?.problem) return;
    if (trouble === undefined) this.#troubles.delete(name);
    else this.#troubles.set(name, trouble.problem);
    this.#parts.onFollow({ cluster, what, ...(trouble === undefined ? {} : { trouble }) });
  }

  async run(): Promise<void> {
    const { stop, now } = this.#parts;
    while (!stop.aborted) {
      await this.#wait();
      if (stop.aborted) return;
      const whole = now() >= this.#dueAt;
      const locks = Array.from(this.#named.values());
      this.#named.clear();
      if (whole || locks.length > 0) await this.#sweep(whole ? EVERY_LOCK : { ...EVERY_LOCK, locks }, whole);
    }
  }

  async #sweep(selection: LockSelection, whole: boolean): Promise<void> {
    const { now, openBackends, newRunId, newDeadline, onEvent, onFollow: _, onSweep, ...parts } = this.#parts;
    const begunAt = now();
    this.#begunAt = begunAt;
    // A sign that comes while the sweep runs asks for another one.
    if (whole) this.#dueAt = begunAt + fromMilliseconds(this.#settings.interval);
    const deadline = newDeadline();
    const opened = await openBackends(AbortSignal.any([deadline, parts.stop]));
    this.#opened = opened.backends;
    this.#removals = this.#removals.filter(({ at }) => at > begunAt - VALVE_WINDOW);
    const report = await sweep(
      { ...this.#settings.sweep, selection, earlierRemovals: this.#removals },
      { ...parts, ...opened, now, runId: newRunId(), deadline, onProgress: () => undefined },
    );
    this.#remember(report, now());
    // What a signal kept from being removed is no news; what was removed before it is.
    const stopped = parts.stop.aborted;
    const news = stopped ? { ...report, locks: report.locks.filter(({ action }) => action !== "keep") } : report;
    const { events, told } = compareReport(this.#told, news, whole && !stopped);
    this.#told = told;
    for (const event of events) onEvent(event);
    onSweep(report, whole);
    if (whole) this.#failures = hasFailed(report) ? this.#failures + 1 : 0;
    const due = findNextDue(report, now(), { ...this.#settings.sweep.rules, failures: this.#failures });
    if (due !== undefined && due < this.#dueAt) this.#dueAt = due;
  }

  #remember({ locks }: SweepReport, at: EpochNanoseconds): void {
    const removed = locks.filter(isRemoved);
    this.#removals = [...this.#removals, ...removed.map(({ backend, owner }) => ({ backend: formatIdentity(backend), hostname: owner?.hostname ?? "", at }))];
  }

  /** Waits until a sweep is due or asked for, and never begins two in too short a time. */
  async #wait(): Promise<void> {
    const { stop, now, sleep } = this.#parts;
    for (;;) {
      const here = now();
      // A clock that was set back makes no wait longer.
      this.#dueAt = earlier(this.#dueAt, here + fromMilliseconds(this.#settings.interval));
      this.#begunAt &&= earlier(this.#begunAt, here);
      const earliest = this.#begunAt === undefined ? here : this.#begunAt + SHORTEST_GAP;
      const wanted = this.#named.size > 0 ? here : this.#dueAt;
      const left = (wanted > earliest ? wanted : earliest) - here;
      if (left <= 0n || stop.aborted) return;
      this.#wake = new AbortController();
      // What aborts the sleep is looked at above.
      await sleep(Number(left / 1_000_000n) + 1, AbortSignal.any([stop, this.#wake.signal])).catch(() => undefined);
    }
  }

  /** The locks of open backends that a message names. */
  #findNamed(message: string): readonly (readonly [key: string, wanted: WantedLock])[] {
    return findLockReferences(message)
      .map((reference): WantedLock => ({ kind: "reference", reference }))
      .flatMap((wanted) => {
        const key = wanted.kind === "reference" ? wanted.reference.key : wanted.id;
        return this.#opened.some((opened) => opened.kind === "open" && isWanted(wanted, key, opened.backend.identity)) ? [[key, wanted] as const] : [];
      });
  }
}

function earlier(one: EpochNanoseconds, other: EpochNanoseconds): EpochNanoseconds {
  return one < other ? one : other;
}
