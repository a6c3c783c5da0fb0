import { existsSync } from "node:fs";

import { checkReport, type CheckItem } from "../../src/core/check-report.ts";
import { CONFIG_PRINT_ROWS, composeAuditListRows } from "./audit-rows.ts";
import { runInProcess } from "./in-process.ts";
import { readAt, readDocument, readLock, seeThere, seeVerdict, type CommandName, type OptionWorld, type Row, type Seen } from "./option-rows.ts";
import { RULE_ROWS, writeTwoContexts } from "./rule-rows.ts";

const addStale = (world: OptionWorld): void => void world.addLock("iac-runner-gone");
const countLocks = (seen: Seen): unknown => readAt(readDocument(seen), "summary", "locks");
/** What both runs of a row that removes have beside the usual words. */
const removing = (row: Row): Row => ({ ...row, beside: (world) => ["--delete", "--exclusive", ...(row.beside?.(world) ?? [])] });
const rule = (name: string): Row => {
  const row = RULE_ROWS[name];
  if (row === undefined) throw new Error(`there is no rule row ${name}`);
  return row;
};

const DISCOVER_ROWS: Readonly<Record<string, Row>> = {
  "--discover": {
    arrange: (world) => world.addDiscoverable(),
    omit: ["--backend"],
    beside: () => ["--discover-allow", "gs://acme-*", "--min-age", "0s"],
    option: () => ["--discover"],
    see: seeVerdict,
    without: "exit 2",
    with: "stale pod-not-found",
  },
  "--discover-allow": {
    arrange: (world) => world.addDiscoverable(),
    omit: ["--backend"],
    beside: () => ["--discover", "--min-age", "0s"],
    option: () => ["--discover-allow", "gs://acme-*"],
    see: seeVerdict,
    without: "exit 2",
    with: "stale pod-not-found",
  },
};

const PODS_FROM: Row = {
  arrange: addStale,
  omit: ["--kubeconfig"],
  option: (world) => ["--pods-from", world.workspace.snapshot],
  see: seeVerdict,
  without: "exit 2",
  with: "undetermined snapshot-older",
};
const PODS_TAKEN_AT: Row = {
  arrange: addStale,
  omit: ["--kubeconfig"],
  beside: (world) => ["--pods-from", world.workspace.snapshot],
  option: (world) => ["--pods-taken-at", world.workspace.ago(0)],
  see: seeVerdict,
  without: "undetermined snapshot-older",
  with: "stale pod-not-found",
};
const OUTPUT: Row = {
  arrange: addStale,
  omit: ["--output"],
  option: () => ["--output", "junit"],
  see: ({ stdout }) => stdout.startsWith("<?xml"),
  without: false,
  with: true,
};
const STEP_SUMMARY: Row = {
  arrange: addStale,
  env: (world) => ({ GITHUB_STEP_SUMMARY: world.file("summary") }),
  option: () => ["--no-step-summary"],
  see: ({ world }) => existsSync(world.file("summary")),
  without: true,
  with: false,
};
const VERBOSE: Row = {
  arrange: addStale,
  omit: ["--output"],
  option: () => ["--verbose"],
  see: ({ stdout }) => stdout.includes("=> rule 5"),
  without: false,
  with: true,
};

/** A lock whose Stack is there. */
const addStaleOfStack = (world: OptionWorld): void => {
  addStale(world);
  const spec = { stack: "prod", backend: world.workspace.backend };
  world.server.objects.set("/apis/pulumi.com/v1/stacks", [{ kind: "Stack", metadata: { name: "shop", namespace: "iac", uid: "uid-1" }, spec }]);
};

