// Loaded into the command (node --import): ends the process with SIGKILL right before its n-th change of the file system, or counts the
// changes. What a crash leaves behind is what the operating system was told until then.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const killAt = Number(process.env.KILL_AT_STEP ?? 0);
const countFile = process.env.COUNT_STEPS_TO;
let steps = 0;

function step() {
  steps += 1;
  if (steps === killAt) process.kill(process.pid, "SIGKILL");
}

const { promises } = fs;
for (const name of ["rename", "link", "unlink", "mkdir", "rm", "rmdir"]) {
  const original = promises[name];
  promises[name] = (...args) => {
    step();
    return original.apply(promises, args);
  };
}

const open = promises.open;
promises.open = async (path, flags, ...rest) => {
  const writes = typeof flags === "string" && /[wa+]/.test(flags);
  if (writes) step();
  const handle = await open.call(promises, path, flags, ...rest);
  if (writes) {
    for (const name of ["writeFile", "appendFile", "sync"]) {
      const original = handle[name].bind(handle);
      handle[name] = (...args) => {
        step();
        return original(...args);
      };
    }
  }
  return handle;
};

syncBuiltinESMExports();
if (countFile !== undefined) process.on("exit", () => fs.writeFileSync(countFile, String(steps)));
