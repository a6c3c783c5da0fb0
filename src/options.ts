import { FAIL_ON } from "./core/judgement.ts";
import { OUTCOMES } from "./core/outcome.ts";

/** How the words of an option become a value. */
export type OptionKind = "text" | "list" | "switch" | "count";

/** One setting, as a flag, a variable and a key of the configuration file. */
export interface OptionSpec {
  /** Its key in the configuration file. */
  readonly key: string;
  readonly flags: string;
  readonly kind: OptionKind;
  readonly description: string;
  /** True where a file or a variable must not set it: a person says it each time. */
  readonly flagOnly?: boolean;
  /** The value that a switch's flag stands for; `false` for a `--no-` flag. */
  readonly value?: boolean;
  /** What the value may be, or begin with, where that is a short list: completion offers it. */
  readonly values?: readonly string[];
}

/** What every command takes that opens backends. */
const BACKEND_OPTIONS: readonly OptionSpec[] = [
  { key: "backends", flags: "--backend <url>", kind: "list", description: "a backend's URL, as in PULUMI_BACKEND_URL (the default); repeatable" },
  {
    key: "auditLog",
    flags: "--audit-log <where>",
    kind: "text",
    description: 'where removals are recorded: "backend" (default), or a file that is appended to',
    values: ["backend"],
  },
  {
    key: "requestTimeout",
    flags: "--request-timeout <duration>",
    kind: "text",
    description: "the longest that one request, or a credential plugin, may take (default 30s)",
  },
];

/** Which backends the Stacks of a cluster may add. */
const DISCOVER_OPTIONS: readonly OptionSpec[] = [
  {
    key: "discover",
    flags: "--discover",
    kind: "switch",
    value: true,
    description: "add the backends of the cluster's Stacks, as far as --discover-allow admits them",
  },
  {
    key: "discoverAllow",
    flags: "--discover-allow <glob>",
    kind: "list",
    description: "which backends of Stacks may be opened, as in 's3://acme-*/**'; '*' stays within a name, '**' is any folders; repeatable",
  },
];

/** Where the owners are looked for. */
const CLUSTER_OPTIONS: readonly OptionSpec[] = [
  {
    key: "kubeconfig",
    flags: "--kubeconfig <file>",
    kind: "text",
    description: "the kubeconfig (default KUBECONFIG, the pod's service account, or ~/.kube/config)",
  },
  {
    key: "contexts",
    flags: "--context <name>",
    kind: "list",
    description: "a context of the kubeconfig; several are several clusters, in all of which an owner must be gone",
  },
  { key: "namespaces", flags: "--namespace <name>", kind: "list", description: "ask for pods of these namespaces only; repeatable" },
  {
    key: "podsFrom",
    flags: "--pods-from <file>",
    kind: "text",
    description: "use the output of 'kubectl get pods,stacks.pulumi.com,nodes -A -o json' in place of a cluster",
  },
];

/** Whose locks are looked at. */
const OWNER_OPTIONS: readonly OptionSpec[] = [
  {
    key: "owners",
    flags: "--owner <glob[=container]>",
    kind: "list",
    description: "hostnames of pods that run pulumi, and the container in which; repeatable",
  },
  {
    key: "builtinOwners",
    flags: "--no-builtin-owners",
    kind: "switch",
    value: false,
    description: "leave out the patterns for the Pulumi Kubernetes Operator's pods",
  },
];

const PROBE_OPTION: OptionSpec = {
  key: "probeProcesses",
  flags: "--probe-processes",
  kind: "switch",
  value: true,
  description: "where a running container may hold a lock, run a command in each container of its pod that shows whether the very process is there",
};

/** How the rules are set, and what a person vouches for. */
const RULE_OPTIONS: readonly OptionSpec[] = [
  ...OWNER_OPTIONS,
  {
    key: "exclusive",
    flags: "--exclusive",
    kind: "switch",
    value: true,
    description: "you state: every writer that matches an owner pattern runs in the clusters configured here; --delete wants it",
  },
  {
    key: "requireStack",
    flags: "--require-stack <yes|no>",
    kind: "text",
    description: "whether a Stack in the cluster must account for a lock (default: for the built-in patterns)",
    values: ["yes", "no"],
  },
  { key: "minAge", flags: "--min-age <duration>", kind: "text", description: "leave younger locks alone (default 1m)" },
  {
    key: "settle",
    flags: "--settle <duration>",
    kind: "text",
    description: "how long a pod of the same name must exist before its forerunner is believed gone (default 30s)",
  },
  { key: "clockSkew", flags: "--clock-skew <duration>", kind: "text", description: "how far clocks may differ (default 5s)" },
  { key: "confirmDelay", flags: "--confirm-delay <duration>", kind: "text", description: "the pause before the second look (default 6s)" },
  PROBE_OPTION,
  {
    key: "probeAfter",
    flags: "--probe-after <duration>",
    kind: "text",
    description: "probe for locks that are at least this old (default 10m)",
  },
  {
    key: "unreachableNodes",
    flags: "--unreachable-nodes <ignore|ignore:node>",
    kind: "list",
    description: "vouch that nothing runs on nodes that are not Ready; repeatable",
    values: ["ignore", "ignore:"],
  },
];