/** What follows a removal: `words` make the command remove. */
const composeAfterRows = (...words: readonly string[]): Readonly<Record<string, Row>> => {
  const row = (option: string, see: Row["see"], without: unknown, withIt: unknown): Row => ({
    arrange: addStaleOfStack,
    beside: () => words,
    option: () => [option],
    see,
    without,
    with: withIt,
  });
  return {
    "--requeue-stacks": row("--requeue-stacks", ({ world }) => world.server.calls.some(({ method }) => method === "PATCH"), false, true),
    "--stack-events": row("--stack-events", ({ world }) => world.server.calls.some(({ path }) => path.endsWith("/events")), false, true),
    "--check-pending": row("--check-pending", (seen) => readLock(seen, "pendingOperations", "kind"), undefined, "unknown"),
  };
};

/** Two owners are gone, and one may lose its lock. */
const MAX_DELETIONS: Pick<Row, "arrange" | "option"> = {
  arrange: (world) => ["iac-runner-a", "iac-runner-b"].forEach((hostname) => world.addLock(hostname)),
  option: () => ["--max-deletions", "1"],
};
/** Of both commands that remove by themselves. */
const REMOVING_ROWS: Readonly<Record<string, Row>> = {
  ...RULE_ROWS,
  ...composeAfterRows("--delete", "--exclusive"),
  ...DISCOVER_ROWS,
  "--audit-log": removing(rule("--audit-log")),
  "--exclusive": { ...rule("--exclusive"), beside: () => ["--delete"] },
  "--delete": { arrange: addStale, beside: () => ["--exclusive"], option: () => ["--delete"], see: seeThere, without: true, with: false },
};

const SWEEP_ROWS: Readonly<Record<string, Row>> = {
  ...REMOVING_ROWS,
  // Nobody answers the question: that is a no.
  "--yes": { ...removing({ arrange: addStale, option: () => ["--yes"], see: seeThere, without: true, with: false }), interactive: true, stopAfter: 3_000 },
  "--project": {
    arrange: (world) => ["organization/a/dev", "organization/b/dev"].forEach((stack) => world.addLock("iac-runner-gone", { stack })),
    option: () => ["--project", "a"],
    see: countLocks,
    without: 2,
    with: 1,
  },
  "--stack": {
    arrange: (world) => ["organization/a/dev", "organization/a/prod"].forEach((stack) => world.addLock("iac-runner-gone", { stack })),
    option: () => ["--stack", "dev"],
    see: countLocks,
    without: 2,
    with: 1,
  },
  "--lock": {
    arrange: (world) => ["one", "two"].forEach((id) => world.addLock("iac-runner-gone", { id })),
    option: () => ["--lock", "one"],
    see: countLocks,
    without: 2,
    with: 1,
  },
  "--max-deletions": { ...MAX_DELETIONS, see: ({ exitCode }) => exitCode, without: 0, with: 4 },
  "--pods-from": { ...PODS_FROM },
  "--pods-taken-at": PODS_TAKEN_AT,
  "--output": OUTPUT,
  "--no-step-summary": STEP_SUMMARY,
  "--fail-on": { arrange: addStale, option: () => ["--fail-on", "stale"], see: ({ exitCode }) => exitCode, without: 0, with: 5 },
  "--warn-held-after": {
    arrange: (world) => void world.addLock("iac-runner-here"),
    option: () => ["--warn-held-after", "30m"],
    see: (seen) => readAt(readDocument(seen), "warnings", 0) !== undefined,
    without: false,
    with: true,
  },
  "--verbose": VERBOSE,
};

const WATCH_ROWS: Readonly<Record<string, Row>> = {
  ...REMOVING_ROWS,
  "--max-deletions": { ...MAX_DELETIONS, see: (seen) => readLock(seen, "action"), without: "would-delete", with: "keep" },
  "--interval": {
    arrange: addStale,
    omit: ["--interval"],
    stopAfter: 6_000,
    option: () => ["--interval", "100ms"],
    // A whole sweep lists the pods for each of its two looks.
    see: ({ world }) => world.server.calls.filter(({ path, query }) => path === "/api/v1/pods" && query.get("limit") === "500").length > 2,
    without: false,
    with: true,
  },
  "--own-pod": {
    arrange: addStale,
    option: () => ["--own-pod"],
    see: ({ stderr }) => stderr.includes("--own-pod asks no cluster"),
    without: false,
    with: true,
  },
  "--listen": {
    arrange: addStale,
    option: () => ["--listen", "127.0.0.1:0"],
    see: ({ stderr }) => /status at port \d+/.test(stderr),
    without: false,
    with: true,
  },
};

