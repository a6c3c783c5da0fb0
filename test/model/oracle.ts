import type { SweepReport } from "../../src/core/report.ts";
import { formatTimestamp, type EpochNanoseconds, type Nanoseconds } from "../../src/core/time.ts";
import { SKEW } from "./janitor.ts";
import type { PulumiProcess } from "./process.ts";
import type { ModelStore, StoredLock } from "./store.ts";
import { Tally } from "./tally.ts";
import type { World } from "./world.ts";

/** What the README says that no one can know from the API; a removal because of it is counted apart. */
export type KnownLimit =
  | "trouble that did not cost Ready"
  | "one trouble after another"
  | "two pods of one hostname"
  | "clock set back"
  | "clock of a returned node set"
  | "runtime class, and clocks beyond --clock-skew"
  | "node object deleted while it runs";

/** Watches a world: what must never happen, and what must. */
export class Oracle {
  readonly violations: string[] = [];
  readonly limits: KnownLimit[] = [];
  readonly tally = new Tally();
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** P1 to P3, at the moment when a janitor's delete takes effect. `lookedAt`: when that janitor last listed nodes. */
  judgeRemoval(store: ModelStore, lock: StoredLock, lookedAt: EpochNanoseconds): void {
    this.tally.add("removals");
    this.#world.note(() => `  removed: ${lock.key}, whose writer is ${lock.writer?.state ?? "nobody"}; ${describeNodes(this.#world)}`);
    if (!this.#world.mayDelete) this.violations.push(`P4: a dry run removed ${lock.key}`);
    if (!hasIntent(store, lock)) this.violations.push(`P3: ${lock.key} was removed without an intent that holds this very version and its body`);
    const { writer } = lock;
    if (writer?.lives !== true) return;
    const limit = findLimit(writer, lock, this.#world, lookedAt);
    if (limit === undefined) this.violations.push(`P1: ${lock.key} was removed while ${describeProcess(writer)} lives`);
    else this.limits.push(limit);
  }

  noteStores(): ReadonlySet<StoredLock> {
    return new Set(this.#world.stores.flatMap(({ objects }) => Array.from(objects.values())));
  }

  /** P5, and that a report claims nothing that is not so. `before`: the locks that were there when the sweep began. */
  judgeReport(report: SweepReport, before: ReadonlySet<StoredLock>): void {
    this.tally.add("sweeps");
    for (const { key, verdict, reason, action, message } of report.locks) {
      this.#world.note(() => `  ${action} ${key.slice(33, 46)}: ${verdict}: ${reason}: ${message}`);
      this.tally.add(`verdict: ${verdict}`);
      this.tally.add(`reason: ${verdict}: ${reason}`);
      this.tally.add(`action: ${action}`);
    }
    for (const store of this.#world.stores) {
      if (report.backends.some(({ identity, error }) => bucketOf(identity) === store.bucket && error !== undefined)) continue;
      for (const lock of store.objects.values()) {
        const told = report.locks.filter(({ backend, key }) => bucketOf(backend) === store.bucket && key === lock.key);
        // One that a person put back since is another, though its bytes are the same.
        if (before.has(lock) && told.length !== 1) this.violations.push(`P5: ${lock.key} is ${told.length} times in the report`);
        if (lock.writer?.lives === true && told.length > 0) this.tally.add("live locks judged");
      }
      for (const { backend, key, action, record } of report.locks) {
        if (bucketOf(backend) !== store.bucket || action !== "deleted") continue;
        if (!store.departures.some(({ lock, by }) => lock.key === key && by === "janitor"))
          this.violations.push(`P6: the report says that ${key} was deleted, and it was not`);
        if (record === undefined) this.violations.push(`P3: no record is told for ${key}`);
      }
    }
    if (!this.#world.mayDelete && this.#world.stores.some(({ records }) => records.size > 0)) this.violations.push("P4: a dry run wrote a record");
  }

  /** At the end, after healthy sweeps: each record has its outcome. */
  judgeRecords(): void {
    for (const { records } of this.#world.stores) {
      const names = Array.from(records.keys());
      const ended = new Set(names.filter((name) => /\.(?:outcome|completed)\.json$/.test(name)).map((name) => name.split(".")[0]));
      for (const name of names)
        if (name.endsWith(".intent.json") && !ended.has(name.split(".")[0])) this.violations.push(`P6: the record ${name} was never completed`);
    }
  }
}

function bucketOf(identity: SweepReport["locks"][number]["backend"] | undefined): string | undefined {
  return identity?.scheme === "gs" ? identity.bucket : undefined;
}

function hasIntent(store: ModelStore, lock: StoredLock): boolean {
  const body = Buffer.from(lock.bytes).toString("base64");
  for (const [name, bytes] of store.records) {
    if (!name.endsWith(".intent.json")) continue;
    const intent: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (!isRecord(intent)) continue;
    if (intent["key"] === lock.key && intent["lockVersion"] === lock.version && intent["body"] === body) return true;
  }
  return false;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function describeNodes({ nodes }: World): string {
  return nodes
    .map(
      ({ name, ready, readySince, cut, hung, on, inApi }) =>
        `${name} ${inApi ? ready : "not there"} since ${formatTimestamp(readySince)}${cut ? ", cut" : ""}${hung ? ", hung" : ""}${on ? "" : ", off"}`,
    )
    .join("; ");
}

function describeProcess({ place, pid, state }: PulumiProcess): string {
  const where = place === undefined ? "outside" : `${place.pod.plan.namespace}/${place.pod.name} (${place.pod.uid}) on ${place.pod.node.name}`;
  return `process ${pid} (${state}) in ${where}`;
}

/** Which documented limit lets a live lock go, if one does: told by what truly happened to the writer's pod, never by the verdict. */
function findLimit(writer: PulumiProcess, lock: StoredLock, world: World, lookedAt: EpochNanoseconds): KnownLimit | undefined {
  const { place, clock } = writer;
  if (place === undefined) return undefined;
  const { pod, container } = place;
  const since = container.runsSince;
  const steppedBack = clock.steps.some(({ at, by }) => since !== undefined && at >= since && by < -SKEW);
  if (steppedBack) return "clock set back";
  // A guest's clock is vouched for by the store's and by the host's, now and when the host noted the container's start.
  const vouchers = [pod.node.clock.offset, pod.node.clock.offsetAt(since ?? lookedAt), world.store.clock.offset];
  if (pod.guest !== undefined && vouchers.some((offset) => isBeyond(offset, SKEW / 2n))) return "runtime class, and clocks beyond --clock-skew";
  const { forceDeletion: forced, node } = pod;
  if (forced?.trouble === undefined) return undefined;
  if (!node.inApi) return "node object deleted while it runs";
  // While its kubelet did not hear of the deletion, the API said nothing but Ready of its node.
  const { costReadyAt } = forced.trouble;
  if (costReadyAt === undefined || costReadyAt > lookedAt) return "trouble that did not cost Ready";
  const [before, last] = node.changes.filter(({ at }) => at <= lookedAt).slice(-2);
  if (before !== undefined && last !== undefined && before.ready !== "True" && last.ready !== "True") return "one trouble after another";
  if (last !== undefined && node.clock.steps.some(({ at }) => at >= last.at && at <= lookedAt)) return "clock of a returned node set";
  const twin = world.clusters
    .find(({ pods }) => pods.includes(pod))
    ?.pods.some(
      (other) =>
        other.hostname === pod.hostname && (other.name !== pod.name || other.plan.namespace !== pod.plan.namespace) && other.createdAt <= lock.storedAt + SKEW,
    );
  return twin === true ? "two pods of one hostname" : undefined;
}

function isBeyond(offset: Nanoseconds, limit: Nanoseconds): boolean {
  return offset > limit || offset < -limit;
}
