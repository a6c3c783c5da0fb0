import { BUILTIN_OWNERS } from "../../src/core/owner.ts";
import type { SweepReport } from "../../src/core/report.ts";
import { HOUR, SECOND } from "../../src/core/time.ts";
import { openBackendAuditLog } from "../../src/output/backend-audit-log.ts";
import { sweep, type SweepParts, type SweepSettings } from "../../src/sweep.ts";
import type { OpenBackend } from "../../src/unlock.ts";
import type { Action } from "./actions.ts";
import { seconds } from "./clock.ts";
import { ClusterView, StoreView, type ApiMood, type Steps, type StoreFault } from "./views.ts";
import type { World } from "./world.ts";

/** How one sweep goes. */
export interface SweepPlan {
  readonly mood: ApiMood;
  /** Seconds that each call takes. */
  readonly latency: number;
  /** The process dies at this call: before it is made, or once it has taken effect. */
  readonly crash: { readonly call: number; readonly after: boolean } | undefined;
  readonly fault: { readonly call: number; readonly kind: StoreFault } | undefined;
  /** A signal comes before this call. */
  readonly signal: number | undefined;
  /** What happens before a call. */
  readonly meanwhile: readonly { readonly call: number; readonly actions: readonly Action[] }[];
}

export const SKEW = 5n * SECOND;
// The default of --confirm-delay.
const CONFIRM_DELAY = 6;

/** One sweep of the configured clusters over every store; gives nothing when the janitor died. */
export async function runSweep(world: World, plan: SweepPlan, perform: (world: World, action: Action) => Promise<void>): Promise<SweepReport | undefined> {
  const never = new Promise<never>(() => undefined);
  const died = Promise.withResolvers<undefined>();
  const stop = new AbortController();
  let calls = 0;
  let dead = false;
  const die = async (): Promise<never> => {
    dead = true;
    died.resolve(undefined);
    return await never;
  };
  const underWay: Promise<void>[] = [];
  const playMeanwhile = async (items: SweepPlan["meanwhile"]): Promise<void> => {
    for (const { actions } of items) for (const action of actions) await perform(world, action);
  };
  const steps: Steps = {
    lookedAt: world.timeline.now,
    before: async (name) => {
      if (dead) return await never;
      calls += 1;
      const call = calls;
      world.timeline.advance(plan.latency);
      const playing = playMeanwhile(plan.meanwhile.filter((item) => item.call === call));
      underWay.push(playing);
      await playing;
      // Another call of this janitor may have been its last while this one waited.
      if (dead) return await never;
      if (plan.signal === call) stop.abort();
      if (plan.crash?.call === call && !plan.crash.after) return await die();
      world.oracle.tally.call(name);
      return plan.fault?.call === call ? plan.fault.kind : undefined;
    },
    after: async () => {
      if (dead || (plan.crash !== undefined && plan.crash.after && plan.crash.call <= calls)) await die();
    },
  };
  const before = world.oracle.noteStores();
  const { settings, parts, backends } = composeSweep(world, { mood: plan.mood, steps, stop: stop.signal });
  const running = sweep({ ...settings, failOn: [], selection: { projects: [], stacks: [], locks: [] } }, { ...parts, backends });
  const report = await Promise.race([running, died.promise]);
  // What others do goes on when a janitor dies, and ends before the history does.
  await Promise.all(underWay);
  if (report === undefined) world.oracle.tally.action("janitor died");
  else world.oracle.judgeReport(report, before);
  return report;
}

/** What a sweep of this world is told, and works with. */
export function composeSweep(
  world: World,
  { mood, steps, stop = new AbortController().signal }: { readonly mood: ApiMood; readonly steps: Steps; readonly stop?: AbortSignal },
): {
  readonly settings: Omit<SweepSettings, "selection" | "failOn">;
  readonly parts: Omit<SweepParts, "backends">;
  readonly backends: readonly OpenBackend[];
} {
  return {
    settings: {
      delete: world.mayDelete,
      rules: {
        owners: [...BUILTIN_OWNERS, { glob: "iac-runner-*", profile: "explicit" }],
        requireStack: undefined,
        minAge: seconds(world.setup.minAge),
        clockSkew: SKEW,
        settle: seconds(world.setup.settle),
        ignoredNodes: { all: false, names: [] },
        probe: { enabled: mood.probe !== "none", after: 0n },
      },
      confirmDelay: CONFIRM_DELAY * 1_000,
      maxDeletions: 50,
      overrides: [{ option: "--exclusive", value: "" }],
      warnHeldAfter: 100n * HOUR,
    },
    parts: {
      clusters: world.configured.map((cluster) => new ClusterView(cluster, world, mood, steps)),
      now: () => world.janitorClock.read(),
      sleep: (milliseconds) => {
        world.timeline.advance(milliseconds / 1_000);
        return Promise.resolve();
      },
      runId: world.newRunId(),
      janitor: { version: "model", hostname: "model" },
      deadline: new AbortController().signal,
      stop,
      onProgress: () => undefined,
    },
    backends: world.stores.map((store) => {
      const backend = new StoreView(store, world, steps);
      return { kind: "open", backend, audit: openBackendAuditLog(backend.records) } as const;
    }),
  };
}
