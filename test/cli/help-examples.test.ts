import { execFile } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { EXAMPLES } from "../../src/help.ts";
import { aPodObject, type StubApiServer } from "../kubernetes/stub-api-server.ts";
import { startBeside, type Beside } from "./beside.ts";
import { runCommand } from "./command.ts";
import type { Workspace } from "./snapshot-files.ts";

const RECORDS = "test/fixtures/records-v1";

let beside: Beside;
let workspace: Workspace;
let server: StubApiServer;
beforeEach(async () => {
  beside = await startBeside([aPodObject("coredns")]);
  ({ workspace, server } = beside);
  server.answer = ({ query }) => (query.get("watch") === "1" ? { kind: "lines", lines: [], ending: "stay" } : undefined);
  workspace.addLock("shop-workspace-0", {
    stack: "organization/shop/dev",
    id: "26872864-1c1f-4e0e-9b0a-0a2b8c1d9e55",
    body: JSON.stringify({ pid: 300, username: "pulumi", hostname: "shop-workspace-0", timestamp: "2026-12-01T05:25:54Z" }),
  });
  mkdirSync(workspace.path(".pulumi-lock-janitor/audit"), { recursive: true });
  const identity = JSON.stringify({ scheme: "file", path: workspace.path(), prefix: "" });
  const records = readdirSync(RECORDS).map((name) => readFileSync(`${RECORDS}/${name}`, "utf8").replace(/"backend": \{[^}]*\}/, `"backend": ${identity}`));
  readdirSync(RECORDS).forEach((name, index) => writeFileSync(workspace.path(".pulumi-lock-janitor/audit", name), records[index] ?? ""));
  writeFileSync(`${workspace.folder}/removals.ndjson`, records.map((text) => `${JSON.stringify(JSON.parse(text))}\n`).join(""));
  writeFileSync(`${workspace.folder}/janitor.yaml`, "minAge: 1m\n");
  // A pod that holds the lock: a file without a date proves no absence.
  workspace.addPod("shop-workspace-0");
  writeFileSync(`${workspace.folder}/pods.json`, readFileSync(workspace.snapshot));
});
afterEach(async () => {
  await beside.remove();
});

/** Runs a line in bash, in the workspace, with the janitor that was built and the stub's cluster. */
async function runLine(line: string): Promise<{ readonly exitCode: number; readonly output: string }> {
  // What is asked on a terminal is answered by flags; a watch ends by a signal.
  const answered = line.includes(" unlock ") ? `${line} --yes --exclusive` : line;
  const bounded = `${line.includes(" watch ") ? "timeout --preserve-status -s TERM 3 " : ""}${JSON.stringify(process.execPath)} ${JSON.stringify(resolve("dist/main.js"))} `;
  const script = answered
    .replace(/^pulumi-lock-janitor /, () => bounded)
    .replaceAll(/azblob:\/\/state|file:\/\/\/srv\/state/g, () => workspace.backend)
    .replace(":9464", "127.0.0.1:0");
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: "/nonexistent",
    KUBECONFIG: server.writeKubeconfig(),
    PULUMI_LOCK_JANITOR_CONFIRM_DELAY: "0s",
    PULUMI_LOCK_JANITOR_REQUIRE_STACK: "no",
  };
  return await new Promise((done) => {
    execFile("bash", ["-c", script], { cwd: workspace.folder, env }, (error, stdout, stderr) => {
      done({ exitCode: error === null ? 0 : Number(error.code), output: `${stdout}${stderr}` });
    });
  });
}

const lines = Object.entries(EXAMPLES).flatMap(([command, examples]) => examples.map((line) => [command, line] as const));

describe("the examples of --help", () => {
  it.each(Object.keys(EXAMPLES))("those of %s are shown", async (command) => {
    const { exitCode, stdout } = await runCommand([...command.split(" "), "--help"]);
    expect(exitCode).toBe(0);
    for (const line of EXAMPLES[command] ?? []) expect(stdout).toContain(`  $ ${line}\n`);
  });

  it.each(lines.filter(([, line]) => line.startsWith("pulumi-lock-janitor ")))("%s: %s", async (_command, line) => {
    const { exitCode, output } = await runLine(line);
    expect({ exitCode, output }).toMatchObject({ exitCode: 0 });
  });

  it("the others are kubectl's", () => {
    expect(lines.filter(([, line]) => !line.startsWith("pulumi-lock-janitor ")).map(([, line]) => line.split(" ")[0])).toEqual(["kubectl"]);
  });
});
