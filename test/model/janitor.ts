// The real sweep at work in the model: its backends and clusters are the model's, and between any two of its steps something may happen.
import { setImmediate } from "node:timers/promises";

import type { Backend } from "../../src/backends/backend.ts";
import { BUILTIN_OWNERS } from "../../src/core/owner.ts";
import type { SweepReport } from "../../src/core/report.ts";
import { HOUR, SECOND } from "../../src/core/time.ts";
import { JanitorError } from "../../src/errors.ts";
import type { ClusterSource } from "../../src/kubernetes/cluster-source.ts";
import { openBackendAuditLog } from "../../src/output/backend-audit-log.ts";
import { sweep } from "../../src/sweep.ts";
import { EVERY_LOCK, RULES } from "../sweep-world.ts";
import { toTime } from "./clock.ts";
import { showNodes, showPod, showPods, type Blindness, type StacksOf } from "./observe.ts";
import type { World } from "./world.ts";

/** How one sweep fares. */
export interface SweepPlan extends Blindness {
  readonly clusters: number;
  readonly probe: boolean;
  /** The look by name is answered from a cache as old as the last but one look. */
  readonly staleCache: boolean;
  /** What happens before its steps: called with the number of each, from 1. */
  readonly meanwhile: (step: number) => void | Promise<void>;
  /** Dies at this step: before it is done, or after. */
  readonly crash?: { readonly step: number; readonly after: boolean };
  /** The store fails at this step: without having done it, or having done it. */
  readonly failure?: { readonly step: number; readonly after: boolean };
}

/** Told of what a janitor did to the store. */
export interface Watcher {
  readonly onRemoved: (key: string, body: string) => void;
}

/** Runs one sweep; undefined when the janitor crashed. */
export async function runSweep(world: World, stacks: StacksOf, plan: SweepPlan, watcher: Watcher, runId: string): Promise<SweepReport | undefined> {
  let steps = 0;
  let crash: (() => void) | undefined;
  const crashed = new Promise<undefined>((done) => {
    crash = () => done(undefined);
  });
  const never = (): Promise<never> => {
    crash?.();
    return new Promise(() => undefined);
  };
  /** One step: what comes before it, what it does, and what becomes of its answer. */
  const step = async <Result>(run: () => Promise<Result>): Promise<Result> => {
    steps += 1;
    const number = steps;
    await plan.meanwhile(number);
    if (plan.crash?.step === number && !plan.crash.after) return await never();
    if (plan.failure?.step === number && !plan.failure.after) throw new JanitorError("backend-unreachable", "the store could not be reached");
    const result = await run();
    if (plan.crash?.step === number) return await never();
    if (plan.failure?.step === number) throw new JanitorError("backend-unreachable", "the store's answer was lost");
    return result;
  };
  const backend = wrapStore(world, step, watcher);
  const report = sweep(
    {
      delete: true,
      rules: { ...RULES, owners: [...BUILTIN_OWNERS, { glob: "iac-runner-*", profile: "explicit" }] },
      confirmDelay: 3_000,
      maxDeletions: 50,
      failOn: [],
      overrides: [{ option: "--exclusive", value: "" }],
      selection: EVERY_LOCK,
      warnHeldAfter: 100n * HOUR,
    },
    {
      backends: [{ kind: "open", backend, audit: openBackendAuditLog(backend.records) }],
      clusters: Array.from({ length: plan.clusters }, (_, index) => wrapCluster(world, index, stacks, plan, step)),
      now: () => toTime(world.now),
      sleep: async (milliseconds) => {
        await setImmediate();
        world.pass(milliseconds / 1_000);
      },
      runId,
      janitor: { version: "0.0.0-model", hostname: runId },
      deadline: new AbortController().signal,
      stop: new AbortController().signal,
      onProgress: () => undefined,
    },
  );
  return await Promise.race([report, crashed]);
}

type Step = <Result>(run: () => Promise<Result>) => Promise<Result>;

function wrapStore(world: World, step: Step, watcher: Watcher): Backend {
  const { store } = world;
  return {
    identity: store.identity,
    concurrency: 2,
    credential: store.credential,
    records: {
      place: store.records.place,
      create: (name, bytes) => step(() => store.records.create(name, bytes)),
      list: (signal) => step(() => store.records.list(signal)),
      read: (name, signal) => step(() => store.records.read(name, signal)),
    },
    listLocks: async function* () {
      yield await step(async () => {
        for await (const page of store.listLocks()) return page;
        return [];
      });
    },
    readLock: (key) => step(() => store.readLock(key)),
    deleteLock: (key, version) =>
      step(async () => {
        const body = store.objects.get(key)?.bytes;
        const deletion = await store.deleteLock(key, version);
        if (deletion.kind === "deleted" && body !== undefined) watcher.onRemoved(key, new TextDecoder().decode(body));
        return deletion;
      }),
    createLock: (key, body) => step(() => store.createLock(key, body)),
    checkWrites: () => store.checkWrites(),
    clockOffset: () => (world.storeClock === undefined ? undefined : BigInt(Math.round(world.storeClock * 1_000)) * (SECOND / 1_000n)),
    close: () => Promise.resolve(),
  };
}

function wrapCluster(world: World, cluster: number, stacks: StacksOf, plan: SweepPlan, step: Step): ClusterSource {
  const name = `cluster-${cluster}`;
  return {
    name,
    kind: "live",
    // As the real one: the nodes first, then pods and Stacks.
    observe: async () => {
      const nodes = await step(() => Promise.resolve(showNodes(world, cluster, plan)));
      const pods = await step(() => Promise.resolve(showPods(world, cluster, plan.probe, plan)));
      return {
        name,
        uid: `uid-of-${name}`,
        source: { kind: "live" },
        pods,
        nodes,
        stacks: plan.stacksDenied ? { kind: "unlisted", problem: "403" } : { kind: "listed", stacks: stacks(cluster) },
      };
    },
    findNamesakes: (hostname) =>
      step(() =>
        // A cache that is behind still shows what is gone, or does not show yet what is new.
        Promise.resolve(
          world.pods
            .filter((pod) => pod.cluster === cluster && pod.name === hostname && (plan.staleCache ? !pod.listed || pod.createdAt < world.now - 30 : pod.listed))
            .map((pod) => showPod(world, pod, "off")),
        ),
      ),
    listStacks: () => Promise.resolve({ kind: "listed", stacks: stacks(cluster) }),
    whoAmI: () => Promise.resolve(undefined),
    listHostnames: () => Promise.resolve([]),
    close: () => Promise.resolve(),
  };
}
