import type { Scheme } from "./backends.ts";
import type { Field, Placed } from "./field.ts";
import type { Shape, Shapes } from "./shapes.ts";
import { findParent, signalProcess, type Updating } from "./truth.ts";

/** What a scenario works with: its pod, and the process that wrote its lock. */
export interface Scene {
  readonly field: Field;
  readonly shape: Shape;
  readonly placed: Placed;
  /** One for each of its stacks. */
  readonly writers: readonly Updating[];
}

/** One way in which a pod or a process of it ends, or does not. */
export interface Scenario {
  /** The name of its stack, too, or the beginning of its names. */
  readonly name: string;
  readonly scheme: Scheme;
  readonly stacks?: readonly string[];
  /** In words, for the document. */
  readonly happens: string;
  readonly shape: (shapes: Shapes) => Shape;
  /** Runs pulumi; the agent of the pod's container does, if not given. */
  readonly begin?: (field: Field, placed: Placed) => Promise<readonly Updating[]>;
  readonly act: (scene: Scene) => Promise<void>;
  /** Verdict before anything happened, if not `held: container-running`. */
  readonly before?: string;
  /** Verdict once the dust has settled; `no lock` where Pulumi gave it back itself. */
  readonly after: string;
  /** Lets an update that goes on come to its end. */
  readonly finish?: (scene: Scene) => Promise<void>;
}

/** The names of the stacks of a scenario. */
export function stacksOf({ name, stacks = [name] }: Scenario): readonly string[] {
  return stacks;
}

/** Kills process 1 of the writer's container, and everything in it with it. */
export async function killContainer({ writers: [writer] }: Scene): Promise<void> {
  if (writer !== undefined) await signalProcess(await findParent(writer), "KILL");
}

/** Sends a signal to the process that wrote the lock, and to nothing else. */
export async function signalWriter({ writers }: Scene, signal: "KILL" | "STOP" | "CONT"): Promise<void> {
  for (const writer of writers) await signalProcess(writer, signal);
}

/** Deletes the scene's pod without any grace. */
export async function deleteByForce({ field, placed }: Scene): Promise<void> {
  await field.kubectl("delete", "pod", "-n", placed.namespace, placed.pod, "--force", "--grace-period=0");
}

/** Opens the gate that the updates of the scene wait at. */
export async function openGates({ field, placed, writers }: Scene): Promise<void> {
  for (const { stack } of writers) await field.order(placed, `open ${stack}`);
}
