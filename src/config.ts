import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import * as z from "zod";

import { readConfigFile } from "./config-file.ts";
import { describeIssues, type Sourced } from "./config-problems.ts";
import { findExcessSkew } from "./core/clock-skew.ts";
import { parseAllowGlob } from "./core/discover.ts";
import { FAIL_ON } from "./core/judgement.ts";
import { BUILTIN_OWNERS, parseOwnerPattern, type OwnerPattern } from "./core/owner.ts";
import { HOUR, MILLISECOND, MINUTE, parseTimestamp, SECOND, type Nanoseconds } from "./core/time.ts";
import { parseWantedLock, type WantedLock } from "./core/wanted-lock.ts";
import { describeError, JanitorError } from "./errors.ts";
import { ALL_OPTIONS, longName, OUTPUT_FORMATS, variableOf, type OptionSpec } from "./options.ts";

const UNITS: ReadonlyMap<string, Nanoseconds> = new Map([
  ["ms", MILLISECOND],
  ["s", SECOND],
  ["m", MINUTE],
  ["h", HOUR],
  ["d", 24n * HOUR],
]);

/** A length of time, as a person writes it. */
export const duration = z
  .string()
  .regex(/^(\d+(ms|s|m|h|d))+$/, 'a duration needs its unit, as in "90s", "5m" or "1h30m"')
  .transform((text): Nanoseconds =>
    Array.from(text.matchAll(/(\d+)(ms|s|m|h|d)/g)).reduce((sum, [, count = "0", unit = ""]) => sum + BigInt(count) * (UNITS.get(unit) ?? 0n), 0n),
  );

const owner = z.string().transform((text, context): OwnerPattern => {
  const parsed = parseOwnerPattern(text);
  if (parsed.kind === "pattern") return parsed.pattern;
  context.issues.push({ code: "custom", message: parsed.problem, input: text });
  return z.NEVER;
});

const output = z
  .string()
  .regex(new RegExp(`^(${OUTPUT_FORMATS.join("|")})(=.+)?$`, "s"), "an output is table, json, markdown or junit, with =FILE to write it to a file")
  .transform((text) => {
    const equals = text.indexOf("=");
    const name = equals === -1 ? text : text.slice(0, equals);
    const format = OUTPUT_FORMATS.find((known) => known === name) ?? "table";
    return equals === -1 ? { format } : { format, file: text.slice(equals + 1) };
  });

type Output = z.infer<typeof output>;

const outputs = z.array(output).transform((all, context): readonly Output[] => {
  const files = all.flatMap((one) => ("file" in one ? [resolve(one.file)] : []));
  const problem =
    all.length - files.length > 1
      ? 'only one output goes to stdout: give the others a file, as in "json=report.json"'
      : new Set(files).size < files.length
        ? "two outputs go to the same file"
        : undefined;
  if (problem === undefined) return all;
  context.issues.push({ code: "custom", message: problem, input: all });
  return z.NEVER;
});

const allowGlob = z.string().transform((text, context): string => {
  const parsed = parseAllowGlob(text);
  if (parsed.kind === "glob") return parsed.glob;
  context.issues.push({ code: "custom", message: parsed.problem, input: text });
  return z.NEVER;
});

const lock = z.string().transform((text, context): WantedLock => {
  const parsed = parseWantedLock(text);
  if (parsed.kind === "wanted") return parsed.wanted;
  context.issues.push({ code: "custom", message: parsed.problem, input: text });
  return z.NEVER;
});

// "shop/prod" is organization and stack to Pulumi, which a person who writes it does not mean.
const stack = z
  .string()
  .regex(/^([^/]+|organization\/([^/]+\/)?[^/]+)$/, 'a stack is "prod" or "organization/<project>/prod"; a project alone goes with --project');

const listen = z
  .string()
  .regex(/^(\[[0-9A-Fa-f:]+\]|[^:[\]]*):\d{1,5}$/, 'an address to listen at is ":8080" or "127.0.0.1:8080"')
  .transform((text) => {
    const colon = text.lastIndexOf(":");
    const host = text.slice(0, colon).replace(/^\[|\]$/g, "");
    return { port: Number(text.slice(colon + 1)), ...(host === "" ? {} : { host }) };
  });

/** A point in time. */
export const timestamp = z.string().transform((text, context) => {
  const at = parseTimestamp(text);
  if (at !== undefined) return at;
  context.issues.push({ code: "custom", message: 'a time is written as RFC 3339, "2026-03-10T12:00:00Z"', input: text });
  return z.NEVER;
});

const secret = z.union([z.string(), z.strictObject({ variable: z.string() }), z.strictObject({ file: z.string() })]);

const backendEntry = z.union([
  z.string().min(1),
  z.strictObject({
    url: z.string().min(1),
    /** Every writer that matches an owner pattern runs in the clusters configured here. */
    exclusive: z.boolean().optional(),
    /** The environment of this backend alone: values, or where they are taken from. */
    env: z.record(z.string(), secret).optional(),
  }),
]);

