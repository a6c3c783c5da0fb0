// What a janitor sees of the world: a store and a cluster, through calls between any two of which something may happen.
import type { Backend, Deletion, LockEntry, LockRead, RecordStore, StateRead, WriteCheck } from "../../src/backends/backend.ts";
import type { ClusterObservation, Pod, ProcessObservation, StackList } from "../../src/core/cluster.ts";
import { parseLockBody } from "../../src/core/lock.ts";
import type { EpochNanoseconds, Nanoseconds } from "../../src/core/time.ts";
import { JanitorError } from "../../src/errors.ts";
import type { ClusterSource } from "../../src/kubernetes/cluster-source.ts";
import { matchHostnames } from "../../src/kubernetes/match-hostnames.ts";
import type { SimulatedCluster } from "./cluster.ts";
import type { ModelStore } from "./store.ts";
import type { World } from "./world.ts";

/** How one call goes wrong: nothing was done; it was done and nobody said so; it was done and sent twice. */
export type StoreFault = "refused" | "answer-lost" | "sent-twice";

/** Runs before and after each call. */
export interface Steps {
  /** When the nodes were last listed, in true time. */
  lookedAt: EpochNanoseconds;
  before(call: string): Promise<StoreFault | undefined>;
  after(): Promise<void>;
}

/** How an API server answers one sweep. */
export interface ApiMood {
  readonly pods: "whole" | "cut-short" | "denied" | "expires";
  readonly nodes: "listed" | "denied";
  readonly stacks: "listed" | "denied";
  readonly namesakes: "fresh" | "stale" | "denied";
  /** What a probe of the processes sees. */
  readonly probe: "none" | "whole" | "partly" | "failed";
}

export const GOOD_MOOD: ApiMood = { pods: "whole", nodes: "listed", stacks: "listed", namesakes: "fresh", probe: "none" };

/** A store as one janitor sees it. */
export class StoreView implements Backend {
  readonly identity;
  readonly concurrency;
  readonly credential = "nobody";
  readonly records: RecordStore;
  readonly #store: ModelStore;
  readonly #world: World;
  readonly #steps: Steps;

  constructor(store: ModelStore, world: World, steps: Steps) {
    this.#store = store;
    this.#world = world;
    this.#steps = steps;
    this.identity = store.identity;
    this.concurrency = store.manners.concurrency;
    this.records = {
      place: "model/audit/",
      create: async (name, bytes) =>
        await this.#call(`record ${name}`, () => {
          if (store.records.has(name)) return "exists";
          store.records.set(name, bytes);
          return "created";
        }),
      list: async () => await this.#call("list-records", () => Array.from(store.records.keys())),
      read: async (name) => await this.#call(`read-record ${name}`, () => store.records.get(name)),
    };
  }

  async *listLocks(): AsyncGenerator<readonly LockEntry[]> {
    const pages = await this.#call("list", () => {
      const entries = Array.from(this.#store.objects.values(), ({ key, storedAt }): LockEntry =>
        this.#store.manners.notesTimes ? { key, storedAt } : { key },
      );
      return [entries.slice(0, 2), entries.slice(2)];
    });
    for (const page of pages) yield page;
  }

  async readLock(key: string): Promise<LockRead> {
    return await this.#call(`read ${key}`, (): LockRead => {
      const lock = this.#store.objects.get(key);
      if (lock === undefined) return { kind: "gone" };
      const times = this.#store.manners.notesTimes ? { storedAt: lock.storedAt } : {};
      return { kind: "found", version: lock.version, content: parseLockBody(lock.bytes), ...times };
    });
  }

  readState(): Promise<StateRead> {
    return Promise.resolve({ kind: "gone" });
  }

  async deleteLock(key: string, version: string): Promise<Deletion> {
    let twice = false;
    const deletion = await this.#call(
      `delete ${key}`,
      (): Deletion => {
        const lock = this.#store.objects.get(key);
        if (lock === undefined) return { kind: "vanished" };
        if (lock.version !== version) return { kind: "changed" };
        this.#world.oracle.judgeRemoval(this.#store, lock, this.#steps.lookedAt);
        this.#store.depart(key, "janitor");
        return { kind: "deleted", conditionEnforced: true };
      },
      () => (twice = true),
    );
    return twice && deletion.kind === "deleted" ? { kind: "deleted-unconfirmed" } : deletion;
  }

  async createLock(key: string, body: Uint8Array): Promise<"created" | "exists"> {
    return await this.#call(`create ${key}`, () => {
      if (this.#store.objects.has(key)) return "exists";
      const writer = this.#store.departures.find(({ lock }) => lock.key === key)?.lock.writer;
      this.#store.put(key, body, writer);
      return "created";
    });
  }

  checkWrites(): Promise<readonly WriteCheck[]> {
    return Promise.resolve([]);
  }

  clockOffset(): Nanoseconds | undefined {
    return this.#store.manners.tellsTime ? this.#store.clock.offset - this.#world.janitorClock.offset : undefined;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #call<Value>(name: string, run: () => Value, onTwice: () => void = () => undefined): Promise<Value> {
    const fault = await this.#steps.before(name);
    if (fault === "refused") throw new JanitorError("backend-failed", "refused");
    const value = run();
    if (fault === "sent-twice") onTwice();
    await this.#steps.after();
    if (fault === "answer-lost") throw new JanitorError("backend-unreachable", "nobody answered");
    return value;
  }
}

