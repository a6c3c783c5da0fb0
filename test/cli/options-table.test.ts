// Every option of every command, as commander lists them: what is otherwise with it. An option without a row fails; so does a row without an option.
import { mkdirSync } from "node:fs";

import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { describe, expect, it } from "vitest";

import { composeProgram } from "../../src/cli.ts";
import { TABLE } from "./command-rows.ts";
import { runCommand } from "./command.ts";
import { runInProcess } from "./in-process.ts";
import { COMMAND_NAMES, composeWords, OptionWorld, runRow } from "./option-rows.ts";

/** `--quiet` is read by the process itself, before the command line is: its rows are below. */
const BY_PROCESS = ["sweep --quiet", "watch --quiet", "unlock --quiet"];

describe.each(COMMAND_NAMES)("%s", (name) => {
  it.each(Object.entries(TABLE[name]))(
    "%s",
    async (_option, row) => {
      const [without, withIt] = [await runRow(name, row, false), await runRow(name, row, true)];
      expect({ without, with: withIt }).toEqual({ without: row.without, with: row.with });
      expect(row.with).not.toEqual(row.without);
    },
    40_000,
  );
});

/** Every option of commands and of those below them. */
function listOptions(commands: readonly CommandUnknownOpts[], above = ""): readonly string[] {
  return commands.flatMap((command) => {
    const name = `${above}${command.name()}`;
    return [...command.options.map(({ long }) => `${name} ${long ?? ""}`), ...listOptions(command.commands, `${name} `)];
  });
}

it("has a row for every option that commander knows, and no other", () => {
  const surroundings = {
    env: {},
    stdout: process.stdout,
    stderr: process.stderr,
    interactive: false,
    stop: new AbortController().signal,
    log: () => Promise.resolve(),
  };
  const program = composeProgram(surroundings, () => undefined);
  const known = listOptions(program.commands);
  const shown = Object.entries(TABLE).flatMap(([command, rows]) => Object.keys(rows).map((option) => `${command} ${option}`));
  expect([...shown, ...BY_PROCESS].toSorted()).toEqual(known.toSorted());
  expect(program.options.map(({ long }) => long)).toEqual(["--version"]);
});

describe("--quiet, on processes", () => {
  it.each(BY_PROCESS)(
    "%s",
    async (row) => {
      const command = row.startsWith("unlock") ? "unlock" : row.startsWith("watch") ? "watch" : "sweep";
      const seen: boolean[] = [];
      for (const more of [[], ["--quiet"]]) {
        const world = new OptionWorld();
        await world.start();
        world.addLock("iac-runner-gone");
        // A folder in place of the summary is what `unlock` has to tell.
        mkdirSync(world.file("summary"));
        const words = [...composeWords(command, world), ...more];
        const stop = command === "watch" ? { stop: { when: AbortSignal.timeout(4_000), signal: "SIGTERM" as const } } : {};
        const { stderr } = await runCommand(words, { env: { GITHUB_STEP_SUMMARY: world.file("summary") }, ...stop });
        seen.push(stderr === "");
        await world.stop();
      }
      expect(seen).toEqual([false, true]);
    },
    40_000,
  );
});

it("--version, of the program itself", async () => {
  expect(await runInProcess(["--version"])).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
});
