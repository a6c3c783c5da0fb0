import { request } from "undici";

import type { Nanoseconds } from "../core/time.ts";
import { describeError, JanitorError } from "../errors.ts";
import { connect, type Connection } from "./connection.ts";
import type { ClusterAccess } from "./kubeconfig.ts";

/** What the API server answered to one read. `refused`: it said no, with its own reason word. */
export type ApiAnswer =
  | { readonly kind: "ok"; readonly body: unknown }
  | { readonly kind: "refused"; readonly status: number; readonly reason: string }
  | { readonly kind: "unreachable"; readonly problem: string };

export interface ApiClientOptions {
  readonly access: ClusterAccess;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Milliseconds. */
  readonly requestTimeout: number;
  readonly now: () => number;
}

/** Reads, and reviews that are not kept, of one cluster's API. Nothing is sent, not even the client loaded, before the first. */
export class ApiClient {
  readonly #options: ApiClientOptions;
  #connection: Promise<Connection> | undefined;
  #clockOffset: Nanoseconds | undefined;

  constructor(options: ApiClientOptions) {
    this.#options = options;
  }

  /** The API server's clock less the janitor's, by the latest answer's Date. */
  get clockOffset(): Nanoseconds | undefined {
    return this.#clockOffset;
  }

  /** Sends one GET. Throws only where the cluster is not configured, and when the signal aborts. */
  async get(path: string, query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ApiAnswer> {
    return await this.#send("GET", path, query, undefined, signal);
  }

  /** Sends one POST of a review, which the API server answers and does not keep. Throws as `get` does. */
  async post(path: string, review: object, signal: AbortSignal): Promise<ApiAnswer> {
    return await this.#send("POST", path, {}, JSON.stringify(review), signal);
  }

  async #send(
    method: "GET" | "POST",
    path: string,
    query: Readonly<Record<string, string>>,
    sent: string | undefined,
    signal: AbortSignal,
  ): Promise<ApiAnswer> {
    const { access, env, requestTimeout, now } = this.#options;
    this.#connection ??= connect(access, env);
    const { server, authorize, dispatcher } = await this.#connection;
    const url = `${server}${path}?${new URLSearchParams(query).toString()}`;
    try {
      const headers = { accept: "application/json", ...(sent === undefined ? {} : { "content-type": "application/json" }), ...(await authorize()) };
      const sentAt = now();
      const {
        statusCode,
        headers: answered,
        body,
      } = await request(url, {
        method,
        ...(sent === undefined ? {} : { body: sent }),
        headers,
        dispatcher,
        headersTimeout: requestTimeout,
        bodyTimeout: requestTimeout,
        signal,
      });
      this.#readClock(answered["date"], sentAt, now());
      if (statusCode === 200 || statusCode === 201) return { kind: "ok", body: await body.json() };
      return { kind: "refused", status: statusCode, reason: readReason(await body.text()) };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof JanitorError) throw error;
      return { kind: "unreachable", problem: describeFailure(error) };
    }
  }

  async close(): Promise<void> {
    if (this.#connection === undefined) return;
    try {
      await (await this.#connection).close();
    } catch {
      // It never was open.
    }
  }

  /** A Date has whole seconds: what the clocks differ by less than that, and by the request's own time, says nothing. */
  #readClock(date: string | string[] | undefined, sentAt: number, receivedAt: number): void {
    const at = typeof date === "string" ? Date.parse(date) : Number.NaN;
    if (Number.isNaN(at)) return;
    const earliest = at - receivedAt;
    const latest = at + 1_000 - sentAt;
    const offset = earliest > 0 ? earliest : latest < 0 ? latest : 0;
    this.#clockOffset = BigInt(Math.trunc(offset)) * 1_000_000n;
  }
}

/** The reason word of a Status object, "Forbidden" or "Expired"; its message is a stranger's text and is not used. */
function readReason(text: string): string {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === "object" && body !== null && "reason" in body && typeof body.reason === "string")
      return body.reason.replace(/[^A-Za-z]/g, "").slice(0, 40);
  } catch {
    // A proxy's page, not the API server's answer.
  }
  return "";
}

function describeFailure(error: unknown): string {
  const causes: unknown[] = [error];
  for (let cause = error; cause instanceof Error && cause.cause !== undefined; cause = cause.cause) causes.push(cause.cause);
  const code = causes.flatMap((cause) => (cause instanceof Error && "code" in cause && typeof cause.code === "string" ? [cause.code] : []))[0];
  switch (code) {
    case "ECONNREFUSED":
      return "nothing listens at the API server's address";
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "the API server's name could not be resolved";
    case "UND_ERR_HEADERS_TIMEOUT":
    case "UND_ERR_BODY_TIMEOUT":
    case "UND_ERR_CONNECT_TIMEOUT":
      return "the API server did not answer in time";
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
    case "SELF_SIGNED_CERT_IN_CHAIN":
    case "UNABLE_TO_VERIFY_LEAF_SIGNATURE":
    case "UNABLE_TO_GET_ISSUER_CERT_LOCALLY":
      return "the API server's certificate is not of the configured authority";
    case undefined:
    default:
      return `the request failed (${code ?? describeError(error).slice(0, 120)})`;
  }
}
