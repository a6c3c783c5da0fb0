import { describe, expect, it } from "vitest";

import type { Node } from "../../src/core/cluster.ts";
import { findDoubtfulNodes, stateOfNode } from "../../src/core/node-trust.ts";
import { SECOND } from "../../src/core/time.ts";
import { aCluster, aNode, aPod, at, NOW } from "./builders.ts";

const LOCKED = at("2026-03-10T10:00:00.5Z");
const NOBODY = { all: false, names: [] };
const doubtful = (node: Node, ignored: { all: boolean; names: readonly string[] } = NOBODY): string =>
  findDoubtfulNodes([node], { lockedAt: LOCKED, now: NOW, skew: 5n * SECOND, ignored, deletedBefore: undefined })
    .map(({ why }) => why)
    .join();
const { readySince: _, ...withoutTransition } = aNode();
const { reportedAt: __, ...withoutReport } = aNode();
const slow = (readySince: string, reportedAt: string, createdAt = "2026-01-01T00:00:00Z"): Node =>
  aNode({ createdAt: at(createdAt), readySince: at(readySince), reportedAt: at(reportedAt) });

describe("a node on which an absent pod may still run", () => {
  it.each<[string, Node, RegExp]>([
    ["silent", aNode({ ready: "Unknown" }), /not Ready \(Unknown\)/],
    ["says itself that it is not Ready: its runtime hangs, and a force-deleted pod survives there too", aNode({ ready: "False" }), /not Ready \(False\)/],
    ["silent for weeks", aNode({ ready: "Unknown", readySince: at("2026-02-01T00:00:00Z") }), /not Ready/],
    ["silent since after the lock", aNode({ ready: "Unknown", readySince: at("2026-03-10T11:30:00Z") }), /not Ready/],
    ["Ready again for a second", aNode({ readySince: at("2026-03-10T11:59:59Z") }), /10 min 30 s/],
    ["Ready again for 10 min 29 s", aNode({ readySince: at("2026-03-10T11:49:31Z") }), /10 min 30 s/],
    ["Ready since the future, so by another clock", aNode({ readySince: at("2026-03-10T12:00:30Z") }), /10 min 30 s/],
    ["Ready, since when it does not say", withoutTransition, /since when/],
    ["made in the very second of the lock", aNode({ ready: "Unknown", createdAt: at("2026-03-10T10:00:00Z") }), /not Ready/],
    ["made after the lock, but by less than the skew", aNode({ ready: "Unknown", createdAt: at("2026-03-10T10:00:05Z") }), /not Ready/],
    [
      "Ready again for an hour by a clock that is 50 min slow: it reported 10 min 29 s after that",
      slow("2026-03-10T11:00:00Z", "2026-03-10T11:10:29Z"),
      /has not reported/,
    ],
    ["Ready again before it was made, by its slow clock", slow("2026-03-10T09:00:00Z", "2026-03-10T09:00:10Z", "2026-03-10T09:59:00Z"), /has not reported/],
    ["Ready again for 5 min, and its clock was set forward by an hour since", slow("2026-03-10T11:55:00Z", "2026-03-10T12:59:00Z"), /was not Ready/],
    ["Ready for long, and does not say when it last reported", withoutReport, /when it last reported/],
    [
      "created 2 min 1 s before it became Ready: it had been Ready before, perhaps",
      aNode({ createdAt: at("2026-03-10T09:50:00Z"), readySince: at("2026-03-10T11:52:01Z") }),
      /10 min 30 s/,
    ],
  ])("%s", (_, node, why) => {
    expect(doubtful(node)).toMatch(why);
  });

  it.each<[string, Node]>([
    ["Ready for long", aNode()],
    ["Ready again for 10 min 30 s", aNode({ readySince: at("2026-03-10T11:49:30Z") })],
    ["Ready again for 10 min 30 s by a slow clock", slow("2026-03-10T11:00:00Z", "2026-03-10T11:10:30Z")],
    ["made 18 min ago and Ready since then, as it said 8 min after", slow("2026-03-10T11:42:30Z", "2026-03-10T11:50:30Z", "2026-03-10T11:42:00Z")],
    ["newer than the lock", aNode({ ready: "Unknown", createdAt: at("2026-03-10T10:00:06Z") })],
    ["off, as a person said with a taint", aNode({ ready: "Unknown", outOfService: true })],
    ["just joined: older than the lock, and never Ready before", aNode({ createdAt: at("2026-03-10T09:59:00Z"), readySince: at("2026-03-10T10:00:30Z") })],
  ])("not one that is %s", (_, node) => {
    expect(doubtful(node)).toBe("");
  });

  it("not one that a person vouches for, and only that one", () => {
    const silent = aNode({ name: "node-7", ready: "Unknown" });
    expect(doubtful(silent, { all: true, names: [] })).toBe("");
    expect(doubtful(silent, { all: false, names: ["node-7"] })).toBe("");
    expect(doubtful(silent, { all: false, names: ["node-70", "node", "NODE-7"] })).not.toBe("");
  });

  it.each([
    ["long before the node fell silent: its kubelet learnt of that", "2026-03-10T09:00:00Z", false],
    ["while the node was about to lose Ready", "2026-03-10T10:59:30Z", true],
    ["when the node was silent already", "2026-03-10T11:30:00Z", true],
  ])("for a pod that was deleted %s", (_, deletedBefore, doubted) => {
    const silent = aNode({ ready: "Unknown", readySince: at("2026-03-10T11:00:00Z") });
    expect(findDoubtfulNodes([silent], { lockedAt: LOCKED, now: NOW, skew: 0n, ignored: NOBODY, deletedBefore: at(deletedBefore) })).toHaveLength(
      doubted ? 1 : 0,
    );
  });

  it.each([
    ["long before the runtime hung", "2026-03-10T10:49:59Z", false],
    ["while the runtime hung and the node was still Ready, for 3 min", "2026-03-10T10:57:00Z", true],
  ])("whose runtime hangs, for a pod that was deleted %s", (_, deletedBefore, doubted) => {
    const hung = aNode({ ready: "False", readySince: at("2026-03-10T11:00:00Z") });
    expect(findDoubtfulNodes([hung], { lockedAt: LOCKED, now: NOW, skew: 0n, ignored: NOBODY, deletedBefore: at(deletedBefore) })).toHaveLength(
      doubted ? 1 : 0,
    );
  });

  it.each([
    ["its clock is right", "2026-03-10T11:00:00Z", "2026-03-10T12:00:00Z", "2026-03-10T10:49:00Z", false],
    ["it reported 6 min ago", "2026-03-10T11:00:00Z", "2026-03-10T12:00:00Z", "2026-03-10T10:50:00Z", true],
    ["its clock is fast, so that the loss seems to be after the deletion", "2026-03-10T11:30:00Z", "2026-03-10T12:30:00Z", "2026-03-10T10:55:00Z", true],
    ["by its own clock that was 10 min 29 s ago", "2026-03-10T11:30:00Z", "2026-03-10T11:40:29Z", "2026-03-10T09:00:00Z", true],
  ])("whose runtime hung, and %s", (_, readySince, reportedAt, deletedBefore, doubted) => {
    const hung = { ...slow(readySince, reportedAt), ready: "False" as const };
    expect(
      findDoubtfulNodes([hung], { lockedAt: at("2026-03-10T08:00:00Z"), now: NOW, skew: 0n, ignored: NOBODY, deletedBefore: at(deletedBefore) }),
    ).toHaveLength(doubted ? 1 : 0);
  });

  it("was cut off when the pod was deleted, came back, and was lost again just now: the API shows the last loss only", () => {
    const lost = aNode({ ready: "Unknown", readySince: at("2026-03-10T11:55:00Z") });
    expect(findDoubtfulNodes([lost], { lockedAt: LOCKED, now: NOW, skew: 0n, ignored: NOBODY, deletedBefore: at("2026-03-10T09:00:00Z") })).toHaveLength(1);
  });

  it("is named in an order that does not depend on the list's", () => {
    const nodes = ["c", "a", "b"].map((name) => aNode({ name, ready: "Unknown" }));
    expect(findDoubtfulNodes(nodes, { lockedAt: LOCKED, now: NOW, skew: 0n, ignored: NOBODY, deletedBefore: undefined }).map(({ name }) => name)).toEqual([
      "a",
      "b",
      "c",
    ]);
  });
});

