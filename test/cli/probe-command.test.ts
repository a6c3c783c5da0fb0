// The built command, from its flags to a command in a container.
import { existsSync } from "node:fs";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { sweepReport, type SweepReport } from "../../src/core/report.ts";
import { anAnswer, answerWith } from "../kubernetes/exec-answers.ts";
import { type StubApiServer } from "../kubernetes/stub-api-server.ts";
import { startBeside, type Beside } from "./beside.ts";
import { runCommand } from "./command.ts";
import type { Workspace } from "./snapshot-files.ts";

let beside: Beside;
let workspace: Workspace;
let server: StubApiServer;
beforeEach(async () => {
  const pod = {
    metadata: { name: "iac-runner-a", namespace: "iac", uid: "uid-1", creationTimestamp: "2026-03-01T00:00:00Z" },
    spec: { nodeName: "node-1", containers: [{ name: "build" }] },
    status: {
      phase: "Running",
      containerStatuses: [{ name: "build", containerID: "containerd://1", state: { running: { startedAt: "2026-03-01T00:00:10Z" } } }],
    },
  };
  beside = await startBeside([pod]);
  ({ workspace, server } = beside);
  server.objects.set("/api/v1/namespaces/iac/pods", [pod]);
});
afterEach(async () => {
  await beside.remove();
});

async function sweep(...words: readonly string[]): Promise<SweepReport> {
  const owner = ["--owner", "iac-runner-*", "--no-builtin-owners"];
  const base = ["sweep", "--backend", workspace.backend, "--kubeconfig", server.writeKubeconfig(), ...owner, "--confirm-delay", "0s", "--output", "json"];
  const { stdout } = await runCommand([...base, ...words]);
  return sweepReport.parse(JSON.parse(stdout));
}

describe("sweep --probe-processes", () => {
  it("removes the lock of a process that is gone from a pod that lives on", async () => {
    const key = workspace.addLock("iac-runner-a");
    server.exec = answerWith(anAnswer());
    const report = await sweep("--delete", "--exclusive", "--probe-processes");
    expect(report.locks).toMatchObject([
      { verdict: "stale", reason: "process-gone", action: "deleted", evidence: { candidates: [{ probe: { looked: true } }] } },
    ]);
    expect(existsSync(workspace.path(key))).toBe(false);
  });

  it("keeps that of one that is there, and without the option asks nothing and says what it would tell", async () => {
    const key = workspace.addLock("iac-runner-a");
    server.exec = answerWith(anAnswer([7]));
    expect((await sweep("--delete", "--exclusive", "--probe-processes")).locks).toMatchObject([
      { verdict: "held", message: expect.stringContaining("process 7 still runs") },
    ]);
    server.calls.length = 0;
    expect((await sweep()).locks).toMatchObject([{ verdict: "held", message: expect.stringContaining("enable --probe-processes") }]);
    expect(server.lines.filter((line) => line.includes("/exec"))).toEqual([]);
    expect(existsSync(workspace.path(key))).toBe(true);
  });

  it("waits until a lock is as old as --probe-after", async () => {
    workspace.addLock("iac-runner-a");
    server.exec = answerWith(anAnswer());
    expect((await sweep("--probe-processes", "--probe-after", "2h")).locks).toMatchObject([{ verdict: "held" }]);
    expect(server.lines.filter((line) => line.includes("/exec"))).toEqual([]);
  });
});
