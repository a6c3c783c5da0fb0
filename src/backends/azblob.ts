import { randomUUID } from "node:crypto";

import {
  ContainerClient,
  type BlockBlobClient,
  StorageSharedKeyCredential,
  type BlobItem,
  type ContainerListBlobFlatSegmentResponse,
  type StoragePipelineOptions,
} from "@azure/storage-blob";

import { formatIdentity, type BackendIdentity } from "../core/backend-identity.ts";
import { escapeKeyFor, LOCKS_FOLDER } from "../core/key.ts";
import { describeTooLarge, MAX_LOCK_BYTES, parseLockBody } from "../core/lock.ts";
import { fromMilliseconds, type Nanoseconds } from "../core/time.ts";
import { JanitorError } from "../errors.ts";
import { isTransient, readFailure, wrapAzureError, type Action } from "./azblob-errors.ts";
import { readAzblobSettings, type AzblobCredential, type AzblobSettings } from "./azblob-settings.ts";
import { RECORDS_FOLDER, type Backend, type BackendOptions, type Deletion, type LockEntry, type LockRead, type StateRead, type WriteCheck } from "./backend.ts";
import {
  compareClocks,
  composeRecords,
  deleteUntilAnswered,
  describeRefusedWrite,
  listPages,
  MAX_RECORD_BYTES,
  readUnlessDenied,
  takeBody,
  type BodyRead,
  withinTime,
  type ListedPage,
} from "./driver.ts";

/** Tries of a read; a delete is sent once, and once more on purpose. */
const READ_TRIES = 3;

/** For tests that need several pages of few blobs. */
export interface AzblobTuning {
  readonly pageSize?: number;
}

/** Opens a container. No request is sent yet. Throws `backend-url-invalid`. */
export async function openAzblob({ url, env, requestTimeout, now }: BackendOptions, { pageSize = 5_000 }: AzblobTuning = {}): Promise<Backend> {
  const settings = readAzblobSettings(url, env);
  const reading = await openContainer(settings, env, READ_TRIES);
  const deleting = await openContainer(settings, env, 1);
  return new AzblobBackend(settings, { reading, deleting, requestTimeout, pageSize, now });
}

interface AzblobParts {
  readonly reading: ContainerClient;
  readonly deleting: ContainerClient;
  readonly requestTimeout: number;
  readonly pageSize: number;
  readonly now: () => number;
}

class AzblobBackend implements Backend {
  readonly identity: BackendIdentity;
  readonly concurrency = 16;
  readonly credential: string;
  readonly #name: string;
  readonly #prefix: string;
  readonly #parts: AzblobParts;
  #clockOffset: Nanoseconds | undefined;

  constructor({ account, container, prefix, credential }: AzblobSettings, parts: AzblobParts) {
    this.identity = { scheme: "azblob", account, container, prefix };
    this.#name = formatIdentity(this.identity);
    this.#prefix = escapeKeyFor("azblob", prefix);
    this.#parts = parts;
    this.credential = describeCredential(credential);
  }

  readonly records = composeRecords({
    create: (key, bytes) => this.#create(key, bytes, "write a record"),
    list: (folder, signal) => this.#list(folder, "list the records", signal),
    read: async (key, signal) => {
      const read = await this.#download(key, MAX_RECORD_BYTES, "read a record", signal);
      return read?.kind === "whole" ? read.bytes : undefined;
    },
  });

  listLocks(signal: AbortSignal): AsyncGenerator<readonly LockEntry[]> {
    return this.#list(LOCKS_FOLDER, "list the locks", signal);
  }

  async readLock(key: string, signal: AbortSignal): Promise<LockRead> {
    return await readUnlessDenied(async () => {
      const read = await this.#download(key, MAX_LOCK_BYTES, "read a lock", signal);
      if (read === undefined) return { kind: "gone" };
      const content = read.kind === "whole" ? parseLockBody(read.bytes) : describeTooLarge(read.size);
      return {
        kind: "found",
        version: read.etag,
        content,
        ...(read.modifiedAt === undefined ? {} : { storedAt: fromMilliseconds(read.modifiedAt.getTime()) }),
      };
    });
  }

