import { createInterface } from "node:readline";

import type { Nanoseconds } from "../core/time.ts";
import { JanitorError, systemCode, systemCodeOfCause } from "../errors.ts";
import type { ApiRequest, Connection } from "./connection.ts";
import type { ClusterAccess } from "./kubeconfig.ts";
import { collectOutput, EXEC_PROTOCOLS, type CommandAnswer, type CommandRequest } from "./run-command.ts";

/** What the API server answered to one read. `refused`: it said no, with its own reason word. */
export type ApiAnswer =
  | { readonly kind: "ok"; readonly body: unknown }
  | { readonly kind: "refused"; readonly status: number; readonly reason: string }
  | { readonly kind: "unreachable"; readonly problem: string };

/** What the API server answered to a watch. */
export type FollowAnswer = Exclude<ApiAnswer, { kind: "ok" }> | { readonly kind: "ok"; readonly lines: AsyncIterable<string> };

export interface ApiClientOptions {
  readonly access: ClusterAccess;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Milliseconds. */
  readonly requestTimeout: number;
  /** The longest wait for credentials, in milliseconds; `requestTimeout` when absent. */
  readonly credentialTimeout?: number;
  readonly now: () => number;
}

/** Milliseconds between two attempts to get better credentials, while none are accepted. */
const RENEWAL_PAUSE = 15_000;

/** Reads of one cluster's API, reviews that are not kept, and the few writes that come after a removal. Nothing is sent, not even the client loaded, before the first. */
export class ApiClient {
  readonly #options: ApiClientOptions;
  #connection: Promise<Connection> | undefined;
  #clockOffset: Nanoseconds | undefined;
  /** Whether the credentials were accepted by the latest answer that tells. */
  #accepted = false;
  /** When the credentials were last read from their beginning. */
  #renewedAt = 0;

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

  /**
   * Follows a watch: the lines of the answer as they come, until the API server or the signal ends it. A watch sends bookmarks about once a minute, so a longer `silence`
   * (milliseconds) is a connection that is dead. Throws as `get` does.
   */
  async follow(path: string, query: Readonly<Record<string, string>>, silence: number, signal: AbortSignal): Promise<FollowAnswer> {
    const apiRequest: ApiRequest = {
      method: "GET",
      path: `${path}?${new URLSearchParams(query).toString()}`,
      timeout: this.#options.requestTimeout,
      silence,
      signal,
    };
    return await this.#renewIfRefused((connection) => this.#followOnce(connection, apiRequest));
  }

