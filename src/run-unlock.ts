import { askToRemove, showPlan } from "./ask-to-remove.ts";
import { askYesNo } from "./ask.ts";
import { composeSweepParts, composeSweepSettings, refuseUndatedSnapshot, refuseUnstated } from "./compose-sweep.ts";
import { resolveBackends, type BackendSettings, type Settings } from "./config.ts";
import type { SweepReport } from "./core/report.ts";
import { escapeUntrusted } from "./core/text.ts";
import { parseWantedLock } from "./core/wanted-lock.ts";
import { JanitorError } from "./errors.ts";
import type { ClusterSource } from "./kubernetes/cluster-source.ts";
import { closeParts, openSources, openWithAudit } from "./open-parts.ts";
import type { Surroundings } from "./surroundings.ts";
import type { Answer } from "./sweep.ts";
import { findLock, forceUnlock, unlock, type OpenBackend } from "./unlock.ts";
import { refuseUnwritable, writeSweepReport } from "./write-outputs.ts";

/** Runs `unlock` for the lock that a person named and gives the exit code. Throws a `JanitorError` for what is wrong or refused. */
export async function runUnlock(text: string, given: Settings, surroundings: Surroundings): Promise<number> {
  const settings = { ...given, delete: true };
  const parsed = parseWantedLock(text);
  if (parsed.kind === "refused") throw new JanitorError("usage", `the lock to be removed: ${parsed.problem}`);
  const entries = resolveBackends(settings, surroundings.env);
  const asking = surroundings.interactive && !settings.yes;
  if (!settings.force) refuseUndatedSnapshot(settings, "unlock");
  if (!asking) refuseUnattended(settings, entries);
  await refuseUnwritable(settings.outputs);
  const clusters = await openClustersIfNeeded(settings, surroundings.env);
  const all = await Promise.all(entries.map((backend) => openWithAudit(backend, settings)));
  try {
    const opened = all.map((item): OpenBackend => {
      if (item.kind === "failed") throw item.error;
      return item;
    });
    const found = await findLock(text, parsed.wanted, opened, surroundings.stop);
    const entry = entries.filter((_, index) => opened[index] === found.opened);
    const confirm = async (plan: SweepReport): Promise<Answer> =>
      settings.force ? await askToForce(plan, settings, surroundings) : await askToRemove(plan, settings, entry, surroundings);
    const parts = { ...composeSweepParts(settings, surroundings), clusters, onProgress: () => undefined, ...(asking ? { confirm } : {}) };
    const removeIt = settings.force ? forceUnlock : unlock;
    const report = await removeIt(found, composeSweepSettings(settings, entry), parts);
    await writeSweepReport(report, settings, surroundings);
    return report.exitCode;
  } finally {
    await closeParts(clusters, all);
  }
}

/** Stops a removal that nobody can be asked about and nobody has answered for. Throws `usage`. */
function refuseUnattended(settings: Settings, backends: readonly BackendSettings[]): void {
  if (!settings.yes) throw new JanitorError("usage", "unlock asks before it removes, and there is no terminal to ask on", { hint: "Give --yes." });
  if (settings.force) return;
  refuseUnstated(backends, "unlock");
}

/** With `--force` the clusters only add to what is shown: without any, the lock is removed on the person's word. */
async function openClustersIfNeeded(settings: Settings, env: Surroundings["env"]): Promise<readonly ClusterSource[]> {
  try {
    return await openSources(settings, env);
  } catch (error) {
    if (settings.force && error instanceof JanitorError && error.code === "cluster-not-configured") return [];
    throw error;
  }
}

async function askToForce(plan: SweepReport, settings: Settings, surroundings: Surroundings): Promise<Answer> {
  showPlan(plan, settings, surroundings);
  const [lock] = plan.locks;
  const stack = escapeUntrusted(lock?.stack ?? "");
  const question =
    lock?.verdict === "stale"
      ? `Remove the lock of ${stack}?`
      : `The lock is ${lock?.verdict ?? "unknown"}. If its update still runs, removing it lets a second one write the state of ${stack}. Remove it all the same?`;
  return (await askYesNo(question, surroundings)) ? { kind: "yes", overrides: [] } : { kind: "no" };
}
