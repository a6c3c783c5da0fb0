import pLimit from "p-limit";

import type { Backend, LockEntry } from "./backends/backend.ts";
import type { ObservedLock } from "./core/lock.ts";
import { describeError } from "./errors.ts";

/** The locks that were asked for, and how many others there are. */
export interface ReadLocks {
  readonly locks: readonly ObservedLock[];
  readonly leftOut: number;
}

/** Lists the locks of a backend and reads each that is selected. One that went away in between is left out; one that cannot be read stays, as such. */
export async function readLocks(backend: Backend, isSelected: (key: string) => boolean, signal: AbortSignal, onRead: () => void): Promise<ReadLocks> {
  const limit = pLimit(backend.concurrency);
  const reading: Promise<ObservedLock | undefined>[] = [];
  let leftOut = 0;
  for await (const page of backend.listLocks(signal)) {
    for (const entry of page) {
      if (!isSelected(entry.key)) {
        leftOut += 1;
        continue;
      }
      reading.push(
        limit(async () => {
          const lock = await readLock(backend, entry, signal);
          onRead();
          return lock;
        }),
      );
    }
  }
  return { locks: (await Promise.all(reading)).filter((lock) => lock !== undefined), leftOut };
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
