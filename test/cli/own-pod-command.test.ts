import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { watchEvent } from "../../src/core/watch-event.ts";
import { runCommand } from "./command.ts";
import { Workspace } from "./snapshot-files.ts";

const NAMESPACE = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
const mayShare = process.platform === "linux" && spawnSync("unshare", [...NAMESPACE, "true"]).status === 0;

/** What takes a lock as pulumi does, under its name, and goes on. */
const PULUMI = `#!/bin/sh
folder=$STATE/.pulumi/locks/organization/shop/prod
mkdir -p "$folder"
printf '{"pid":%d,"username":"pulumi","hostname":"%s","timestamp":"%s"}' $$ "$(hostname)" "$(date -u +%Y-%m-%dT%H:%M:%S.%NZ)" >"$folder/1.json"
while :; do sleep 0.2; done
`;

let workspace: Workspace;
beforeEach(() => {
  workspace = new Workspace();
  mkdirSync(join(workspace.folder, "bin"));
  writeFileSync(join(workspace.folder, "bin/pulumi"), PULUMI);
  chmodSync(join(workspace.folder, "bin/pulumi"), 0o755);
});
afterEach(() => workspace.remove());

/** Runs a script as the first process of a namespace of its own, as the pause process is that of a pod. */
function runInPod(script: string): { readonly stdout: string; readonly stderr: string } {
  const { stdout, stderr } = spawnSync("unshare", [...NAMESPACE, "/bin/sh", "-c", script], {
    encoding: "utf8",
    timeout: 60_000,
    env: {
      PATH: `${join(workspace.folder, "bin")}:${process.env["PATH"] ?? ""}`,
      STATE: workspace.path(),
      LOCK: workspace.path(".pulumi/locks/organization/shop/prod/1.json"),
      EVENTS: join(workspace.folder, "events"),
      JANITOR: `${process.execPath} ${resolve("dist/main.js")} watch --own-pod --backend ${workspace.backend}`,
    },
  });
  return { stdout, stderr };
}

describe.runIf(mayShare)("watch --own-pod", () => {
  it("removes the lock of a pulumi that was killed, and ends with 0 at SIGTERM", () => {
    const { stdout, stderr } = runInPod(`
      $JANITOR --delete >$EVENTS & janitor=$!
      pulumi up --stack prod & pulumi=$!
      while ! grep -q held $EVENTS; do sleep 0.1; done
      kill -9 $pulumi
      while [ -e $LOCK ]; do sleep 0.1; done
      kill -TERM $janitor; wait $janitor; echo "ended with $?"; cat $EVENTS`);
    const [end, ...lines] = stdout.trim().split("\n");
    expect(end, stderr).toBe("ended with 0");
    const events = lines.map((line) => watchEvent.parse(JSON.parse(line)));
    expect(events.map((event) => (event.event === "lock" ? `${event.lock.verdict} ${event.lock.reason} ${event.lock.action}` : event.event))).toEqual([
      "held container-running keep",
      "stale process-gone deleted",
    ]);
    expect(readdirSync(workspace.path(".pulumi-lock-janitor/audit"))).toHaveLength(2);
  });

  it("told to stop while pulumi runs, it stays until that is gone, and then releases its lock", () => {
    const { stdout, stderr } = runInPod(`
      $JANITOR --delete >$EVENTS & janitor=$!
      pulumi up --stack prod & pulumi=$!
      while ! grep -q held $EVENTS; do sleep 0.1; done
      kill -TERM $janitor; sleep 1; [ -e $LOCK ] && echo "still there"
      kill -9 $pulumi; wait $janitor; echo "ended with $?"`);
    expect(stdout.trim().split("\n"), stderr).toEqual(["still there", "ended with 0"]);
    expect(existsSync(workspace.path(".pulumi/locks/organization/shop/prod/1.json"))).toBe(false);
  });

  it("as it begins, it puts back a lock that a crashed run had moved aside and was not to remove", () => {
    const folder = ".pulumi/locks/organization/shop/prod";
    mkdirSync(workspace.path(`.pulumi-lock-janitor/aside/1/${folder}`), { recursive: true });
    writeFileSync(workspace.path(`.pulumi-lock-janitor/aside/1/${folder}/1.json`), "{}");
    const { stdout, stderr } = runInPod(`
      $JANITOR --delete & janitor=$!
      while [ ! -e $LOCK ]; do sleep 0.1; done
      kill -TERM $janitor; wait $janitor; echo "ended with $?"`);
    expect(stdout.trim()).toBe("ended with 0");
    expect(stderr).toContain("was put back");
  });

  it("alone in its namespace, it says what is missing", () => {
    const { stderr } = runInPod("exec $JANITOR");
    expect(stderr).toContain("shareProcessNamespace");
  });
});

it.each([
  ["--context", ["--context", "prod"]],
  ["--listen", ["--listen", ":9464"]],
  ["--owner", ["--owner", "iac-runner-*"]],
])("with %s, which would be without effect: exit 2", async (option, words) => {
  const { exitCode, stderr } = await runCommand(["watch", "--own-pod", "--backend", workspace.backend, ...words]);
  expect({ exitCode, says: stderr.includes(`leave out ${option}`) }).toEqual({ exitCode: 2, says: true });
});
