import { spawn } from "node:child_process";

/** Runs a command to its end, and gives what it printed. Throws when it fails. */
export async function runCommand([command = "", ...words]: readonly string[], env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const child = spawn(command, words, { env, stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const exitCode = await new Promise<number | null>((done, fail) => {
    child.once("error", fail);
    child.once("close", done);
  });
  if (exitCode !== 0) throw new Error(`${[command, ...words].join(" ")}: exit ${exitCode}: ${stderr}${stdout}`);
  return stdout;
}
