import type { BackendIdentity } from "../../src/core/backend-identity.ts";
import { formatTimestamp, truncateToSecond, type EpochNanoseconds } from "../../src/core/time.ts";
import type { Clock } from "./clock.ts";
import { seconds } from "./clock.ts";
import type { PulumiProcess } from "./process.ts";

/** A lock in a store, and who wrote it; nobody for one that is no lock. */
export interface StoredLock {
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly version: string;
  readonly storedAt: EpochNanoseconds;
  readonly writer: PulumiProcess | undefined;
}

/** How a store behaves. */
export interface StoreManners {
  /** Whether objects have a time, and whether answers have one. */
  readonly notesTimes: boolean;
  readonly tellsTime: boolean;
  /** By how much an object's time is later than the write, in seconds; less than nothing for earlier. */
  readonly late: number;
  /** Versions made from the content, as an ETag is: the same bytes written again have the same. */
  readonly versionsByContent: boolean;
  readonly concurrency: number;
}

/** How a lock left its store. */
export type Departure = "writer" | "person" | "janitor";

/** A bucket as it truly is; a janitor sees it through a `StoreView`. */
export class ModelStore {
  readonly bucket: string;
  readonly identity: BackendIdentity;
  readonly clock: Clock;
  readonly manners: StoreManners;
  readonly objects = new Map<string, StoredLock>();
  readonly records = new Map<string, Uint8Array>();
  readonly departures: { readonly lock: StoredLock; readonly by: Departure }[] = [];
  #versions = 0;

  constructor(bucket: string, clock: Clock, manners: StoreManners) {
    this.bucket = bucket;
    this.identity = { scheme: "gs", bucket, prefix: "" };
    this.clock = clock;
    this.manners = manners;
  }

  put(key: string, bytes: Uint8Array, writer: PulumiProcess | undefined): void {
    this.#versions += 1;
    const version = this.manners.versionsByContent ? Buffer.from(bytes).toString("base64") : `v${this.#versions}`;
    const storedAt = truncateToSecond(this.clock.read() + seconds(this.manners.late));
    this.objects.set(key, { key, bytes, version, storedAt, writer });
  }

  /** What pulumi writes, by its node's clock. */
  putLock(key: string, writer: PulumiProcess): void {
    const { pid, hostname, clock } = writer;
    const timestamp = formatTimestamp(clock.read());
    this.put(key, new TextEncoder().encode(JSON.stringify({ pid, username: "pulumi", hostname, timestamp })), writer);
  }

  /** Another lock in the folder of a stack, if any. */
  findOther(folder: string, key: string): StoredLock | undefined {
    for (const lock of this.objects.values()) if (lock.key !== key && lock.key.startsWith(folder)) return lock;
    return undefined;
  }

  removeByWriter(key: string): void {
    this.depart(key, "writer");
  }

  depart(key: string, by: Departure): StoredLock | undefined {
    const lock = this.objects.get(key);
    if (lock === undefined) return undefined;
    this.objects.delete(key);
    this.departures.push({ lock, by });
    return lock;
  }
}
