import type { Tally } from "./tally.ts";

/** What so many histories must hold at least, so that a promise is not kept for want of a trial. About half of what they hold. */
export interface Floors {
  readonly of: number;
  readonly least: Readonly<Record<string, number>>;
}

const SWEEP_FLOORS: Floors = {
  of: 2_000,
  least: {
    "histories with a removal": 300,
    "histories that judged a live lock": 700,
    "healthy ends": 300,
    removals: 350,
    "action: deleted": 350,
    "action: keep": 4_000,
    "action: vanished": 2,
    "left by writer": 100,
    "left by person": 8,
    "reason: foreign: no-pattern": 400,
    "reason: foreign: no-stack": 20,
    "reason: foreign: node-name": 20,
    "reason: held: container-running": 1_500,
    "reason: held: pod-terminating": 25,
    "reason: held: restored": 1,
    "reason: held: status-missing": 30,
    "reason: stale: container-restarted": 150,
    "reason: stale: pod-ended": 60,
    "reason: stale: pod-not-found": 50,
    "reason: stale: pod-recreated": 120,
    "reason: stale: process-gone": 20,
    "reason: too-young: min-age": 250,
    "reason: undetermined: clock-contradiction": 200,
    "reason: undetermined: list-incomplete": 50,
    "reason: undetermined: lock-not-read": 10,
    "reason: undetermined: node-deleted": 2,
    "reason: undetermined: node-not-ready": 15,
    "reason: undetermined: node-unreachable": 200,
    "reason: undetermined: nodes-not-listed": 10,
    "reason: undetermined: not-settled": 40,
    "reason: undetermined: stacks-not-listed": 3,
    "reason: undetermined: status-older": 1,
    "reason: unreadable: empty": 40,
    "world: cancel": 15,
    "world: collect": 60,
    "world: complete": 100,
    "world: copy bucket": 15,
    "world: create": 200,
    "world: debug": 70,
    "world: delete": 100,
    "world: evict": 70,
    "world: fail": 70,
    "world: force-delete": 400,
    "world: janitor died": 80,
    "world: join": 100,
    "world: node: cut": 350,
    "world: node: delete": 40,
    "world: node: delete object only": 40,
    "world: node: hang": 150,
    "world: node: heal": 200,
    "world: node: power off": 40,
    "world: node: power on": 50,
    "world: node: taint out-of-service": 40,
    "world: node: unhang": 150,
    "world: outside": 20,
    "world: process: continue": 50,
    "world: process: finish": 50,
    "world: process: finish, delete fails": 50,
    "world: process: kill": 200,
    "world: process: kill, unreaped": 50,
    "world: process: stop": 60,
    "world: pulumi": 2_000,
    "world: put junk": 20,
    "world: restart": 700,
    "world: restore": 20,
    "world: step clock": 120,
    "world: sweep": 2_000,
  },
};

/** What happened less often than it must, in words. A small part of a range says nothing of what is rare. */
export function findTooRare(tally: Tally, floors: Floors = SWEEP_FLOORS): readonly string[] {
  const histories = tally.get("histories");
  return Object.entries(floors.least).flatMap(([name, floor]) => {
    const wanted = Math.floor((floor * histories) / floors.of);
    return tally.get(name) < wanted ? [`${name}: ${tally.get(name)}, and at least ${wanted} of ${histories} histories were to have it`] : [];
  });
}
