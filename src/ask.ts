import type { Surroundings } from "./surroundings.ts";

/** Asks a person a question on stderr. Everything but a clear yes is a no. */
export async function askYesNo(message: string, { stderr, stop }: Pick<Surroundings, "stderr" | "stop">): Promise<boolean> {
  const { confirm, isCancel } = await import("@clack/prompts");
  const answer = await confirm({ message, initialValue: false, output: stderr, signal: stop });
  return !isCancel(answer) && answer;
}
