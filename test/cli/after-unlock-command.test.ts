// The built command, from its flags to a changed Stack.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { checkReport } from "../../src/core/check-report.ts";
import { sweepReport, type SweepReport } from "../../src/core/report.ts";
import { watchEvent } from "../../src/core/watch-event.ts";
import { aPodObject, type StubApiServer, type SeenCall } from "../kubernetes/stub-api-server.ts";
import { startBeside, type Beside } from "./beside.ts";
import { runCommand, type CommandResult } from "./command.ts";
import type { Workspace } from "./snapshot-files.ts";

const STACK = "/apis/pulumi.com/v1/namespaces/iac/stacks/shop";
const EVENTS = "/api/v1/namespaces/iac/events";

let beside: Beside;
let workspace: Workspace;
let server: StubApiServer;
let key: string;
beforeEach(async () => {
  beside = await startBeside([aPodObject("coredns")]);
  ({ workspace, server } = beside);
  const stack = { kind: "Stack", metadata: { name: "shop", namespace: "iac", uid: "uid-of-shop" }, spec: { stack: "prod", backend: workspace.backend } };
  server.objects.set("/apis/pulumi.com/v1/stacks", [stack]);
  key = workspace.addLock("iac-runner-gone");
});
afterEach(async () => {
  await beside.remove();
});

function words(...more: readonly string[]): readonly string[] {
  return ["--backend", workspace.backend, "--kubeconfig", server.writeKubeconfig(), "--owner", "iac-runner-*", "--confirm-delay", "0s", ...more];
}

function readReport({ stdout, stderr }: CommandResult): SweepReport {
  if (stdout === "") throw new Error(stderr);
  return sweepReport.parse(JSON.parse(stdout));
}

/** Everything that was sent to change something. */
function writes(): readonly SeenCall[] {
  return server.calls.filter(({ method }) => method !== "GET");
}

function putCheckpoint(pending: number): void {
  const path = workspace.path(".pulumi/stacks/shop/prod.json");
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, JSON.stringify({ version: 3, checkpoint: { latest: { pending_operations: Array.from({ length: pending }, () => ({})) } } }));
}

