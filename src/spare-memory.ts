import { setFlagsFromString } from "node:v8";

import type { Progress } from "./sweep.ts";

/** From here on what is read weighs more than the program itself. */
const MANY_LOCKS = 500;

let sparing = false;

/**
 * Has the heap collected sooner once a sweep proves to be a large one: left alone it grows to three times what ten thousand locks need, and a pod's memory limit counts that. As
 * words of the command line the same would make every start slower, since Node's own compiled code is only good for the flags that it was compiled with. Both only say when V8
 * collects.
 */
export function spareMemory(progress: Progress): void {
  const large = progress.kind === "reading" ? progress.locks >= MANY_LOCKS : progress.kind === "judging" && progress.locks > 0;
  if (sparing || !large) return;
  sparing = true;
  setFlagsFromString("--semi-space-growth-factor=1");
  setFlagsFromString("--heap-growing-percent=30");
}
