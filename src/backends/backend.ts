import type { BackendIdentity } from "../core/backend-identity.ts";
import type { LockContent } from "../core/lock.ts";
import type { EpochNanoseconds, Nanoseconds } from "../core/time.ts";

/** One object below `.pulumi/locks/`, as the store lists it. Its key is relative to the backend's prefix and as the store spells it. */
export interface LockEntry {
  readonly key: string;
  readonly storedAt?: EpochNanoseconds;
}

/** A lock as read: its content and the version that a delete of exactly this object must carry. */
export type LockRead =
  | { readonly kind: "found"; readonly version: string; readonly storedAt?: EpochNanoseconds; readonly content: LockContent }
  | { readonly kind: "gone" };

/** A part of Pulumi's state as read, whole or not at all; `size` is its length in bytes, or how many of them were seen. */
export type StateRead =
  | { readonly kind: "whole"; readonly bytes: Uint8Array }
  | { readonly kind: "too-large"; readonly size: number }
  | { readonly kind: "gone" };

/**
 * What became of a conditional delete. `vanished`: the lock was gone already. `changed`: another version is there, and stays.
 * `deleted-unconfirmed`: a delete was sent again after a failure and met no lock, so the first may have removed it.
 */
export type Deletion =
  | { readonly kind: "deleted"; readonly conditionEnforced: boolean }
  | { readonly kind: "deleted-unconfirmed" }
  | { readonly kind: "vanished" }
  | { readonly kind: "changed" };

/** A lock that a crashed run had moved out of its place (only the `file` backend has to), and what was made of it. */
export interface Recovered {
  readonly key: string;
  readonly action: "deleted" | "put-back" | "left-aside";
}

/**
 * A store of Pulumi state, reduced to what the janitor may do there. There is no unconditional delete. Every method throws a
 * `JanitorError` that names the backend, the action and, where it was denied, the missing permission; a list that was denied
 * or cut short throws and is never empty. Keys are relative to the prefix.
 */
export interface Backend {
  readonly identity: BackendIdentity;
  /** How many requests may be under way at once. */
  readonly concurrency: number;
  readonly records: RecordStore;
  /** As whom requests are sent, for a person: never a secret. */
  readonly credential: string;
  /** Every object below `.pulumi/locks/`, page by page, but folder markers (and `.attrs` of the `file` backend). */
  listLocks(signal: AbortSignal): AsyncIterable<readonly LockEntry[]>;
  /** Reads one lock, at most `MAX_LOCK_BYTES` of it. A refusal to read it is content of kind `unread`. */
  readLock(key: string, signal: AbortSignal): Promise<LockRead>;
  /** Reads one object below `.pulumi/stacks/`, at most `mostBytes` of it. */
  readState(key: string, mostBytes: number, signal: AbortSignal): Promise<StateRead>;
  /** Removes the lock only if it is still the version that was read. */
  deleteLock(key: string, version: string): Promise<Deletion>;
  /** Puts a lock back, only if nothing is there. */
  createLock(key: string, body: Uint8Array): Promise<"created" | "exists">;
  /** Tries whether locks may be removed and records written, without doing either. */
  checkWrites(): Promise<readonly WriteCheck[]>;
  /** The store's clock less the janitor's, from the latest response; undefined where the store tells no time. */
  clockOffset(): Nanoseconds | undefined;
  /** Ends what a crashed run left half done: a lock aside whose very version has an intent is removed, any other is put back. */
  recover?(hasIntent: (key: string, version: string) => boolean): Promise<readonly Recovered[]>;
  close(): Promise<void>;
}

/** Whether something that writes would be allowed. `unknown`: it cannot be told without doing it. */
export interface WriteCheck {
  readonly action: "remove locks" | "write records";
  readonly kind: "allowed" | "denied" | "unknown";
  readonly note: string;
}

/** The audit log inside a backend: `.pulumi-lock-janitor/audit/` beside `.pulumi`, one object per event, created only if absent. */
export interface RecordStore {
  /** Where it is, for a person. */
  readonly place: string;
  /** Durable when it resolves. */
  create(name: string, bytes: Uint8Array): Promise<"created" | "exists">;
  /** The names of all records, in no particular order. */
  list(signal: AbortSignal): Promise<readonly string[]>;
  read(name: string, signal: AbortSignal): Promise<Uint8Array | undefined>;
}

/** The folder of the records, relative to the backend's prefix. */
export const RECORDS_FOLDER = ".pulumi-lock-janitor/audit/";

/** What a backend is opened with. */
export interface BackendOptions {
  readonly url: string;
  /** The environment whose credentials it uses: the process's, or the one of its entry in the configuration file. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** How long one request may take, in milliseconds. */
  readonly requestTimeout: number;
  /** The janitor's clock, in milliseconds since the epoch. */
  readonly now: () => number;
}
