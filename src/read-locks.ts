import pLimit from "p-limit";

import type { Backend, LockEntry } from "./backends/backend.ts";
import type { ObservedLock } from "./core/lock.ts";
import { describeError } from "./errors.ts";

/** The locks that were asked for, and how many others there are. */
export interface ReadLocks {
  readonly locks: readonly ObservedLock[];
  readonly leftOut: number;
}

/**
 * Lists the locks of a backend and reads each that is selected. One that went away in between is left out; one that cannot be read stays, as such. A page is read while the
 * next one is listed, and no more of them than that wait at a time.
 */
export async function readLocks(backend: Backend, isSelected: (key: string) => boolean, signal: AbortSignal, onRead: () => void): Promise<ReadLocks> {
  const limit = pLimit(backend.concurrency);
  const locks: ObservedLock[] = [];
  let leftOut = 0;
  for await (const page of fetchAhead(backend.listLocks(signal))) {
    const selected = page.filter(({ key }) => isSelected(key));
    leftOut += page.length - selected.length;
    const read = await limit.map(selected, async (entry) => {
      const lock = await readLock(backend, entry, signal);
      onRead();
      return lock;
    });
    for (const lock of read) if (lock !== undefined) locks.push(lock);
  }
  return { locks, leftOut };
}

/** The same pages, each next one being asked for before the one at hand is looked at. */
async function* fetchAhead<Page>(pages: AsyncIterable<Page>): AsyncGenerator<Page> {
  const iterator = pages[Symbol.asyncIterator]();
  try {
    let next = iterator.next();
    for (;;) {
      const result = await next;
      if (result.done === true) return;
      next = iterator.next();
      // It is thrown when its turn comes.
      next.catch(() => undefined);
      yield result.value;
    }
  } finally {
    await iterator.return?.();
  }
}

/** Reads one lock; undefined when it is gone. */
export async function readLock(backend: Backend, entry: LockEntry, signal: AbortSignal): Promise<ObservedLock | undefined> {
  try {
    const read = await backend.readLock(entry.key, signal);
    if (read.kind === "gone") return undefined;
    const storedAt = read.storedAt ?? entry.storedAt;
    return { key: entry.key, version: read.version, content: read.content, ...(storedAt === undefined ? {} : { storedAt }) };
  } catch (error) {
    signal.throwIfAborted();
    return { key: entry.key, version: "", content: { kind: "unread", problem: describeError(error) } };
  }
}
