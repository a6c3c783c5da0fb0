import { Storage, type Bucket, type File } from "@google-cloud/storage";

import { formatIdentity, type BackendIdentity } from "../core/backend-identity.ts";
import { escapeKeyFor, LOCKS_FOLDER } from "../core/key.ts";
import { describeTooLarge, MAX_LOCK_BYTES, parseLockBody } from "../core/lock.ts";
import { parseTimestamp, type EpochNanoseconds, type Nanoseconds } from "../core/time.ts";
import type { Backend, BackendOptions, Deletion, LockEntry, LockRead, StateRead, WriteCheck } from "./backend.ts";
import {
  collectBytes,
  compareClocks,
  composeRecords,
  deleteUntilAnswered,
  describeRefusedWrite,
  listPages,
  MAX_RECORD_BYTES,
  readUnlessDenied,
  type BodyRead,
  type ListedPage,
} from "./driver.ts";
import { isTransient, readFailure, wrapGoogleError, type Action } from "./gcs-errors.ts";
import { readGcsSettings, type GcsSettings } from "./gcs-settings.ts";
import { openGoogleIdentity } from "./google-identity.ts";

/** How often a delete is sent when the service says "later", always on the same generation. */
const DELETE_TRIES = 3;

/** For tests: several pages of few objects, and an endpoint of one's own that enforces conditions as Google does. */
export interface GcsTuning {
  readonly pageSize?: number;
  readonly enforcesConditions?: boolean;
  /** In place of https://storage.googleapis.com; credentials go there. */
  readonly apiEndpoint?: string;
}

