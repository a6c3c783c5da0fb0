import { askYesNo } from "./ask.ts";
import { openBackend, redactUrl } from "./backends/open.ts";
import { composeRemover } from "./compose-sweep.ts";
import { resolveBackends, type Settings } from "./config.ts";
import { formatIdentity } from "./core/backend-identity.ts";
import type { RemovalHistory } from "./core/record.ts";
import { escapeUntrusted } from "./core/text.ts";
import { JanitorError } from "./errors.ts";
import { toMilliseconds } from "./open-parts.ts";
import { openAuditLog } from "./output/open-audit-log.ts";
import { findRemoval, restoreLock } from "./restore.ts";
import type { Surroundings } from "./surroundings.ts";

/** Runs `restore` for one record and gives the exit code. Throws a `JanitorError` for what is refused. */
export async function runRestore(id: string, settings: Settings, surroundings: Surroundings): Promise<number> {
  const { env, interactive, stdout, stop } = surroundings;
  const [backendSettings, ...others] = resolveBackends(settings, env);
  if (backendSettings === undefined || others.length > 0) throw new JanitorError("usage", "restore works on one backend", { hint: "Give --backend once." });
  const backend = await openBackend({
    url: backendSettings.url,
    env: backendSettings.env,
    requestTimeout: toMilliseconds(settings.requestTimeout),
    now: () => Date.now(),
  });
  try {
    const audit = openAuditLog(settings.auditLog, backend);
    const removal = await findRemoval(audit, id, stop);
    if (interactive && !settings.yes && !(await askToRestore(removal, surroundings)))
      throw new JanitorError("restore-refused", "nothing was put back: the question was not answered with yes", { hint: "--yes does not ask." });
    const note = await restoreLock(backend, audit, removal, { ...composeRemover(), overrides: [] }, stop);
    stdout.write(
      `${escapeUntrusted(removal.intent.key)} was put back in ${formatIdentity(backend.identity)}. Sweeps leave it alone until a person removes it with unlock --force.${note === undefined ? "" : ` ${note}`}\n`,
    );
    return 0;
  } catch (error) {
    if (error instanceof JanitorError) throw error;
    throw new JanitorError("backend-failed", `${redactUrl(backendSettings.url)}: the lock was not put back`, { cause: error });
  } finally {
    await backend.close();
  }
}

async function askToRestore({ intent: { owner, key } }: RemovalHistory, surroundings: Surroundings): Promise<boolean> {
  const whose = owner === undefined ? "it" : `the lock of ${escapeUntrusted(`${owner.username}@${owner.hostname}`)}`;
  return await askYesNo(`Put ${whose} back? Its stack ${escapeUntrusted(key)} will be locked again.`, surroundings);
}