describe("after a removal", () => {
  it("sweep has the operator try again, and writes an Event", async () => {
    putCheckpoint(0);
    const result = await runCommand([
      "sweep",
      ...words("--delete", "--exclusive", "--requeue-stacks", "--stack-events", "--check-pending", "--output", "json"),
    ]);
    expect(readReport(result)).toMatchObject({
      exitCode: 0,
      locks: [
        {
          action: "deleted",
          pendingOperations: { kind: "none" },
          afterUnlock: { stacks: [{ cluster: "stub", namespace: "iac", name: "shop", requeued: true, event: true }] },
        },
      ],
    });
    const [patch, event, ...others] = writes();
    expect(others).toEqual([]);
    expect([patch, event].map((call) => `${call?.method ?? ""} ${call?.path ?? ""}`)).toEqual([`PATCH ${STACK}`, `POST ${EVENTS}`]);
    expect(JSON.parse(patch?.body() ?? "")).toEqual({
      metadata: { annotations: { "pulumi.com/reconciliation-request": expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) } },
    });
    expect(JSON.parse(event?.body() ?? "")).toMatchObject({ involvedObject: { uid: "uid-of-shop" }, message: expect.stringContaining("iac-runner-gone") });
  });

  it("unlock and variables do so, too", async () => {
    const { exitCode } = await runCommand(["unlock", key, ...words("--yes", "--exclusive")], { env: { PULUMI_LOCK_JANITOR_REQUEUE_STACKS: "true" } });
    expect(exitCode).toBe(0);
    expect(writes().map(({ method, path }) => `${method} ${path}`)).toEqual([`PATCH ${STACK}`]);
  });

  it("pending operations are shown, and no operator is told", async () => {
    putCheckpoint(2);
    const { stdout, exitCode } = await runCommand(["sweep", ...words("--delete", "--exclusive", "--requeue-stacks", "--check-pending")]);
    expect(stdout).toContain("its checkpoint holds 2 pending operations");
    expect(stdout).toContain("note: pending operations are in the checkpoint of");
    expect([exitCode, existsSync(workspace.path(key)), writes()]).toEqual([0, false, []]);
  });

  it("a right that is missing is named; the lock is gone and the exit code is 0", async () => {
    server.answer = ({ method }) => (method === "GET" ? undefined : { kind: "status", status: 403 });
    const { stdout, exitCode } = await runCommand(["sweep", ...words("--delete", "--exclusive", "--requeue-stacks", "--stack-events")]);
    expect(stdout).toContain('the verb "patch" on stacks.pulumi.com is not allowed (403); the verb "create" on events is not allowed (403)');
    expect([exitCode, existsSync(workspace.path(key))]).toEqual([0, false]);
  });

  it("P4: a dry run, and a run without the options, write nothing to the cluster", async () => {
    await runCommand(["sweep", ...words("--requeue-stacks", "--stack-events", "--check-pending")]);
    await runCommand(["sweep", ...words("--delete", "--exclusive")]);
    expect(existsSync(workspace.path(key))).toBe(false);
    expect(writes()).toEqual([]);
  });

  it("watch tells it in its line, and what failed in its log", async () => {
    putCheckpoint(0);
    const stop = new AbortController();
    server.answer = ({ method, query }) => {
      if (method === "PATCH") {
        setTimeout(() => stop.abort(), 500);
        return { kind: "status", status: 403 };
      }
      return query.get("watch") === "1" ? { kind: "lines", lines: [], ending: "stay" } : undefined;
    };
    const more = words("--delete", "--exclusive", "--requeue-stacks", "--check-pending");
    const { stdout, stderr } = await runCommand(["watch", ...more], { stop: { when: stop.signal, signal: "SIGTERM" } });
    const [line = ""] = stdout.split("\n");
    expect(watchEvent.parse(JSON.parse(line))).toMatchObject({
      event: "lock",
      lock: { action: "deleted", pendingOperations: { kind: "none" }, afterUnlock: { stacks: [{ requeued: false }] } },
    });
    expect(stderr.replaceAll("\\", "")).toContain('the verb "patch" on stacks.pulumi.com is not allowed (403)');
  });
});

describe("check", () => {
  it("asks for the rights of what is on, and writes nothing", async () => {
    server.answer = ({ path }) => (path.endsWith("selfsubjectaccessreviews") ? { kind: "body", body: { status: { allowed: false } } } : undefined);
    const more = ["--backend", workspace.backend, "--kubeconfig", server.writeKubeconfig(), "--output", "json"];
    const { stdout } = await runCommand(["check", ...more, "--requeue-stacks", "--stack-events", "--check-pending"]);
    const { items, exitCode } = checkReport.parse(JSON.parse(stdout));
    expect(items.filter(({ name }) => /checkpoints|requeue|Events/.test(name)).map(({ status, message }) => `${status}: ${message}`)).toEqual([
      "ok: tried on one that is not there",
      'denied: the verb "patch" on stacks.pulumi.com is not allowed in every namespace',
      'denied: the verb "create" on events is not allowed in every namespace',
    ]);
    expect(exitCode).toBe(1);
    expect(writes().filter(({ path }) => !path.includes("selfsubject"))).toEqual([]);
  });
});

describe("where nothing can be told", () => {
  it.each([
    [["--requeue-stacks"], "--requeue-stacks does not go with --pods-from"],
    [["--requeue-stacks", "--stack-events"], "--requeue-stacks and --stack-events do not go with --pods-from"],
  ])("a file with %j: exit 2", async (options, says) => {
    const { exitCode, stderr } = await runCommand(workspace.sweepWords(...options));
    expect({ exitCode, says: stderr.includes(says) }).toEqual({ exitCode: 2, says: true });
  });

  it("a file goes with --check-pending, which looks into the backend", async () => {
    putCheckpoint(1);
    const { stdout } = await runCommand(workspace.sweepWords("--check-pending", "--output", "json"));
    expect(sweepReport.parse(JSON.parse(stdout)).locks).toMatchObject([{ action: "would-delete", pendingOperations: { kind: "some", count: 1 } }]);
  });
});
