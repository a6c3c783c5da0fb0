import { runCommandLine } from "./cli.ts";
import { describeError, JanitorError } from "./errors.ts";
import { openLog } from "./output/log.ts";

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    stop.abort();
    // The removal in hand is finished first; whoever cannot wait sends the signal again.
    process.once(signal, () => process.exit(signal === "SIGINT" ? 130 : 143));
  });
}
// A reader that goes away (`| head`) is no failure of ours.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

const log = openLog(process.stderr, process.argv.includes("--quiet"));
try {
  process.exitCode = await runCommandLine(process.argv.slice(2), {
    env: process.env,
    stdout: process.stdout,
    stderr: process.stderr,
    interactive: process.stdin.isTTY && process.stderr.isTTY,
    stop: stop.signal,
    log,
  });
} catch (error) {
  const known = error instanceof JanitorError ? error : undefined;
  await log(
    "error",
    [known?.message ?? `an error of the janitor itself: ${describeError(error)}`, known?.hint].filter((part) => part !== undefined).join(". "),
    { code: known?.code ?? "internal" },
  );
  process.exitCode = known?.exitCode ?? 1;
}
// An SDK may still be trying something that was given up; everything is written by now.
setTimeout(() => {
  if (process.stdout.writableLength === 0) process.exit();
  process.stdout.once("drain", () => process.exit());
}, 500).unref();
