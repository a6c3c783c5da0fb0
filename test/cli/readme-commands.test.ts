// Every command line that README and docs tell a person to type: ours are run, others are looked at or listed with the reason. One that no rule covers fails.
import { spawn } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import packageJson from "../../package.json" with { type: "json" };
import { findCommandLines, listPages } from "./command-lines.ts";
import { runInProcess } from "./in-process.ts";
import { OptionWorld, readLock } from "./option-rows.ts";

const LINES = listPages().flatMap((page) => findCommandLines(page));
const textsOf = (matches: (text: string) => boolean): readonly string[] => Array.from(new Set(LINES.map(({ text }) => text).filter(matches)));

const isOurs = (text: string): boolean => /^(pulumi-lock-janitor|node_modules\/\.bin\/node dist\/main\.js) /.test(text);
const isNpm = (text: string): boolean => text.startsWith("npm ");
const isKubectl = (text: string): boolean => text.startsWith("kubectl ");
const isHelm = (text: string): boolean => text.startsWith("helm ");

/** What is not run anywhere, and why. */
const LISTED: Readonly<Record<string, string>> = {
  "git clone <this repository>": "the reader fills in where the project is",
  "cd pulumi-lock-janitor": "the folder that git clone makes",
  "FIELD_KUBECONFIG=~/.kube/config FIELD_HOST_ADDRESS=172.18.0.1 FIELD_LOAD_IMAGE='kind load image-archive {}' FIELD_NODE_COMMAND='docker exec -i {node}' npm run test:field -- field.test":
    "needs a cluster of kind; the field test of a cluster that is given runs it against a node of its own",
  "source <(pulumi-lock-janitor completion bash)": "the script is tried in a real bash by the tests of completion",
};

it("each is covered by a rule", () => {
  const uncovered = LINES.filter(({ text }) => !isOurs(text) && !isNpm(text) && !isKubectl(text) && !isHelm(text) && LISTED[text] === undefined);
  expect(uncovered).toEqual([]);
  expect(Object.keys(LISTED).filter((text) => !LINES.some((line) => line.text === text))).toEqual([]);
});

it("lines of shell, transcripts and code between words are found, with what goes on behind a backslash", () => {
  const page = "```sh\n# no\na b \\\n  c  # no\nd && e\n```\n\n```\n$ f\nno\n```\n\n```\nno\n```\n\n```yaml\nno: x\n```\n\nDo `npm run g`, not `x`.\n";
  expect(findCommandLines("page", page).map(({ text }) => text)).toEqual(["a b c", "d", "e", "f", "npm run g"]);
});

let world: OptionWorld;
let record = "";
beforeEach(async () => {
  world = new OptionWorld();
  await world.start();
  world.server.objects.set("/apis/pulumi.com/v1/stacks", [{ metadata: { name: "shop", namespace: "iac" }, spec: { stack: "organization/shop/prod" } }]);
  world.workspace.addStack("shop", "organization/shop/prod");
  mkdirSync(world.file("bin"));
  addShim("pulumi-lock-janitor", `exec "${process.execPath}" "${resolve("dist/main.js")}" "$@"`);
  addShim("kubectl", `printf '%s\\n' "$@" >kubectl-words; cat cluster.json`);
  // The shell empties pods.json before kubectl begins.
  copyFileSync(world.workspace.snapshot, world.file("cluster.json"));
});
afterEach(async () => {
  await world.stop();
});

function addShim(name: string, script: string): void {
  writeFileSync(world.file(`bin/${name}`), `#!/bin/sh\n${script}\n`);
  chmodSync(world.file(`bin/${name}`), 0o755);
}

/** A lock whose owner is gone, and the record of another that was removed. */
async function prepareBackend(): Promise<void> {
  const key = world.addLock("shop-workspace-0", { id: "removed-before" });
  const words = [
    "sweep",
    "--backend",
    world.workspace.backend,
    "--kubeconfig",
    world.server.writeKubeconfig(),
    "--confirm-delay",
    "0s",
    "--delete",
    "--exclusive",
  ];
  record = String(readLock(await runInProcess([...words, "--output", "json"]), "record"));
  expect(existsSync(world.workspace.path(key))).toBe(false);
}

