import { randomUUID } from "node:crypto";

import { composeSweepParts, composeSweepSettings, refuseUnstated } from "./compose-sweep.ts";
import { resolveBackends, type BackendSettings, type Settings } from "./config.ts";
import type { SweepReport } from "./core/report.ts";
import { formatLine } from "./core/text.ts";
import { closeParts, openSources, openWithAudit, toMilliseconds } from "./open-parts.ts";
import { openMetrics } from "./output/metrics.ts";
import { serveStatus, type Probe, type StatusServer } from "./output/serve-status.ts";
import type { Surroundings } from "./surroundings.ts";
import type { OpenedBackend } from "./sweep.ts";
import { VERSION } from "./version.ts";
import { watch } from "./watch.ts";

/** Milliseconds that one sweep of a watch may take, unless `--timeout` says otherwise. */
const LONGEST_SWEEP = 600_000;

/** Runs `watch` until a signal ends it, and gives the exit code. Throws a `JanitorError` for wrong usage. */
export async function runWatch(settings: Settings, surroundings: Surroundings): Promise<number> {
  const { env, stdout, log } = surroundings;
  const backends = resolveBackends(settings, env);
  if (settings.delete) refuseUnstated(backends, "--delete");
  const clusters = await openSources(settings, env);
  const store = new BackendKeeper(backends, settings);
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
        openBackends: () => store.open(),
        newRunId: randomUUID,
        newDeadline: () => AbortSignal.timeout(longest),
        onEvent: (event) => void stdout.write(formatLine(event)),
        onSweep: (report, whole) => {
          metrics.observe(report, whole);
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

/** Keeps backends open, and opens again what could not be opened before. */
class BackendKeeper {
  readonly #backends: readonly BackendSettings[];
  readonly #settings: Settings;
  opened: readonly OpenedBackend[] = [];

  constructor(backends: readonly BackendSettings[], settings: Settings) {
    this.#backends = backends;
    this.#settings = settings;
  }

  async open(): Promise<readonly OpenedBackend[]> {
    const before = this.opened;
    this.opened = await Promise.all(
      this.#backends.map(async (backend, index) => {
        const known = before[index];
        return known?.kind === "open" ? known : await openWithAudit(backend, this.#settings);
      }),
    );
    return this.opened;
  }
}

/** Whether sweeps go on, and what the latest of every lock met. */
class Pulse {
  readonly #longest: number;
  #beatAt = Date.now();
  #problem: string | undefined = "no sweep has ended yet";

  constructor(longest: number) {
    this.#longest = longest;
  }

  beat({ backends, clusters }: SweepReport): void {
    this.#beatAt = Date.now();
    const failed = [...backends, ...clusters].filter(({ error }) => error !== undefined).map(({ name }) => name);
    this.#problem = failed.length === 0 ? undefined : `could not read ${failed.join(", ")}`;
  }

  readonly healthy: Probe = () => {
    const silent = Date.now() - this.#beatAt;
    return silent < this.#longest ? { ok: true, message: "ok" } : { ok: false, message: `no sweep has ended for ${Math.trunc(silent / 1_000)} s` };
  };

  readonly ready: Probe = () => (this.#problem === undefined ? { ok: true, message: "ok" } : { ok: false, message: this.#problem });
}
