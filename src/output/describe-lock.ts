import type { ReportedLock, Summary } from "../core/report.ts";
import { escapeUntrusted } from "../core/text.ts";
import { formatSeconds } from "../core/time.ts";

/** What became of a lock, in words. */
export const ACTION_WORDS: Readonly<Record<ReportedLock["action"], string>> = {
  keep: "kept",
  "would-delete": "would be removed",
  deleted: "removed",
  "deleted-unconfirmed": "removed (unconfirmed)",
  vanished: "was gone already",
  changed: "kept: it changed",
  failed: "FAILED",
};

/** The stack that a lock is of; its key where that names none. */
export function describeStack({ stack, key }: Pick<ReportedLock, "stack" | "key">): string {
  return escapeUntrusted(stack === "" ? key : stack);
}

/** Who made a lock; the file's name where that cannot be read. */
export function describeOwner({ owner, key }: Pick<ReportedLock, "owner" | "key">): string {
  if (owner === undefined) return escapeUntrusted(key.slice(key.lastIndexOf("/") + 1));
  return escapeUntrusted(`${owner.username}@${owner.hostname} (pid ${owner.pid})`);
}

/** How old a lock is. */
export function describeAge({ ageSeconds }: Pick<ReportedLock, "ageSeconds">): string {
  return ageSeconds === undefined ? "?" : formatSeconds(ageSeconds);
}

const VERDICTS = ["stale", "held", "foreign", "too-young", "unreadable", "undetermined"] as const;

/** How many locks have which verdict, as "2 stale", what matters first; verdicts that none has are left out. */
export function countVerdicts(summary: Summary): readonly { readonly verdict: ReportedLock["verdict"]; readonly words: string }[] {
  return VERDICTS.filter((verdict) => summary[verdict] > 0).map((verdict) => ({ verdict, words: `${summary[verdict]} ${verdict}` }));
}
