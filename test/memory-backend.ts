import type { Backend, Deletion, LockEntry, LockRead, RecordStore, WriteCheck } from "../src/backends/backend.ts";
import type { BackendIdentity } from "../src/core/backend-identity.ts";
import { parseLockBody } from "../src/core/lock.ts";
import type { EpochNanoseconds, Nanoseconds } from "../src/core/time.ts";

interface Stored {
  readonly bytes: Uint8Array;
  readonly version: string;
  readonly storedAt: EpochNanoseconds;
}

/** A backend in memory, with its own clock, that notes every call and can be told to do something before one. */
export class MemoryBackend implements Backend {
  readonly identity: BackendIdentity;
  readonly concurrency = 4;
  readonly credential = "nobody";
  readonly objects = new Map<string, Stored>();
  readonly recordObjects = new Map<string, Uint8Array>();
  /** Every call in order, as "delete .pulumi/locks/…". */
  readonly calls: string[] = [];
  /** Runs before each call; may change the store, or throw. */
  before: (call: string) => void = () => undefined;
  offset: Nanoseconds | undefined;
  #versions = 0;

  constructor(bucket = "state") {
    this.identity = { scheme: "gs", bucket, prefix: "" };
  }

  put(key: string, body: string | Uint8Array, storedAt: EpochNanoseconds): void {
    this.objects.set(key, { bytes: typeof body === "string" ? new TextEncoder().encode(body) : body, version: `v${++this.#versions}`, storedAt });
  }

  readonly records: RecordStore = {
    place: "memory/audit/",
    create: (name, bytes) => {
      this.#note(`record ${name}`);
      if (this.recordObjects.has(name)) return Promise.resolve("exists");
      this.recordObjects.set(name, bytes);
      return Promise.resolve("created");
    },
    list: () => {
      this.#note("list-records");
      return Promise.resolve(Array.from(this.recordObjects.keys()));
    },
    read: (name) => {
      this.#note(`read-record ${name}`);
      return Promise.resolve(this.recordObjects.get(name));
    },
  };

  // oxlint-disable-next-line eslint/require-await -- the interface is asynchronous, memory is not.
  async *listLocks(): AsyncGenerator<readonly LockEntry[]> {
    this.#note("list");
    yield Array.from(this.objects, ([key, { storedAt }]) => ({ key, storedAt }));
  }

  readLock(key: string): Promise<LockRead> {
    this.#note(`read ${key}`);
    const stored = this.objects.get(key);
    if (stored === undefined) return Promise.resolve({ kind: "gone" });
    return Promise.resolve({ kind: "found", version: stored.version, storedAt: stored.storedAt, content: parseLockBody(stored.bytes) });
  }

  deleteLock(key: string, version: string): Promise<Deletion> {
    this.#note(`delete ${key}`);
    const stored = this.objects.get(key);
    if (stored === undefined) return Promise.resolve({ kind: "vanished" });
    if (stored.version !== version) return Promise.resolve({ kind: "changed" });
    this.objects.delete(key);
    return Promise.resolve({ kind: "deleted", conditionEnforced: true });
  }

  createLock(key: string, body: Uint8Array): Promise<"created" | "exists"> {
    this.#note(`create ${key}`);
    if (this.objects.has(key)) return Promise.resolve("exists");
    this.put(key, body, 0n);
    return Promise.resolve("created");
  }

  checkWrites(): Promise<readonly WriteCheck[]> {
    return Promise.resolve([]);
  }

  clockOffset(): Nanoseconds | undefined {
    return this.offset;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #note(call: string): void {
    this.before(call);
    this.calls.push(call);
  }
}
