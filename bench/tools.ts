import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";

/** The path of a program, undefined where it is not installed. A version manager's shim is looked through: it would count as the program's time. */
export function findTool(name: string): string | undefined {
  const path = ask("sh", ["-c", `command -v ${name}`]);
  if (path === undefined) return undefined;
  const real = path.includes("/shims/") ? ask("pyenv", ["which", name]) : undefined;
  return real !== undefined && existsSync(real) ? real : path;
}

/** The first line that a program says of its version. */
export function describeTool(path: string, words: readonly string[]): string {
  return (ask(path, words) ?? "").split("\n")[0] ?? "";
}

function ask(program: string, words: readonly string[]): string | undefined {
  try {
    return execFileSync(program, words, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return undefined;
  }
}