/**
 * The margins of the rules, unless a person says otherwise. A kubelet that nothing disturbs kills a force-deleted pod in less than 5 s, and the API no longer shows the pod
 * meanwhile: hence the pause before the second look.
 */
const DEFAULT_MARGINS = { minAge: "1m", settle: "30s", clockSkew: "5s", confirmDelay: "6s" } as const;

/** The one schema of flags, variables and configuration file; its input side is published as JSON Schema. */
export const settingsSchema = z.strictObject({
  backends: z.array(backendEntry).default([]),
  auditLog: z.string().min(1).default("backend"),
  requestTimeout: duration.prefault("30s"),
  delete: z.boolean().default(false),
  exclusive: z.boolean().default(false),
  yes: z.boolean().default(false),
  owners: z.array(owner).default([]),
  builtinOwners: z.boolean().default(true),
  requireStack: z.enum(["yes", "no"]).optional(),
  minAge: duration.prefault(DEFAULT_MARGINS.minAge),
  settle: duration.prefault(DEFAULT_MARGINS.settle),
  clockSkew: duration.prefault(DEFAULT_MARGINS.clockSkew),
  confirmDelay: duration.prefault(DEFAULT_MARGINS.confirmDelay),
  probeProcesses: z.boolean().default(false),
  probeAfter: duration.prefault("10m"),
  maxDeletions: z.int().positive().default(50),
  unreachableNodes: z.array(z.string().regex(/^ignore(:.+)?$/s, 'it is "ignore", or "ignore:" and a node\'s name')).default([]),
  kubeconfig: z.string().min(1).optional(),
  contexts: z.array(z.string().min(1)).default([]),
  namespaces: z.array(z.string().regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/, "this is no namespace's name")).default([]),
  podsFrom: z.string().min(1).optional(),
  podsTakenAt: timestamp.optional(),
  outputs: outputs.prefault(["table"]),
  stepSummary: z.boolean().default(true),
  failOn: z.array(z.enum([...FAIL_ON, "none"])).default(["undetermined", "unreadable"]),
  timeout: duration.optional(),
  discover: z.boolean().default(false),
  discoverAllow: z.array(allowGlob).default([]),
  projects: z.array(z.string().min(1)).default([]),
  stacks: z.array(stack).default([]),
  locks: z.array(lock).default([]),
  warnHeldAfter: duration.prefault("2h"),
  requeueStacks: z.boolean().default(false),
  stackEvents: z.boolean().default(false),
  checkPending: z.boolean().default(false),
  force: z.boolean().default(false),
  interval: duration.prefault("5m"),
  listen: listen.optional(),
  ownPod: z.boolean().default(false),
  verbose: z.boolean().default(false),
  quiet: z.boolean().default(false),
});

export type Settings = z.infer<typeof settingsSchema>;

/** Which margins are smaller than they are meant to be, or a skew that is larger: what then counts as proof is a person's word. */
export function findWeakenedMargins(settings: Settings): readonly { readonly option: string; readonly value: Nanoseconds }[] {
  return (
    [
      ["--min-age", "minAge"],
      ["--settle", "settle"],
      ["--clock-skew", "clockSkew"],
      ["--confirm-delay", "confirmDelay"],
    ] as const
  ).flatMap(([option, name]) => {
    const [value, meant] = [settings[name], duration.parse(DEFAULT_MARGINS[name])];
    return value < meant || (name === "clockSkew" && findExcessSkew(value) > 0n) ? [{ option, value }] : [];
  });
}

