import { BUILTIN_OWNERS, matchOwners } from "../../../src/core/owner.ts";
import type { SweepReport } from "../../../src/core/report.ts";
import { MINUTE, MILLISECOND, SECOND, type EpochNanoseconds, type Nanoseconds } from "../../../src/core/time.ts";
import type { WatchEvent } from "../../../src/core/watch-event.ts";
import type { ClusterSign } from "../../../src/kubernetes/cluster-source.ts";
import type { StoredLock } from "../store.ts";
import type { World } from "../world.ts";

/** Between the beginnings of two sweeps, at least: the design's word, not the rules' code. */
const GAP: Nanoseconds = 2n * SECOND;

/** Sleeps are of whole milliseconds. */
const TOLERANCE: Nanoseconds = 20n * MILLISECOND;

/** What asks for a sweep of every lock. */
interface Asked {
  readonly at: EpochNanoseconds;
  readonly what: "pod" | "loss";
  /** Whether it may not wait. */
  readonly urgent: boolean;
}

/** Watches one watch after the other: when it looks, how much it removes, and what it tells. */
export class WatchOracle {
  readonly #world: World;
  readonly #interval: Nanoseconds;
  readonly #maxDeletions: number;
  #begunAt: EpochNanoseconds | undefined;
  #wholeAt: EpochNanoseconds | undefined;
  #endedAt: EpochNanoseconds | undefined;
  #asked: Asked[] = [];
  #named: EpochNanoseconds | undefined;
  #lostAt: EpochNanoseconds | undefined;
  /** What the latest sweep left that settles by itself, so that another sweep soon is right. */
  #unsettled = false;
  #removals: { readonly at: EpochNanoseconds; readonly backend: string; readonly hostname: string }[] = [];
  #told = new Set<string>();
  #refused = false;
  /** What is late until the next sweep of every lock is so through no fault of the janitor. */
  #forgiven = true;

  constructor(world: World, interval: Nanoseconds, maxDeletions: number) {
    this.#world = world;
    this.#interval = interval;
    this.#maxDeletions = maxDeletions;
  }

  /** Whether the latest sweep of every lock was kept from removing by the valve: then a person has to say something. */
  get refused(): boolean {
    return this.#refused;
  }

  /** A new process remembers nothing. */
  restart(): void {
    this.#begunAt = undefined;
    this.#wholeAt = undefined;
    this.#endedAt = undefined;
    this.#unsettled = false;
    this.#removals = [];
    this.#told = new Set();
    this.#lostAt = undefined;
    this.forgive();
    this.#asked = [];
  }

  /** A clock was stepped, or time was taken: when something was due is no longer comparable. */
  forgive(): void {
    this.#removals = [];
    this.#forgiven = true;
    this.#pending = undefined;
    this.#asked = this.#asked.map((one) => ({ ...one, urgent: false }));
    this.#named = undefined;
    this.#wholeAt = undefined;
  }

  /** The janitor is given a sign. */
  note(sign: ClusterSign): void {
    const { now } = this.#world.timeline;
    if (sign.kind === "pod" && matchOwners(sign.hostname, [...BUILTIN_OWNERS, { glob: "iac-runner-*", profile: "explicit" }]).length > 0)
      this.#asked.push({ at: now, what: "pod", urgent: !this.#forgiven });
    if (sign.kind !== "lost") return;
    // Only the first of many losses is looked at at once.
    const first = this.#lostAt === undefined || now - this.#lostAt >= this.#interval;
    this.#asked.push({ at: now, what: "loss", urgent: first && !this.#forgiven });
    this.#lostAt = now;
  }

