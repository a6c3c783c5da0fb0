import { LOCKS_FOLDER } from "./key.ts";

/** A lock as Pulumi names it in its own error, or as a person pastes it. */
export interface LockReference {
  /** The backend's URL as it was written, its query included; absent where only a key was. May hold what must not be shown. */
  readonly backendUrl?: string;
  /** Relative to the backend's prefix: `.pulumi/locks/…`. */
  readonly key: string;
  /** Who made it, where the text goes on as Pulumi's line does. */
  readonly owner?: { readonly username: string; readonly hostname: string; readonly pid: number };
}

/** A message of the operator is a few lines; what is longer is not searched to its end. */
const LONGEST_TEXT = 64 * 1_024;

/** What Pulumi writes behind the lock's URL (pkg/backend/diy/lock.go, `checkForLock`). */
const CREATED_BY = /^:? *created by ([^\n]{0,512})@([^\s@]{1,255}) \(pid (\d{1,10})\)/;

/**
 * Finds every lock that a text names: a key, a lock's URL, or Pulumi's line `<url>/.pulumi/locks/…/<uuid>.json: created by …`. Older versions of Pulumi glue the
 * path behind the URL's query, newer ones write the query last. The text may be a stranger's: nothing in it is believed.
 */
export function findLockReferences(text: string): readonly LockReference[] {
  const searched = text.slice(0, LONGEST_TEXT);
  return Array.from(searched.matchAll(/\S+/g)).flatMap(({ 0: word, index }) => {
    const at = word.indexOf(LOCKS_FOLDER);
    if (at === -1) return [];
    const [path = ""] = word.slice(at).split("?");
    const key = stripPunctuation(path);
    if (key.length <= LOCKS_FOLDER.length || key.endsWith("/")) return [];
    const [, backendUrl] = /([a-z][a-z0-9+.-]{0,20}:\/\/.*)$/.exec(word.slice(0, at)) ?? [];
    // A query that was written last belongs to the URL all the same.
    const query = path === word.slice(at) ? "" : stripPunctuation(word.slice(at + path.length));
    const [, username, hostname, pid] = CREATED_BY.exec(searched.slice(index + word.length, index + word.length + 1_024)) ?? [];
    return [
      {
        key,
        ...(backendUrl === undefined ? {} : { backendUrl: `${backendUrl.replace(/\/$/, "")}${query}` }),
        ...(username === undefined || hostname === undefined || pid === undefined ? {} : { owner: { username, hostname, pid: Number(pid) } }),
      },
    ];
  });
}

// All lengths are bounded: an unbounded pattern would take a hostile message's square.
function stripPunctuation(word: string): string {
  return word.replace(/[:,;.)\]"'`]{1,8}$/, "");
}
