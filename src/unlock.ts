import type { Backend } from "./backends/backend.ts";
import { formatIdentity } from "./core/backend-identity.ts";
import type { ObservedLock } from "./core/lock.ts";
import type { SweepReport } from "./core/report.ts";
import { escapeUntrusted, formatCount, joinSome, quoteUntrusted } from "./core/text.ts";
import { isWanted, type WantedLock } from "./core/wanted-lock.ts";
import { JanitorError } from "./errors.ts";
import { judgeLocks } from "./judge-locks.ts";
import { readPendingOperations } from "./read-checkpoint.ts";
import { readLock } from "./read-locks.ts";
import { removeLock } from "./remove-lock.ts";
import { composeReport, type SweptLock } from "./sweep-report.ts";
import { sweep, type Answer, type OpenedBackend, type SweepParts, type SweepSettings } from "./sweep.ts";
import { tellStacks } from "./tell-stacks.ts";

/** A backend that is open, with its audit log. */
export type OpenBackend = Extract<OpenedBackend, { readonly kind: "open" }>;

/** The one lock that a person wants removed. */
export interface FoundLock {
  readonly opened: OpenBackend;
  readonly lock: ObservedLock;
}

/** Finds the lock that a person named. Throws `lock-not-found`, `usage` when several are called so, `unlock-refused` when another owner's is there now, and what a backend throws. */
export async function findLock(text: string, wanted: WantedLock, backends: readonly OpenBackend[], signal: AbortSignal): Promise<FoundLock> {
  const found: { readonly opened: OpenBackend; readonly key: string }[] = [];
  let others = 0;
  for (const opened of backends) {
    for await (const page of opened.backend.listLocks(signal)) {
      const matching = page.filter(({ key }) => isWanted(wanted, key, opened.backend.identity));
      found.push(...matching.map(({ key }) => ({ opened, key })));
      others += page.length - matching.length;
    }
  }
  const [first, ...more] = found;
  const places = joinSome(
    backends.map(({ backend }) => formatIdentity(backend.identity)),
    5,
  );
  if (more.length > 0)
    throw new JanitorError(
      "usage",
      `${found.length} locks are called ${quoteUntrusted(text)}: ${joinSome(
        found.map(({ key }) => escapeUntrusted(key)),
        5,
      )}`,
      {
        hint: "Give the key of the one that is meant, or its whole URL, and --backend once.",
      },
    );
  const lock = first === undefined ? undefined : await readLock(first.opened.backend, { key: first.key }, signal);
  if (first === undefined || lock === undefined)
    throw new JanitorError("lock-not-found", `there is no lock ${quoteUntrusted(text)} in ${places}`, {
      hint: `Its owner may have released it. ${formatCount(others, "other lock")} there: 'sweep' shows them.`,
    });
  refuseOther(wanted, first.opened.backend, lock);
  return { opened: first.opened, lock };
}

/** A pasted line may be old: the lock that is there now must be of the owner that it names. */
function refuseOther(wanted: WantedLock, backend: Backend, { content, key }: ObservedLock): void {
  const named = wanted.kind === "reference" ? wanted.reference.owner : undefined;
  if (named === undefined || content.kind !== "readable") return;
  const { hostname, pid } = content.owner;
  if (named.hostname === hostname && named.pid === pid) return;
  throw new JanitorError(
    "unlock-refused",
    `${formatIdentity(backend.identity)}: ${escapeUntrusted(key)} is of ${quoteUntrusted(hostname)} (pid ${pid}) now, not of ${quoteUntrusted(named.hostname)} (pid ${named.pid})`,
  );
}

/** Removes one lock if it is stale: a sweep over this lock alone, that refuses (exit code 4) where the sweep would keep it. */
export async function unlock(
  { opened, lock }: FoundLock,
  settings: Omit<SweepSettings, "selection" | "failOn">,
  parts: Omit<SweepParts, "backends">,
): Promise<SweepReport> {
  const only: WantedLock = { kind: "reference", reference: { key: lock.key } };
  const report = await sweep({ ...settings, failOn: [], selection: { projects: [], stacks: [], locks: [only] } }, { ...parts, backends: [opened] });
  const kept = report.locks.find(({ action, verdict }) => action === "keep" && verdict !== "stale");
  if (kept === undefined) return report;
  const refusal = `the lock is ${kept.verdict}, not stale, so it stays; if you know that its owner is gone, --force removes it all the same`;
  return { ...report, refusals: [...report.refusals, refusal], exitCode: report.exitCode === 0 ? 4 : report.exitCode };
}

/**
 * Removes one lock on a person's word alone, whatever the rules say of it: with the same record and the same conditional delete. Throws `unlock-refused` for
 * one whose body could not be read whole, since no record could hold it.
 */
export async function forceUnlock(
  { opened, lock }: FoundLock,
  settings: Omit<SweepSettings, "selection" | "failOn">,
  parts: Omit<SweepParts, "backends">,
): Promise<SweepReport> {
  const { backend, audit } = opened;
  const startedAt = parts.now();
  const signal = AbortSignal.any([parts.deadline, parts.stop]);
  const { content } = lock;
  if (content.kind === "unread" || (content.kind === "unreadable" && content.bytes === undefined))
    throw new JanitorError("unlock-refused", `${formatIdentity(backend.identity)}: ${escapeUntrusted(lock.key)} was not removed: ${content.problem}`, {
      hint: "Its record must hold the whole body. Remove it with the store's own tools.",
    });
  const { judgements, clusters } = await judgeLocks([{ backend, locks: [lock] }], { clusters: parts.clusters, rules: settings.rules, now: parts.now }, signal);
  const judgement = judgements.get(lock);
  if (judgement === undefined) throw new Error("a lock was left without a verdict");
  const { identity } = backend;
  const compose = (swept: SweptLock, overrides: SweepSettings["overrides"], refusals: readonly string[] = []): SweepReport =>
    composeReport({
      runId: parts.runId,
      dryRun: false,
      startedAt,
      finishedAt: parts.now(),
      overrides,
      backends: [{ name: formatIdentity(identity), identity, locks: [swept] }],
      clusters,
      selective: true,
      refusals,
      warnings: [],
      leftOut: 0,
      warnHeldAfter: settings.warnHeldAfter,
      cutShort: signal.aborted,
      timedOut: parts.deadline.aborted,
      failOn: [],
    });
  const { afterUnlock } = settings;
  const pending = afterUnlock?.checkPending === true ? { pending: await readPendingOperations(backend, lock.key, signal) } : {};
  const overrides = [{ option: "--force", value: "" }, ...settings.overrides];
  const answer: Answer = (await parts.confirm?.(compose({ lock, judgement, action: "would-delete", ...pending }, overrides))) ?? { kind: "yes", overrides: [] };
  if (answer.kind === "no")
    return compose({ lock, judgement, action: "keep", ...pending }, overrides, ["nothing was removed: the question was not answered with yes"]);
  const used = [...answer.overrides, ...overrides];
  const removal = await removeLock(backend, audit, lock, judgement, { ...parts, overrides: used });
  const removed = removal.action === "deleted" ? [{ backend: identity, lock, judgement, ...pending }] : [];
  // Of a cluster that was not asked for the verdict the Stacks are not known yet.
  const tellers = { clusters: parts.clusters, seen: new Map(), owners: settings.rules.owners, now: parts.now };
  const told = afterUnlock === undefined ? undefined : (await tellStacks(removed, afterUnlock, tellers)).get(lock);
  return compose({ lock, judgement, ...pending, ...removal, ...(told === undefined ? {} : { afterUnlock: told }) }, used);
}
