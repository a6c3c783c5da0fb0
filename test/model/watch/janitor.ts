import type { ClusterObservation, Pod, ProcessObservation, StackList } from "../../../src/core/cluster.ts";
import type { SweepReport } from "../../../src/core/report.ts";
import type { ClusterSign, ClusterSource } from "../../../src/kubernetes/cluster-source.ts";
import { watch } from "../../../src/watch.ts";
import { seconds } from "../clock.ts";
import type { SimulatedCluster } from "../cluster.ts";
import { composeSweep } from "../janitor.ts";
import type { StoredLock } from "../store.ts";
import { ClusterView, GOOD_MOOD, type StoreFault, type Steps } from "../views.ts";
import type { WatchedField } from "./field.ts";
import type { Follow } from "./follow.ts";

/** How the life of one janitor process goes. */
export interface JanitorPlan {
  /** Seconds that each call takes. */
  readonly latency: number;
  readonly probe: "none" | "whole" | "partly" | "failed";
  /** It dies at this call: before it is made, or once it has taken effect. */
  readonly crash: { readonly call: number; readonly after: boolean } | undefined;
  readonly faults: readonly { readonly call: number; readonly kind: StoreFault }[];
  /** A signal comes before this call. */
  readonly signal: number | undefined;
  /** Seconds until another process is started, once it has ended. */
  readonly down: number;
}

/** One process that runs the real watch. */
export class WatchingJanitor {
  readonly stop = new AbortController();
  readonly #field: WatchedField;
  readonly #plan: JanitorPlan;
  readonly #died = Promise.withResolvers<undefined>();
  readonly #never = new Promise<never>(() => undefined);
  #dead = false;
  #calls = 0;

  constructor(field: WatchedField, plan: JanitorPlan) {
    this.#field = field;
    this.#plan = plan;
  }

  get probe(): JanitorPlan["probe"] {
    return this.#plan.probe;
  }

  /** Watches until it is stopped or dies. */
  async run(): Promise<void> {
    const { world, oracle, history } = this.#field;
    const steps = this.#composeSteps();
    const mood = { ...GOOD_MOOD, probe: this.#plan.probe };
    const { settings, parts } = composeSweep(world, { mood, steps, stop: this.stop.signal });
    const { runId: _, deadline: __, onProgress: ___, ...common } = parts;
    let before: ReadonlySet<StoredLock> = new Set();
    let latest: SweepReport | undefined;
    const clusters = world.configured.map((cluster, index) => new WatchedCluster(this.#field, cluster, this.#field.follows[index], this.#plan.probe, steps));
    oracle.restart();
    const running = watch(
      { interval: history.interval * 1_000, sweep: { ...settings, failOn: [], maxDeletions: history.maxDeletions } },
      {
        ...common,
        clusters,
        newRunId: () => world.newRunId(),
        newDeadline: () => new AbortController().signal,
        sleep: (milliseconds, signal) => this.#sleep(milliseconds, signal),
        openBackends: () => {
          oracle.begin();
          before = world.oracle.noteStores();
          for (const cluster of clusters) cluster.renew();
          return Promise.resolve({ backends: composeSweep(world, { mood, steps, stop: this.stop.signal }).backends });
        },
        onEvent: (event) => oracle.tell(event),
        onFollow: ({ trouble }) => world.oracle.tally.add(trouble === undefined ? "followed" : "not followed"),
        onSweep: (report, whole) => {
          oracle.end(report, whole, before);
          if (whole) latest = report;
        },
      },
    );
    await Promise.race([running, this.#died.promise]);
    for (const follow of this.#field.follows) follow.detach();
    if (this.#dead) world.oracle.tally.action("janitor died");
    else if (latest?.exitCode === 0 && !this.stop.signal.aborted) oracle.judgeTold(latest);
  }

  /** Ends it as kill -9 does. */
  die(): void {
    this.#dead = true;
    this.#died.resolve(undefined);
  }

  async #sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
    await this.#field.play(this.#field.world.timeline.now + seconds(milliseconds / 1_000), () => signal.aborted || this.#dead);
    if (this.#dead) return await this.#never;
    signal.throwIfAborted();
  }

  #composeSteps(): Steps {
    const { world } = this.#field;
    return {
      lookedAt: world.timeline.now,
      before: async (name) => {
        if (this.#dead) return await this.#never;
        this.#calls += 1;
        const call = this.#calls;
        await this.#field.play(world.timeline.now + seconds(this.#plan.latency), () => this.#dead);
        if (!this.#dead && !this.#field.healed && this.#plan.crash?.call === call && !this.#plan.crash.after) this.die();
        if (this.#dead) return await this.#never;
        if (this.#plan.signal === call && !this.#field.healed) this.stop.abort();
        world.oracle.tally.call(name);
        return this.#field.healed ? undefined : this.#plan.faults.find((fault) => fault.call === call)?.kind;
      },
      after: async () => {
        const { crash } = this.#plan;
        if (!this.#field.healed && crash?.after === true && crash.call <= this.#calls) this.die();
        if (this.#dead) await this.#never;
      },
    };
  }
}

/** A cluster as a watch sees it: each sweep with the API's mood of that moment, and a stream of changes. */
class WatchedCluster implements ClusterSource {
  readonly kind = "live";
  readonly name: string;
  readonly #field: WatchedField;
  readonly #cluster: SimulatedCluster;
  readonly #follow: Follow | undefined;
  readonly #probe: JanitorPlan["probe"];
  readonly #steps: Steps;
  #view: ClusterView;

  constructor(field: WatchedField, cluster: SimulatedCluster, follow: Follow | undefined, probe: JanitorPlan["probe"], steps: Steps) {
    this.name = cluster.name;
    this.#field = field;
    this.#cluster = cluster;
    this.#follow = follow;
    this.#probe = probe;
    this.#steps = steps;
    this.#view = this.#open();
  }

  /** What caches hold is of the beginning of each sweep. */
  renew(): void {
    this.#view = this.#open();
  }

  async observe(hostnames: ReadonlySet<string>): Promise<ClusterObservation> {
    return await this.#view.observe(hostnames);
  }

  async findNamesakes(hostname: string): Promise<readonly Pod[]> {
    return await this.#view.findNamesakes(hostname);
  }

  async probe(pod: Pod): Promise<ProcessObservation> {
    return await this.#view.probe(pod);
  }

  async listStacks(): Promise<StackList> {
    return await this.#view.listStacks();
  }

  whoAmI(): Promise<string | undefined> {
    return Promise.resolve(undefined);
  }

  listHostnames(): Promise<readonly string[]> {
    return Promise.resolve([]);
  }

  async follow(onSign: (sign: ClusterSign) => void, signal: AbortSignal): Promise<void> {
    this.#follow?.attach((sign) => {
      this.#field.oracle.note(sign);
      onSign(sign);
    });
    await new Promise<void>((done) => {
      signal.addEventListener("abort", () => done(), { once: true });
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #open(): ClusterView {
    return new ClusterView(this.#cluster, this.#field.world, { ...this.#field.mood, probe: this.#probe }, this.#steps);
  }
}
