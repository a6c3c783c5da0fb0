import { randomUUID } from "node:crypto";

import { composeSweepParts, composeSweepSettings, refuseUnstated } from "./compose-sweep.ts";
import { resolveBackends, type BackendSettings, type Settings } from "./config.ts";
import { warnAfterUnlock } from "./core/after-unlock.ts";
import { formatLine } from "./core/text.ts";
import { JanitorError } from "./errors.ts";
import type { ClusterSource } from "./kubernetes/cluster-source.ts";
import { mayDiscover, openBackends, refuseIdleAllowList, refuseUnstatedDiscovery } from "./open-backends.ts";
import { closeParts, openSources, openWithAudit, toMilliseconds } from "./open-parts.ts";
import { openMetrics } from "./output/metrics.ts";
import { serveStatus, type StatusServer } from "./output/serve-status.ts";
import { Pulse } from "./pulse.ts";
import { runOwnPod } from "./run-own-pod.ts";
import type { Surroundings } from "./surroundings.ts";
import type { OpenedBackend, SweepParts } from "./sweep.ts";
import { VERSION } from "./version.ts";
import { watch } from "./watch.ts";

/** Milliseconds that one sweep of a watch may take, unless `--timeout` says otherwise. */
const LONGEST_SWEEP = 600_000;

/** Runs `watch` until a signal ends it, and gives the exit code. Throws a `JanitorError` for wrong usage. */
export async function runWatch(settings: Settings, surroundings: Surroundings): Promise<number> {
  if (settings.ownPod) return await runOwnPod(settings, surroundings);
  const { env, stdout, log } = surroundings;
  refuseSnapshot(settings);
  const backends = resolveBackends(settings, env, mayDiscover(settings));
  refuseIdleAllowList(settings);
  if (settings.delete) {
    refuseUnstated(backends, "--delete");
    refuseUnstatedDiscovery(settings, "--delete");
  }
  const clusters = await openSources(settings, env);
  const store = new BackendKeeper(backends, clusters, settings, env);
  const longest = settings.timeout === undefined ? LONGEST_SWEEP : toMilliseconds(settings.timeout);
  const interval = toMilliseconds(settings.interval);
  const pulse = new Pulse(3 * interval + longest);
  const metrics = openMetrics(VERSION);
  let server: StatusServer | undefined;
  try {
    if (settings.listen !== undefined) server = await serveStatus(settings.listen, { metrics, healthy: pulse.healthy, ready: pulse.ready });
    const mode = settings.delete ? "stale locks are removed" : "a dry run, nothing is removed without --delete";
    await log("info", `watching: ${mode}${server === undefined ? "" : `; status at port ${server.port}`}`);
    await watch(
      { sweep: composeSweepSettings(settings, backends), interval },
      {
        ...composeSweepParts(settings, surroundings),
        clusters,
        openBackends: (signal) => store.open(signal),
        newRunId: randomUUID,
        newDeadline: () => AbortSignal.timeout(longest),
        onFollow: (following) => {
          metrics.follow(following);
          pulse.follow(following);
          const { what, trouble } = following;
          if (trouble === undefined) void log("info", `changes of ${what} come`);
          else void log("warn", `${trouble.problem}; without changes of ${what} every lock is looked at when the interval ends`);
        },
        onEvent: (event) => void stdout.write(formatLine(event)),
        onSweep: (report, whole) => {
          metrics.observe(report, whole);
          for (const warning of warnAfterUnlock(report.locks.filter(({ record }) => record !== undefined))) void log("warn", warning);
          if (whole) pulse.beat(report);
        },
      },
    );
    return 0;
  } finally {
    await server?.stop();
    await closeParts(clusters, store.opened);
  }
}

/** A file does not change, and no flag says so here; a variable or the configuration file may. Throws `usage`. */
function refuseSnapshot({ podsFrom }: Settings): void {
  if (podsFrom === undefined) return;
  throw new JanitorError("usage", "watch looks at a cluster, and not at a file (podsFrom)", {
    hint: "Take podsFrom from the configuration file, or PULUMI_LOCK_JANITOR_PODS_FROM from the environment. sweep and unlock read a file.",
  });
}

/** Keeps backends open, opens again what could not be opened before, and closes what no Stack names any more. */
class BackendKeeper {
  readonly #configured: readonly BackendSettings[];
  readonly #clusters: readonly ClusterSource[];
  readonly #settings: Settings;
  readonly #env: Surroundings["env"];
  /** By their settings; by their URL, where a Stack named them. */
  #known = new Map<BackendSettings | string, OpenedBackend>();

  constructor(configured: readonly BackendSettings[], clusters: readonly ClusterSource[], settings: Settings, env: Surroundings["env"]) {
    this.#configured = configured;
    this.#clusters = clusters;
    this.#settings = settings;
    this.#env = env;
  }

  get opened(): readonly OpenedBackend[] {
    return Array.from(this.#known.values());
  }

  async open(signal: AbortSignal): Promise<Pick<SweepParts, "backends" | "discovery">> {
    const before = this.#known;
    this.#known = new Map();
    const { opened, discovery } = await openBackends(this.#configured, this.#clusters, this.#settings, this.#env, signal, async (backend, settings) => {
      const key = this.#configured.includes(backend) ? backend : backend.url;
      const known = before.get(key);
      const one = known?.kind === "open" ? known : await openWithAudit(backend, settings);
      this.#known.set(key, one);
      return one;
    });
    // A list of Stacks that failed names no backend; what was open stays open for the next sweep.
    const unsure = discovery?.stackLists.length === 0 || discovery?.stackLists.some(({ list }) => list.kind === "unlisted") === true;
    for (const [key, item] of before) {
      if (this.#known.has(key)) continue;
      if (unsure) this.#known.set(key, item);
      else if (item.kind === "open") await item.backend.close();
    }
    return { backends: opened, ...(discovery === undefined ? {} : { discovery }) };
  }
}
