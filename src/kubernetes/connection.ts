import { readFile } from "node:fs/promises";
import type { RequestOptions } from "node:https";
import { isDeepStrictEqual } from "node:util";

import { KubeConfig } from "@kubernetes/client-node";
import { Agent, EnvHttpProxyAgent, interceptors, ProxyAgent, request, type Dispatcher } from "undici";
import * as z from "zod";

import { quoteUntrusted } from "../core/text.ts";
import { formatDuration, fromMilliseconds } from "../core/time.ts";
import { JanitorError, systemCode } from "../errors.ts";
import { chooseProxy } from "./choose-proxy.ts";
import { followPlugins, type CredentialPlugins } from "./credential-plugins.ts";
import { describeKubeconfigError, type ClusterAccess } from "./kubeconfig.ts";
import { openSocket, type ApiSocket } from "./open-socket.ts";
import { pickDefined } from "./pick-defined.ts";

/** One request, as a connection sends it. */
export interface ApiRequest {
  readonly method: "GET" | "POST" | "PATCH";
  /** With its query. */
  readonly path: string;
  /** JSON; of a PATCH a merge patch. */
  readonly body?: string;
  /** The longest wait for the headers, in milliseconds, and between two parts of the body unless `silence` says otherwise. */
  readonly timeout: number;
  /** The longest wait between two parts of the body, in milliseconds. */
  readonly silence?: number;
  readonly signal: AbortSignal;
}

/** A way to one API server. */
export interface Connection {
  /** Sends a request with the credentials of this moment: tokens and certificates expire and rotate. Throws a `CredentialError` without them. */
  readonly send: (request: ApiRequest) => Promise<Dispatcher.ResponseData>;
  /** Opens a WebSocket as `send` sends a request. */
  readonly openSocket: (path: string, protocols: readonly string[], signal: AbortSignal) => Promise<ApiSocket>;
  /** Reads the kubeconfig again and forgets all credentials, for when they are no longer accepted. Throws `cluster-not-configured`. */
  readonly renew: () => void;
  readonly close: () => Promise<void>;
}

/** The credentials of a request could not be had. The message holds nothing that a credential plugin wrote: that may be the token itself. */
class CredentialError extends Error {
  override readonly name = "CredentialError";
}

/** What a dispatcher is made from; when it changes (a client certificate or an authority that was renewed) so does the dispatcher. */
interface TlsMaterial {
  readonly ca?: RequestOptions["ca"];
  readonly cert?: RequestOptions["cert"];
  readonly key?: RequestOptions["key"];
  readonly rejectUnauthorized?: boolean;
  readonly servername?: string;
}

/** What one request needs beside its own text. */
interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsMaterial;
}

/** What a connection needs beside the way to the cluster. */
export interface ConnectionOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The longest wait for credentials, in milliseconds. */
  readonly credentialTimeout: number;
}

/** A kubeconfig as it was read, and what runs for it. */
interface Configured {
  readonly config: KubeConfig;
  readonly plugins: CredentialPlugins;
}

/** Only reads are sent again; Retry-After is respected, up to maxTimeout (https://undici.nodejs.org/#/docs/api/RetryAgent). */
const RETRY = interceptors.retry({
  maxRetries: 3,
  minTimeout: 200,
  maxTimeout: 5_000,
  methods: ["GET"],
  statusCodes: [429, 500, 502, 503, 504],
  throwOnError: false,
});

