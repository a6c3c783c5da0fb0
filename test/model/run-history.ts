import { auditRecord } from "../../src/core/record.ts";
import { happen, type History } from "./actions.ts";
import { Field, Violation } from "./field.ts";
import { isProvablyGone } from "./liveness.ts";
import { Tally } from "./tally.ts";

/** Where nothing is wrong for long enough that every doubt about a node has passed, and every margin. */
const QUIET = 1_300;

/**
 * Lets a history happen, then heals the world and lets two healthy sweeps follow. Healthy is a sweep that reaches every store and cluster, sees whole lists, is not
 * disturbed, and comes when every node that is on has been Ready for more than 10 min 30 s. Throws a `Violation` where a promise is broken; gives what occurred.
 */
export async function runHistory({ clusters, clocks, storeClock, actions }: History): Promise<Tally> {
  const tally = new Tally();
  const field = new Field(tally, clusters);
  const { world } = field;
  world.storeClock = storeClock;
  clocks.forEach((clock, index) => world.addNode(index % clusters, clock));
  // A cluster that no janitor is told of.
  world.addNode(clusters, 0);
  for (const action of actions) {
    await happen(field, action);
    field.throwViolation();
  }

  for (const node of world.nodes) world.rejoin(node);
  world.pass(QUIET);
  const before = Array.from(world.store.objects.keys());
  for (let round = 0; round < 2; round += 1) {
    world.pass(60);
    const report = await field.sweep({
      podsCutShort: false,
      nodesDenied: false,
      stacksDenied: false,
      probeFails: false,
      probe: false,
      staleCache: false,
      meanwhile: () => undefined,
    });
    field.throwViolation();
    if (report === undefined || report.exitCode !== 0) throw new Violation(`a healthy sweep ended with ${report?.exitCode ?? "a crash"}`);
  }
  for (const key of before) {
    const body = world.store.objects.get(key)?.bytes;
    const lock = body === undefined ? undefined : world.written.get(new TextDecoder().decode(body));
    if (lock !== undefined && isProvablyGone(world, lock, clusters))
      throw new Violation(`liveness: ${key} is there after two healthy sweeps, though its writer is provably gone`);
  }
  checkRecords(field);
  tally.histories = 1;
  tally.withRemoval = tally.removals > 0 ? 1 : 0;
  tally.withLiveLock = tally.liveJudged > 0 ? 1 : 0;
  return tally;
}

/** P6: in the end every record has its outcome, and what is told to be deleted is gone. */
function checkRecords({ world }: Field): void {
  const records = Array.from(world.store.recordObjects.values(), (bytes) => auditRecord.parse(JSON.parse(new TextDecoder().decode(bytes))));
  const ended = new Set(records.flatMap((record) => (record.event === "outcome" ? [record.id] : [])));
  for (const record of records) if (record.event === "intent" && !ended.has(record.id)) throw new Violation(`P6: the record ${record.id} has no outcome`);
}
