/** What is shown below the options of every command. */
export const EXIT_CODES = `
Exit codes:
  0  done
  1  failed: a backend or a cluster could not be read, a removal failed
  2  wrong usage or configuration
  3  incomplete: locks that are undetermined or unreadable, or --timeout
  4  refused: a safety valve, a declined question, or an unlock without proof
  5  stale locks found, with --fail-on stale`;

const RECORD = "20260310T120000Z-3f1a2b9c4d5e6f70-9d0c1b2a";

/** Examples for each command. Every line is run by a test. */
export const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  sweep: [
    "pulumi-lock-janitor sweep --backend azblob://state",
    "pulumi-lock-janitor sweep --backend azblob://state --delete --exclusive",
    "kubectl get pods,stacks.pulumi.com,nodes -A -o json > pods.json",
    "pulumi-lock-janitor sweep --backend file:///srv/state --pods-from pods.json --output json",
  ],
  watch: [
    "pulumi-lock-janitor watch --backend azblob://state --listen :9464",
    "pulumi-lock-janitor watch --backend azblob://state --delete --exclusive --interval 10m",
  ],
  check: ["pulumi-lock-janitor check --backend azblob://state", "pulumi-lock-janitor check --backend azblob://state --probe-processes --output json"],
  unlock: [
    "pulumi-lock-janitor unlock --backend azblob://state 26872864-1c1f-4e0e-9b0a-0a2b8c1d9e55",
    'pulumi-lock-janitor unlock --backend azblob://state "azblob://state/.pulumi/locks/organization/shop/dev/26872864-1c1f-4e0e-9b0a-0a2b8c1d9e55.json: created by pulumi@shop-workspace-0 (pid 300) at 2026-12-01T05:25:54Z"',
  ],
  restore: [`pulumi-lock-janitor restore ${RECORD} --backend azblob://state`],
  "audit list": [
    "pulumi-lock-janitor audit list --backend azblob://state",
    "pulumi-lock-janitor audit list --backend azblob://state --stack organization/shop/prod --since 7d",
    "pulumi-lock-janitor audit list --audit-log removals.ndjson --outcome failed --output json",
  ],
  "audit show": [`pulumi-lock-janitor audit show ${RECORD} --backend azblob://state`],
  "config print": ["pulumi-lock-janitor config print --config janitor.yaml", "pulumi-lock-janitor config print --config janitor.yaml --min-age 5m"],
};

/** What is shown below the options of a command: its examples, then the exit codes. */
export function composeHelp(command: string): string {
  const lines = (EXAMPLES[command] ?? []).map((line) => `  $ ${line}`);
  return lines.length === 0 ? EXIT_CODES : `\nExamples:\n${lines.join("\n")}\n${EXIT_CODES}`;
}