const UNLOCK_ROWS: Readonly<Record<string, Row>> = {
  ...RULE_ROWS,
  ...composeAfterRows(),
  "--context": { ...rule("--context"), without: "none" },
  "--force": { arrange: (world) => void world.addLock("iac-runner-here"), option: () => ["--force"], see: seeThere, without: true, with: false },
  "--yes": { arrange: addStale, omit: ["--yes"], option: () => ["--yes"], see: seeThere, without: true, with: false },
  "--pods-from": { ...PODS_FROM, beside: (world) => ["--pods-taken-at", world.workspace.ago(0)], with: "stale pod-not-found" },
  "--pods-taken-at": { ...PODS_TAKEN_AT, without: "exit 2" },
  "--output": OUTPUT,
  "--no-step-summary": STEP_SUMMARY,
  "--verbose": VERBOSE,
};

const itemsOf = ({ stdout }: Pick<Seen, "stdout">): readonly CheckItem[] => (stdout === "" ? [] : checkReport.parse(JSON.parse(stdout)).items);

/** What `check` says of one item. */
const item =
  (area: CheckItem["area"], name: string): Row["see"] =>
  (seen) =>
    itemsOf(seen).find((one) => one.area === area && one.name === name)?.status ?? `exit ${seen.exitCode}`;

/** A backend whose answers take a second. */
const SLOW: Pick<Row, "omit" | "env" | "arrange" | "beside" | "option"> = {
  omit: ["--backend"],
  arrange: async (world) => {
    world.argument = "20260310T120000Z-3f1a2b9c4d5e6f70-9d0c1b2a";
    await world.startSlowStore();
  },
  env: (world) => ({ STORAGE_EMULATOR_HOST: world.slowStore }),
  beside: () => ["--backend", "gs://acme-state"],
  option: () => ["--request-timeout", "100ms"],
};

const CHECK_ROWS: Readonly<Record<string, Row>> = {
  "--config": { ...rule("--config"), see: item("backend", "list locks"), with: "ok" },
  "--backend": { ...rule("--backend"), see: item("backend", "list locks"), with: "ok" },
  "--audit-log": {
    option: (world) => ["--audit-log", world.file("audit.ndjson")],
    see: (seen) => itemsOf(seen).some(({ message }) => message.includes("audit.ndjson")),
    without: false,
    with: true,
  },
  "--request-timeout": { ...SLOW, see: item("backend", "list locks"), without: "ok", with: "denied" },
  "--discover": {
    ...rule("--backend"),
    arrange: (world) => world.addDiscoverable(),
    beside: () => ["--discover-allow", "gs://acme-*"],
    option: () => ["--discover"],
    see: item("discovery", "added"),
    with: "ok",
  },
  "--discover-allow": {
    arrange: (world) => world.addDiscoverable(),
    beside: () => ["--discover"],
    option: () => ["--discover-allow", "gs://acme-*"],
    see: item("discovery", "added"),
    without: "exit 0",
    with: "ok",
  },
  "--owner": { omit: ["--owner"], option: () => ["--owner", "iac-runner-*"], see: item("owners", "iac-runner-*"), without: "exit 0", with: "ok" },
  "--no-builtin-owners": { option: () => ["--no-builtin-owners"], see: item("owners", "*-workspace-0"), without: "unknown", with: "exit 0" },
  "--probe-processes": {
    option: () => ["--probe-processes"],
    // Without a pod that matches there is no namespace to ask for.
    see: item("proof", "process-gone"),
    without: "exit 0",
    with: "unknown",
  },
  "--requeue-stacks": { option: () => ["--requeue-stacks"], see: item("cluster", "requeue Stacks"), without: "exit 0", with: "unknown" },
  "--stack-events": { option: () => ["--stack-events"], see: item("cluster", "write Events"), without: "exit 0", with: "unknown" },
  "--check-pending": { option: () => ["--check-pending"], see: item("backend", "read checkpoints"), without: "exit 0", with: "ok" },
  "--kubeconfig": { ...rule("--kubeconfig"), see: item("cluster", "list pods"), with: "ok" },
  "--context": {
    ...rule("--context"),
    arrange: writeTwoContexts,
    see: (seen) => itemsOf(seen).find(({ area }) => area === "cluster")?.subject,
  },
  "--namespace": rule("--namespace"),
  "--pods-from": { ...PODS_FROM, see: item("cluster", "list pods"), with: "ok" },
  "--output": { ...OUTPUT, option: () => ["--output", "json"], see: ({ stdout }) => stdout.startsWith("{") },
};