/** Opens the way to a cluster: server, credentials and proxy as kubectl would take them. Nothing is sent yet. Throws `cluster-not-configured`. */
export function connect(access: ClusterAccess, { env, credentialTimeout }: ConnectionOptions): Connection {
  const load = (): Configured => {
    const config = loadConfig(access);
    return { config, plugins: followPlugins(config) };
  };
  let configured = load();
  // One dispatcher for all requests: client-node would make a new one, and a new TLS connection, for each.
  let current: { readonly tls: TlsMaterial; readonly dispatcher: Dispatcher } | undefined;
  let pending: Promise<Credentials> | undefined;
  const dispatcherFor = (tls: TlsMaterial): Dispatcher => {
    if (current !== undefined && isDeepStrictEqual(current.tls, tls)) return current.dispatcher;
    // What is under way on the old one may end.
    current?.dispatcher.close().catch(() => undefined);
    current = { tls, dispatcher: openDispatcher(configured.config, tls, env) };
    return current.dispatcher;
  };
  // A watch that was cut off is not sent again as it was: it goes on at another version, and whoever follows it is told.
  const sendAgain = (dispatcher: Dispatcher, silence: number | undefined): Dispatcher => (silence === undefined ? dispatcher.compose(RETRY) : dispatcher);
  const begin = (): Promise<Credentials> => {
    const begun: Promise<Credentials> = readInTime(configured, access, credentialTimeout).finally(() => {
      // After a renewal another read may be under way.
      if (pending === begun) pending = undefined;
    });
    return begun;
  };
  const takeCredentials = async (signal: AbortSignal): Promise<Credentials> => {
    // Requests that begin together run a credential plugin once. A plugin may wait for a person, so the signal ends the wait.
    pending ??= begin();
    return await untilAborted(pending, signal);
  };
  return {
    send: async ({ method, path, body, timeout, silence, signal }) => {
      const { headers, tls } = await takeCredentials(signal);
      return await request(`${serverOf(configured.config)}${path}`, {
        method,
        headers: { accept: "application/json", ...(body === undefined ? {} : { "content-type": contentTypeOf(method) }), ...headers },
        ...(body === undefined ? {} : { body }),
        dispatcher: sendAgain(dispatcherFor(tls), silence),
        headersTimeout: timeout,
        bodyTimeout: silence ?? timeout,
        signal,
      });
    },
    openSocket: async (path, protocols, signal) => {
      const { headers, tls } = await takeCredentials(signal);
      return openSocket(dispatcherFor(tls), { url: `${serverOf(configured.config)}${path}`, protocols, headers });
    },
    renew: () => {
      configured = load();
      pending = undefined;
    },
    close: async () => {
      configured.plugins.end();
      await current?.dispatcher.destroy();
    },
  };
}

function contentTypeOf(method: ApiRequest["method"]): string {
  return method === "PATCH" ? "application/merge-patch+json" : "application/json";
}

/** Loads what is configured, and refuses what can never work, before anything is sent. */
function loadConfig(access: ClusterAccess): KubeConfig {
  const config = new KubeConfig();
  try {
    if (access.kind === "in-cluster") config.loadFromCluster();
    else loadContext(config, access);
  } catch (error) {
    throw notConfigured(`the kubeconfig could not be read: ${describeKubeconfigError(error)}`, error);
  }
  if (config.getCurrentCluster() === null) throw notConfigured("the context names no cluster that is in the kubeconfig");
  const user: string | undefined = config.getContextObject(config.getCurrentContext())?.user;
  if (user !== undefined && user !== "" && config.getCurrentUser() === null) throw notConfigured("the context names no user that is in the kubeconfig");
  const { hostname, protocol } = readUrl(serverOf(config), "the server of the cluster");
  if (hostname === "" || (protocol !== "https:" && protocol !== "http:")) throw notConfigured("the server of the cluster is no https:// address");
  const proxy = config.getCurrentCluster()?.proxyUrl;
  if (proxy !== undefined) readUrl(proxy, "the proxy");
  const kind = ((): string => {
    try {
      return config.createDispatcherOptions(config.getCurrentCluster(), {}).type;
    } catch (error) {
      throw notConfigured(
        "the server of the cluster is an http:// address, over which credentials are not sent unless insecure-skip-tls-verify is true",
        error,
      );
    }
  })();
  if (kind === "socks") {
    throw new JanitorError("cluster-not-configured", "the kubeconfig names a SOCKS proxy, which is not supported", {
      hint: "Use an HTTP proxy, or run in the cluster.",
    });
  }
  return config;
}

/** Reads the files as kubectl merges them: the first one that has a name wins (https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/). */
function loadContext(config: KubeConfig, { files, context }: Extract<ClusterAccess, { kind: "context" }>): void {
  const [first = "", ...others] = files;
  config.loadFromFile(first);
  for (const file of others) {
    const other = new KubeConfig();
    other.loadFromFile(file);
    const isNew = (known: readonly { readonly name: string }[]) => (entry: { readonly name: string }) => known.every(({ name }) => name !== entry.name);
    for (const cluster of other.clusters.filter(isNew(config.clusters))) config.addCluster(cluster);
    for (const user of other.users.filter(isNew(config.users))) config.addUser(user);
    for (const entry of other.contexts.filter(isNew(config.contexts))) config.addContext(entry);
  }
  config.setCurrentContext(context);
}

function serverOf(config: KubeConfig): string {
  return (config.getCurrentCluster()?.server ?? "").replace(/\/+$/, "");
}