/** What follows a removal. */
const AFTER_UNLOCK_OPTIONS: readonly OptionSpec[] = [
  {
    key: "requeueStacks",
    flags: "--requeue-stacks",
    kind: "switch",
    value: true,
    description: "after a removal have the operator try the lock's Stack again at once: one annotation is set on it",
  },
  {
    key: "stackEvents",
    flags: "--stack-events",
    kind: "switch",
    value: true,
    description: "after a removal write an Event on the lock's Stack, which 'kubectl describe' shows",
  },
  {
    key: "checkPending",
    flags: "--check-pending",
    kind: "switch",
    value: true,
    description: "look into the checkpoint of a stale lock's stack: warn of pending operations, and do not requeue the Stack then",
  },
];

const YES_OPTION: OptionSpec = { key: "yes", flags: "--yes", kind: "switch", value: true, flagOnly: true, description: "do not ask on a terminal" };

/** What a report can be written as. */
export const OUTPUT_FORMATS = ["table", "json", "markdown", "junit"] as const;

const OUTPUT_OPTION: OptionSpec = {
  key: "outputs",
  flags: "--output <format[=file]>",
  kind: "list",
  description: "table (default), json, markdown or junit, to a file if one is given; repeatable",
  values: OUTPUT_FORMATS,
};

/** Of commands that report no sweep. */
const PLAIN_OUTPUT_OPTION: OptionSpec = {
  ...OUTPUT_OPTION,
  description: "table (default) or json, to a file if one is given; repeatable",
  values: ["table", "json"],
};

const STEP_SUMMARY_OPTION: OptionSpec = {
  key: "stepSummary",
  flags: "--no-step-summary",
  kind: "switch",
  value: false,
  description: "in a job of GitHub Actions, do not add the report to its summary (GITHUB_STEP_SUMMARY)",
};

const PROGRESS_OPTIONS: readonly OptionSpec[] = [
  { key: "timeout", flags: "--timeout <duration>", kind: "text", description: "end the sweep after this time; what is not judged by then stays" },
  { key: "verbose", flags: "--verbose", kind: "switch", value: true, description: "show every rule that was tried" },
  { key: "quiet", flags: "--quiet", kind: "switch", value: true, description: "no progress and no notes on stderr" },
];

const PROJECT_OPTION: OptionSpec = {
  key: "projects",
  flags: "--project <name>",
  kind: "list",
  description: "look at the locks of this project only; repeatable",
};

const STACK_OPTION: OptionSpec = {
  key: "stacks",
  flags: "--stack <name>",
  kind: "list",
  description: "look at the locks of this stack only, as in 'prod' or 'organization/<project>/prod'; repeatable",
};

/** The options of `sweep`. */
export const SWEEP_OPTIONS: readonly OptionSpec[] = [
  ...BACKEND_OPTIONS,
  ...DISCOVER_OPTIONS,
  { key: "delete", flags: "--delete", kind: "switch", value: true, description: "remove the stale locks; without it nothing is written (dry run)" },
  { ...YES_OPTION, description: "do not ask on a terminal before removing" },
  PROJECT_OPTION,
  STACK_OPTION,
  { key: "locks", flags: "--lock <id>", kind: "list", description: "look at this lock only: its id, its URL or the line that Pulumi printed; repeatable" },
  ...RULE_OPTIONS,
  {
    key: "maxDeletions",
    flags: "--max-deletions <n>",
    kind: "count",
    description: "remove nothing in a backend where the locks of more owners would go (default 50)",
  },
  ...AFTER_UNLOCK_OPTIONS,
  ...CLUSTER_OPTIONS,
  {
    key: "podsTakenAt",
    flags: "--pods-taken-at <time>",
    kind: "text",
    flagOnly: true,
    description: "you state when kubectl began to write that file (RFC 3339)",
  },
  OUTPUT_OPTION,
  STEP_SUMMARY_OPTION,
  {
    key: "failOn",
    flags: "--fail-on <verdicts>",
    kind: "list",
    description: "exit 3 for undetermined, unreadable; 5 for stale; or none (default undetermined,unreadable)",
    values: [...FAIL_ON, "none"],
  },
  {
    key: "warnHeldAfter",
    flags: "--warn-held-after <duration>",
    kind: "text",
    description: "tell about locks that are held for longer, whose update may hang (default 2h)",
  },
  ...PROGRESS_OPTIONS,
];

/** Of `sweep`, what makes no sense for one sweep after the other. */
const NOT_OF_WATCH: ReadonlySet<string> = new Set([
  "yes",
  "projects",
  "stacks",
  "locks",
  "podsFrom",
  "podsTakenAt",
  "outputs",
  "stepSummary",
  "failOn",
  "verbose",
  "warnHeldAfter",
]);

