import type { EpochNanoseconds } from "../../../src/core/time.ts";
import { seconds } from "../clock.ts";
import { GOOD_MOOD, type ApiMood } from "../views.ts";
import { World, type Setup } from "../world.ts";
import { performBeside, type WatchAction } from "./actions.ts";
import { Follow } from "./follow.ts";
import { WatchingJanitor, type JanitorPlan } from "./janitor.ts";
import { WatchOracle } from "./oracle.ts";

/** What happens while a watch runs, from the beginning to the end. */
export interface WatchHistory {
  readonly setup: Setup;
  /** Seconds. */
  readonly interval: number;
  readonly maxDeletions: number;
  /** Seconds from a change to its sign. */
  readonly lag: number;
  /** One process after the other; those that follow have nothing of their own go wrong. */
  readonly janitors: readonly JanitorPlan[];
  readonly actions: readonly WatchAction[];
}

/** Seconds in which nothing is doubted any more: longer than a node is doubted, and than a pod takes to end. */
const HEALING = 1_400;

/** How many intervals a watch gets to remove what is provably stale. */
const INTERVALS = 2;

/** A process of which nothing is in the way. */
export const SOUND: JanitorPlan = { latency: 0.02, probe: "whole", crash: undefined, faults: [], signal: undefined, down: 0.5 };

/** A world with a watch in it. What the script says happens while the watch sleeps, or waits for an answer. */
export class WatchedField {
  readonly world: World;
  readonly history: WatchHistory;
  readonly follows: readonly Follow[];
  readonly oracle: WatchOracle;
  mood: ApiMood = GOOD_MOOD;
  janitor: WatchingJanitor | undefined;
  healed = false;
  readonly #script: { readonly at: EpochNanoseconds; readonly happen: () => Promise<void> }[] = [];
  #turn: Promise<void> = Promise.resolve();
  #over = false;

  constructor(history: WatchHistory, tell?: (line: string) => void) {
    this.world = new World(history.setup);
    this.world.tell = tell;
    this.history = history;
    this.oracle = new WatchOracle(this.world, seconds(history.interval), history.maxDeletions);
    this.follows = this.world.configured.map((cluster) => new Follow(this.world, cluster, history.lag));
    let at = this.world.timeline.now;
    for (const action of history.actions) {
      if (action.do === "wait") at += seconds(action.seconds);
      else this.#script.push({ at, happen: async () => await performBeside(this, action) });
    }
    this.#script.push({ at, happen: () => Promise.resolve(this.#heal()) });
  }

  /** Lets everything happen, with one janitor after the other; ends in health. */
  async run(): Promise<void> {
    const { world } = this;
    for (let number = 0; !this.#over && world.oracle.violations.length === 0; number += 1) {
      const plan = (this.healed ? undefined : this.history.janitors[number]) ?? SOUND;
      world.note(() => `a janitor begins to watch: ${JSON.stringify(plan)}`);
      this.janitor = new WatchingJanitor(this, plan);
      await this.janitor.run();
      this.janitor = undefined;
      await this.play(world.timeline.now + seconds(plan.down), () => this.#over);
    }
  }

  /** Lets time pass until then, or until somebody no longer waits, with everything that happens meanwhile. Who waits at the same time waits behind. */
  async play(until: EpochNanoseconds, over: () => boolean): Promise<void> {
    const before = this.#turn;
    const turn = before.then(async () => await this.#playOn(until, over));
    this.#turn = turn;
    await turn;
  }

  async #playOn(until: EpochNanoseconds, over: () => boolean): Promise<void> {
    const { timeline, oracle } = this.world;
    while (!over()) {
      // A history ends where a promise is broken.
      if (oracle.violations.length > 0) this.janitor?.die();
      const next = [until, timeline.nextAt, this.#script[0]?.at].reduce<EpochNanoseconds>((a, b) => (b !== undefined && b < a ? b : a), until);
      if (next > timeline.now) timeline.advanceTo(next);
      else timeline.advanceTo(timeline.now);
      const [first] = this.#script;
      if (first !== undefined && first.at <= timeline.now && !over()) {
        this.#script.shift();
        await first.happen();
      }
      for (const follow of this.follows) follow.notice();
      const left = this.#script[0]?.at;
      if (timeline.now >= until && (left === undefined || left > timeline.now)) return;
    }
  }

  #heal(): void {
    const { world } = this;
    world.note(() => "everything is healed");
    this.healed = true;
    this.mood = GOOD_MOOD;
    for (const node of world.nodes) node.change({ cut: false, hung: false, ...(node.inApi && !node.outOfService ? { on: true } : {}) });
    for (const follow of this.follows) follow.goOn();
    world.janitorClock.offset = seconds(this.history.setup.janitorAhead);
    this.oracle.forgive();
    // Another janitor's sweep may have taken more time than the script says, so this is told from now on.
    const endsAt = world.timeline.now + seconds(HEALING + (INTERVALS + 0.5) * this.history.interval);
    this.#script.push({ at: endsAt, happen: () => Promise.resolve(this.#end()) });
    // What a probe can prove is asked for in the end; another setting wants another process.
    if (this.janitor?.probe !== SOUND.probe) this.janitor?.stop.abort();
  }

  #end(): void {
    this.#over = true;
    this.janitor?.stop.abort();
  }
}