  async readState(key: string, mostBytes: number, signal: AbortSignal): Promise<StateRead> {
    return (await this.#download(key, mostBytes, "read a checkpoint", signal)) ?? { kind: "gone" };
  }

  async deleteLock(key: string, version: string): Promise<Deletion> {
    return await deleteUntilAnswered(() => this.#tryDelete(key, version), this.#name);
  }

  async createLock(key: string, body: Uint8Array): Promise<"created" | "exists"> {
    return await this.#create(key, body, "put a lock back");
  }

  /** A conditional write that cannot come true is refused for its condition where it would be allowed, and for its right where not. */
  async checkWrites(): Promise<readonly WriteCheck[]> {
    const name = `check-${randomUUID()}.json`;
    const blob = (folder: string): BlockBlobClient => this.#parts.deleting.getBlockBlobClient(this.#prefix + folder + name);
    const conditions = { ifMatch: '"0x0"' };
    return [
      await this.#check("remove locks", "remove a lock", () => this.#within((abortSignal) => blob(LOCKS_FOLDER).delete({ conditions, abortSignal }))),
      await this.#check("write records", "write a record", () =>
        this.#within((abortSignal) => blob(RECORDS_FOLDER).upload("", 0, { conditions, abortSignal })),
      ),
    ];
  }

  async #check(action: WriteCheck["action"], tried: Action, attempt: () => Promise<unknown>): Promise<WriteCheck> {
    try {
      await attempt();
      return { action, kind: "unknown", note: "the service did not mind an impossible condition" };
    } catch (error) {
      const { status } = readFailure(error);
      if (status === 404 || status === 412) return { action, kind: "allowed", note: "a request that could not come true was refused for its condition only" };
      const wrapped = wrapAzureError(error, this.#name, tried);
      return describeRefusedWrite(action, wrapped);
    }
  }

  clockOffset(): Nanoseconds | undefined {
    return this.#clockOffset;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #tryDelete(key: string, version: string): Promise<Deletion | "unanswered"> {
    try {
      const conditions = { ifMatch: `"${version}"` };
      await this.#within((abortSignal) => this.#parts.deleting.getBlobClient(this.#prefix + key).delete({ conditions, abortSignal }));
      return { kind: "deleted", conditionEnforced: true };
    } catch (error) {
      const failure = readFailure(error);
      if (failure.code === "BlobNotFound" || (failure.status === 404 && failure.code !== "ContainerNotFound")) return { kind: "vanished" };
      if (failure.code === "ConditionNotMet" || (failure.status === 412 && failure.code === "")) return await this.#resolveConditionNotMet(key, version);
      if (isTransient(failure)) return "unanswered";
      throw wrapAzureError(error, this.#name, "remove a lock");
    }
  }

  /** A condition is not met by another version, and by none at all: only a read tells them apart. */
  async #resolveConditionNotMet(key: string, version: string): Promise<Deletion> {
    const present = await this.#download(key, MAX_LOCK_BYTES, "read a lock");
    if (present === undefined) return { kind: "vanished" };
    if (present.etag !== version) return { kind: "changed" };
    throw new JanitorError("backend-failed", `${this.#name}: could not remove a lock: the service says that it changed, and that it did not`, {
      hint: "The lock stays. Run again: what is there then is judged anew.",
    });
  }

  async #create(key: string, bytes: Uint8Array, action: Action): Promise<"created" | "exists"> {
    try {
      const conditions = { ifNoneMatch: "*" };
      const blob = this.#parts.reading.getBlockBlobClient(this.#prefix + key);
      await this.#within((abortSignal) => blob.upload(bytes, bytes.length, { conditions, abortSignal }));
      return "created";
    } catch (error) {
      const { code, status } = readFailure(error);
      if (code === "BlobAlreadyExists" || code === "ConditionNotMet" || status === 412) return "exists";
      throw wrapAzureError(error, this.#name, action);
    }
  }

  #list(folder: string, action: Action, signal: AbortSignal): AsyncGenerator<readonly LockEntry[]> {
    return listPages(this.#name, action, (token) => this.#listPage(folder, token, action, signal));
  }

  async #listPage(folder: string, token: string | undefined, action: Action, signal: AbortSignal): Promise<ListedPage> {
    const prefix = this.#prefix + folder;
    try {
      // With a hierarchical namespace folders are listed too, told by their metadata only.
      const settings = { maxPageSize: this.#parts.pageSize, ...(token === undefined ? {} : { continuationToken: token }) };
      const next = await this.#within(
        (abortSignal) => this.#parts.reading.listBlobsFlat({ prefix, includeMetadata: true, abortSignal }).byPage(settings).next(),
        signal,
      );
      if (next.done === true) return { entries: [], token: undefined };
      const page: ContainerListBlobFlatSegmentResponse = next.value;
      this.#readClock(page.date);
      const marker = page.continuationToken;
      const entries = page.segment.blobItems
        .filter((item) => !isFolder(item))
        .map(({ name, properties }) => ({ key: name.slice(this.#prefix.length), storedAt: fromMilliseconds(properties.lastModified.getTime()) }));
      return { entries, token: marker === undefined || marker === "" ? undefined : marker };
    } catch (error) {
      signal.throwIfAborted();
      throw wrapAzureError(error, this.#name, action);
    }
  }

  async #download(key: string, limit: number, action: Action, signal?: AbortSignal): Promise<Downloaded | undefined> {
    try {
      return await this.#within(async (abortSignal) => {
        const response = await this.#parts.reading.getBlobClient(this.#prefix + key).download(undefined, undefined, { abortSignal });
        this.#readClock(response.date);
        const about = { etag: normalizeEtag(response.etag), modifiedAt: response.lastModified };
        return { ...about, ...(await takeBody(response.readableStreamBody, response.contentLength, limit)) };
      }, signal);
    } catch (error) {
      signal?.throwIfAborted();
      const { code, status } = readFailure(error);
      if (code === "BlobNotFound" || (status === 404 && code !== "ContainerNotFound")) return undefined;
      throw wrapAzureError(error, this.#name, action);
    }
  }

  #readClock(date: Date | undefined): void {
    if (date !== undefined) this.#clockOffset = compareClocks(date.getTime(), this.#parts.now());
  }

  async #within<Value>(send: (abortSignal: AbortSignal) => Promise<Value>, signal?: AbortSignal): Promise<Value> {
    return await withinTime(this.#parts.requestTimeout, signal, send);
  }
}

type Downloaded = { readonly etag: string; readonly modifiedAt: Date | undefined } & BodyRead;

async function openContainer({ serviceUrl, container, credential }: AzblobSettings, env: BackendOptions["env"], maxTries: number): Promise<ContainerClient> {
  const options: StoragePipelineOptions = { retryOptions: { maxTries, retryDelayInMs: 200, maxRetryDelayInMs: 4_000 } };
  const url = `${serviceUrl}/${container}`;
  switch (credential.kind) {
    case "shared-key":
      return new ContainerClient(url, new StorageSharedKeyCredential(credential.account, credential.key), options);
    case "sas":
      return new ContainerClient(`${url}?${credential.token}`, undefined, options);
    case "connection-string":
      return openByConnectionString(credential, container, options);
    case "identity":
      return new ContainerClient(url, (await import("./azure-identity.ts")).openIdentity(env), options);
  }
}

function openByConnectionString(
  { text }: Extract<AzblobCredential, { kind: "connection-string" }>,
  container: string,
  options: StoragePipelineOptions,
): ContainerClient {
  try {
    return new ContainerClient(text, container, options);
  } catch (error) {
    // The SDK's message may repeat the string, which holds the key.
    throw new JanitorError("backend-url-invalid", "the connection string in AZURE_STORAGE_CONNECTION_STRING cannot be read", {
      cause: error instanceof Error ? error.name : undefined,
    });
  }
}

function describeCredential(credential: AzblobCredential): string {
  switch (credential.kind) {
    case "shared-key":
      return `the key of account ${credential.account}`;
    case "sas": {
      const parameters = new URLSearchParams(credential.token);
      return `a SAS token (permissions ${parameters.get("sp") ?? "unknown"}, expires ${parameters.get("se") ?? "unknown"})`;
    }
    case "connection-string":
      return "a connection string";
    case "identity":
      return "an identity (service principal, workload identity, managed identity or az login)";
  }
}

function isFolder({ name, metadata, properties }: BlobItem): boolean {
  return name.endsWith("/") || metadata?.["hdi_isfolder"] === "true" || ("resourceType" in properties && properties.resourceType === "directory");
}

/** A listing has an ETag without quotes, an answer's header with. */
function normalizeEtag(etag: string | undefined): string {
  return (etag ?? "").replace(/^W\//, "").replaceAll('"', "");
}
