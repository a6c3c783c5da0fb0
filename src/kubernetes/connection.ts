import { readFile } from "node:fs/promises";
import type { RequestOptions } from "node:https";

import { KubeConfig } from "@kubernetes/client-node";
import { Agent, EnvHttpProxyAgent, interceptors, ProxyAgent, type Dispatcher } from "undici";

import { describeError, JanitorError } from "../errors.ts";
import type { ClusterAccess } from "./kubeconfig.ts";

/** A way to one API server. */
export interface Connection {
  /** Its URL without a trailing slash. */
  readonly server: string;
  /** The headers of one request: made anew each time, since tokens expire and rotate. */
  readonly authorize: () => Promise<Readonly<Record<string, string>>>;
  /** The one dispatcher of all requests: client-node would make a new one, and a new TLS connection, for each. */
  readonly dispatcher: Dispatcher;
  readonly close: () => Promise<void>;
}

/** What a dispatcher is made from; when it changes (a client certificate that was renewed) so does the dispatcher. */
interface TlsMaterial {
  readonly ca?: RequestOptions["ca"];
  readonly cert?: RequestOptions["cert"];
  readonly key?: RequestOptions["key"];
  readonly rejectUnauthorized?: boolean;
  readonly servername?: string;
}

/** Opens the way to a cluster: server, credentials and proxy as kubectl would take them. Throws `cluster-not-configured`. */
export async function connect(access: ClusterAccess, env: Readonly<Record<string, string | undefined>>): Promise<Connection> {
  const config = loadConfig(access);
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw new JanitorError("cluster-not-configured", "the context names no cluster that is in the kubeconfig");
  const options: RequestOptions = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch (error) {
    throw new JanitorError("cluster-not-configured", `the credentials of the cluster could not be read: ${describeError(error)}`, { cause: error });
  }
  const dispatcher = openDispatcher(config, options, env);
  return {
    server: cluster.server.replace(/\/+$/, ""),
    authorize: async () => {
      const fresh: RequestOptions = {};
      await config.applyToHTTPSOptions(fresh);
      const basic = typeof fresh.auth === "string" ? { authorization: `Basic ${Buffer.from(fresh.auth).toString("base64")}` } : {};
      return {
        ...basic,
        ...readHeaders(fresh),
        ...(access.kind === "context" && access.tokenFile !== undefined
          ? { authorization: `Bearer ${(await readFile(access.tokenFile, "utf8")).trim()}` }
          : {}),
      };
    },
    dispatcher,
    close: async () => {
      await dispatcher.destroy();
    },
  };
}

function loadConfig(access: ClusterAccess): KubeConfig {
  const config = new KubeConfig();
  try {
    if (access.kind === "in-cluster") {
      config.loadFromCluster();
      return config;
    }
    const [first = "", ...others] = access.files;
    config.loadFromFile(first);
    for (const file of others) {
      const other = new KubeConfig();
      other.loadFromFile(file);
      config.mergeConfig(other, true);
    }
    config.setCurrentContext(access.context);
    return config;
  } catch (error) {
    throw new JanitorError("cluster-not-configured", `the kubeconfig could not be read: ${describeError(error)}`, { cause: error });
  }
}

function openDispatcher(config: KubeConfig, options: RequestOptions, env: Readonly<Record<string, string | undefined>>): Dispatcher {
  const tls: TlsMaterial = pickDefined({
    ca: options.ca,
    cert: options.cert,
    key: options.key,
    rejectUnauthorized: options.rejectUnauthorized,
    servername: options.servername,
  });
  const made = config.createDispatcherOptions(config.getCurrentCluster(), tls);
  const plain = ((): Dispatcher => {
    switch (made.type) {
      case "proxy":
        return new ProxyAgent({ uri: made.uri, requestTls: pickDefined(made.requestTls) });
      case "socks":
        throw new JanitorError("cluster-not-configured", "the kubeconfig names a SOCKS proxy, which is not supported", {
          hint: "Use an HTTP proxy, or run in the cluster.",
        });
      case "agent":
      case "none": {
        const proxies = pickDefined({
          httpProxy: env["http_proxy"] ?? env["HTTP_PROXY"],
          httpsProxy: env["https_proxy"] ?? env["HTTPS_PROXY"],
          noProxy: env["no_proxy"] ?? env["NO_PROXY"],
        });
        if (proxies.httpProxy === undefined && proxies.httpsProxy === undefined) return new Agent({ connect: tls });
        return new EnvHttpProxyAgent({ ...proxies, connect: tls, requestTls: tls });
      }
    }
  })();
  // Only reads are sent, so a request may be sent again; Retry-After is respected (https://undici.nodejs.org/#/docs/api/RetryAgent).
  return plain.compose(
    interceptors.retry({ maxRetries: 3, minTimeout: 200, maxTimeout: 5_000, methods: ["GET"], statusCodes: [429, 500, 502, 503, 504], throwOnError: false }),
  );
}

function readHeaders({ headers }: RequestOptions): Readonly<Record<string, string>> {
  if (headers === undefined || Array.isArray(headers)) return {};
  return Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name.toLowerCase(), String(value)]])));
}

function pickDefined<Value extends object>(value: Value): { [Key in keyof Value]?: Exclude<Value[Key], undefined> } {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Object.fromEntries loses the names; the filter does what the type says.
  return Object.fromEntries(Object.entries(value).filter(([, property]) => property !== undefined)) as {
    [Key in keyof Value]?: Exclude<Value[Key], undefined>;
  };
}