/** A lock that was removed, with its record in the backend, or in `audit.ndjson`. */
const addRemoved =
  (...words: readonly string[]) =>
  async (world: OptionWorld): Promise<void> => {
    addStale(world);
    const where = ["--backend", world.workspace.backend, "--kubeconfig", world.server.writeKubeconfig(), "--owner", "iac-runner-*", "--confirm-delay", "0s"];
    const audit = words.map((word) => (word === "FILE" ? world.file("audit.ndjson") : word));
    const removed = await runInProcess(["sweep", ...where, "--delete", "--exclusive", "--output", "json", ...audit]);
    world.argument = String(readLock(removed, "record"));
    world.workspace.addConfig({ backends: [world.workspace.backend] });
  };
const seeExit: Row["see"] = ({ exitCode }) => exitCode;

const RESTORE_ROWS: Readonly<Record<string, Row>> = {
  "--config": { arrange: addRemoved(), omit: ["--backend"], option: (world) => ["--config", world.file("config.yaml")], see: seeExit, without: 2, with: 0 },
  "--backend": { arrange: addRemoved(), omit: ["--backend"], option: (world) => ["--backend", world.workspace.backend], see: seeExit, without: 2, with: 0 },
  "--audit-log": {
    arrange: addRemoved("--audit-log", "FILE"),
    option: (world) => ["--audit-log", world.file("audit.ndjson")],
    see: seeExit,
    without: 1,
    with: 0,
  },
  "--request-timeout": { ...SLOW, see: ({ stderr }) => stderr.includes("the service did not answer"), without: false, with: true },
  "--yes": { arrange: addRemoved(), interactive: true, stopAfter: 3_000, option: () => ["--yes"], see: seeExit, without: 4, with: 0 },
};

const AUDIT_LIST_ROWS = composeAuditListRows(addRemoved, SLOW);

const AUDIT_SHOW_ROWS: Readonly<Record<string, Row>> = {
  "--config": RESTORE_ROWS["--config"] ?? rule("--config"),
  "--backend": RESTORE_ROWS["--backend"] ?? rule("--backend"),
  "--audit-log": RESTORE_ROWS["--audit-log"] ?? rule("--audit-log"),
  "--request-timeout": RESTORE_ROWS["--request-timeout"] ?? rule("--request-timeout"),
  "--output": AUDIT_LIST_ROWS["--output"] ?? rule("--output"),
};

/** For each command the rows of its options: add one for each new option, as short as these. */
export const TABLE: Readonly<Record<CommandName, Readonly<Record<string, Row>>>> = {
  sweep: SWEEP_ROWS,
  watch: WATCH_ROWS,
  unlock: UNLOCK_ROWS,
  check: CHECK_ROWS,
  restore: RESTORE_ROWS,
  "audit list": AUDIT_LIST_ROWS,
  "audit show": AUDIT_SHOW_ROWS,
  "config print": CONFIG_PRINT_ROWS,
};
