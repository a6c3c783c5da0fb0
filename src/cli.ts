import { Command, CommanderError, Option } from "@commander-js/extra-typings";

import { addCompletion } from "./completion.ts";
import type { Settings } from "./config.ts";
import { composeHelp, EXIT_CODES } from "./help.ts";
import {
  AUDIT_LIST_OPTIONS,
  AUDIT_SHOW_OPTIONS,
  CHECK_OPTIONS,
  CONFIG_PRINT_OPTIONS,
  RESTORE_OPTIONS,
  SWEEP_OPTIONS,
  UNLOCK_OPTIONS,
  variableOf,
  WATCH_OPTIONS,
  type OptionSpec,
} from "./options.ts";
import type { Surroundings } from "./surroundings.ts";
import { VERSION } from "./version.ts";

const CONFIG_VARIABLE = "PULUMI_LOCK_JANITOR_CONFIG";

/** Runs the command line and gives the exit code. Throws a `JanitorError`. */
export async function runCommandLine(argv: readonly string[], surroundings: Surroundings): Promise<number> {
  let exitCode = 0;
  const program = composeProgram(surroundings, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync([...argv], { from: "user" });
    return exitCode;
  } catch (error) {
    // Commander has said what is wrong already; asking for help or the version is no error.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
}

/** All commands with their options; `onExit` is told the exit code of the one that ran. */
export function composeProgram(surroundings: Surroundings, onExit: (exitCode: number) => void): Command {
  const program = new Command("pulumi-lock-janitor")
    .description("Finds Pulumi's lock files whose owner is provably gone from Kubernetes, and removes them.")
    .version(VERSION)
    .showSuggestionAfterError()
    .showHelpAfterError("(add --help for what there is)")
    .addHelpText("after", EXIT_CODES)
    .exitOverride()
    .configureOutput({ writeOut: (text) => surroundings.stdout.write(text), writeErr: (text) => surroundings.stderr.write(text) });
  // Help is answered without what checks settings or runs a command.
  const settingsOf = async (options: Values): Promise<Settings> => {
    const { readSettings } = await import("./config.ts");
    const settings = readSettings(options, surroundings.env, configFile(options, surroundings));
    if (settings.quiet) surroundings.hush?.();
    return settings;
  };
  const commands = new Map<string, readonly OptionSpec[]>();
  const addCommand = <Arguments extends unknown[]>(name: string, command: Command<Arguments>, specs: readonly OptionSpec[]): Command<Arguments, Values> => {
    commands.set(name, specs);
    return addOptions(command, specs).addHelpText("after", composeHelp(name));
  };
  addCommand("sweep", program.command("sweep").description("look at every lock once: a dry run, unless --delete"), SWEEP_OPTIONS).action(async (options) => {
    const { runSweep } = await import("./run-sweep.ts");
    onExit(await runSweep(await settingsOf(options), surroundings));
  });
  const watchCommand = program
    .command("watch")
    .description("go on looking, at an interval and when something happens in the cluster: a dry run, unless --delete; one line of JSON for each change");
  addCommand("watch", watchCommand, WATCH_OPTIONS).action(async (options) => {
    const { runWatch } = await import("./run-watch.ts");
    onExit(await runWatch(await settingsOf(options), surroundings));
  });
  const checkCommand = program
    .command("check")
    .description("try, without writing, what a sweep needs: rights in backend and cluster, and which proofs there can be");
  addCommand("check", checkCommand, CHECK_OPTIONS).action(async (options) => {
    const { runCheck } = await import("./run-check.ts");
    onExit(await runCheck(await settingsOf(options), surroundings));
  });
  const unlockCommand = program
    .command("unlock")
    .description("remove one lock by hand, if it is stale; with --force on your word alone")
    .argument("<lock>", "its id, its URL, or the line that Pulumi printed");
  addCommand("unlock", unlockCommand, UNLOCK_OPTIONS).action(async (lock, options) => {
    const { runUnlock } = await import("./run-unlock.ts");
    onExit(await runUnlock(lock, await settingsOf(options), surroundings));
  });
  const restoreCommand = program.command("restore").description("put a removed lock back, from its record").argument("<record>", "the record's id");
  addCommand("restore", restoreCommand, RESTORE_OPTIONS).action(async (id, options) => {
    const { runRestore } = await import("./run-restore.ts");
    onExit(await runRestore(id, await settingsOf(options), surroundings));
  });
  const audit = program.command("audit").description("read the records of removals; writes nothing");
  addCommand("audit list", audit.command("list").description("the removals, the newest first"), AUDIT_LIST_OPTIONS).action(async (options) => {
    const { runAuditList } = await import("./run-audit.ts");
    onExit(await runAuditList(options, await settingsOf(options), surroundings));
  });
  const showCommand = audit.command("show").description("one removal, with the lock and the evidence").argument("<record>", "the record's id");
  addCommand("audit show", showCommand, AUDIT_SHOW_OPTIONS).action(async (id, options) => {
    const { runAuditShow } = await import("./run-audit.ts");
    onExit(await runAuditShow(id, await settingsOf(options), surroundings));
  });
  const printCommand = program
    .command("config")
    .description("the settings of a run")
    .command("print")
    .description("check the settings of flags, variables and file, and show them as a file, with where each comes from; secrets are hidden");
  addCommand("config print", printCommand, CONFIG_PRINT_OPTIONS).action(async (options) => {
    const { checkSettings, collectSettings } = await import("./config.ts");
    const values = collectSettings(options, surroundings.env, configFile(options, surroundings));
    checkSettings(values);
    surroundings.stdout.write((await import("./config-print.ts")).renderSettings(values, surroundings.env));
  });
  addCompletion(program, commands, (text) => surroundings.stdout.write(text));
  return program;
}

type Values = Readonly<Record<string, unknown>>;

function addOptions<Arguments extends unknown[]>(command: Command<Arguments>, specs: readonly OptionSpec[]): Command<Arguments, Values> {
  const configured = command.option("--config <file>", `settings from a YAML file (env: ${CONFIG_VARIABLE})`);
  for (const spec of specs) configured.addOption(toOption(spec));
  return configured;
}

function toOption(spec: OptionSpec): Option {
  const variable = variableOf(spec);
  const option = new Option(spec.flags, variable === undefined ? spec.description : `${spec.description} (env: ${variable})`);
  // Commander names a value after its flag; the settings name it as the configuration file does.
  option.attributeName = () => spec.key;
  if (spec.kind === "list") option.argParser((value: string, previous: readonly string[] | undefined) => [...(previous ?? []), value]);
  return option;
}

function configFile(options: Values, { env }: Surroundings): string | undefined {
  const flag = options["config"];
  return typeof flag === "string" ? flag : env[CONFIG_VARIABLE];
}
