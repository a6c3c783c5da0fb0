import { existsSync, rmSync } from "node:fs";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { watchEvent, type WatchEvent } from "../../src/core/watch-event.ts";
import { GcsStub } from "../backends/gcs-stub.ts";
import { aPodObject, type StubApiServer } from "../kubernetes/stub-api-server.ts";
import { startBeside, type Beside } from "./beside.ts";
import { runCommand, type CommandResult } from "./command.ts";
import type { Workspace } from "./snapshot-files.ts";

let beside: Beside;
let workspace: Workspace;
let server: StubApiServer;
beforeEach(async () => {
  beside = await startBeside([aPodObject("iac-runner-here"), aPodObject("coredns")]);
  ({ workspace, server } = beside);
  // The watches of the stub stay open and silent.
  server.answer = ({ query }) => {
    if (query.get("watch") === "1") return { kind: "lines", lines: [], ending: "stay" };
    return query.get("limit") === "1" ? { kind: "body", body: { kind: "List", metadata: { resourceVersion: "1" }, items: [] } } : undefined;
  };
});
afterEach(async () => {
  await beside.remove();
  env = {};
});

/** What the command finds in its environment. */
let env: Readonly<Record<string, string>> = {};

/** Watches until `done` is true of what it has written, then sends SIGTERM. */
async function watchUntil(done: (stdout: string) => boolean, ...words: readonly string[]): Promise<CommandResult & { readonly events: readonly WatchEvent[] }> {
  const stop = new AbortController();
  let stdout = "";
  const timer = setInterval(() => {
    if (done(stdout)) stop.abort();
  }, 20);
  const result = await runCommand(
    ["watch", "--backend", workspace.backend, "--kubeconfig", server.writeKubeconfig(), "--owner", "iac-runner-*", "--confirm-delay", "0s", ...words],
    { env, onOutput: (text) => (stdout = text), stop: { when: stop.signal, signal: "SIGTERM" } },
  );
  clearInterval(timer);
  const lines = result.stdout.split("\n").filter((line) => line !== "");
  return { ...result, events: lines.map((line) => watchEvent.parse(JSON.parse(line))) };
}

function describeEvents(events: readonly WatchEvent[]): readonly string[] {
  return events
    .map((event) => (event.event === "lock" ? `${event.lock.owner?.hostname ?? ""} ${event.lock.verdict} ${event.lock.action}` : event.event))
    .toSorted();
}

describe("watch", () => {
  it("removes what is stale, tells each change as a line of JSON, and ends with 0 at SIGTERM", async () => {
    const stale = workspace.addLock("iac-runner-gone");
    workspace.addLock("iac-runner-here");
    const { exitCode, events, stderr } = await watchUntil((stdout) => stdout.split("\n").length > 2, "--delete", "--exclusive");
    expect(exitCode, stderr).toBe(0);
    expect(describeEvents(events)).toEqual(["iac-runner-gone stale deleted", "iac-runner-here held keep"]);
    expect(existsSync(workspace.path(stale))).toBe(false);
  });

  it("without --delete removes nothing, sweep after sweep", async () => {
    const stale = workspace.addLock("iac-runner-gone");
    let lists = 0;
    const { exitCode, events } = await watchUntil(
      () => {
        lists = server.calls.filter(({ path, query }) => path === "/api/v1/pods" && query.get("limit") === "500").length;
        return lists >= 5;
      },
      "--interval",
      "100ms",
    );
    expect({ exitCode, there: existsSync(workspace.path(stale)) }).toEqual({ exitCode: 0, there: true });
    expect(describeEvents(events)).toEqual(["iac-runner-gone stale would-delete"]);
  });

  it("survives a backend that goes away", async () => {
    workspace.addLock("iac-runner-here");
    let goneAt = 0;
    const { exitCode, events } = await watchUntil(
      () => {
        const looked = server.calls.some(({ query }) => query.has("fieldSelector"));
        if (looked && goneAt === 0) {
          rmSync(workspace.path(), { recursive: true, force: true });
          goneAt = Date.now();
        }
        // Two sweeps begin two seconds apart at least.
        return goneAt > 0 && Date.now() - goneAt > 3_500;
      },
      "--interval",
      "100ms",
    );
    expect(exitCode).toBe(0);
    expect(describeEvents(events)).toEqual(["iac-runner-here held keep", "problem"]);
  });

  it("with --discover sweeps the backend of a Stack that comes later", async () => {
    const store = new GcsStub();
    await store.start();
    store.buckets.set("acme-state", new Map());
    const body = { pid: 7, username: "pulumi", hostname: "iac-runner-gone", timestamp: workspace.ago(60) };
    store.put("acme-state", ".pulumi/locks/organization/shop/prod/1.json", Buffer.from(JSON.stringify(body)));
    env = { STORAGE_EMULATOR_HOST: `127.0.0.1:${store.port}`, GOOGLE_OAUTH_ACCESS_TOKEN: "a-token" };
    const words = ["--discover", "--discover-allow", "gs://acme-*/**", "--interval", "100ms", "--min-age", "0s"];
    const { events } = await watchUntil(
      () => {
        const lists = server.calls.filter(({ path, query }) => path === "/apis/pulumi.com/v1/stacks" && query.get("limit") === "500").length;
        if (lists > 0)
          server.objects.set("/apis/pulumi.com/v1/stacks", [
            { metadata: { name: "shop", namespace: "iac" }, spec: { stack: "x", backend: "gs://acme-state" } },
          ]);
        // Two lists are of the first sweep that knows the Stack, after its own: by the next it has been told.
        return lists >= 6;
      },
      ...words,
    );
    await store.stop();
    expect(describeEvents(events)).toEqual(["iac-runner-gone stale would-delete"]);
  });

  it.each<readonly [what: string, words: readonly string[], says: string]>([
    ["--delete without --exclusive", ["--delete"], "--exclusive"],
    ["an interval without its unit", ["--interval", "5"], "unit"],
    ["an address that is none", ["--listen", "8080"], ":8080"],
    ["a file in place of a cluster", ["--pods-from", "pods.json"], "unknown option"],
  ])("%s: exit 2", async (_what, words, says) => {
    const { exitCode, stderr } = await watchUntil(() => false, ...words);
    expect({ exitCode, says: stderr.includes(says) }).toEqual({ exitCode: 2, says: true });
  });

  it("a file in place of a cluster, by a variable or the configuration file: exit 2", async () => {
    env = { PULUMI_LOCK_JANITOR_PODS_FROM: workspace.snapshot };
    const { exitCode, stderr } = await watchUntil(() => false, "--delete", "--exclusive");
    expect({ exitCode, says: stderr.includes("podsFrom") }).toEqual({ exitCode: 2, says: true });
  });
});
