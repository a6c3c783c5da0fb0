import { existsSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { join } from "node:path";

import { VERSION } from "./version.ts";

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

const argv = process.argv.slice(2);
if (argv.length === 1 && (argv[0] === "--version" || argv[0] === "-V")) {
  process.stdout.write(`${VERSION}\n`);
} else {
  // Beside the bundle, where only who installed it can write: compiled code is code. Where it cannot be used, nothing is lost but time.
  const directory = join(import.meta.dirname, "compile-cache");
  if (existsSync(directory)) enableCompileCache({ directory, portable: true });
  void run();
}

/** Whatever is not answered at once. Nothing of it is loaded before. */
async function run(): Promise<void> {
  const [{ runCommandLine }, { describeError, JanitorError }, { openLog }] = await Promise.all([
    import("./cli.ts"),
    import("./errors.ts"),
    import("./output/log.ts"),
  ]);
  let quiet = argv.includes("--quiet");
  const log = openLog(process.stderr, () => quiet);
  try {
    process.exitCode = await runCommandLine(argv, {
      env: process.env,
      stdout: process.stdout,
      stderr: process.stderr,
      interactive: process.stdin.isTTY && process.stderr.isTTY,
      stop: stop.signal,
      log,
      hush: () => (quiet = true),
    });
  } catch (error) {
    const stopped = stop.signal.aborted && error instanceof Error && error.name === "AbortError";
    const known = error instanceof JanitorError ? error : stopped ? new JanitorError("interrupted", "stopped by a signal", { cause: error }) : undefined;
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
}
