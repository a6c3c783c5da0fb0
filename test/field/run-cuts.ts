import { setTimeout as sleep } from "node:timers/promises";

import { waitFor } from "../e2e/peers/child.ts";
import type { Field, Placed } from "./field.ts";
import { PROBE } from "./probe.ts";
import { describeVerdict, findLock } from "./run-scenarios.ts";
import { deleteByForce, openGates, type Scene } from "./scenario.ts";
import type { Cutter } from "./site.ts";

/** One look at a lock in the course of a cut. */
export interface Look {
  readonly stack: string;
  readonly moment: string;
  /** Whether the process that wrote the lock ran, by the node's `/proc`, before and after the sweep. */
  readonly ran: boolean;
  readonly verdict: string;
  readonly action: string;
}

export interface CutOutcome {
  readonly looks: readonly Look[];
  readonly ups: ReadonlyMap<string, { readonly ok: boolean; readonly output: string }>;
}

/** The stacks whose pods are on a node that is cut off. */
export const CUT_STACKS: readonly string[] = ["cut-short", "cut-off", "cut-and-back"];

/** A short cut is a known limit: the sweep is a dry run at the moment when it would be wrong. */
const KNOWN_LIMIT = "joined again after a cut too short to cost the node its Ready (known limit, dry run)";

/** What each look must show. */
export const EXPECTED_LOOKS: readonly Look[] = [
  { stack: "cut-short", moment: KNOWN_LIMIT, ran: true, verdict: "stale: pod-not-found", action: "would-delete" },
  { stack: "cut-short", moment: "its grace period is over", ran: false, verdict: "stale: pod-not-found", action: "deleted" },
  { stack: "cut-off", moment: "the node is Unknown", ran: true, verdict: "held: container-running", action: "keep" },
  { stack: "cut-and-back", moment: "the node is Unknown", ran: true, verdict: "held: container-running", action: "keep" },
  { stack: "cut-off", moment: "deleted by force, its successor is Pending", ran: true, verdict: "undetermined: node-unreachable", action: "keep" },
  { stack: "cut-off", moment: "joined again, its successor runs beside it", ran: true, verdict: "undetermined: node-unreachable", action: "keep" },
  { stack: "cut-and-back", moment: "joined again", ran: true, verdict: "held: container-running", action: "keep" },
  { stack: "cut-off", moment: "its grace period is over", ran: false, verdict: "undetermined: node-unreachable", action: "keep" },
  { stack: "cut-off", moment: "a person vouches for the node", ran: false, verdict: "stale: pod-recreated", action: "deleted" },
];

/** Cuts the node off, shortly and for long, under pods that are deleted by force meanwhile. Nothing is proven by absence on this node for ten minutes after. */
export async function runCuts(field: Field, cutter: Cutter, say: (line: string) => void): Promise<CutOutcome> {
  const short = await begin(field, field.shapes.bare("field-cut-short", { grace: 20, agentWaits: true }), "cut-short");
  const off = await begin(field, field.shapes.workspace("cut-off", { grace: 40, agentWaits: true }), "cut-off");
  const back = await begin(field, field.shapes.workspace("cut-and-back"), "cut-and-back");
  const looks: Look[] = [];
  const look = async (moment: string, scenes: readonly Scene[], ...words: readonly string[]): Promise<void> => {
    const ranBefore = await Promise.all(scenes.map(runs));
    const report = await field.sweep(...words, ...PROBE);
    const ranAfter = await Promise.all(scenes.map(runs));
    for (const [index, { writers }] of scenes.entries()) {
      const stack = writers[0]?.stack ?? "";
      const lock = findLock(report, stack);
      const ran = ranAfter[index] === true;
      if (ran !== ranBefore[index]) throw new Error(`the update of ${stack} ended during the sweep (${moment}): the look shows nothing`);
      looks.push({ stack, moment, ran, verdict: describeVerdict(lock), action: lock?.action ?? "" });
    }
    say(`${moment}: ${looks.at(-1)?.verdict ?? ""}`);
  };

  await cutter.cutOff();
  await deleteByForce(short);
  await sleep(2_000);
  await cutter.joinAgain();
  await sleep(2_000);
  await look(KNOWN_LIMIT, [short]);
  await waitForEnd(short);
  await look("its grace period is over", [short], "--delete");

  await cutter.cutOff();
  await waitFor("the node to be Unknown", () => isNode(field, cutter, "Unknown"), { every: 500 });
  await look("the node is Unknown", [off, back], "--delete");
  const uid = await field.uidOf(off.placed);
  await deleteByForce(off);
  await waitFor("the successor", async () => (["", uid].includes(await field.uidOf(off.placed)) ? undefined : true));
  // Only what is known of the node stands between the successor and a verdict.
  const atOnce = ["--delete", "--settle", "0s"];
  await look("deleted by force, its successor is Pending", [off], ...atOnce);
  await cutter.joinAgain();
  await field.findRunning(off.shape, uid);
  await look("joined again, its successor runs beside it", [off], ...atOnce);
  await waitFor("the node to be Ready", () => isNode(field, cutter, "True"), { every: 500 });
  await look("joined again", [back], "--delete");
  await waitForEnd(off);
  await look("its grace period is over", [off], ...atOnce);
  await look("a person vouches for the node", [off], ...atOnce, "--unreachable-nodes", `ignore:${cutter.node}`);
  await openGates(back);
  await waitForEnd(back);
  const ups = new Map<string, { readonly ok: boolean; readonly output: string }>();
  for (const stack of CUT_STACKS) ups.set(stack, await field.up("file", stack));
  return { looks, ups };
}

async function begin(field: Field, shape: Scene["shape"], stack: string): Promise<Scene> {
  const placed: Placed = await field.place(shape);
  return { field, shape, placed, writers: [await field.beginUpdate(placed, "file", stack)] };
}

async function runs({ field, writers }: Scene): Promise<boolean> {
  return (await field.truth.findAlive(writers)).length > 0;
}

async function waitForEnd(scene: Scene): Promise<void> {
  await waitFor(`the end of the update in ${scene.placed.pod}`, async () => ((await runs(scene)) ? undefined : true), { every: 500 });
}

async function isNode(field: Field, { node }: Cutter, ready: "True" | "Unknown"): Promise<true | undefined> {
  const now = await field.kubectl("get", "node", node, "-o", 'jsonpath={.status.conditions[?(@.type=="Ready")].status}');
  return now === ready ? true : undefined;
}
