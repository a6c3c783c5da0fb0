import { formatIdentity } from "../../../src/core/backend-identity.ts";
import { perform, type Action } from "../actions.ts";
import type { ApiMood } from "../views.ts";
import type { WatchedField } from "./field.ts";
import type { Follow } from "./follow.ts";

/** What may happen to the stream of changes of a cluster. */
export type StreamChange = "cut" | "deny" | "go on" | "begin anew" | "drop in silence" | "repeat";

/** What only a watch is hurt by. */
export type BesideAction =
  | { readonly do: "stream"; readonly cluster: number; readonly what: StreamChange }
  /** A Stack's update fails on a lock, or on one that is not there. */
  | { readonly do: "stack fails"; readonly lock: number; readonly known: boolean }
  | { readonly do: "mood"; readonly mood: ApiMood }
  | { readonly do: "janitor"; readonly what: "kill" | "stop" }
  | { readonly do: "step janitor clock"; readonly seconds: number };

/** One thing that happens while a watch runs: `beside`, or anything that happens to a sweep's world. */
export type WatchAction = Action | { readonly do: "beside"; readonly action: BesideAction };

/** Lets one action happen while a watch runs. */
export async function performBeside(field: WatchedField, action: WatchAction): Promise<void> {
  if (action.do === "beside") return change(field, action.action);
  const { world, oracle } = field;
  const { now } = world.timeline;
  await perform(world, action);
  // Another janitor's sweep takes time, in which this one cannot look: it is late through no fault of its own.
  if (world.timeline.now > now) oracle.forgive();
}

function change(field: WatchedField, action: BesideAction): void {
  const { world, oracle, follows, janitor } = field;
  world.oracle.tally.action(`${action.do}${"what" in action ? `: ${action.what}` : ""}`);
  world.note(() => JSON.stringify(action));
  switch (action.do) {
    case "stream":
      changeStream(follows[action.cluster % follows.length], action.what);
      return;
    case "stack fails":
      failStack(field, action.lock, action.known);
      return;
    case "mood":
      field.mood = action.mood;
      return;
    case "janitor":
      if (action.what === "kill") janitor?.die();
      else janitor?.stop.abort();
      return;
    case "step janitor clock":
      world.janitorClock.step(action.seconds);
      oracle.forgive();
  }
}

function changeStream(follow: Follow | undefined, what: StreamChange): void {
  switch (what) {
    case "cut":
      follow?.interrupt("the request failed (ECONNRESET)", false);
      return;
    case "deny":
      follow?.interrupt('the verb "watch" on pods is not allowed (403)', true);
      return;
    case "go on":
      follow?.goOn();
      return;
    case "begin anew":
      follow?.beginAnew();
      return;
    case "drop in silence":
      follow?.drop();
      return;
    case "repeat":
      follow?.repeat();
  }
}

function failStack({ world, follows, oracle }: WatchedField, index: number, known: boolean): void {
  const { identity, objects } = world.store;
  const keys = Array.from(objects.keys());
  const key = known ? keys[index % Math.max(keys.length, 1)] : ".pulumi/locks/organization/shop/prod/none.json";
  if (key === undefined) return;
  const message = `error: the stack is currently locked by 1 lock(s). Either wait …\n  ${formatIdentity(identity)}/${key}: created by pulumi@somebody (pid 7) at 2026-03-10T12:00:00Z`;
  if (follows[0]?.tell({ kind: "stack", message }) === true) oracle.noteNamed();
}
