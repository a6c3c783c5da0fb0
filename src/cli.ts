import { Command, CommanderError, Option } from "@commander-js/extra-typings";

import { readSettings, type Settings } from "./config.ts";
import { CHECK_OPTIONS, RESTORE_OPTIONS, SWEEP_OPTIONS, UNLOCK_OPTIONS, variableOf, WATCH_OPTIONS, type OptionSpec } from "./options.ts";
import { runCheck } from "./run-check.ts";
import { runRestore } from "./run-restore.ts";
import { runSweep } from "./run-sweep.ts";
import { runUnlock } from "./run-unlock.ts";
import { runWatch } from "./run-watch.ts";
import type { Surroundings } from "./surroundings.ts";
import { VERSION } from "./version.ts";

const CONFIG_VARIABLE = "PULUMI_LOCK_JANITOR_CONFIG";

const EXIT_CODES = `
Exit codes:
  0  done
  1  failed: a backend or a cluster could not be read, a removal failed
  2  wrong usage or configuration
  3  incomplete: locks that are undetermined or unreadable, or --timeout
  4  refused: a safety valve, a declined question, or an unlock without proof
  5  stale locks found, with --fail-on stale`;

const SWEEP_EXAMPLES = `
Examples:
  $ pulumi-lock-janitor sweep --backend azblob://state
  $ pulumi-lock-janitor sweep --backend azblob://state --delete --exclusive
  $ kubectl get pods,stacks.pulumi.com,nodes -A -o json > pods.json
  $ pulumi-lock-janitor sweep --backend file:///srv/state --pods-from pods.json --output json`;

const UNLOCK_EXAMPLES = `
Examples:
  $ pulumi-lock-janitor unlock --backend azblob://state 26872864-1c1f-4e0e-9b0a-0a2b8c1d9e55
  $ pulumi-lock-janitor unlock --backend azblob://state "azblob://state/.pulumi/locks/organization/shop/dev/26872864-1c1f-4e0e-9b0a-0a2b8c1d9e55.json: created by pulumi@shop-workspace-0 (pid 300) at 2026-12-01T05:25:54Z"`;

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
  const settingsOf = (options: Values): Settings => readSettings(options, surroundings.env, configFile(options, surroundings));
  const sweepCommand = program
    .command("sweep")
    .description("look at every lock once: a dry run, unless --delete")
    .addHelpText("after", `${SWEEP_EXAMPLES}\n${EXIT_CODES}`);
  addOptions(sweepCommand, SWEEP_OPTIONS).action(async (options) => {
    onExit(await runSweep(settingsOf(options), surroundings));
  });
  const watchCommand = program
    .command("watch")
    .description("go on looking, at an interval and when something happens in the cluster: a dry run, unless --delete; one line of JSON for each change")
    .addHelpText("after", EXIT_CODES);
  addOptions(watchCommand, WATCH_OPTIONS).action(async (options) => {
    onExit(await runWatch(settingsOf(options), surroundings));
  });
  const checkCommand = program
    .command("check")
    .description("try, without writing, what a sweep needs: rights in backend and cluster, and which proofs there can be")
    .addHelpText("after", EXIT_CODES);
  addOptions(checkCommand, CHECK_OPTIONS).action(async (options) => {
    onExit(await runCheck(settingsOf(options), surroundings));
  });
  const unlockCommand = program
    .command("unlock")
    .description("remove one lock by hand, if it is stale; with --force on your word alone")
    .argument("<lock>", "its id, its URL, or the line that Pulumi printed")
    .addHelpText("after", `${UNLOCK_EXAMPLES}\n${EXIT_CODES}`);
  addOptions(unlockCommand, UNLOCK_OPTIONS).action(async (lock, options) => {
    onExit(await runUnlock(lock, settingsOf(options), surroundings));
  });
  const restoreCommand = program
    .command("restore")
    .description("put a removed lock back, from its record")
    .argument("<record>", "the record's id")
    .addHelpText("after", EXIT_CODES);
  addOptions(restoreCommand, RESTORE_OPTIONS).action(async (id, options) => {
    onExit(await runRestore(id, settingsOf(options), surroundings));
  });
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