/** A cluster as one janitor sees it: nodes first, then the pods page by page, all as they were at the first page, then the Stacks. */
export class ClusterView implements ClusterSource {
  readonly kind = "live";
  readonly name: string;
  readonly #cluster: SimulatedCluster;
  readonly #world: World;
  readonly #mood: ApiMood;
  readonly #steps: Steps;
  /** The pods as a cache had them when the sweep began. */
  readonly #cached: readonly Pod[];

  constructor(cluster: SimulatedCluster, world: World, mood: ApiMood, steps: Steps) {
    this.name = cluster.name;
    this.#cluster = cluster;
    this.#world = world;
    this.#mood = mood;
    this.#steps = steps;
    this.#cached = mood.namesakes === "stale" ? this.#listPods() : [];
  }

  async observe(hostnames: ReadonlySet<string>): Promise<ClusterObservation> {
    await this.#steps.before("nodes");
    this.#steps.lookedAt = this.#world.timeline.now;
    const nodes = this.#cluster.nodes.filter(({ inApi }) => inApi).map((node) => node.toApi());
    await this.#steps.before("pods");
    let pods = this.#listPods();
    await this.#steps.before("next-page");
    if (this.#mood.pods === "expires") pods = this.#listPods();
    const wanted = pods.filter(matchHostnames(hostnames, this.#mood.nodes === "listed" ? nodes : []));
    const total = pods.length + 7;
    await this.#steps.before("stacks");
    return {
      name: this.name,
      uid: `uid-of-${this.name}`,
      source: { kind: "live" },
      pods:
        this.#mood.pods === "whole" || this.#mood.pods === "expires"
          ? { kind: "complete", pods: wanted, total }
          : { kind: "incomplete", problem: this.#mood.pods, pods: this.#mood.pods === "denied" ? [] : wanted.slice(1), total },
      nodes: this.#mood.nodes === "listed" ? { kind: "listed", nodes } : { kind: "unlisted", problem: "403" },
      stacks: this.#stackList(),
      clockOffset: this.#cluster.clock.offset - this.#world.janitorClock.offset,
    };
  }

  async findNamesakes(hostname: string): Promise<readonly Pod[]> {
    await this.#steps.before(`namesakes ${hostname}`);
    if (this.#mood.namesakes === "denied") return [];
    return (this.#mood.namesakes === "stale" ? this.#cached : this.#listPods()).filter(({ name }) => name === hostname);
  }

  async listStacks(): Promise<StackList> {
    await this.#steps.before("stacks");
    return this.#stackList();
  }

  whoAmI(): Promise<string | undefined> {
    return Promise.resolve(undefined);
  }

  listHostnames(): Promise<readonly string[]> {
    return Promise.resolve([]);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async probe({ uid, name }: Pod): Promise<ProcessObservation> {
    await this.#steps.before(`probe ${name}`);
    const pod = this.#cluster.pods.find((candidate) => candidate.inApi && candidate.toApi().uid === uid);
    if (pod === undefined || this.#mood.probe === "failed") return { kind: "could-not-look", problem: "exec is not allowed" };
    return pod.probe(this.#mood.probe === "partly");
  }

  #listPods(): readonly Pod[] {
    return this.#cluster.pods.filter(({ inApi }) => inApi).map((pod) => pod.toApi());
  }

  #stackList(): StackList {
    if (this.#mood.stacks === "denied") return { kind: "unlisted", problem: "403" };
    return { kind: "listed", stacks: this.#world.setup.stacks ? [{ kind: "Stack", namespace: "iac", name: "shop", stacks: ["prod", "dev"] }] : [] };
  }
}