interface Ran {
  readonly exitCode: number | null;
  readonly output: string;
}

/** Types a line into a shell: the names of the page's own world stand for those of the test's. */
async function typeLine(text: string, { until }: { readonly until?: string } = {}): Promise<Ran> {
  const line = text
    .replaceAll("azblob://state", world.workspace.backend)
    .replaceAll("20260310T120000Z-3f1a2b9c4d5e6f70-9d0c1b2a", record)
    .replaceAll("--listen :9464", "--listen 127.0.0.1:0")
    .replaceAll("node_modules/.bin/node dist/main.js", "pulumi-lock-janitor");
  const child = spawn("bash", ["-c", `exec ${line}`], {
    cwd: world.workspace.folder,
    env: {
      PATH: `${world.file("bin")}:${process.env["PATH"] ?? ""}`,
      HOME: world.workspace.folder,
      KUBECONFIG: world.server.writeKubeconfig(),
      PULUMI_LOCK_JANITOR_CONFIRM_DELAY: "0s",
    },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (piece: string) => {
      output += piece;
      if (until !== undefined && output.includes(until)) child.kill("SIGTERM");
    });
  const exitCode = await new Promise<number | null>((done) => {
    child.once("close", done);
  });
  return { exitCode, output };
}

/** What each of our lines does, with a stale lock in the backend. */
interface Expectation {
  readonly exitCode: number;
  readonly says: string;
  /** Whether the lock is there afterwards. */
  readonly there: boolean;
  /** What the terminal's questions are answered with, where the line is for a terminal. */
  readonly answers?: string;
  /** A line of output after which a command that goes on is stopped. */
  readonly until?: string;
  readonly writes?: readonly string[];
}

const OURS: Readonly<Record<string, Expectation>> = {
  "node_modules/.bin/node dist/main.js --help": { exitCode: 0, says: "Usage: pulumi-lock-janitor", there: true },
  "pulumi-lock-janitor sweep --backend azblob://state": { exitCode: 0, says: "1 would be removed", there: true },
  "pulumi-lock-janitor sweep --backend azblob://state --delete --exclusive": { exitCode: 0, says: "1 removed", there: false },
  "pulumi-lock-janitor sweep --backend azblob://state --pods-from pods.json --output table --output markdown=report.md --output junit=junit.xml": {
    exitCode: 3,
    says: "snapshot-older",
    there: true,
    writes: ["report.md", "junit.xml"],
  },
  "pulumi-lock-janitor sweep --backend azblob://state --pods-from pods.json --fail-on stale --output table --output junit=junit.xml --output markdown=report.md --output json=report.json":
    { exitCode: 0, says: "snapshot-older", there: true, writes: ["junit.xml", "report.md", "report.json"] },
  "pulumi-lock-janitor check --backend azblob://state": { exitCode: 0, says: "list locks", there: true },
  "pulumi-lock-janitor unlock --backend azblob://state 26872864-1c1f-4e0e-9b0a-0a2b8c1d9e55": {
    exitCode: 0,
    says: "1 removed",
    there: false,
    answers: "--yes --exclusive",
  },
  "pulumi-lock-janitor watch --backend azblob://state --listen :9464 --delete --exclusive": {
    exitCode: 0,
    says: '"action":"deleted"',
    there: false,
    until: '"deleted"',
  },
  "pulumi-lock-janitor restore 20260310T120000Z-3f1a2b9c4d5e6f70-9d0c1b2a --backend azblob://state": { exitCode: 0, says: "was put back", there: true },
  "pulumi-lock-janitor audit list --backend azblob://state": { exitCode: 0, says: "removed", there: true },
  "pulumi-lock-janitor audit list --backend azblob://state --since 7d": { exitCode: 0, says: "removed", there: true },
  "pulumi-lock-janitor audit list --backend azblob://state --stack organization/network/dev --since 7d": {
    exitCode: 0,
    says: "No removal is recorded",
    there: true,
  },
  "pulumi-lock-janitor audit list --backend azblob://state --outcome failed --outcome open --output json": { exitCode: 0, says: '"removals": []', there: true },
  "pulumi-lock-janitor audit list --backend azblob://state --run 0b7c8d7e-6a5f-4b3c-9d2e-1f0a9b8c7d6e": {
    exitCode: 0,
    says: "No removal is recorded",
    there: true,
  },
  "pulumi-lock-janitor audit show 20260310T120000Z-3f1a2b9c4d5e6f70-9d0c1b2a --backend azblob://state": { exitCode: 0, says: "pod-not-found", there: true },
  "pulumi-lock-janitor config print": { exitCode: 0, says: "maxDeletions: 50", there: true },
};

describe("ours", () => {
  it("each line has its expectation, and each expectation its line", () => {
    expect(Object.keys(OURS).toSorted()).toEqual(textsOf(isOurs).toSorted());
  });

  it.each(Object.entries(OURS))("%s", async (text, { exitCode, says, there, answers, until, writes = [] }) => {
    await prepareBackend();
    // A record is put back only into a stack without a lock.
    const stack = text.includes(" restore ") ? "organization/shop/dev" : "organization/shop/prod";
    const key = world.addLock("shop-workspace-0", { id: "26872864-1c1f-4e0e-9b0a-0a2b8c1d9e55", stack });
    const ran = await typeLine(answers === undefined ? text : `${text} ${answers}`, until === undefined ? {} : { until });
    expect(ran.output).toContain(says);
    expect(ran.exitCode, ran.output).toBe(exitCode);
    expect(existsSync(world.workspace.path(key))).toBe(there);
    expect(writes.filter((name) => !existsSync(world.file(name)))).toEqual([]);
  });
});

describe("kubectl's", () => {
  it.each(textsOf(isKubectl))("%s: writes what --pods-from reads", async (text) => {
    const ran = await typeLine(text);
    expect(ran.exitCode, ran.output).toBe(0);
    expect(readFileSync(world.file("kubectl-words"), "utf8").trimEnd().split("\n")).toEqual(["get", "pods,stacks.pulumi.com,nodes", "-A", "-o", "json"]);
    expect(JSON.parse(readFileSync(world.file("pods.json"), "utf8"))).toMatchObject({ kind: "List" });
  });
});

/** What is wrong with a line of npm's: a script, a test's name or a test's file that is not there. */
function findMissing(text: string): readonly string[] {
  const scripts: readonly string[] = Object.keys(packageJson.scripts);
  const [, verb = "", ...words] = text.match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", "")) ?? [];
  if (verb === "ci" || verb === "install") return [];
  const script = verb === "test" ? verb : (words[0] ?? "");
  if (!scripts.includes(script)) return [script];
  const asked = words.includes("--") ? words.slice(words.indexOf("--") + 1) : [];
  if (script !== "test" && script !== "test:e2e") return [];
  const files = globSync(script === "test" ? "test/**/*.test.ts" : "test/{e2e,backends}/**/*.test.ts");
  if (asked[0] !== "-t") return asked.filter((part) => !files.some((file) => file.includes(part)));
  const name = new RegExp(`["'\`(]${asked[1] ?? ""}`);
  return files.some((file) => name.test(readFileSync(file, "utf8"))) ? [] : [asked[1] ?? ""];
}

describe("npm's", () => {
  it.each(textsOf(isNpm))("%s: the script is there, and so is what it is asked for", (text) => {
    expect(findMissing(text)).toEqual([]);
  });

  it.each(["npm run no-such-script", "npm test -- -t '\\bP99\\b'", "npm run test:e2e -- no-such-file"])("%s would be found", (text) => {
    expect(findMissing(text)).toHaveLength(1);
  });
});

describe("helm's", () => {
  it("name the chart that is here; the real helm reads them in test/e2e/readme-helm.test.ts", () => {
    const charts = textsOf(isHelm).flatMap((text) => /charts\/\S+/.exec(text)?.[0] ?? []);
    expect(charts.length).toBeGreaterThan(0);
    expect(charts.filter((chart) => !existsSync(join(chart, "Chart.yaml")))).toEqual([]);
  });
});
