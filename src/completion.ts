import tab from "@bomb.sh/tab/commander";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import type { Command } from "commander";

import { COMPLETION_SCRIPTS } from "./completion-scripts.ts";
import { longName, type OptionSpec } from "./options.ts";

/** Adds `completion <shell>`, which prints a script, and the hidden command that the script asks at each press of Tab. Every other command must be there. */
export function addCompletion(program: CommandUnknownOpts, commands: ReadonlyMap<string, readonly OptionSpec[]>, write: (text: string) => void): void {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the typings describe commander's own class in other words; it is the same one.
  const root = tab(program as unknown as Command, { completionCommandName: "completion" });
  // The library's own script for bash evaluates what was typed, and wants bash-completion.
  program.commands
    .find((command) => command.name() === "completion")
    ?.description("print a script that completes commands and options in bash, zsh, fish or PowerShell")
    .action((...words) => write(COMPLETION_SCRIPTS.get(String(words[0])) ?? ""));
  for (const [name, specs] of commands) {
    for (const { flags, values } of specs) {
      const option = root.commands.get(name)?.options.get(longName(flags));
      if (values !== undefined && option !== undefined) option.handler = (complete) => values.forEach((value) => complete(value, ""));
    }
  }
}
