import { redactUrl } from "./backends/open.ts";
import type { BackendSettings, Settings } from "./config.ts";
import { discoverBackends, type Discovery } from "./discover-backends.ts";
import { JanitorError } from "./errors.ts";
import type { ClusterSource } from "./kubernetes/cluster-source.ts";
import { openWithAudit } from "./open-parts.ts";
import type { OpenedBackend } from "./sweep.ts";

/** The backends of a run: those of the settings, then those that Stacks added. */
export interface RunBackends {
  readonly settings: readonly BackendSettings[];
  /** In the same order. */
  readonly opened: readonly OpenedBackend[];
  /** Absent without `--discover`. */
  readonly discovery?: Discovery;
}

/** Opens one backend, or gives what was opened before. */
export type OpenBackend = (backend: BackendSettings, settings: Settings) => Promise<OpenedBackend>;

/** Opens the backends of the settings and, with `--discover`, those that the Stacks of the clusters add. Throws for a URL of the settings that can never work. */
export async function openBackends(
  configured: readonly BackendSettings[],
  clusters: readonly ClusterSource[],
  settings: Settings,
  env: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
  open: OpenBackend = openWithAudit,
): Promise<RunBackends> {
  const opened = await Promise.all(configured.map((backend) => open(backend, settings)));
  if (!settings.discover) return { settings: configured, opened };
  const [storageAccount, region] = [env["AZURE_STORAGE_ACCOUNT"], env["AWS_REGION"] ?? env["AWS_DEFAULT_REGION"]];
  const discovery = await discoverBackends(
    clusters,
    {
      allow: settings.discoverAllow,
      configured: configured.map(({ url }, index) => {
        const item = opened[index];
        return item?.kind === "open" ? { url, identity: item.backend.identity } : { url };
      }),
      environment: { ...(storageAccount === undefined ? {} : { storageAccount }), ...(region === undefined ? {} : { region }) },
    },
    signal,
  );
  // No entry of the configuration file speaks of them: neither its word nor its credentials.
  const added = discovery.backends.map(({ url }): BackendSettings => ({ url, exclusive: settings.exclusive, env }));
  const openedToo = await Promise.all(added.map((backend) => openDiscovered(backend, settings, open)));
  return { settings: [...configured, ...added], opened: [...opened, ...openedToo], discovery };
}

/** Whatever is wrong with a URL that a tenant wrote must not end the run. */
async function openDiscovered(backend: BackendSettings, settings: Settings, open: OpenBackend): Promise<OpenedBackend> {
  try {
    return { ...(await open(backend, settings)), discovered: true };
  } catch (error) {
    if (!(error instanceof JanitorError)) throw error;
    return { kind: "failed", name: redactUrl(backend.url), error, discovered: true };
  }
}

/** Whether Stacks may add backends: without a glob that admits some, they are only reported. */
export function mayDiscover({ discover, discoverAllow }: Settings): boolean {
  return discover && discoverAllow.length > 0;
}

/** Checks that what `--discover` and its globs say goes together. Throws `usage`. */
export function refuseIdleAllowList({ discover, discoverAllow }: Settings): void {
  if (!discover && discoverAllow.length > 0)
    throw new JanitorError("usage", "--discover-allow goes with --discover", { hint: "Add --discover, or leave --discover-allow out." });
}

/** Stops a removal in backends that are yet to be discovered where nobody said that no other cluster writes to them. Throws `usage`. */
export function refuseUnstatedDiscovery(settings: Settings, what: string): void {
  if (!mayDiscover(settings) || settings.exclusive) return;
  throw new JanitorError("usage", `${what} with --discover-allow wants --exclusive, for the backends that will be discovered`, {
    hint: "The configuration file states it for the backends that it names, and for no other. Leave out --discover-allow to remove in those alone.",
  });
}
