import { setTimeout as sleep } from "node:timers/promises";

import pLimit from "p-limit";

import type { SweepReport } from "../../src/core/report.ts";
import { waitFor } from "../e2e/peers/child.ts";
import type { Field } from "./field.ts";
import { PROBE } from "./probe.ts";
import { stacksOf, type Scenario, type Scene } from "./scenario.ts";
import { haveEnded } from "./scenarios.ts";

/** What was seen of one lock, from its update's begin to the stack's next update. */
export interface Outcome {
  readonly scenario: Scenario;
  readonly stack: string;
  readonly kind: string;
  /** What the janitor said while Pulumi ran, and once everything had settled. */
  readonly before: string;
  readonly after: string;
  /** Whether the process that wrote the lock still ran then, by the node's `/proc`. */
  readonly ranAfter: boolean;
  /** The sweep that removed it, counted from the act. */
  readonly removedBy: number | undefined;
  /** Whether a person had to remove it. */
  readonly byHand: boolean;
  readonly up: { readonly ok: boolean; readonly output: string };
  /** Sweeps after which a process ran that had lost its lock: never any. */
  readonly wronged: readonly string[];
}

/** A sweep that removes, and what was true after it. */
interface Pass {
  readonly name: string;
  readonly report: SweepReport;
  /** Stacks whose writer ran after the sweep. */
  readonly running: ReadonlySet<string>;
  /** Of these, stacks whose lock was no longer there. */
  readonly wronged: ReadonlySet<string>;
}

/** A status counts for locks older than a minute, and a successor must have settled for half of one. */
const STATUS_AGE = 62_000;
const SETTLE = 32_000;

/** Runs all scenarios side by side: their updates, a sweep, what happens to them, three sweeps, and the next update of each stack. */
export async function runScenarios(field: Field, scenarios: readonly Scenario[], say: (line: string) => void): Promise<readonly Outcome[]> {
  const few = pLimit(3);
  const scenes = await Promise.all(scenarios.map((scenario) => few(async () => [scenario, await begin(field, scenario)] as const)));
  const written = Date.now();
  say(`${scenarios.length} scenarios, all updates under way`);
  const pass = async (name: string, run: () => Promise<SweepReport>): Promise<Pass> => {
    const report = await run();
    const alive = await field.truth.findAlive(scenes.flatMap(([, { writers }]) => writers));
    const running = new Set(alive.map(({ stack }) => stack));
    const wronged = new Set<string>();
    for (const [{ scheme }, { writers }] of scenes)
      for (const { stack } of writers) if (running.has(stack) && (await field.backends.readOwners(scheme, stack)).length === 0) wronged.add(stack);
    say(`${name}: ${report.locks.length} locks, ${report.summary.removed} removed, ${running.size} updates run`);
    return { name, report, running, wronged };
  };
  const before = await pass("before", () => field.sweep("--delete", ...PROBE));
  await Promise.all(scenes.map(([scenario, scene]) => few(() => scenario.act(scene))));
  const acted = Date.now();
  // The first at once and as a pod, when hardly anything can be proven yet.
  const passes = [await pass("at once, as a pod", () => field.sweepAsPod("--delete", ...PROBE))];
  await sleep(Math.max(0, written + STATUS_AGE - Date.now(), acted + SETTLE - Date.now()));
  for (const name of ["settled", "once more"]) passes.push(await pass(name, () => field.sweep("--delete", ...PROBE)));
  await Promise.all(
    scenes.map(([{ finish }, scene]) =>
      few(async () => {
        if (finish === undefined) return;
        await finish(scene);
        await waitFor(`the end of the updates in ${scene.placed.pod}`, async () => (await haveEnded(scene)) || undefined, { every: 200 });
      }),
    ),
  );
  const outcomes = scenes.flatMap(([scenario, scene]) => stacksOf(scenario).map((stack) => few(() => conclude(field, scenario, scene, stack, before, passes))));
  return await Promise.all(outcomes);
}

async function begin(field: Field, scenario: Scenario): Promise<Scene> {
  const shape = scenario.shape(field.shapes);
  const placed = await field.place(shape);
  const beginAll = async (): Promise<Scene["writers"]> => {
    const writers = [];
    for (const stack of stacksOf(scenario)) writers.push(await field.beginUpdate(placed, scenario.scheme, stack));
    return writers;
  };
  return { field, shape, placed, writers: await (scenario.begin === undefined ? beginAll() : scenario.begin(field, placed)) };
}

async function conclude(field: Field, scenario: Scenario, scene: Scene, stack: string, before: Pass, passes: readonly Pass[]): Promise<Outcome> {
  const judged = passes.map((pass) => ({ pass, lock: findLock(pass.report, stack) }));
  const removal = judged.find(({ lock }) => lock?.action === "deleted");
  const last = judged.at(-1);
  const left = last?.lock !== undefined && last.lock.action !== "deleted" && !last.pass.running.has(stack);
  if (left) await field.unlock(scenario.scheme, last.lock?.id ?? "");
  return {
    scenario,
    stack,
    kind: scene.shape.kind,
    before: describeVerdict(findLock(before.report, stack)),
    after: describeVerdict((removal ?? last)?.lock),
    ranAfter: (removal ?? last)?.pass.running.has(stack) === true,
    removedBy: removal === undefined ? undefined : judged.indexOf(removal) + 1,
    byHand: left,
    up: await field.up(scenario.scheme, stack),
    wronged: [before, ...passes].filter(({ wronged }) => wronged.has(stack)).map(({ name }) => name),
  };
}

/** What a sweep said of the lock of a stack. */
export function findLock({ locks }: SweepReport, stack: string): SweepReport["locks"][number] | undefined {
  return locks.find((lock) => lock.stack === `organization/demo/${stack}`);
}

/** A verdict with its reason, in short. */
export function describeVerdict(lock: SweepReport["locks"][number] | undefined): string {
  return lock === undefined ? "no lock" : `${lock.verdict}: ${lock.reason}`;
}
