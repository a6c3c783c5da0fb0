/** Has the janitor look at processes, for locks of any age. */
export const PROBE: readonly string[] = ["--probe-processes", "--probe-after", "0s"];

/** The verdict on a lock whose process alone has died, in a pod that runs on. */
export const ORPHAN = PROBE.length > 0 ? "stale: process-gone" : "held: container-running";
