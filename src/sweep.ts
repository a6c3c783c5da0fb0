import pLimit from "p-limit";

import type { Backend } from "./backends/backend.ts";
import { completeRecords } from "./complete-records.ts";
import { formatIdentity } from "./core/backend-identity.ts";
import type { ClusterObservation } from "./core/cluster.ts";
import type { RuleSettings } from "./core/decide.ts";
import { NOT_JUDGED, type Judgement, type FailOn } from "./core/judgement.ts";
import type { ObservedLock } from "./core/lock.ts";
import { refuseTooMany, type PlannedRemoval } from "./core/plan.ts";
import type { OverrideUsed, SweepReport } from "./core/report.ts";
import type { EpochNanoseconds, Nanoseconds } from "./core/time.ts";
import { isSelected, type LockSelection } from "./core/wanted-lock.ts";
import type { Discovery } from "./discover-backends.ts";
import { describeError, JanitorError } from "./errors.ts";
import { judgeLocks, type LocksOfBackend } from "./judge-locks.ts";
import type { ClusterSource } from "./kubernetes/cluster-source.ts";
import type { AuditLog } from "./output/audit-log.ts";
import { readPendingOperations } from "./read-checkpoint.ts";
import { readLock, readLocks } from "./read-locks.ts";
import { removeLock, type Removal, type Remover } from "./remove-lock.ts";
import { composeReport, type SweptBackend, type SweptLock } from "./sweep-report.ts";
import { tellStacks, type AfterUnlockSettings } from "./tell-stacks.ts";

/** A backend that was opened, or why it could not be. */
export type OpenedBackend =
  | { readonly kind: "open"; readonly backend: Backend; readonly audit: AuditLog; readonly discovered?: boolean }
  /** `name`: its URL without anything secret. `discovered`: a Stack named it. */
  | { readonly kind: "failed"; readonly name: string; readonly error: JanitorError; readonly discovered?: boolean };

/** What a sweep is told to do. */
export interface SweepSettings {
  readonly delete: boolean;
  readonly rules: RuleSettings;
  /** Milliseconds between the first and the second look. */
  readonly confirmDelay: number;
  readonly maxDeletions: number;
  /** Removals of earlier sweeps that `maxDeletions` counts along; none for a sweep that stands alone. */
  readonly earlierRemovals?: readonly PlannedRemoval[];
  readonly failOn: readonly FailOn[];
  readonly overrides: readonly OverrideUsed[];
  /** The locks that the sweep is about. */
  readonly selection: LockSelection;
  /** A held lock that is older is told about. */
  readonly warnHeldAfter: Nanoseconds;
  /** What follows a removal; nothing when absent. */
  readonly afterUnlock?: AfterUnlockSettings;
}

/** What a sweep works with. */
export interface SweepParts {
  readonly backends: readonly OpenedBackend[];
  readonly clusters: readonly ClusterSource[];
  /** What the Stacks of the clusters gave (`--discover`), its backends being among the others. */
  readonly discovery?: Discovery;
  readonly now: () => EpochNanoseconds;
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly runId: string;
  readonly janitor: Remover["janitor"];
  /** Aborts what is being read (`--timeout`). */
  readonly deadline: AbortSignal;
  /** Aborted by a signal: the removal in hand is finished, no other is begun. */
  readonly stop: AbortSignal;
  /** Asks a person whether the plan may be carried out; absent when nobody is to be asked. What the answer vouches for goes into report and record. */
  readonly confirm?: (plan: SweepReport) => Promise<Answer>;
  readonly onProgress: (progress: Progress) => void;
}

/** A person's answer to the plan. */
export type Answer = { readonly kind: "yes"; readonly overrides: readonly OverrideUsed[] } | { readonly kind: "no" };

/** How far a sweep is, for a progress line. */
export type Progress =
  | { readonly kind: "reading"; readonly locks: number }
  | { readonly kind: "judging"; readonly locks: number }
  | { readonly kind: "waiting"; readonly milliseconds: number }
  | { readonly kind: "removing"; readonly done: number; readonly of: number };

/** One pass: list, observe, decide, look again, remove, report. Never throws for what a backend or a cluster refuses. */
export async function sweep(settings: SweepSettings, parts: SweepParts): Promise<SweepReport> {
  return await new Sweep(settings, parts).run();
}

/** The state of one backend within a sweep. */
interface Work {
  readonly opened: OpenedBackend;
  error?: JanitorError;
  locks: readonly SweptLock[];
}

