import { check } from "./check.ts";
import { resolveBackends, resolveOwners, type Settings } from "./config.ts";
import { closeParts, openSources, openWithAudit } from "./open-parts.ts";
import { renderCheck } from "./output/check-table.ts";
import { painterFor, widthOf } from "./output/terminal.ts";
import type { Surroundings } from "./surroundings.ts";
import { nameOfBackend } from "./sweep.ts";
import { writeOutputs } from "./write-outputs.ts";

/** Runs `check` and gives the exit code: 1 when something that a sweep needs is missing. */
export async function runCheck(settings: Settings, surroundings: Surroundings): Promise<number> {
  const { env, stop } = surroundings;
  const clusters = await openSources(settings, env);
  const opened = await Promise.all(resolveBackends(settings, env).map((backend) => openWithAudit(backend, settings)));
  try {
    const backends = opened.map((item) =>
      item.kind === "open" ? { name: nameOfBackend(item), backend: item.backend, audit: item.audit } : { name: nameOfBackend(item), backend: item.error },
    );
    const report = await check({ backends, clusters, owners: resolveOwners(settings), signal: stop });
    await writeOutputs(settings.outputs, surroundings, {
      json: report,
      table: (stream) => renderCheck(report, { width: widthOf(stream), paint: painterFor(stream) }),
    });
    return report.exitCode;
  } finally {
    await closeParts(clusters, opened);
  }
}
