import * as z from "zod";

/** What a stack's checkpoint says of operations that were begun and of which nobody knows the end. */
export const pendingOperations = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("none") }),
  z.object({ kind: z.literal("some"), count: z.int() }),
  z.object({ kind: z.literal("unknown"), problem: z.string() }),
]);
export type PendingOperations = z.infer<typeof pendingOperations>;

/**
 * Pulumi's checkpoint, reduced to what is counted (sdk/go/common/apitype/core.go, `VersionedCheckpoint`, `CheckpointV3`, `DeploymentV3`). Version 4 adds a list of features
 * to version 3.
 */
const checkpoint = z.object({
  version: z.union([z.literal(3), z.literal(4)]),
  checkpoint: z.object({ latest: z.object({ pending_operations: z.array(z.unknown()).nullish() }).nullish() }),
});

/** Counts the pending operations of a checkpoint, given as text that is not compressed. */
export function countPendingOperations(text: string): PendingOperations {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    // What the parser says may quote the state.
    return { kind: "unknown", problem: "its checkpoint is no JSON" };
  }
  const parsed = checkpoint.safeParse(document);
  if (!parsed.success) return { kind: "unknown", problem: "its checkpoint is of no version that is known here (3 or 4)" };
  const count = parsed.data.checkpoint.latest?.pending_operations?.length ?? 0;
  return count === 0 ? { kind: "none" } : { kind: "some", count };
}

/**
 * What several checkpoints of one stack say together. Pulumi takes the latest of them, and which that is a store does not always tell: what any of them says is believed,
 * and what one does not tell is not known.
 */
export function combinePendingOperations(found: readonly PendingOperations[]): PendingOperations {
  const some = found.filter((each) => each.kind === "some");
  if (some.length > 0) return { kind: "some", count: Math.max(...some.map(({ count }) => count)) };
  return found.find(({ kind }) => kind === "unknown") ?? found[0] ?? { kind: "unknown", problem: "it has no checkpoint" };
}
