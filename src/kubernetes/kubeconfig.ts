import { existsSync, readFileSync } from "node:fs";
import { delimiter, dirname, join, resolve } from "node:path";

import { parse, YAMLParseError } from "yaml";
import * as z from "zod";

import { joinSome, quoteUntrusted } from "../core/text.ts";
import { JanitorError, systemCode } from "../errors.ts";

// Where the kubelet puts a pod's credentials (https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/).
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** How a cluster is reached: by a context of kubeconfig files, or as a pod by its service account. */
export type ClusterAccess =
  | {
      readonly kind: "context";
      readonly files: readonly string[];
      readonly context: string;
      /** The file with the user's token, read again for each request; client-node does not know this field of a kubeconfig. */
      readonly tokenFile?: string;
    }
  | { readonly kind: "in-cluster"; readonly namespace: string | undefined };

/** Where to look for clusters. */
export interface AccessOptions {
  /** `--kubeconfig`. */
  readonly kubeconfig?: string;
  /** `--context`; the current one when empty. */
  readonly contexts: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** True where locks are to be removed: several contexts and none chosen is then refused, since nobody knows which one is current. */
  readonly requireExplicitContext: boolean;
}

const kubeconfigFile = z.object({
  contexts: z.array(z.object({ name: z.string(), context: z.object({ user: z.string().optional() }).nullish() })).nullish(),
  users: z.array(z.object({ name: z.string(), user: z.object({ tokenFile: z.string().optional() }).nullish() })).nullish(),
  "current-context": z.string().nullish(),
});

type Kubeconfig = z.infer<typeof kubeconfigFile>;

/**
 * Finds the clusters to ask, without loading the Kubernetes client: `--kubeconfig`, `KUBECONFIG`, the pod's service account, `~/.kube/config`. Throws
 * `cluster-not-configured` when there is none; client-node would go on to http://localhost:8080.
 */
export function findClusters(options: AccessOptions): readonly ClusterAccess[] {
  const files = findKubeconfigFiles(options);
  if (files.length > 0) return chooseContexts(files, options);
  if (options.contexts.length > 0) throw notConfigured(`there is no kubeconfig to take the context ${quoteUntrusted(options.contexts[0] ?? "")} from`);
  if (isInCluster(options.env)) return [{ kind: "in-cluster", namespace: readNamespace() }];
  throw notConfigured("there is no cluster to ask: no kubeconfig was found, and this is no pod");
}

function findKubeconfigFiles({ kubeconfig, contexts, env }: AccessOptions): readonly string[] {
  if (kubeconfig !== undefined) return [kubeconfig];
  const named = (env["KUBECONFIG"] ?? "").split(delimiter).filter((file) => file !== "");
  if (named.length > 0) return named.filter((file) => existsSync(file)).length > 0 ? named.filter((file) => existsSync(file)) : named;
  // A pod asks its own cluster, unless a context was named.
  if (isInCluster(env) && contexts.length === 0) return [];
  const home = env["HOME"] ?? env["USERPROFILE"];
  const file = home === undefined ? undefined : join(home, ".kube", "config");
  return file !== undefined && existsSync(file) ? [file] : [];
}

function chooseContexts(files: readonly string[], { contexts, requireExplicitContext }: AccessOptions): readonly ClusterAccess[] {
  const read = files.map(readKubeconfig);
  const known = read.flatMap((file) => (file.contexts ?? []).map(({ name }) => name));
  const place = files.join(", ");
  const unknown = contexts.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw notConfigured(
      `${place} has no context ${quoteUntrusted(unknown)}`,
      known.length === 0
        ? "It has no context at all."
        : `It has ${joinSome(
            known.map((name) => quoteUntrusted(name)),
            10,
          )}.`,
    );
  }
  if (contexts.length > 0) return Array.from(new Set(contexts), (context) => describeAccess(files, read, context));
  if (requireExplicitContext && known.length > 1) {
    throw notConfigured(
      `${place} has ${known.length} contexts, and which one is current may change`,
      `To remove locks, name the clusters with --context: ${joinSome(
        known.map((name) => quoteUntrusted(name)),
        10,
      )}.`,
    );
  }
  const current = read.map((file) => file["current-context"]).find((name) => typeof name === "string" && name !== "");
  if (typeof current !== "string" || !known.includes(current)) throw notConfigured(`${place} has no current context`, "Name one with --context.");
  return [describeAccess(files, read, current)];
}

function describeAccess(files: readonly string[], read: readonly Kubeconfig[], context: string): ClusterAccess {
  const user = read.flatMap((file) => file.contexts ?? []).find(({ name }) => name === context)?.context?.user;
  const index = read.findIndex((file) => file.users?.some(({ name }) => name === user) === true);
  const tokenFile = read[index]?.users?.find(({ name }) => name === user)?.user?.tokenFile;
  // A relative path in a kubeconfig is meant from the kubeconfig's own folder.
  return { kind: "context", files, context, ...(tokenFile === undefined ? {} : { tokenFile: resolve(dirname(files[index] ?? ""), tokenFile) }) };
}

function readKubeconfig(file: string): Kubeconfig {
  try {
    return kubeconfigFile.parse(parse(readFileSync(file, "utf8")) ?? {});
  } catch (error) {
    throw new JanitorError("cluster-not-configured", `the kubeconfig ${file} could not be read: ${describeKubeconfigError(error)}`, { cause: error });
  }
}

/** Why a kubeconfig is of no use, without a word of it: a YAML parser quotes the line, and the line may be the token's. */
export function describeKubeconfigError(error: unknown): string {
  if (error instanceof YAMLParseError) {
    const [start] = error.linePos ?? [];
    return `it is no YAML${start === undefined ? "" : `, see line ${start.line}, column ${start.col}`}`;
  }
  if (error instanceof z.ZodError) {
    const [issue] = error.issues;
    return `it is no kubeconfig${issue === undefined || issue.path.length === 0 ? "" : `, see ${issue.path.join(".")}`}`;
  }
  const code = systemCode(error);
  // client-node's own words, which hold no text of the file.
  if (error instanceof Error && /^(clusters|users|contexts)\[\d+\]\.[\w.]+ is missing$/.test(error.message)) return error.message;
  if (code === undefined) return "it is no kubeconfig";
  return code === "ENOENT" ? "it does not exist" : `it cannot be opened (${code})`;
}

function notConfigured(
  message: string,
  hint = "Give --kubeconfig and --context, run as a pod with a service account, or give a file with --pods-from.",
): JanitorError {
  return new JanitorError("cluster-not-configured", message, { hint });
}

function isInCluster(env: AccessOptions["env"]): boolean {
  return (env["KUBERNETES_SERVICE_HOST"] ?? "") !== "" && existsSync(`${SERVICE_ACCOUNT}/token`);
}

function readNamespace(): string | undefined {
  const file = `${SERVICE_ACCOUNT}/namespace`;
  return existsSync(file) ? readFileSync(file, "utf8").trim() : undefined;
}
