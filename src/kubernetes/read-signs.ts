import * as z from "zod";

import { podHostname } from "../core/hostname.ts";
import type { ClusterSign } from "./cluster-source.ts";
import type { ChangeType } from "./follow-objects.ts";
import { readPod } from "./read-objects.ts";

/** The sign of a pod that went away, ended, or has a container that does not run or ran before; undefined for any other change. */
export function readStopped(object: unknown, type: ChangeType): ClusterSign | undefined {
  if (type === "ADDED") return undefined;
  try {
    const pod = readPod(object);
    const stopped = pod.containers.some(({ state, last }) => state.kind === "terminated" || state.kind === "waiting" || last !== undefined);
    if (type !== "DELETED" && !stopped && pod.phase !== "Failed" && pod.phase !== "Succeeded") return undefined;
    const hostname = podHostname(pod);
    return hostname === undefined ? undefined : { kind: "pod", hostname };
  } catch {
    // A sweep reads it again, and tells what is wrong with it.
    return undefined;
  }
}

const failedStack = z.object({ status: z.object({ lastUpdate: z.object({ state: z.literal("failed"), message: z.string() }) }) });

/** The sign of a Stack whose latest update failed; undefined for any other. */
export function readFailure(object: unknown): ClusterSign | undefined {
  const parsed = failedStack.safeParse(object);
  return parsed.success ? { kind: "stack", message: parsed.data.status.lastUpdate.message } : undefined;
}
