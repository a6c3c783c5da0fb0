import { Readable } from "node:stream";

import type { Nanoseconds } from "../core/time.ts";
import { describeWithHint, JanitorError, type ErrorCode } from "../errors.ts";
import { RECORDS_FOLDER, type Deletion, type LockEntry, type LockRead, type RecordStore, type WriteCheck, type StateRead } from "./backend.ts";

/** What went wrong, in the words of one store. */
export interface FailureDescription {
  readonly code: ErrorCode;
  readonly problem: string;
  readonly hint?: string;
}

/** Makes the typed error of a failure, which names the backend and what was tried; one that is typed already stays as it is. */
export function composeBackendError(error: unknown, backend: string, action: string, describe: () => FailureDescription): JanitorError {
  if (error instanceof JanitorError) return error;
  const { code, problem, hint } = describe();
  return new JanitorError(code, `${backend}: could not ${action}: ${problem}`, { cause: error, ...(hint === undefined ? {} : { hint }) });
}

/** One page of a listing. */
export interface ListedPage {
  readonly entries: readonly LockEntry[];
  /** What the next page is asked for with; undefined on the last. */
  readonly token: string | undefined;
}

/** Takes the bytes of an answer, no more than `limit` of them: what a server says of their number is not relied on. Undefined where there are more. */
export async function collectBytes(chunks: AsyncIterable<unknown>, limit: number): Promise<Uint8Array | undefined> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    const bytes = chunk instanceof Uint8Array ? chunk : Buffer.from(String(chunk));
    size += bytes.length;
    // To leave the loop ends the stream.
    if (size > limit) return undefined;
    parts.push(bytes);
  }
  return new Uint8Array(Buffer.concat(parts));
}

/** The content of an object as read, whole or not at all; `size` is its length in bytes, or more than were allowed. */
export type BodyRead = Exclude<StateRead, { readonly kind: "gone" }>;

/** Takes an answer's body where it is no longer than `limit` bytes; `length` is what the server says of it. Throws TypeError for what is no stream. */
export async function takeBody(body: object | undefined, length: number | undefined, limit: number): Promise<BodyRead> {
  if (body === undefined) return { kind: "whole", bytes: new Uint8Array() };
  if (!(body instanceof Readable)) throw new TypeError("the answer's body is no stream");
  if (length !== undefined && length > limit) {
    body.destroy();
    return { kind: "too-large", size: length };
  }
  const bytes = await collectBytes(body, limit);
  return bytes === undefined ? { kind: "too-large", size: limit + 1 } : { kind: "whole", bytes };
}

/** Lists page by page. Throws `backend-listing-broken` where the store sends the same token again: such a list would never end, and may lack anything. */
export async function* listPages(
  backend: string,
  action: string,
  fetchPage: (token: string | undefined) => Promise<ListedPage>,
): AsyncGenerator<readonly LockEntry[]> {
  const seen = new Set<string>();
  let token: string | undefined;
  do {
    const page = await fetchPage(token);
    yield page.entries;
    token = page.token;
    if (token !== undefined && seen.has(token)) throw describeCircle(backend, action);
    if (token !== undefined) seen.add(token);
  } while (token !== undefined);
}

/** The error of a list that never ends. */
export function describeCircle(backend: string, action: string): JanitorError {
  return new JanitorError("backend-listing-broken", `${backend}: could not ${action}: the listing goes round in circles`, {
    hint: "Nothing is decided on a part of a list. Run again; if it stays so, the server or a proxy before it pages wrongly.",
  });
}

/** A record holds one lock of at most 64 KiB and what was seen; no honest one is larger than this, in bytes. */
export const MAX_RECORD_BYTES = 16 * 1_024 * 1_024;