/** A backend of the settings, with the environment that its credentials come from. */
export interface BackendSettings {
  readonly url: string;
  readonly exclusive: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Puts flags, variables and the file together, in that order of precedence, and checks the whole. Throws `config-invalid`. */
export function readSettings(flags: Readonly<Record<string, unknown>>, env: Environment, configFile: string | undefined): Settings {
  return checkSettings(collectSettings(flags, env, configFile));
}

/** What was given, by the key of each setting, with where it comes from. Throws `config-invalid` for a file that cannot be read. */
export function collectSettings(flags: Readonly<Record<string, unknown>>, env: Environment, configFile: string | undefined): ReadonlyMap<string, Sourced> {
  return new Map<string, Sourced>([
    ...(configFile === undefined ? [] : readFileSettings(configFile)),
    ...readVariables(env, ALL_OPTIONS),
    ...readFlags(flags, ALL_OPTIONS),
  ]);
}

/** Checks the whole. Throws `config-invalid`. */
export function checkSettings(values: ReadonlyMap<string, Sourced>): Settings {
  const parsed = settingsSchema.safeParse(Object.fromEntries(Array.from(values, ([key, { value }]) => [key, value])));
  if (parsed.success) return parsed.data;
  throw new JanitorError("config-invalid", describeIssues(parsed.error.issues, values, Object.keys(settingsSchema.shape)), {
    hint: "Every setting is in 'pulumi-lock-janitor sweep --help'.",
  });
}

function readFlags(flags: Readonly<Record<string, unknown>>, options: readonly OptionSpec[]): readonly (readonly [string, Sourced])[] {
  return options.flatMap((option): readonly (readonly [string, Sourced])[] => {
    const value = flags[option.key];
    // Commander gives a `--no-` flag that is absent as true.
    return value === undefined || (option.value === false && value === true)
      ? []
      : [[option.key, { value: parseWords(option, value), source: `--${longName(option.flags)}` }]];
  });
}

function readVariables(env: Environment, options: readonly OptionSpec[]): readonly (readonly [string, Sourced])[] {
  return options.flatMap((option): readonly (readonly [string, Sourced])[] => {
    const name = variableOf(option);
    const text = name === undefined ? undefined : env[name];
    if (name === undefined || text === undefined || text === "") return [];
    if (text === "ignore" && option.key === "unreachableNodes")
      throw new JanitorError("config-invalid", `${name}: to vouch for all nodes is a flag only, --unreachable-nodes=ignore`, {
        hint: "Name the nodes in the variable, as in ignore:node-1, or give the flag.",
      });
    const value = option.kind === "list" ? text.split(/\s+/).filter((item) => item !== "") : text;
    return [[option.key, { value: parseWords(option, value), source: name }]];
  });
}

/** The value of words: numbers and switches become such; lists of verdicts may be written with commas. */
function parseWords(option: OptionSpec, value: unknown): unknown {
  if (option.kind === "count" && typeof value === "string" && /^\d+$/.test(value)) return Number(value);
  if (option.kind === "switch" && typeof value === "string") return value === "true" ? true : value === "false" ? false : value;
  if (option.key === "failOn" && Array.isArray(value)) return value.flatMap((item) => String(item).split(","));
  return value;
}

function readFileSettings(file: string): readonly (readonly [string, Sourced])[] {
  const { values, locate } = readConfigFile(file);
  return Array.from(values, ([key, value]) => {
    const source = `${locate([key], "value")}, ${key}`;
    const flagOnly =
      ALL_OPTIONS.some((option) => option.key === key && option.flagOnly === true) ||
      (key === "unreachableNodes" && Array.isArray(value) && value.includes("ignore"));
    if (flagOnly)
      throw new JanitorError("config-invalid", `${source}: this is a flag only, so that a person says it each time`, {
        hint: "Take it out of the file and give the flag where it is meant.",
      });
    return [key, { value, source, locate }] as const;
  });
}

/**
 * The backends to work on: those of the settings, or `PULUMI_BACKEND_URL`. Throws `config-invalid` when there is none though Stacks may not add any
 * (`discovering`), or a value cannot be read.
 */
export function resolveBackends(settings: Pick<Settings, "backends" | "exclusive">, env: Environment, discovering = false): readonly BackendSettings[] {
  const fallback = env["PULUMI_BACKEND_URL"];
  const entries = settings.backends.length > 0 ? settings.backends : fallback === undefined || fallback === "" ? [] : [fallback];
  if (entries.length === 0 && !discovering)
    throw new JanitorError("config-invalid", "no backend was given", {
      hint: "Give --backend <url>, or set PULUMI_BACKEND_URL; --discover takes those of Stacks that --discover-allow admits.",
    });
  return entries.map((entry) => {
    if (typeof entry === "string") return { url: entry, exclusive: settings.exclusive, env };
    const own = Object.entries(entry.env ?? {}).map(([name, value]) => [name, resolveSecret(name, value, env)] as const);
    return { url: entry.url, exclusive: entry.exclusive ?? settings.exclusive, env: { ...env, ...Object.fromEntries(own) } };
  });
}

function resolveSecret(name: string, value: z.infer<typeof secret>, env: Environment): string {
  if (typeof value === "string") return value;
  if ("variable" in value) {
    const text = env[value.variable];
    if (text === undefined)
      throw new JanitorError("config-invalid", `${name} of a backend: the variable ${value.variable} is not set`, {
        hint: "Set it for the janitor's process, or take the value from a file with { file: PATH }.",
      });
    return text;
  }
  try {
    return readFileSync(value.file, "utf8").replace(/\r?\n$/, "");
  } catch (error) {
    throw new JanitorError("config-invalid", `${name} of a backend: ${value.file} could not be read: ${describeError(error)}`, { cause: error });
  }
}

/** The owner patterns of the settings. */
export function resolveOwners({ owners, builtinOwners }: Pick<Settings, "owners" | "builtinOwners">): readonly OwnerPattern[] {
  return [...(builtinOwners ? BUILTIN_OWNERS : []), ...owners];
}
