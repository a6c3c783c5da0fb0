import * as z from "zod";

import { LOCKS_FOLDER, stackFolder } from "./key.ts";

/** The folder of the checkpoints below the backend's prefix (pkg/backend/diy/backend.go, `workspace.StackDir`). */
const STACKS_FOLDER = ".pulumi/stacks/";

const checkpointFile = z.object({ checkpoint: z.object({ latest: z.object({ pending_operations: z.array(z.unknown()).nullish() }).nullish() }) });

/** What a checkpoint says of operations that an update began and never ended. */
export type PendingOperations = { readonly kind: "counted"; readonly count: number } | { readonly kind: "unknown"; readonly problem: string };

/** Where the checkpoint of a lock's stack may be, plain and compressed; the same layout as the lock's (pkg/backend/diy/store.go, `StackBasePath`). Empty for a lock of no stack. */
export function listCheckpointKeys(lockKey: string): readonly string[] {
  // The organization is in the folder of locks only.
  const stack = stackFolder(lockKey.slice(LOCKS_FOLDER.length))
    .replace(/\/$/, "")
    .replace(/^organization\//, "");
  return !lockKey.startsWith(LOCKS_FOLDER) || stack === "" ? [] : [`${STACKS_FOLDER}${stack}.json`, `${STACKS_FOLDER}${stack}.json.gz`];
}

/** Counts `checkpoint.latest.pending_operations` of a checkpoint's text, where an update that was killed leaves what it had begun (sdk/go/common/apitype/core.go). */
export function countPendingOperations(text: string): PendingOperations {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    return { kind: "unknown", problem: "the checkpoint is no JSON" };
  }
  const parsed = checkpointFile.safeParse(content);
  if (!parsed.success) return { kind: "unknown", problem: "the checkpoint has a shape that is not known" };
  return { kind: "counted", count: parsed.data.checkpoint.latest?.pending_operations?.length ?? 0 };
}