/** How a store keeps objects, as far as records need it; keys are relative to the backend's prefix. */
export interface ObjectStore {
  readonly create: (key: string, bytes: Uint8Array) => Promise<"created" | "exists">;
  readonly list: (folder: string, signal: AbortSignal) => AsyncIterable<readonly LockEntry[]>;
  /** At most `MAX_RECORD_BYTES` of it; undefined when it is gone or larger. */
  readonly read: (key: string, signal: AbortSignal) => Promise<Uint8Array | undefined>;
}

/** The records of a store of objects: below `RECORDS_FOLDER`. */
export function composeRecords({ create, list, read }: ObjectStore): RecordStore {
  return {
    place: RECORDS_FOLDER,
    create: (name, bytes) => create(RECORDS_FOLDER + name, bytes),
    list: async (signal) => {
      const names: string[] = [];
      for await (const page of list(RECORDS_FOLDER, signal)) names.push(...page.map(({ key }) => key.slice(RECORDS_FOLDER.length)));
      return names;
    },
    read: (name, signal) => read(RECORDS_FOLDER + name, signal),
  };
}

/** What a write that was tried and refused tells of the right to it. */
export function describeRefusedWrite(action: WriteCheck["action"], error: JanitorError): WriteCheck {
  return { action, kind: error.code === "backend-denied" ? "denied" : "unknown", note: describeWithHint(error) };
}

/**
 * Sends a request with a signal that ends it after its time, in milliseconds, and with the sweep. Nothing of it outlives the request: AbortSignal.timeout would keep its timer, and all
 * that listens, for the whole time, and a backend may hold a hundred thousand locks.
 */
export async function withinTime<Value>(milliseconds: number, signal: AbortSignal | undefined, send: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new DOMException("The request took too long", "TimeoutError")), milliseconds);
  const stop = (): void => controller.abort(signal?.reason);
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await send(controller.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  }
}

/** Reads a lock; one that may not be read is a lock all the same, of which nothing is known. */
export async function readUnlessDenied(read: () => Promise<LockRead>): Promise<LockRead> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof JanitorError) || error.code !== "backend-denied") throw error;
    return { kind: "found", version: "", content: { kind: "unread", problem: describeWithHint(error) } };
  }
}

/**
 * Sends a conditional delete, and again on the same condition while nobody answers, `tries` times at most; `send` is told whether it was sent before. What
 * is gone then may be gone by an earlier one. Throws `backend-unreachable` when nobody answered at all, and for whatever goes wrong once a delete had no
 * answer: a refusal of what follows does not tell that the lock is still there.
 */
export async function deleteUntilAnswered(send: (again: boolean) => Promise<Deletion | "unanswered">, backend: string, tries = 2): Promise<Deletion> {
  const first = await send(false);
  if (first !== "unanswered") return first;
  for (let sent = 2; sent <= tries; sent += 1) {
    const next = await followUnanswered(() => send(true), backend);
    if (next !== "unanswered") return next.kind === "vanished" ? { kind: "deleted-unconfirmed" } : next;
  }
  throw composeUnknownDelete(backend, `the service did not answer ${tries === 2 ? "twice" : `${tries} times`}; it may have been removed`);
}

async function followUnanswered<Value>(follow: () => Promise<Value>, backend: string): Promise<Value> {
  try {
    return await follow();
  } catch (error) {
    throw composeUnknownDelete(backend, `the service did not answer, so it may have been removed; then ${describeWithHint(error)}`, error);
  }
}

/** The error after which a record stays open: the next run looks, and completes it. */
function composeUnknownDelete(backend: string, problem: string, cause?: unknown): JanitorError {
  return new JanitorError("backend-unreachable", `${backend}: could not remove a lock: ${problem}`, { cause, hint: "The next run tells." });
}

/** A store's clock less the janitor's, from the Date of an answer; both in milliseconds. A Date has whole seconds: a difference of less says nothing. */
export function compareClocks(date: number, now: number): Nanoseconds {
  const ahead = date - now;
  return BigInt(Math.trunc(ahead > 0 ? ahead : ahead < -1_000 ? ahead + 1_000 : 0)) * 1_000_000n;
}