/** Reads credentials, and gives up after a time: a plugin that hangs would hold up every request to come. */
async function readInTime({ config, plugins }: Configured, access: ClusterAccess, limit: number): Promise<Credentials> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, fail) => {
    timer = setTimeout(() => {
      fail(new CredentialError(describeLateCredentials(config, access, limit)));
      plugins.end();
    }, limit);
    // What is waited for keeps the process, and once the connection is closed nothing has to.
    timer.unref();
  });
  try {
    return await Promise.race([readCredentials(config, access), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function readCredentials(config: KubeConfig, access: ClusterAccess): Promise<Credentials> {
  const fresh: RequestOptions = {};
  try {
    await config.applyToHTTPSOptions(fresh);
    const basic = typeof fresh.auth === "string" ? { authorization: `Basic ${Buffer.from(fresh.auth).toString("base64")}` } : {};
    const token =
      access.kind === "context" && access.tokenFile !== undefined ? { authorization: `Bearer ${(await readFile(access.tokenFile, "utf8")).trim()}` } : {};
    const { ca, cert, key, rejectUnauthorized, servername } = fresh;
    return { headers: { ...basic, ...readHeaders(fresh), ...token }, tls: pickDefined({ ca, cert, key, rejectUnauthorized, servername }) };
  } catch (error) {
    throw new CredentialError(describeCredentialFailure(config, error), { cause: error });
  }
}

const execUser = z.object({ exec: z.object({ command: z.string() }) });

/** A person may have to answer the plugin, or to log in again. */
function describeLateCredentials(config: KubeConfig, access: ClusterAccess, limit: number): string {
  const context = access.kind === "context" ? ` of context ${quoteUntrusted(access.context)}` : "";
  const time = formatDuration(fromMilliseconds(limit));
  const plugin = execUser.safeParse(config.getCurrentUser());
  if (!plugin.success) return `the credentials${context} could not be read within ${time}: run kubectl to see why, or raise --request-timeout`;
  const name = quoteUntrusted(plugin.data.exec.command);
  return `the credential plugin ${name}${context} gave no credentials within ${time}: run kubectl to see what it waits for, or raise --request-timeout`;
}

/** Why there are no credentials, in words of our own: a plugin's output, and what a JSON parser quotes of it, may hold the token. */
function describeCredentialFailure(config: KubeConfig, error: unknown): string {
  const code = systemCode(error);
  const plugin = execUser.safeParse(config.getCurrentUser());
  if (!plugin.success) return `the credentials could not be read${code === undefined ? "" : ` (${code})`}`;
  const name = quoteUntrusted(plugin.data.exec.command);
  return code === "ENOENT" ? `the credential plugin ${name} was not found` : `the credential plugin ${name} gave no credentials: run kubectl to see why`;
}

function openDispatcher(config: KubeConfig, tls: TlsMaterial, env: Readonly<Record<string, string | undefined>>): Dispatcher {
  const made = config.createDispatcherOptions(config.getCurrentCluster(), tls);
  const proxy = made.type === "proxy" ? { uri: made.uri, noProxy: "" } : chooseProxy(new URL(serverOf(config)), env);
  return openProxied(proxy, tls);
}

function openProxied(proxy: ReturnType<typeof chooseProxy>, tls: TlsMaterial): Dispatcher {
  if (proxy === undefined) return new Agent({ connect: tls });
  readUrl(proxy.uri, "the proxy");
  if (proxy.noProxy === "") return new ProxyAgent({ uri: proxy.uri, requestTls: tls });
  return new EnvHttpProxyAgent({ httpProxy: proxy.uri, httpsProxy: proxy.uri, noProxy: proxy.noProxy, connect: tls, requestTls: tls });
}

/** Reads an address of the configuration, which may hold a password and so is not told. */
function readUrl(text: string, what: string): URL {
  try {
    return new URL(text);
  } catch (error) {
    throw notConfigured(`${what} is no URL`, error);
  }
}

function notConfigured(message: string, cause?: unknown): JanitorError {
  return new JanitorError("cluster-not-configured", message, cause === undefined ? {} : { cause });
}

async function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  signal.throwIfAborted();
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_, fail) => {
    stop = () => fail(signal.reason instanceof Error ? signal.reason : new Error("aborted"));
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function readHeaders({ headers }: RequestOptions): Readonly<Record<string, string>> {
  if (headers === undefined || Array.isArray(headers)) return {};
  return Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name.toLowerCase(), String(value)]])));
}