describe("the node of a pod", () => {
  it.each([
    ["Ready", aPod(), [aNode()], "ready"],
    ["Ready again a second ago: it reports again", aPod(), [aNode({ readySince: at("2026-03-10T11:59:59Z") })], "ready"],
    ["not Ready", aPod(), [aNode({ ready: "False" })], "not-ready"],
    ["silent", aPod(), [aNode({ ready: "Unknown" })], "not-ready"],
    ["off by a person's word, and still silent", aPod(), [aNode({ ready: "Unknown", outOfService: true })], "not-ready"],
    ["no longer in the cluster", aPod(), [aNode({ name: "node-2" })], "deleted"],
    ["called alike, in another case", aPod(), [aNode({ name: "Node-1" })], "deleted"],
    ["none yet", { ...aPod(), nodeName: undefined }, [aNode()], "unscheduled"],
  ])("is %s", (_, { nodeName, ...pod }, nodes, kind) => {
    expect(stateOfNode({ ...pod, ...(nodeName === undefined ? {} : { nodeName }) }, aCluster({ nodes })).kind).toBe(kind);
  });

  it("is not known without the right to list nodes", () => {
    expect(stateOfNode(aPod(), { ...aCluster(), nodes: { kind: "unlisted", problem: "403" } })).toEqual({ kind: "unlisted", problem: "403" });
  });
});
