import { randomUUID } from "node:crypto";
import { hostname } from "node:os";

import { openBackend, redactUrl } from "./backends/open.ts";
import { resolveBackends, type Settings } from "./config.ts";
import { formatIdentity } from "./core/backend-identity.ts";
import type { RemovalHistory } from "./core/record.ts";
import { escapeUntrusted } from "./core/text.ts";
import { fromMilliseconds, MILLISECOND } from "./core/time.ts";
import { JanitorError } from "./errors.ts";
import { openAuditLog } from "./output/open-audit-log.ts";
import { findRemoval, restoreLock } from "./restore.ts";
import type { Surroundings } from "./surroundings.ts";
import { VERSION } from "./version.ts";

/** Runs `restore` for one record and gives the exit code. Throws a `JanitorError` for what is refused. */
export async function runRestore(id: string, settings: Settings, { env, interactive, stdout, stderr, stop }: Surroundings): Promise<number> {
  const [backendSettings, ...others] = resolveBackends(settings, env);
  if (backendSettings === undefined || others.length > 0) throw new JanitorError("usage", "restore works on one backend", { hint: "Give --backend once." });
  const backend = await openBackend({
    url: backendSettings.url,
    env: backendSettings.env,
    requestTimeout: Number(settings.requestTimeout / MILLISECOND),
    now: () => Date.now(),
  });
  try {
    const audit = openAuditLog(settings.auditLog, backend);
    const removal = await findRemoval(audit, id, stop);
    if (interactive && !settings.yes && !(await askToRestore(removal, stderr, stop)))
      throw new JanitorError("restore-refused", "nothing was put back: the question was not answered with yes");
    const remover = { runId: randomUUID(), janitor: { version: VERSION, hostname: hostname() }, overrides: [], now: () => fromMilliseconds(Date.now()) };
    const note = await restoreLock(backend, audit, removal, remover, stop);
    stdout.write(
      `${escapeUntrusted(removal.intent.key)} was put back in ${formatIdentity(backend.identity)}. Sweeps leave it alone until a person removes it.${note === undefined ? "" : ` ${note}`}\n`,
    );
    return 0;
  } catch (error) {
    if (error instanceof JanitorError) throw error;
    throw new JanitorError("backend-failed", `${redactUrl(backendSettings.url)}: the lock was not put back`, { cause: error });
  } finally {
    await backend.close();
  }
}

async function askToRestore({ intent }: RemovalHistory, stderr: NodeJS.WriteStream, stop: AbortSignal): Promise<boolean> {
  const { confirm, isCancel } = await import("@clack/prompts");
  const owner = escapeUntrusted(`${intent.owner.username}@${intent.owner.hostname}`);
  const answer = await confirm({
    message: `Put the lock of ${owner} back? Its stack ${escapeUntrusted(intent.key)} will be locked again.`,
    initialValue: false,
    output: stderr,
    signal: stop,
  });
  return !isCancel(answer) && answer;
}