  /** A Stack has named a lock that is there, in a backend that is open. */
  noteNamed(): void {
    if (!this.#forgiven && this.#begunAt !== undefined) this.#named ??= this.#world.timeline.now;
  }

  begin(): void {
    const { now } = this.#world.timeline;
    const earliest = this.#latest(this.#endedAt, this.#begunAt === undefined ? undefined : this.#begunAt + GAP);
    if (!this.#forgiven && this.#begunAt !== undefined && now < this.#begunAt + GAP - TOLERANCE) this.#break("watch: two sweeps began within two seconds");
    if (this.#named !== undefined && now > this.#latest(this.#named, earliest) + TOLERANCE)
      this.#break("watch: a lock that a Stack named was not judged at once");
    this.#named = undefined;
    this.#pending = { begunAt: now, earliest };
    this.#begunAt = now;
  }

  #pending: { readonly begunAt: EpochNanoseconds; readonly earliest: EpochNanoseconds } | undefined;

  end(report: SweepReport, whole: boolean, before: ReadonlySet<StoredLock>): void {
    const { oracle, timeline } = this.#world;
    const pending = this.#pending;
    oracle.judgeReport(report, whole ? before : new Set());
    if (whole && pending !== undefined) this.#judgeTime(pending.begunAt, pending.earliest);
    else if (!whole) oracle.tally.add("sweeps of named locks");
    this.#endedAt = timeline.now;
    if (whole) this.#refused = report.refusals.length > 0;
    this.#unsettled =
      (this.#unsettled && !whole) ||
      report.locks.some(({ verdict, reason }) => verdict === "too-young" || reason === "not-settled" || reason === "status-older") ||
      [...report.backends, ...report.clusters].some(({ error }) => error !== undefined);
    this.#judgeValve(report);
  }

  /** Nothing is told as there that is not, and nothing that is there stays untold. */
  tell(event: WatchEvent): void {
    this.#world.oracle.tally.add(`event: ${event.event}`);
    if (event.event === "lock") {
      const gone = event.lock.action === "deleted" || event.lock.action === "deleted-unconfirmed" || event.lock.action === "vanished";
      const name = nameOf(event.lock);
      if (gone) this.#told.delete(name);
      else this.#told.add(name);
    }
    if (event.event === "released" && !this.#told.delete(nameOf(event))) this.#break(`watch: ${event.key} is told as released, and was never told as there`);
  }

  /** After a sweep of every lock whose events were told, in a world in which nothing fails. */
  judgeTold({ locks }: SweepReport): void {
    const there = new Set(locks.filter(({ action }) => action !== "deleted" && action !== "deleted-unconfirmed" && action !== "vanished").map(nameOf));
    for (const name of there) if (!this.#told.has(name)) this.#break(`watch: ${name} is there, and its events do not say so`);
    for (const name of this.#told) if (!there.has(name)) this.#break(`watch: ${name} is told as there, and is not`);
  }

  #judgeTime(at: EpochNanoseconds, earliest: EpochNanoseconds): void {
    const { tally } = this.#world.oracle;
    const asked = this.#asked.filter((one) => one.at <= at);
    // What came at the very beginning of a sweep may rightly have another follow.
    this.#asked = this.#asked.filter((one) => one.at >= at).map((one) => (one.at === at ? { ...one, urgent: false } : one));
    const byInterval = this.#wholeAt !== undefined && at >= this.#wholeAt + this.#interval - TOLERANCE;
    for (const { at: since, what, urgent } of asked) {
      if (urgent && at > this.#latest(since, earliest) + TOLERANCE) this.#break(`watch: a sweep came late after a ${what}`);
    }
    if (this.#wholeAt !== undefined && at > this.#latest(this.#wholeAt + this.#interval, earliest) + TOLERANCE)
      this.#break("watch: every lock was not looked at although the interval had ended");
    const [first] = asked;
    if (first !== undefined) tally.add(`sweeps after a ${first.what}`);
    else if (byInterval) tally.add("sweeps by the interval");
    else if (this.#unsettled) tally.add("sweeps of what settles");
    else if (this.#wholeAt !== undefined) this.#break("watch: a sweep of every lock without any reason");
    this.#wholeAt = at;
    this.#forgiven = false;
  }

  /** No more owners lose their locks in ten minutes than the valve admits. */
  #judgeValve({ locks, refusals }: SweepReport): void {
    const { now } = this.#world.timeline;
    const fresh = this.#removals.filter(({ at }) => at > now - 10n * MINUTE);
    if (refusals.length > 0) this.#world.oracle.tally.add(fresh.length > 0 ? "valve: closed by earlier removals too" : "valve: closed");
    for (const { action, backend, owner } of locks)
      if (action === "deleted" || action === "deleted-unconfirmed") fresh.push({ at: now, backend: JSON.stringify(backend), hostname: owner?.hostname ?? "" });
    for (const backend of new Set(fresh.map((removal) => removal.backend))) {
      const owners = new Set(fresh.filter((removal) => removal.backend === backend).map(({ hostname }) => hostname));
      if (owners.size > this.#maxDeletions)
        this.#break(`watch: ${owners.size} owners lost their locks within ten minutes, and at most ${this.#maxDeletions} may`);
    }
    this.#removals = fresh;
  }

  #latest(...times: readonly (EpochNanoseconds | undefined)[]): EpochNanoseconds {
    return times.reduce<EpochNanoseconds>((latest, time) => (time !== undefined && time > latest ? time : latest), 0n);
  }

  #break(violation: string): void {
    this.#world.oracle.violations.push(violation);
  }
}

function nameOf({ backend, key }: { readonly backend: object; readonly key: string }): string {
  return `${JSON.stringify(backend)} ${key}`;
}
