import type { Backend, Deletion, LockEntry, LockRead, RecordStore, StateRead, WriteCheck } from "../src/backends/backend.ts";
import type { BackendIdentity } from "../src/core/backend-identity.ts";
import { parseLockBody } from "../src/core/lock.ts";
import type { EpochNanoseconds, Nanoseconds } from "../src/core/time.ts";

interface Stored {
  readonly bytes: Uint8Array;
  readonly version: string;
  /** Absent where the store tells no times. */
  readonly storedAt: EpochNanoseconds | undefined;
}

/** A backend in memory, with its own clock, that notes every call and can be told to do something before one. */
export class MemoryBackend implements Backend {
  readonly identity: BackendIdentity;
  readonly concurrency = 4;
  readonly credential = "nobody";
  readonly objects = new Map<string, Stored>();
  /** Checkpoints, by their keys. */
  readonly states = new Map<string, Uint8Array>();
  readonly recordObjects = new Map<string, Uint8Array>();
  /** Every call in order, as "delete .pulumi/locks/…". */
  readonly calls: string[] = [];
  /** Runs before each call; may change the store, or throw. */
  before: (call: string) => void | Promise<void> = () => undefined;
  offset: Nanoseconds | undefined = 0n;
  #versions = 0;

  constructor(bucket = "state") {
    this.identity = { scheme: "gs", bucket, prefix: "" };
  }

  put(key: string, body: string | Uint8Array, storedAt: EpochNanoseconds | undefined): void {
    this.objects.set(key, { bytes: typeof body === "string" ? new TextEncoder().encode(body) : body, version: `v${++this.#versions}`, storedAt });
  }

  readonly records: RecordStore = {
    place: "memory/audit/",
    create: async (name, bytes) => {
      await this.#note(`record ${name}`);
      if (this.recordObjects.has(name)) return "exists";
      this.recordObjects.set(name, bytes);
      return "created";
    },
    list: async () => {
      await this.#note("list-records");
      return Array.from(this.recordObjects.keys());
    },
    read: async (name) => {
      await this.#note(`read-record ${name}`);
      return this.recordObjects.get(name);
    },
  };

  async *listLocks(): AsyncGenerator<readonly LockEntry[]> {
    await this.#note("list");
    yield Array.from(this.objects, ([key, { storedAt }]) => ({ key, ...(storedAt === undefined ? {} : { storedAt }) }));
  }

  async readLock(key: string): Promise<LockRead> {
    await this.#note(`read ${key}`);
    const stored = this.objects.get(key);
    if (stored === undefined) return { kind: "gone" };
    const { bytes, version, storedAt } = stored;
    return { kind: "found", version, ...(storedAt === undefined ? {} : { storedAt }), content: parseLockBody(bytes) };
  }

  async readState(key: string, mostBytes: number): Promise<StateRead> {
    await this.#note(`state ${key}`);
    const bytes = this.states.get(key);
    if (bytes === undefined) return { kind: "gone" };
    return bytes.length > mostBytes ? { kind: "too-large", size: bytes.length } : { kind: "whole", bytes };
  }

  async deleteLock(key: string, version: string): Promise<Deletion> {
    await this.#note(`delete ${key}`);
    const stored = this.objects.get(key);
    if (stored === undefined) return { kind: "vanished" };
    if (stored.version !== version) return { kind: "changed" };
    this.objects.delete(key);
    return { kind: "deleted", conditionEnforced: true };
  }

  async createLock(key: string, body: Uint8Array): Promise<"created" | "exists"> {
    await this.#note(`create ${key}`);
    if (this.objects.has(key)) return "exists";
    this.put(key, body, 0n);
    return "created";
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

  async #note(call: string): Promise<void> {
    await this.before(call);
    this.calls.push(call);
  }
}
