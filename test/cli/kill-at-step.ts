// Loaded into the command (node --import): ends the process with SIGKILL right before its n-th change of the file system, or counts the
// changes. What a crash leaves behind is what the operating system was told until then.
import fs from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

const killAt = Number(process.env["KILL_AT_STEP"] ?? 0);
const countFile = process.env["COUNT_STEPS_TO"];
let steps = 0;

function step(): void {
  steps += 1;
  if (steps === killAt) process.kill(process.pid, "SIGKILL");
}

/** Makes calls of one method count as a step each. */
function countCalls<Name extends string>(target: Record<Name, (...args: never[]) => unknown>, name: Name): void {
  const original = target[name];
  target[name] = (...args) => {
    step();
    return original.apply(target, args);
  };
}

const { promises } = fs;
countCalls(promises, "rename");
countCalls(promises, "link");
countCalls(promises, "unlink");
countCalls(promises, "mkdir");
countCalls(promises, "rm");
countCalls(promises, "rmdir");

const open = promises.open.bind(promises);
promises.open = async (path, flags, mode): Promise<FileHandle> => {
  const writes = typeof flags === "string" && /[wa+]/.test(flags);
  if (writes) step();
  const handle = await open(path, flags, mode);
  if (writes) {
    countCalls(handle, "writeFile");
    countCalls(handle, "appendFile");
    countCalls(handle, "sync");
  }
  return handle;
};

syncBuiltinESMExports();
if (countFile !== undefined) process.on("exit", () => fs.writeFileSync(countFile, String(steps)));