/** Opens a bucket. Throws `backend-url-invalid`, and `backend-denied` when there are no credentials. */
export async function openGcs(
  { url, env, requestTimeout, now }: BackendOptions,
  { pageSize = 1_000, enforcesConditions, apiEndpoint }: GcsTuning = {},
): Promise<Backend> {
  const settings = readGcsSettings(url, env);
  const { endpoint, bucket, prefix, universeDomain } = settings;
  const identity: BackendIdentity = { scheme: "gs", bucket, prefix, ...(endpoint === undefined ? {} : { endpoint: endpoint.replace(/^https?:\/\//, "") }) };
  // The SDK takes this variable from the process, whatever it is told, and needs a scheme in it, which Pulumi does not.
  delete process.env["STORAGE_EMULATOR_HOST"];
  const authClient = await openGoogleIdentity(settings, formatIdentity(identity));
  const open = (maxRetries: number): Bucket => {
    const storage = new Storage({
      authClient,
      // No project is ever needed for objects; without one the SDK would ask the metadata server.
      projectId: "none",
      timeout: requestTimeout,
      retryOptions: { maxRetries, autoRetry: maxRetries > 0, totalTimeout: requestTimeout / 1_000, maxRetryDelay: 2 },
      ...(endpoint === undefined ? {} : { apiEndpoint: endpoint }),
      ...(apiEndpoint === undefined ? {} : { apiEndpoint, useAuthWithCustomEndpoint: true }),
      ...(universeDomain === undefined ? {} : { universeDomain }),
    });
    return storage.bucket(bucket);
  };
  return new GcsBackend(identity, settings, {
    reading: open(2),
    deleting: open(0),
    pageSize,
    requestTimeout,
    now,
    enforcesConditions: enforcesConditions ?? endpoint === undefined,
  });
}

interface GcsParts {
  readonly reading: Bucket;
  readonly deleting: Bucket;
  readonly pageSize: number;
  readonly requestTimeout: number;
  readonly now: () => number;
  readonly enforcesConditions: boolean;
}

class GcsBackend implements Backend {
  readonly identity: BackendIdentity;
  readonly concurrency = 16;
  readonly credential: string;
  readonly #name: string;
  readonly #prefix: string;
  readonly #parts: GcsParts;
  #clockOffset: Nanoseconds | undefined;

  constructor(identity: BackendIdentity, { prefix, credential }: GcsSettings, parts: GcsParts) {
    this.identity = identity;
    this.credential = describeCredential(credential);
    this.#name = formatIdentity(identity);
    this.#prefix = escapeKeyFor("gs", prefix);
    this.#parts = parts;
  }

  readonly records = composeRecords({
    create: (key, bytes) => this.#create(key, bytes, "write a record"),
    list: (folder, signal) => this.#list(folder, "list the records", signal),
    read: async (key) => {
      const read = await this.#download(key, MAX_RECORD_BYTES, "read a record");
      return read?.kind === "whole" ? read.bytes : undefined;
    },
  });

  listLocks(signal: AbortSignal): AsyncGenerator<readonly LockEntry[]> {
    return this.#list(LOCKS_FOLDER, "list the locks", signal);
  }

  async readLock(key: string): Promise<LockRead> {
    return await readUnlessDenied(async () => {
      const read = await this.#download(key, MAX_LOCK_BYTES, "read a lock");
      if (read === undefined) return { kind: "gone" };
      const content = read.kind === "whole" ? parseLockBody(read.bytes) : describeTooLarge(read.size);
      // When it was stored the listing tells; a download's headers do not.
      return { kind: "found", version: read.generation, content };
    });
  }

  async readState(key: string, mostBytes: number): Promise<StateRead> {
    return (await this.#download(key, mostBytes, "read a checkpoint")) ?? { kind: "gone" };
  }

  async deleteLock(key: string, version: string): Promise<Deletion> {
    return await deleteUntilAnswered(() => this.#tryDelete(key, version), this.#name, DELETE_TRIES);
  }

  async createLock(key: string, body: Uint8Array): Promise<"created" | "exists"> {
    return await this.#create(key, body, "put a lock back");
  }

  /** A delete of a generation that never was is refused for its condition where it would be allowed. */
  async checkWrites(): Promise<readonly WriteCheck[]> {
    const recording: WriteCheck = { action: "write records", kind: "unknown", note: "to try it would write a record" };
    const action = "remove locks";
    try {
      await this.#within(this.#parts.deleting.file(`${this.#prefix}${LOCKS_FOLDER}check-of-pulumi-lock-janitor.json`).delete({ ifGenerationMatch: "1" }));
    } catch (error) {
      const { status } = readFailure(error);
      if (status !== 404 && status !== 412) {
        return [describeRefusedWrite(action, wrapGoogleError(error, this.#name, "remove a lock")), recording];
      }
    }
    return [{ action, kind: "allowed", note: "tried on an object that is not there" }, recording];
  }

  /** By the latest read: of any other answer the SDK hands out the body alone. */
  clockOffset(): Nanoseconds | undefined {
    return this.#clockOffset;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #tryDelete(key: string, version: string): Promise<Deletion | "unanswered"> {
    // An emulator may ignore the condition (fake-gcs-server does): the generation is compared right before.
    const { enforcesConditions } = this.#parts;
    if (!enforcesConditions) {
      const present = await this.#findGeneration(key);
      if (present !== version) return { kind: present === undefined ? "vanished" : "changed" };
    }
    try {
      await this.#within(this.#parts.deleting.file(this.#prefix + key).delete({ ifGenerationMatch: version }));
      return { kind: "deleted", conditionEnforced: enforcesConditions };
    } catch (error) {
      const failure = readFailure(error);
      if (failure.status === 404) return { kind: "vanished" };
      if (failure.status === 412) return { kind: (await this.#findGeneration(key)) === undefined ? "vanished" : "changed" };
      if (isTransient(failure)) return "unanswered";
      throw wrapGoogleError(error, this.#name, "remove a lock");
    }
  }

  async #findGeneration(key: string): Promise<string | undefined> {
    try {
      const [metadata] = await this.#within(this.#parts.reading.file(this.#prefix + key).getMetadata());
      return String(metadata.generation);
    } catch (error) {
      if (readFailure(error).status === 404) return undefined;
      throw wrapGoogleError(error, this.#name, "read a lock");
    }
  }

  async #create(key: string, bytes: Uint8Array, action: Action): Promise<"created" | "exists"> {
    try {
      await this.#within(
        this.#parts.reading
          .file(this.#prefix + key)
          .save(Buffer.from(bytes), { resumable: false, validation: false, contentType: "application/json", preconditionOpts: { ifGenerationMatch: 0 } }),
      );
      return "created";
    } catch (error) {
      if (readFailure(error).status === 412) return "exists";
      throw wrapGoogleError(error, this.#name, action);
    }
  }

  #list(folder: string, action: Action, signal: AbortSignal): AsyncGenerator<readonly LockEntry[]> {
    return listPages(this.#name, action, async (token) => {
      signal.throwIfAborted();
      return await this.#listPage(folder, token, action);
    });
  }

  async #listPage(folder: string, token: string | undefined, action: Action): Promise<ListedPage> {
    try {
      const [files, next] = await this.#within(
        this.#parts.reading.getFiles({
          prefix: this.#prefix + folder,
          maxResults: this.#parts.pageSize,
          autoPaginate: false,
          ...(token === undefined ? {} : { pageToken: token }),
        }),
      );
      const following: unknown = typeof next === "object" && next !== null && "pageToken" in next ? next.pageToken : undefined;
      const entries = files
        .filter(({ name }) => !name.endsWith("/"))
        .map((file): LockEntry => {
          const storedAt = readStoredAt(file);
          return { key: file.name.slice(this.#prefix.length), ...(storedAt === undefined ? {} : { storedAt }) };
        });
      return { entries, token: typeof following === "string" && following !== "" ? following : undefined };
    } catch (error) {
      throw wrapGoogleError(error, this.#name, action);
    }
  }

  async #download(key: string, limit: number, action: Action): Promise<Downloaded | undefined> {
    try {
      return await this.#within(this.#readStart(key, limit));
    } catch (error) {
      if (readFailure(error).status === 404) {
        if (await this.#bucketIsThere(action)) return undefined;
      }
      throw wrapGoogleError(error, this.#name, action);
    }
  }

  async #readStart(key: string, limit: number): Promise<Downloaded> {
    const file = this.#parts.reading.file(this.#prefix + key);
    const onHeaders = ({ date }: Headers): void => this.#readClock(date);
    try {
      return await readStream(file, { limit, end: limit, onHeaders });
    } catch (error) {
      // An empty object has no part that could be asked for.
      if (readFailure(error).status !== 416) throw error;
      return await readStream(file, { limit, onHeaders });
    }
  }

  #readClock(date: unknown): void {
    const at = typeof date === "string" ? Date.parse(date) : Number.NaN;
    if (!Number.isNaN(at)) this.#clockOffset = compareClocks(at, this.#parts.now());
  }

  /** The SDK's own time limits do not hold for a server that is silent, or one that cuts every connection. */
  async #within<Value>(work: Promise<Value>): Promise<Value> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, fail) => {
      timer = setTimeout(() => fail(Object.assign(new Error("the service did not answer in time"), { code: "ETIMEDOUT" })), this.#parts.requestTimeout);
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** An object that is not there and a bucket that is not there are both 404. */
  async #bucketIsThere(action: Action): Promise<boolean> {
    await this.#listPage(LOCKS_FOLDER, undefined, action);
    return true;
  }
}

/**
 * One request, for no more than one byte above the limit: the SDK sends a request again whose answer is not read to its end, and the next one then gets none. The generation comes in a header beside the content (https://cloud.google.com/storage/docs/xml-api/reference-headers#xgooggeneration). */
async function readStream(file: File, { limit, end, onHeaders }: StreamRead): Promise<Downloaded> {
  const stream = file.createReadStream({ validation: false, decompress: false, ...(end === undefined ? {} : { end }) });
  const headers = new Promise<Headers>((done, fail) => {
    stream.once("response", (response: { readonly headers: Headers }) => {
      onHeaders(response.headers);
      done({ ...response.headers });
    });
    stream.once("error", fail);
  });
  const bytes = await collectBytes(stream, limit);
  const { "x-goog-generation": generationHeader, "content-range": range } = await headers;
  const generation = String(generationHeader);
  const whole = /\/(\d+)$/.exec(String(range))?.[1];
  return bytes === undefined ? { kind: "too-large", size: whole === undefined ? limit + 1 : Number(whole), generation } : { kind: "whole", bytes, generation };
}

type Headers = Readonly<Record<string, unknown>>;

interface StreamRead {
  readonly limit: number;
  /** The last byte that is asked for; without it, all. */
  readonly end?: number;
  /** Told as soon as they come: their Date is of that moment, however long the body takes. */
  readonly onHeaders: (headers: Headers) => void;
}

type Downloaded = { readonly generation: string } & BodyRead;

/** `timeCreated`: `updated` changes with the metadata. */
function readStoredAt({ metadata }: File): EpochNanoseconds | undefined {
  return typeof metadata.timeCreated === "string" ? parseTimestamp(metadata.timeCreated) : undefined;
}

function describeCredential(credential: GcsSettings["credential"]): string {
  switch (credential.kind) {
    case "anonymous":
      return "nobody (anonymous)";
    case "json":
      return "the key in GOOGLE_CREDENTIALS";
    case "access-token":
      return "the token in GOOGLE_OAUTH_ACCESS_TOKEN";
    case "default":
      return "application default credentials";
  }
}
