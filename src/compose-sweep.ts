import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import { redactUrl } from "./backends/open.ts";
import { findWeakenedMargins, resolveOwners, type BackendSettings, type Settings } from "./config.ts";
import type { RuleSettings } from "./core/decide.ts";
import type { OverrideUsed } from "./core/report.ts";
import { formatDuration, formatTimestamp, fromMilliseconds } from "./core/time.ts";
import { JanitorError } from "./errors.ts";
import { toMilliseconds } from "./open-parts.ts";
import type { Remover } from "./remove-lock.ts";
import type { Surroundings } from "./surroundings.ts";
import type { SweepParts, SweepSettings } from "./sweep.ts";
import type { AfterUnlockSettings } from "./tell-stacks.ts";
import { VERSION } from "./version.ts";

/** What a sweep is told to do, by the settings of the command. */
export function composeSweepSettings(settings: Settings, backends: readonly BackendSettings[]): SweepSettings {
  return {
    delete: settings.delete,
    rules: toRules(settings),
    confirmDelay: toMilliseconds(settings.confirmDelay),
    maxDeletions: settings.maxDeletions,
    failOn: settings.failOn.filter((name) => name !== "none"),
    overrides: listOverrides(settings, backends),
    selection: { projects: settings.projects, stacks: settings.stacks, locks: settings.locks },
    warnHeldAfter: settings.warnHeldAfter,
    afterUnlock: toAfterUnlock(settings),
  };
}

/** What a sweep gets from the process: its clock, its name, its signals. */
export function composeSweepParts(settings: Settings, { stop }: Surroundings): Omit<SweepParts, "backends" | "clusters" | "onProgress"> {
  return {
    ...composeRemover(),
    sleep: async (milliseconds, signal) => await sleep(milliseconds, undefined, { signal }),
    deadline: settings.timeout === undefined ? new AbortController().signal : AbortSignal.timeout(toMilliseconds(settings.timeout)),
    stop,
  };
}

/** Who removes or puts back, for the record: a new run of this janitor. */
export function composeRemover(): Omit<Remover, "overrides"> {
  return { runId: randomUUID(), janitor: { version: VERSION, hostname: hostname() }, now: () => fromMilliseconds(Date.now()) };
}

/** Stops a removal where nobody said that no other cluster writes to the backend. Throws `usage`. */
export function refuseUnstated(backends: readonly BackendSettings[], what: string): void {
  const open = backends.filter(({ exclusive }) => !exclusive);
  if (open.length === 0) return;
  throw new JanitorError("usage", `${what} wants --exclusive for ${open.map(({ url }) => redactUrl(url)).join(", ")}`, {
    hint: "With it you state that every writer whose host matches an owner pattern runs in the clusters configured here. If another cluster uses the same backend, its live locks would be removed.",
  });
}

/** Stops a removal on the word of a file whose age nobody knows. Throws `usage`. */
export function refuseUndatedSnapshot({ podsFrom, podsTakenAt }: Settings, what: string): void {
  if (podsFrom === undefined || podsTakenAt !== undefined) return;
  throw new JanitorError("usage", `${what} with --pods-from wants --pods-taken-at, the time at which kubectl began`, {
    hint: "Without it a file is good for a report only: nobody knows how old it is.",
  });
}

/** Whom a removal is told, and what it looks at besides. */
export function toAfterUnlock({ requeueStacks, stackEvents, checkPending }: Settings): AfterUnlockSettings {
  return { requeueStacks, stackEvents, checkPending };
}

function toRules(settings: Settings): RuleSettings {
  return {
    owners: resolveOwners(settings),
    requireStack: settings.requireStack,
    minAge: settings.minAge,
    clockSkew: settings.clockSkew,
    settle: settings.settle,
    probe: { enabled: settings.probeProcesses, after: settings.probeAfter },
    ignoredNodes: {
      all: settings.unreachableNodes.includes("ignore"),
      names: settings.unreachableNodes.filter((value) => value.startsWith("ignore:")).map((value) => value.slice("ignore:".length)),
    },
  };
}

/** Every rule that a person overrides, for report and record (promise P1). */
function listOverrides(settings: Settings, backends: readonly BackendSettings[]): OverrideUsed[] {
  // The flag is said of every backend, those that are yet to be discovered too.
  const vouched = settings.exclusive ? [true] : backends.map(({ exclusive }) => exclusive);
  return [
    ...(vouched.includes(true) ? [{ option: "--exclusive", value: vouched.every(Boolean) ? "" : "for some backends" }] : []),
    ...settings.owners.map(({ glob, container }) => ({ option: "--owner", value: container === undefined ? glob : `${glob}=${container}` })),
    ...(settings.requireStack === "no" ? [{ option: "--require-stack", value: "no" }] : []),
    ...settings.unreachableNodes.map((value) => ({ option: "--unreachable-nodes", value })),
    ...settings.namespaces.map((value) => ({ option: "--namespace", value })),
    ...findWeakenedMargins(settings).map(({ option, value }) => ({ option, value: formatDuration(value) })),
    ...(settings.podsTakenAt === undefined ? [] : [{ option: "--pods-taken-at", value: formatTimestamp(settings.podsTakenAt) }]),
  ];
}
