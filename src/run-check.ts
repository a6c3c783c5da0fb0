import { check } from "./check.ts";
import { toAfterUnlock } from "./compose-sweep.ts";
import { resolveBackends, resolveOwners, type Settings } from "./config.ts";
import { JanitorError } from "./errors.ts";
import { mayDiscover, openBackends, refuseIdleAllowList } from "./open-backends.ts";
import { closeParts, openSources } from "./open-parts.ts";
import { renderCheck } from "./output/check-table.ts";
import { painterFor, widthOf } from "./output/terminal.ts";
import type { Surroundings } from "./surroundings.ts";
import { nameOfBackend } from "./sweep.ts";
import { refuseUnwritable, writeOutputs } from "./write-outputs.ts";

/** Runs `check` and gives the exit code: 1 when something that a sweep needs is missing. */
export async function runCheck(settings: Settings, surroundings: Surroundings): Promise<number> {
  const { env, stop } = surroundings;
  for (const { format } of settings.outputs)
    if (format !== "table" && format !== "json")
      throw new JanitorError("usage", `check has no ${format} output`, { hint: "It has --output table and --output json." });
  await refuseUnwritable(settings.outputs);
  const clusters = await openSources(settings, env);
  refuseIdleAllowList(settings);
  const configured = resolveBackends(settings, env, mayDiscover(settings));
  const { opened, discovery } = await openBackends(configured, clusters, settings, env, stop);
  try {
    const backends = opened.map((item) =>
      item.kind === "open" ? { name: nameOfBackend(item), backend: item.backend, audit: item.audit } : { name: nameOfBackend(item), backend: item.error },
    );
    const report = await check({
      backends,
      clusters,
      owners: resolveOwners(settings),
      probe: settings.probeProcesses,
      afterUnlock: toAfterUnlock(settings),
      signal: stop,
      ...(discovery === undefined ? {} : { discovery }),
    });
    await writeOutputs(settings.outputs, surroundings, {
      json: report,
      table: (stream) => renderCheck(report, { width: widthOf(stream), paint: painterFor(stream) }),
    });
    return report.exitCode;
  } finally {
    await closeParts(clusters, opened);
  }
}