const WATCH_OWN_OPTIONS: readonly OptionSpec[] = [
  { key: "interval", flags: "--interval <duration>", kind: "text", description: "how often every lock is looked at when nothing happens (default 5m)" },
  {
    key: "ownPod",
    flags: "--own-pod",
    kind: "switch",
    value: true,
    description: "as a sidecar, with a shared process namespace: only the locks of this pod's own processes; asks no cluster",
  },
  { key: "listen", flags: "--listen <[host]:port>", kind: "text", description: "serve /metrics, /healthz and /readyz there (default: nowhere)" },
];

/** The options of `watch`. */
export const WATCH_OPTIONS: readonly OptionSpec[] = [...WATCH_OWN_OPTIONS, ...SWEEP_OPTIONS.filter(({ key }) => !NOT_OF_WATCH.has(key))];

const FORCE_OPTION: OptionSpec = {
  key: "force",
  flags: "--force",
  kind: "switch",
  value: true,
  flagOnly: true,
  description: "remove the lock whatever its verdict: you know that its owner is gone",
};

/** The options of `unlock`. */
export const UNLOCK_OPTIONS: readonly OptionSpec[] = [
  ...BACKEND_OPTIONS,
  FORCE_OPTION,
  YES_OPTION,
  ...RULE_OPTIONS,
  ...AFTER_UNLOCK_OPTIONS,
  ...CLUSTER_OPTIONS,
  {
    key: "podsTakenAt",
    flags: "--pods-taken-at <time>",
    kind: "text",
    flagOnly: true,
    description: "you state when kubectl began to write that file (RFC 3339)",
  },
  OUTPUT_OPTION,
  STEP_SUMMARY_OPTION,
  ...PROGRESS_OPTIONS,
];

/** The options of `check`. */
export const CHECK_OPTIONS: readonly OptionSpec[] = [
  ...BACKEND_OPTIONS,
  ...DISCOVER_OPTIONS,
  ...OWNER_OPTIONS,
  { ...PROBE_OPTION, description: "tell whether the pods that match an owner pattern may be probed, too" },
  ...AFTER_UNLOCK_OPTIONS.map((option) => ({ ...option, description: `tell whether the rights for it are there, too (${longName(option.flags)} of sweep)` })),
  ...CLUSTER_OPTIONS,
  PLAIN_OUTPUT_OPTION,
];

/** The options of `restore`. */
export const RESTORE_OPTIONS: readonly OptionSpec[] = [...BACKEND_OPTIONS, YES_OPTION];

/** The options of `audit show`. */
export const AUDIT_SHOW_OPTIONS: readonly OptionSpec[] = [...BACKEND_OPTIONS, PLAIN_OUTPUT_OPTION];

/** The options of `audit list`. Those that no setting has are read by audit-filter.ts. */
export const AUDIT_LIST_OPTIONS: readonly OptionSpec[] = [
  ...AUDIT_SHOW_OPTIONS,
  { ...PROJECT_OPTION, description: "removals in this project only; repeatable" },
  { ...STACK_OPTION, description: "removals of this stack's locks only; repeatable" },
  { key: "since", flags: "--since <time>", kind: "text", flagOnly: true, description: 'not older: how long ago ("2d") or a time (RFC 3339)' },
  { key: "until", flags: "--until <time>", kind: "text", flagOnly: true, description: "not younger, in the same forms" },
  { key: "runs", flags: "--run <id>", kind: "list", flagOnly: true, description: "removals of this run only; repeatable" },
  {
    key: "outcomes",
    flags: "--outcome <name>",
    kind: "list",
    flagOnly: true,
    description: `removals that ended so only: ${OUTCOMES.join(", ")}; repeatable`,
    values: OUTCOMES,
  },
  { key: "limit", flags: "--limit <n>", kind: "text", flagOnly: true, description: "show at most so many, the newest (default 100)" },
];

/** Every option there is: what a variable or the configuration file may set is the same for all commands. */
export const ALL_OPTIONS: readonly OptionSpec[] = [...SWEEP_OPTIONS, ...WATCH_OWN_OPTIONS, FORCE_OPTION];

/** The options of `config print`: every one that is a setting. */
export const CONFIG_PRINT_OPTIONS: readonly OptionSpec[] = ALL_OPTIONS.filter(({ flagOnly }) => flagOnly !== true);

/** The variable of an option: `PULUMI_LOCK_JANITOR_` and the flag's name; undefined for one that is a flag only. */
export function variableOf({ flags, flagOnly }: OptionSpec): string | undefined {
  if (flagOnly === true) return undefined;
  return `PULUMI_LOCK_JANITOR_${longName(flags).replace(/^no-/, "").replaceAll("-", "_").toUpperCase()}`;
}

/** The long name in a flag's description: `min-age` of `--min-age <duration>`. */
export function longName(flags: string): string {
  return /--([a-z-]+)/.exec(flags)?.[1] ?? "";
}
