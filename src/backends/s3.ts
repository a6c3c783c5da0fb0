import { randomUUID } from "node:crypto";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";

import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
} from "@aws-sdk/client-s3";

import { formatIdentity, type BackendIdentity } from "../core/backend-identity.ts";
import { escapeKeyFor, LOCKS_FOLDER } from "../core/key.ts";
import { describeTooLarge, MAX_LOCK_BYTES, parseLockBody } from "../core/lock.ts";
import { fromMilliseconds, type EpochNanoseconds, type Nanoseconds } from "../core/time.ts";
import { JanitorError } from "../errors.ts";
import type { Backend, BackendOptions, Deletion, LockEntry, LockRead, StateRead, WriteCheck } from "./backend.ts";
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
import { isTransient, readFailure, wrapAwsError, type Action } from "./s3-errors.ts";
import { readS3Settings, type S3Settings } from "./s3-settings.ts";

const READ_TRIES = 3;

/** For tests: several pages of few objects, and an endpoint of one's own that enforces conditions as AWS does. */
export interface S3Tuning {
  readonly pageSize?: number;
  readonly enforcesConditions?: boolean;
}

/** Opens a bucket. No request is sent yet. Throws `backend-url-invalid`. */
export async function openS3({ url, env, requestTimeout, now }: BackendOptions, { pageSize = 1_000, enforcesConditions }: S3Tuning = {}): Promise<Backend> {
  const settings = readS3Settings(url, env);
  const config = await composeConfig(settings, env, requestTimeout);
  const reading = new S3Client({ ...config, maxAttempts: READ_TRIES });
  // A delete is sent once, and once more on purpose.
  const deleting = new S3Client({ ...config, maxAttempts: 1 });
  return new S3Backend(settings, { reading, deleting, pageSize, requestTimeout, now, ...(enforcesConditions === undefined ? {} : { enforcesConditions }) });
}

interface S3Parts {
  readonly reading: S3Client;
  readonly deleting: S3Client;
  readonly pageSize: number;
  readonly requestTimeout: number;
  readonly now: () => number;
  readonly enforcesConditions?: boolean;
}

