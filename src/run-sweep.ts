import { composeSweepParts, composeSweepSettings, refuseUndatedSnapshot, refuseUnstated } from "./compose-sweep.ts";
import { resolveBackends, type Settings } from "./config.ts";
import { mayDiscover, openBackends, refuseIdleAllowList, refuseUnstatedDiscovery } from "./open-backends.ts";
import { closeParts, openSources } from "./open-parts.ts";
import { openProgressLine } from "./output/progress.ts";
import { spareMemory } from "./spare-memory.ts";
import type { Surroundings } from "./surroundings.ts";
import { sweep } from "./sweep.ts";
import { refuseUnwritable, writeSweepReport } from "./write-outputs.ts";

/** Runs `sweep` with its settings and gives the exit code. Throws a `JanitorError` for wrong usage. */
export async function runSweep(settings: Settings, surroundings: Surroundings): Promise<number> {
  const { env, stderr } = surroundings;
  const configured = resolveBackends(settings, env, mayDiscover(settings));
  const asking = surroundings.interactive && settings.delete && !settings.yes;
  refuseIdleAllowList(settings);
  if (settings.delete) {
    if (!asking) {
      refuseUnstated(configured, "--delete");
      refuseUnstatedDiscovery(settings, "--delete");
    }
    refuseUndatedSnapshot(settings, "--delete");
  }
  await refuseUnwritable(settings.outputs);
  const clusters = await openSources(settings, env);
  const parts = composeSweepParts(settings, surroundings);
  const signal = AbortSignal.any([parts.deadline, parts.stop]);
  const { settings: backends, opened, discovery } = await openBackends(configured, clusters, settings, env, signal);
  const progress = openProgressLine(stderr, settings.quiet, () => Date.now(), surroundings.log);
  try {
    const report = await sweep(composeSweepSettings(settings, backends), {
      ...parts,
      backends: opened,
      clusters,
      ...(discovery === undefined ? {} : { discovery }),
      onProgress: (step) => {
        spareMemory(step);
        progress.show(step);
      },
      ...(asking
        ? {
            confirm: async (plan) => {
              progress.clear();
              return await (await import("./ask-to-remove.ts")).askToRemove(plan, settings, backends, surroundings);
            },
          }
        : {}),
    });
    progress.clear();
    await writeSweepReport(report, settings, surroundings);
    if (report.dryRun && report.summary.wouldRemove > 0 && !report.overrides.some(({ option }) => option === "--exclusive")) {
      await surroundings.log(
        "info",
        `a removal also needs --exclusive: your word that no other cluster writes to ${report.backends.map(({ name }) => name).join(", ")}`,
      );
    }
    return report.exitCode;
  } finally {
    progress.clear();
    await closeParts(clusters, opened);
  }
}