  async #followOnce(connection: Connection, apiRequest: ApiRequest): Promise<FollowAnswer> {
    try {
      const { statusCode, body } = await connection.send(apiRequest);
      this.#accepted = statusCode !== 401;
      if (statusCode === 200) return { kind: "ok", lines: createInterface({ input: body, crlfDelay: Infinity }) };
      return { kind: "refused", status: statusCode, reason: readReason(await body.text()) };
    } catch (error) {
      apiRequest.signal.throwIfAborted();
      if (error instanceof JanitorError) throw error;
      return { kind: "unreachable", problem: describeFailure(error) };
    }
  }

  /** Sends one POST of a review, which the API server answers and does not keep. Throws as `get` does. */
  async post(path: string, review: object, signal: AbortSignal): Promise<ApiAnswer> {
    return await this.#send("POST", path, {}, JSON.stringify(review), signal);
  }

  /** Sends one POST of an object that the API server keeps. Throws as `get` does. */
  async create(path: string, object: object, signal: AbortSignal): Promise<ApiAnswer> {
    return await this.#send("POST", path, {}, JSON.stringify(object), signal);
  }

  /** Sends one merge patch: what it does not name stays as it is (RFC 7396). Throws as `get` does. */
  async patch(path: string, query: Readonly<Record<string, string>>, change: object, signal: AbortSignal): Promise<ApiAnswer> {
    return await this.#send("PATCH", path, query, JSON.stringify(change), signal);
  }

  /** Runs one command in a container and gives what it wrote. Throws as `get` does. */
  async runCommand(path: string, mostBytes: number, signal: AbortSignal): Promise<CommandAnswer> {
    const command = { path, timeout: this.#options.requestTimeout, mostBytes, signal };
    return await this.#renewIfRefused((connection) => this.#runOnce(connection, command));
  }

  async #runOnce(connection: Connection, command: CommandRequest): Promise<CommandAnswer> {
    try {
      const socket = await connection.openSocket(command.path, EXEC_PROTOCOLS, command.signal);
      const answer = await collectOutput(socket, command, describeFailure);
      command.signal.throwIfAborted();
      this.#accepted = answer.kind !== "refused" || answer.status !== 401;
      return answer;
    } catch (error) {
      command.signal.throwIfAborted();
      if (error instanceof JanitorError) throw error;
      return { kind: "failed", problem: describeFailure(error) };
    }
  }

  async #send(
    method: ApiRequest["method"],
    path: string,
    query: Readonly<Record<string, string>>,
    body: string | undefined,
    signal: AbortSignal,
  ): Promise<ApiAnswer> {
    const parameters = new URLSearchParams(query).toString();
    const { requestTimeout } = this.#options;
    const apiRequest: ApiRequest = {
      method,
      path: parameters === "" ? path : `${path}?${parameters}`,
      ...(body === undefined ? {} : { body }),
      timeout: requestTimeout,
      signal,
    };
    return await this.#renewIfRefused((connection) => this.#sendOnce(connection, apiRequest));
  }

  async #renewIfRefused<Answer extends { readonly kind: string; readonly status?: number }>(
    send: (connection: Connection) => Promise<Answer>,
  ): Promise<Answer> {
    const connection = await this.#connect();
    const accepted = this.#accepted;
    const answer = await send(connection);
    if (answer.kind !== "refused" || answer.status !== 401) return answer;
    const { now } = this.#options;
    // What was accepted before has run out or been replaced since: a plugin's token without an end, a kubeconfig that was written anew. It may be
    // refused for longer than once, where the new one comes late.
    if (!accepted && now() - this.#renewedAt < RENEWAL_PAUSE) return answer;
    this.#renewedAt = now();
    try {
      connection.renew();
    } catch {
      return answer;
    }
    return await send(connection);
  }

  async #sendOnce(connection: Connection, apiRequest: ApiRequest): Promise<ApiAnswer> {
    const { now } = this.#options;
    try {
      const sentAt = now();
      const { statusCode, headers, body } = await connection.send(apiRequest);
      this.#readClock(headers["date"], sentAt, now());
      this.#accepted = statusCode !== 401;
      if (statusCode === 200 || statusCode === 201) return { kind: "ok", body: await body.json() };
      return { kind: "refused", status: statusCode, reason: readReason(await body.text()) };
    } catch (error) {
      apiRequest.signal.throwIfAborted();
      if (error instanceof JanitorError) throw error;
      return { kind: "unreachable", problem: describeFailure(error) };
    }
  }

  /** The way to the cluster. It, and the client with it, is loaded with the first request: an idle sweep sends none. */
  async #connect(): Promise<Connection> {
    const { access, env, requestTimeout, credentialTimeout = requestTimeout } = this.#options;
    if (this.#connection === undefined) this.#renewedAt = this.#options.now();
    this.#connection ??= import("./connection.ts").then(({ connect }) => connect(access, { env, credentialTimeout }));
    try {
      return await this.#connection;
    } catch (error) {
      // The next request tries again.
      this.#connection = undefined;
      throw error;
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

/** Why no answer came, in words of our own: what a parser or a plugin says may hold the server's text or a token. */
function describeFailure(error: unknown): string {
  if (error instanceof SyntaxError) return "the answer of the API server is no JSON";
  const code = systemCode(error) ?? systemCodeOfCause(error);
  if (error instanceof Error && error.name === "CredentialError") return error.message;
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
      return `the request failed (${code ?? (error instanceof Error ? error.name : "unknown")})`;
  }
}