class Sweep {
  readonly #settings: SweepSettings;
  readonly #parts: SweepParts;
  readonly #signal: AbortSignal;
  readonly #startedAt: EpochNanoseconds;
  readonly #warnings: string[] = [];
  readonly #refusals: string[] = [];
  #overrides: readonly OverrideUsed[];
  #clusters: readonly ClusterObservation[] = [];
  #reads = 0;
  #leftOut = 0;

  constructor(settings: SweepSettings, parts: SweepParts) {
    this.#settings = settings;
    this.#parts = parts;
    this.#signal = AbortSignal.any([parts.deadline, parts.stop]);
    this.#startedAt = parts.now();
    this.#overrides = settings.overrides;
    this.#warnings.push(...(parts.discovery?.notes ?? []));
    this.#refusals.push(...(parts.discovery?.refusals ?? []));
  }

  async run(): Promise<SweepReport> {
    const limit = pLimit(8);
    const work = await Promise.all(this.#parts.backends.map((opened) => limit(() => this.#read(opened))));
    await this.#judgeAll(work);
    const planned = (): readonly SweptLock[] => work.flatMap(({ locks }) => locks.filter(isPlanned));
    this.#refuse(work);
    if (planned().length > 0 && this.#settings.afterUnlock?.checkPending === true) await this.#checkPending(work);
    if (planned().length > 0 && this.#settings.delete) await this.#ask(work);
    if (planned().length > 0) await this.#lookAgain(work);
    this.#refuse(work);
    if (this.#settings.delete) {
      await this.#remove(work);
      await this.#tellStacks(work);
    }
    return this.#report(work);
  }

  /** Before anybody is asked, who may want to know. The owner is gone, so the checkpoint stays as it is. */
  async #checkPending(work: readonly Work[]): Promise<void> {
    for (const item of work) {
      const checked: SweptLock[] = [];
      // One after the other: each is whole in memory for a while.
      for (const swept of item.locks) {
        if (item.opened.kind === "failed" || !isPlanned(swept)) checked.push(swept);
        else checked.push({ ...swept, pending: await readPendingOperations(item.opened.backend, swept.lock.key, this.#signal) });
      }
      item.locks = checked;
    }
  }

  async #tellStacks(work: readonly Work[]): Promise<void> {
    const { afterUnlock, rules } = this.#settings;
    if (afterUnlock === undefined) return;
    const removed = work.flatMap(({ opened, locks }) =>
      opened.kind === "failed" ? [] : locks.filter(({ action }) => action === "deleted").map((swept) => ({ ...swept, backend: opened.backend.identity })),
    );
    const seen = new Map(this.#clusters.map(({ name, stacks }) => [name, stacks]));
    const told = await tellStacks(removed, afterUnlock, { clusters: this.#parts.clusters, seen, owners: rules.owners, now: this.#parts.now });
    for (const item of work) {
      item.locks = item.locks.map((swept) => {
        const done = told.get(swept.lock);
        return done === undefined ? swept : { ...swept, afterUnlock: done };
      });
    }
  }

  async #ask(work: readonly Work[]): Promise<void> {
    const answer = await this.#parts.confirm?.(this.#report(work));
    if (answer?.kind === "yes") this.#overrides = [...answer.overrides, ...this.#overrides];
    if (answer?.kind !== "no") return;
    this.#keepPlanned(work, "the question was not answered with yes");
    this.#refusals.push("nothing was removed: the question was not answered with yes");
  }

  async #read(opened: OpenedBackend): Promise<Work> {
    if (opened.kind === "failed") return { opened, error: opened.error, locks: [] };
    const { backend, audit } = opened;
    try {
      if (this.#settings.delete) await this.#complete(backend, audit);
      const { locks, leftOut } = await readLocks(
        backend,
        (key) => isSelected(this.#settings.selection, key, backend.identity),
        this.#signal,
        () => this.#parts.onProgress({ kind: "reading", locks: ++this.#reads }),
      );
      this.#leftOut += leftOut;
      return { opened, locks: locks.map((lock) => ({ lock, judgement: NOT_JUDGED, action: "keep" })) };
    } catch (error) {
      return { opened, error: this.#asError(error, backend, "list its locks"), locks: [] };
    }
  }

  /** A record that cannot be completed stops nothing: it is told, and tried again by the next run. */
  async #complete(backend: Backend, audit: AuditLog): Promise<void> {
    try {
      this.#warnings.push(
        ...(await completeRecords(backend, audit, this.#remover(), this.#signal)).map((text) => `${formatIdentity(backend.identity)}: ${text}`),
      );
    } catch (error) {
      this.#signal.throwIfAborted();
      this.#warnings.push(`${this.#asError(error, backend, "complete earlier records").message} (earlier records were not completed)`);
    }
  }

  async #judgeAll(work: readonly Work[]): Promise<void> {
    try {
      const judgements = await this.#judge(work.flatMap((item) => locksOf(item)));
      for (const item of work) {
        item.locks = item.locks.map(({ lock }) => {
          const judgement = judgements.get(lock) ?? NOT_JUDGED;
          return { lock, judgement, action: judgement.verdict === "stale" ? "would-delete" : "keep" };
        });
      }
      await Promise.all(work.map((item) => this.#holdRestored(item)));
    } catch (error) {
      if (!this.#signal.aborted) throw error;
      this.#keepPlanned(work, "stopped before everything was judged");
    }
  }

  /** Locks that a person put back stay, as held. Where that cannot be told, none of the backend is removed. */
  async #holdRestored(item: Work): Promise<void> {
    const keys = item.locks.filter(isPlanned).map(({ lock }) => lock.key);
    if (item.opened.kind === "failed" || keys.length === 0) return;
    try {
      const restored = await item.opened.audit.findRestored(keys, this.#signal);
      if (restored.size > 0) await this.#judgeAgain(item, restored);
    } catch (error) {
      item.error = this.#asError(error, item.opened.backend, "read the records of locks that were put back");
      item.locks = item.locks.map((swept) => (isPlanned(swept) ? { ...swept, action: "keep", note: "which locks a person put back is not known" } : swept));
    }
  }

  async #judgeAgain(item: Work, restored: ReadonlySet<string>): Promise<void> {
    const judgements = await this.#judge(locksOf({ ...item, locks: item.locks.filter(({ lock }) => restored.has(lock.key)) }, restored));
    item.locks = item.locks.map((swept) => {
      const judgement = judgements.get(swept.lock);
      return judgement === undefined ? swept : { lock: swept.lock, judgement, action: "keep" };
    });
  }

  async #judge(backends: readonly LocksOfBackend[]): Promise<ReadonlyMap<ObservedLock, Judgement>> {
    this.#parts.onProgress({ kind: "judging", locks: backends.reduce((sum, { locks }) => sum + locks.length, 0) });
    const { judgements, clusters } = await judgeLocks(
      backends,
      { clusters: this.#parts.clusters, rules: this.#settings.rules, now: this.#parts.now },
      this.#signal,
    );
    if (clusters.length > 0) this.#clusters = clusters;
    return judgements;
  }

  /** The valve: stops before the first removal where more owners would lose their locks than allowed. */
  #refuse(work: readonly Work[]): void {
    const removals = work.flatMap((item) =>
      item.locks
        .filter(isPlanned)
        .flatMap(({ lock }) => (lock.content.kind === "readable" ? [{ backend: nameOfBackend(item.opened), hostname: lock.content.owner.hostname }] : [])),
    );
    for (const { backend, message } of refuseTooMany(removals, this.#settings.maxDeletions, this.#settings.earlierRemovals)) {
      this.#refusals.push(message);
      this.#keepPlanned(
        work.filter(({ opened }) => nameOfBackend(opened) === backend),
        "the safety valve --max-deletions is closed",
      );
    }
  }

  #keepPlanned(work: readonly Work[], note: string): void {
    for (const item of work) item.locks = item.locks.map((swept) => (isPlanned(swept) ? { ...swept, action: "keep", note } : swept));
  }

  /** The second look: the locks are read again, then the clusters, and everything is judged again. A dry run does the same, to decide the same. */
  async #lookAgain(work: readonly Work[]): Promise<void> {
    this.#parts.onProgress({ kind: "waiting", milliseconds: this.#settings.confirmDelay });
    try {
      await this.#parts.sleep(this.#settings.confirmDelay, this.#signal);
      const again = (await Promise.all(work.map((item) => this.#readPlannedAgain(item)))).flat();
      const judgements = await this.#judge(again);
      for (const item of work) {
        const read = again.find(({ backend }) => item.opened.kind === "open" && item.opened.backend === backend)?.locks ?? [];
        const found = new Map(read.map((lock) => [lock.key, judgements.get(lock)]));
        item.locks = item.locks.map((swept): SweptLock => {
          const judgement = isPlanned(swept) ? found.get(swept.lock.key) : undefined;
          if (judgement === undefined || judgement.verdict === "stale") return judgement === undefined ? swept : { ...swept, judgement };
          return { lock: swept.lock, judgement, action: "keep", note: "it was stale at the first look, and no longer at the second" };
        });
      }
    } catch (error) {
      if (!this.#signal.aborted) throw error;
      this.#keepPlanned(work, "stopped before the second look");
    }
  }

  /** Reads the planned locks again; what changed or vanished is no longer planned. */
  async #readPlannedAgain(item: Work): Promise<readonly LocksOfBackend[]> {
    if (item.opened.kind === "failed") return [];
    const { backend } = item.opened;
    const limit = pLimit(backend.concurrency);
    const kept: ObservedLock[] = [];
    item.locks = await Promise.all(
      item.locks.map((swept) =>
        limit(async (): Promise<SweptLock> => {
          if (!isPlanned(swept)) return swept;
          const lock = await readLock(backend, swept.lock, this.#signal);
          if (lock === undefined) return { ...swept, action: "vanished", note: "it was gone at the second look" };
          if (lock.content.kind === "readable" && lock.version !== swept.lock.version)
            return { ...swept, action: "changed", note: "another version of the lock was there at the second look; it stays" };
          kept.push(lock);
          return swept;
        }),
      ),
    );
    return [{ backend, locks: kept }];
  }

  async #remove(work: readonly Work[]): Promise<void> {
    const of = work.reduce((sum, { locks }) => sum + locks.filter(isPlanned).length, 0);
    let done = 0;
    await Promise.all(
      work.map(async (item) => {
        if (item.opened.kind === "failed") return;
        const { backend, audit } = item.opened;
        const limit = pLimit(Math.min(backend.concurrency, 8));
        item.locks = await Promise.all(
          item.locks.map((swept) =>
            limit(async (): Promise<SweptLock> => {
              if (!isPlanned(swept)) return swept;
              if (this.#signal.aborted) return { ...swept, action: "keep", note: "stopped before its turn" };
              const removal: Removal = await removeLock(backend, audit, swept.lock, swept.judgement, this.#remover());
              done += 1;
              this.#parts.onProgress({ kind: "removing", done, of });
              return { ...swept, ...removal };
            }),
          ),
        );
      }),
    );
  }

  #remover(): Remover {
    const { runId, janitor, now } = this.#parts;
    return { runId, janitor, overrides: this.#overrides, now };
  }

  #asError(error: unknown, backend: Backend, action: string): JanitorError {
    if (error instanceof JanitorError) return error;
    const name = formatIdentity(backend.identity);
    if (this.#parts.stop.aborted)
      return new JanitorError("interrupted", `${name}: stopped by a signal`, { hint: "What was not judged by then stays; run again." });
    if (this.#parts.deadline.aborted)
      return new JanitorError("interrupted", `${name}: --timeout ran out`, { hint: "Give it more time, or find out what is slow with --verbose." });
    return new JanitorError("backend-failed", `${name}: could not ${action}: ${describeError(error)}`, { cause: error });
  }

  #report(work: readonly Work[]): SweepReport {
    const { runId, now, deadline, stop, discovery } = this.#parts;
    const { projects, stacks, locks: wanted } = this.#settings.selection;
    const backends = work.map(({ opened, error, locks }): SweptBackend => ({
      name: nameOfBackend(opened),
      discovered: opened.discovered === true,
      ...(opened.kind === "open" ? { identity: opened.backend.identity } : {}),
      ...(error === undefined ? {} : { error }),
      locks,
    }));
    return composeReport({
      runId,
      dryRun: !this.#settings.delete,
      startedAt: this.#startedAt,
      finishedAt: now(),
      overrides: this.#overrides,
      backends,
      clusters: this.#clusters,
      ...(discovery === undefined ? {} : { stackLists: discovery.stackLists }),
      selective: projects.length + stacks.length + wanted.length > 0,
      refusals: this.#refusals,
      warnings: this.#warnings,
      leftOut: this.#leftOut,
      warnHeldAfter: this.#settings.warnHeldAfter,
      cutShort: deadline.aborted || stop.aborted,
      timedOut: deadline.aborted,
      failOn: this.#settings.failOn,
    });
  }
}

/** What a backend is called in a report: by its identity, or by its URL without anything secret. */
export function nameOfBackend(opened: OpenedBackend): string {
  return opened.kind === "open" ? formatIdentity(opened.backend.identity) : opened.name;
}

function locksOf({ opened, locks }: Work, restored: ReadonlySet<string> = new Set()): readonly LocksOfBackend[] {
  return opened.kind === "failed" ? [] : [{ backend: opened.backend, locks: locks.map(({ lock }) => lock), restored }];
}

/** True for a lock that the sweep would remove if nothing comes between. */
function isPlanned({ action }: SweptLock): boolean {
  return action === "would-delete";
}