class S3Backend implements Backend {
  readonly identity: BackendIdentity;
  readonly concurrency = 32;
  readonly credential: string;
  readonly #name: string;
  readonly #bucket: string;
  readonly #prefix: string;
  readonly #settings: S3Settings;
  readonly #parts: S3Parts;
  /**
   * AWS enforces If-Match on DELETE (https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-deletes.html). Many other servers ignore conditions, and delete
   * or overwrite whatever is there (minio/minio#21677), so there an object is compared right before. What counts is the host that requests really go to: an
   * endpoint may also come from a shared profile, which only the SDK reads.
   */
  get #enforcesConditions(): boolean {
    return this.#parts.enforcesConditions ?? /(^|\.)amazonaws\.com(\.cn)?$/.test(this.#host ?? "");
  }

  /** Of the latest request. */
  #host: string | undefined;
  #clockOffset: Nanoseconds | undefined;

  constructor(settings: S3Settings, parts: S3Parts) {
    const { bucket, prefix, endpoint } = settings;
    this.identity = { scheme: "s3", bucket, prefix, ...(endpoint === undefined ? {} : { endpoint: endpoint.replace(/^https?:\/\//, "") }) };
    this.credential = describeCredential(settings);
    this.#name = formatIdentity(this.identity);
    this.#bucket = bucket;
    this.#prefix = escapeKeyFor("s3", prefix);
    this.#settings = settings;
    this.#parts = parts;
    for (const client of [parts.reading, parts.deleting]) this.#watchRequests(client);
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
      return { kind: "found", version: read.etag, content, ...(read.storedAt === undefined ? {} : { storedAt: read.storedAt }) };
    });
  }

  async readState(key: string, mostBytes: number, signal: AbortSignal): Promise<StateRead> {
    return (await this.#download(key, mostBytes, "read a checkpoint", signal)) ?? { kind: "gone" };
  }

  async deleteLock(key: string, version: string): Promise<Deletion> {
    const enforced = this.#enforcesConditions;
    // Some servers answer a second delete as if it had removed what the first did: what is there is looked at before it.
    return await deleteUntilAnswered(
      (again) => (enforced && !again ? this.#tryDelete(key, version, enforced, true) : this.#deleteCompared(key, version, enforced, true)),
      this.#name,
    );
  }

  async createLock(key: string, body: Uint8Array): Promise<"created" | "exists"> {
    return await this.#create(key, body, "put a lock back");
  }

  /** A delete on an impossible condition, of an object that is not there: it tells the right, and harms no server that ignores the condition. */
  async checkWrites(): Promise<readonly WriteCheck[]> {
    const action = "remove locks";
    const note = "to try it would write a record";
    const recording: WriteCheck = { action: "write records", kind: "unknown", note };
    try {
      const command = new DeleteObjectCommand({ Bucket: this.#bucket, Key: `${this.#prefix}${LOCKS_FOLDER}check-${randomUUID()}.json`, IfMatch: '"0"' });
      await this.#within((options) => this.#parts.deleting.send(command, options));
      return [{ action, kind: "allowed", note: "tried on an object that is not there" }, recording];
    } catch (error) {
      const { status } = readFailure(error);
      if (status === 404 || status === 412) return [{ action, kind: "allowed", note: "tried on an object that is not there" }, recording];
      const wrapped = wrapAwsError(error, this.#name, "remove a lock");
      return [describeRefusedWrite(action, wrapped), recording];
    }
  }

  clockOffset(): Nanoseconds | undefined {
    return this.#clockOffset;
  }

  close(): Promise<void> {
    this.#parts.reading.destroy();
    this.#parts.deleting.destroy();
    return Promise.resolve();
  }

  async #tryDelete(key: string, version: string, enforced: boolean, conditional: boolean): Promise<Deletion | "unanswered"> {
    try {
      // Never a VersionId: in a versioned bucket this puts a delete marker over the current version.
      const command = new DeleteObjectCommand({ Bucket: this.#bucket, Key: this.#prefix + key, ...(conditional ? { IfMatch: `"${version}"` } : {}) });
      await this.#within((options) => this.#parts.deleting.send(command, options));
      return { kind: "deleted", conditionEnforced: enforced && conditional };
    } catch (error) {
      const failure = readFailure(error);
      if (failure.code === "NoSuchKey" || (failure.status === 404 && failure.code !== "NoSuchBucket")) return { kind: "vanished" };
      if (failure.status === 412) return (await this.#findEtag(key)) === undefined ? { kind: "vanished" } : { kind: "changed" };
      // 409 ConditionalRequestConflict: another request was at it; 501: the server knows no condition.
      if (failure.status === 409) return "unanswered";
      if (failure.status === 501 && conditional) return await this.#deleteCompared(key, version, false, false);
      if (isTransient(failure)) return "unanswered";
      throw wrapAwsError(error, this.#name, "remove a lock");
    }
  }

  /** Right after a comparison; without a condition for a server that refuses to take one. */
  async #deleteCompared(key: string, version: string, enforced: boolean, conditional: boolean): Promise<Deletion | "unanswered"> {
    const present = await this.#findEtag(key);
    if (present === undefined) return { kind: "vanished" };
    return present === version ? await this.#tryDelete(key, version, enforced, conditional) : { kind: "changed" };
  }

  async #findEtag(key: string): Promise<string | undefined> {
    try {
      const command = new HeadObjectCommand({ Bucket: this.#bucket, Key: this.#prefix + key });
      const { ETag: etag } = await this.#within((options) => this.#parts.reading.send(command, options));
      return normalizeEtag(etag);
    } catch (error) {
      const { status } = readFailure(error);
      if (status === 404) return undefined;
      throw wrapAwsError(error, this.#name, "read a lock");
    }
  }

  async #create(key: string, bytes: Uint8Array, action: Action): Promise<"created" | "exists"> {
    const { encryption, kmsKeyId } = this.#settings;
    // A server that ignores If-None-Match would overwrite.
    if (!this.#enforcesConditions && (await this.#findEtag(key)) !== undefined) return "exists";
    try {
      const command = new PutObjectCommand({
        Bucket: this.#bucket,
        Key: this.#prefix + key,
        Body: bytes,
        IfNoneMatch: "*",
        ContentType: "application/json",
        ...(encryption === undefined ? {} : { ServerSideEncryption: encryption }),
        ...(kmsKeyId === undefined ? {} : { SSEKMSKeyId: kmsKeyId }),
      });
      await this.#within((options) => this.#parts.reading.send(command, options));
      return "created";
    } catch (error) {
      const { status } = readFailure(error);
      if (status === 412 || status === 409) return "exists";
      throw wrapAwsError(error, this.#name, action);
    }
  }

  #list(folder: string, action: Action, signal: AbortSignal): AsyncGenerator<readonly LockEntry[]> {
    return listPages(this.#name, action, (token) => this.#listPage(folder, token, action, signal));
  }

  async #listPage(folder: string, token: string | undefined, action: Action, signal: AbortSignal): Promise<ListedPage> {
    try {
      const command = new ListObjectsV2Command({
        Bucket: this.#bucket,
        Prefix: this.#prefix + folder,
        MaxKeys: this.#parts.pageSize,
        // XML cannot hold every character of a key, so keys come encoded.
        EncodingType: "url",
        ...(token === undefined ? {} : { ContinuationToken: token }),
      });
      const page = await this.#within((options) => this.#parts.reading.send(command, options), signal);
      const decode = (key: string): string => (page.EncodingType === "url" ? decodeURIComponent(key.replaceAll("+", " ")) : key);
      const entries = (page.Contents ?? []).flatMap(({ Key: name, LastModified: at }): readonly LockEntry[] => {
        const key = decode(name ?? "").slice(this.#prefix.length);
        return key === "" || key.endsWith("/") ? [] : [{ key, ...(at === undefined ? {} : { storedAt: fromMilliseconds(at.getTime()) }) }];
      });
      if (page.IsTruncated === true && page.NextContinuationToken === undefined)
        throw new JanitorError("backend-listing-broken", `${this.#name}: could not ${action}: the listing was cut short without a way to go on`);
      return { entries, token: page.NextContinuationToken };
    } catch (error) {
      signal.throwIfAborted();
      throw wrapAwsError(error, this.#name, action);
    }
  }

  async #download(key: string, limit: number, action: Action, signal: AbortSignal): Promise<Downloaded | undefined> {
    try {
      const command = new GetObjectCommand({ Bucket: this.#bucket, Key: this.#prefix + key });
      return await this.#within(async (options) => {
        const response = await this.#parts.reading.send(command, options);
        const about = {
          etag: normalizeEtag(response.ETag),
          storedAt: response.LastModified === undefined ? undefined : fromMilliseconds(response.LastModified.getTime()),
        };
        return { ...about, ...(await takeBody(response.Body, response.ContentLength, limit)) };
      }, signal);
    } catch (error) {
      signal.throwIfAborted();
      const { code, status } = readFailure(error);
      if (code === "NoSuchKey" || (status === 404 && code !== "NoSuchBucket")) return undefined;
      throw wrapAwsError(error, this.#name, action);
    }
  }

  #watchRequests(client: S3Client): void {
    client.middlewareStack.add(
      (next) => async (sent) => {
        const { request }: { readonly request: unknown } = sent;
        if (typeof request === "object" && request !== null && "hostname" in request && typeof request.hostname === "string") this.#host = request.hostname;
        const result = await next(sent);
        const response: unknown = result.response;
        if (typeof response === "object" && response !== null && "headers" in response) this.#readClock(response.headers);
        return result;
      },
      { step: "deserialize", priority: "low", name: "watchRequests" },
    );
  }

  #readClock(headers: unknown): void {
    const date: unknown = typeof headers === "object" && headers !== null && "date" in headers ? headers.date : undefined;
    const at = typeof date === "string" ? Date.parse(date) : Number.NaN;
    if (!Number.isNaN(at)) this.#clockOffset = compareClocks(at, this.#parts.now());
  }

  async #within<Value>(send: (options: { readonly abortSignal: AbortSignal }) => Promise<Value>, signal?: AbortSignal): Promise<Value> {
    return await withinTime(this.#parts.requestTimeout, signal, (abortSignal) => send({ abortSignal }));
  }
}

type Downloaded = { readonly etag: string; readonly storedAt: EpochNanoseconds | undefined } & BodyRead;

async function composeConfig(settings: S3Settings, env: BackendOptions["env"], requestTimeout: number): Promise<S3ClientConfig> {
  const { endpoint, region, requestChecksums, responseChecksums, pathStyle, https, dualstack, fips, accelerate } = settings;
  // Node's own support of proxies (https://nodejs.org/api/http.html#built-in-proxy-support); the SDK has none.
  const agent = { keepAlive: true, maxSockets: 64, proxyEnv: { ...env } };
  return {
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
    tls: https,
    forcePathStyle: pathStyle,
    useDualstackEndpoint: dualstack,
    useFipsEndpoint: fips,
    useAccelerateEndpoint: accelerate,
    ...(requestChecksums === undefined ? {} : { requestChecksumCalculation: requestChecksums }),
    ...(responseChecksums === undefined ? {} : { responseChecksumValidation: responseChecksums }),
    requestHandler: {
      connectionTimeout: 5_000,
      requestTimeout,
      throwOnRequestTimeout: true,
      httpAgent: new HttpAgent(agent),
      httpsAgent: new HttpsAgent(agent),
    },
    ...(await chooseCredentials(settings, env)),
  };
}

/** Credentials of the backend's own environment, of a profile or a role; else the SDK's chain (shared files, IRSA, EKS Pod Identity, instance). */
async function chooseCredentials(
  { anonymous, profile, role, region }: S3Settings,
  env: BackendOptions["env"],
): Promise<Pick<S3ClientConfig, "credentials" | "signer" | "profile">> {
  if (anonymous) return { signer: { sign: (request) => Promise.resolve(request) }, credentials: { accessKeyId: "", secretAccessKey: "" } };
  const [accessKeyId, secretAccessKey, sessionToken] = [env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], env["AWS_SESSION_TOKEN"]];
  const keys =
    accessKeyId !== undefined && secretAccessKey !== undefined
      ? { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) }
      : undefined;
  // A profile says more than who: its region and its endpoint count beside the environment's keys.
  if (role === undefined) return { ...(profile === undefined ? {} : { profile }), ...(keys === undefined ? {} : { credentials: keys }) };
  const { fromTemporaryCredentials, fromNodeProviderChain } = await import("@aws-sdk/credential-providers");
  const master = keys ?? fromNodeProviderChain(profile === undefined ? {} : { profile });
  return {
    credentials: fromTemporaryCredentials({ masterCredentials: master, params: { RoleArn: role }, clientConfig: region === undefined ? {} : { region } }),
  };
}

function describeCredential({ anonymous, role, profile }: S3Settings): string {
  if (anonymous) return "nobody (anonymous)";
  if (role !== undefined) return `the role ${role}`;
  return profile === undefined ? "what AWS's own chain finds (variables, shared files, IRSA, Pod Identity, instance)" : `the profile ${profile}`;
}

function normalizeEtag(etag: string | undefined): string {
  return (etag ?? "").replaceAll('"', "");
}
