import { longName, CONFIG_PRINT_OPTIONS } from "../../src/options.ts";
import { readAt, readDocument, type OptionWorld, type Row } from "./option-rows.ts";

type Arrange = (world: OptionWorld) => Promise<void>;
type Rows = Readonly<Record<string, Row>>;

const seeExit: Row["see"] = ({ exitCode }) => exitCode;

/** How many removals `audit list` tells of. */
const countRemovals: Row["see"] = (seen) => {
  const removals = readAt(readDocument(seen), "removals");
  return Array.isArray(removals) ? removals.length : `exit ${seen.exitCode}`;
};

/** The rows of `audit list`; `addRemoved` makes a lock that was removed, with its record. */
export function composeAuditListRows(
  addRemoved: (...words: readonly string[]) => Arrange,
  slow: Pick<Row, "omit" | "env" | "arrange" | "beside" | "option">,
): Rows {
  const filtered = (option: string, value: string): Row => ({ arrange: addRemoved(), option: () => [option, value], see: countRemovals, without: 1, with: 0 });
  return {
    "--config": { arrange: addRemoved(), omit: ["--backend"], option: (world) => ["--config", world.file("config.yaml")], see: seeExit, without: 2, with: 0 },
    "--backend": { arrange: addRemoved(), omit: ["--backend"], option: (world) => ["--backend", world.workspace.backend], see: seeExit, without: 2, with: 0 },
    "--audit-log": {
      arrange: addRemoved("--audit-log", "FILE"),
      option: (world) => ["--audit-log", world.file("audit.ndjson")],
      see: countRemovals,
      without: 0,
      with: 1,
    },
    "--request-timeout": { ...slow, see: seeExit, without: 0, with: 1 },
    "--output": {
      arrange: addRemoved(),
      omit: ["--output"],
      option: () => ["--output", "json"],
      see: ({ stdout }) => stdout.startsWith("{"),
      without: false,
      with: true,
    },
    "--project": filtered("--project", "other"),
    "--stack": filtered("--stack", "other"),
    "--since": filtered("--since", "2999-01-01T00:00:00Z"),
    "--until": filtered("--until", "2000-01-01T00:00:00Z"),
    "--run": filtered("--run", "other"),
    "--outcome": filtered("--outcome", "failed"),
    "--limit": {
      arrange: async (world) => {
        await addRemoved()(world);
        await addRemoved()(world);
      },
      option: () => ["--limit", "1"],
      see: countRemovals,
      without: 2,
      with: 1,
    },
  };
}

/** Words for each setting, where one word does not fit all. */
const VALUES: Readonly<Record<string, string>> = {
  backends: "s3://acme",
  discoverAllow: "s3://acme-*",
  failOn: "none",
  listen: ":9464",
  locks: "26872864-1c1f-4e0e-9b0a-0a2b8c1d9e55",
  maxDeletions: "7",
  outputs: "json",
  owners: "iac-runner-*",
  requireStack: "no",
  unreachableNodes: "ignore:node-1",
};

/** The rows of `config print`: each setting is shown with the flag that it comes from. */
export const CONFIG_PRINT_ROWS: Rows = {
  "--config": {
    arrange: (world) => world.workspace.addConfig({ minAge: "7m" }),
    option: (world) => ["--config", world.file("config.yaml")],
    see: ({ stdout }) => stdout.includes("minAge: 7m"),
    without: false,
    with: true,
  },
  ...Object.fromEntries(
    CONFIG_PRINT_OPTIONS.map(({ key, flags, kind }): readonly [string, Row] => {
      const flag = `--${longName(flags)}`;
      const value = VALUES[key] ?? (flags.includes("<duration>") ? "7m" : "word");
      return [
        flag,
        {
          option: () => (kind === "switch" ? [flag] : [flag, value]),
          see: ({ stdout }) => stdout.split("\n").some((line) => line.includes(key) || line === `# ${flag}`) && stdout.includes(`# ${flag}`),
          without: false,
          with: true,
        },
      ];
    }),
  ),
};
