// On every store that Pulumi can log in to: the real CLI makes the stale lock, the janitor removes it with Pulumi's own URL and credentials, and
// `pulumi up` goes through. The pod is gone by a snapshot that was taken after the lock; first-unlock.test.ts has the real cluster.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { openBackend } from "../../src/backends/open.ts";
import { sweepReport, type SweepReport } from "../../src/core/report.ts";
import { POSTGRES_PASSWORD, startPostgres } from "../backends/postgres-server.ts";
import { runCommand } from "../cli/command.ts";
import { startFakeGcs } from "./peers/fake-gcs.ts";
import { Pulumi } from "./peers/pulumi.ts";
import { CONDITIONAL_STORES } from "./peers/stores.ts";

/** A store with the URL and the environment that both Pulumi and the janitor take. */
interface Store {
  readonly url: string;
  readonly env: Readonly<Record<string, string>>;
  readonly secret: string;
  readonly stop: () => Promise<void>;
}

const folder = mkdtempSync(join(tmpdir(), "every-backend-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** One of the stores that other tests share; its secret is in its environment. */
const shared =
  (scheme: "file" | "azblob" | "s3", secretName: string): (() => Promise<Store>) =>
  async () => {
    const running = await CONDITIONAL_STORES.find(([name]) => name === scheme)?.[1]();
    if (running === undefined) throw new Error(`there is no store for ${scheme}`);
    const { url, env } = await running.open("team/a");
    return { url, env, secret: env[secretName] ?? "none of its own", stop: running.stop };
  };

const STORES: readonly (readonly [name: string, start: () => Promise<Store>])[] = [
  ["file", shared("file", "")],
  ["azblob", shared("azblob", "AZURE_STORAGE_KEY")],
  ["s3", shared("s3", "AWS_SECRET_ACCESS_KEY")],
  [
    "gs",
    async () => {
      const { port, stop } = await startFakeGcs("state");
      return {
        url: "gs://state/team/a",
        env: { STORAGE_EMULATOR_HOST: `127.0.0.1:${port}`, GOOGLE_OAUTH_ACCESS_TOKEN: "a-secret-token" },
        secret: "a-secret-token",
        stop,
      };
    },
  ],
  [
    "postgres",
    async () => {
      const server = await startPostgres();
      await server.query("postgres", "CREATE DATABASE iac_state_db");
      return {
        url: `postgres://postgres:${POSTGRES_PASSWORD}@127.0.0.1:${server.port}/iac_state_db?sslmode=disable&table=iac_state`,
        env: {},
        secret: POSTGRES_PASSWORD,
        stop: server.stop,
      };
    },
  ],
];

describe.each(STORES)("on %s", (name, start) => {
  let store: Store;
  let pulumi: Pulumi;
  let takenAt = "";
  beforeAll(async () => {
    store = await start();
    pulumi = new Pulumi(store.url, store.env);
    await pulumi.init("dev");
    await pulumi.killDuringUpdate("dev", "app-workspace-0", async () => (await countLocks()) > 0);
    await sleep(7_000);
    takenAt = new Date().toISOString();
    writeFileSync(podsFile(name), JSON.stringify(snapshot()));
  });
  afterAll(async () => {
    pulumi.remove();
    await store.stop();
  });

  async function countLocks(): Promise<number> {
    const backend = await openBackend({ url: store.url, env: store.env, requestTimeout: 5_000, now: () => Date.now() });
    let count = 0;
    for await (const page of backend.listLocks(new AbortController().signal)) count += page.length;
    await backend.close();
    return count;
  }

  async function sweep(...words: readonly string[]): Promise<{ readonly report: SweepReport; readonly output: string }> {
    const { stdout, stderr } = await runCommand(
      ["sweep", "--backend", store.url, "--pods-from", podsFile(name), "--pods-taken-at", takenAt, "--min-age", "0s", "--output", "json", ...words],
      { env: store.env },
    );
    if (stdout === "") throw new Error(stderr);
    return { report: sweepReport.parse(JSON.parse(stdout)), output: `${stdout}${stderr}` };
  }

  it("the next update fails on the lock", async () => {
    expect((await pulumi.up("dev")).output).toContain("the stack is currently locked by 1 lock(s)");
  });

  it("P7: a dry run finds it stale and prints no secret", async () => {
    const { report, output } = await sweep();
    expect(report.locks.map(({ stack, verdict, reason, owner }) => [stack, `${verdict}: ${reason}`, owner?.hostname])).toEqual([
      ["organization/demo/dev", "stale: pod-not-found", "app-workspace-0"],
    ]);
    expect(output).not.toContain(store.secret);
    expect(await countLocks()).toBe(1);
  });

  it("the janitor removes it, and pulumi up goes through", async () => {
    const { report } = await sweep("--delete", "--exclusive");
    expect(report.locks.map(({ action }) => action)).toEqual(["deleted"]);
    expect((await pulumi.up("dev")).ok).toBe(true);
  });

  it("restore puts it back, which locks the stack again", async () => {
    const { report } = await sweep();
    expect(report.locks).toEqual([]);
    const backend = await openBackend({ url: store.url, env: store.env, requestTimeout: 5_000, now: () => Date.now() });
    const record = (await backend.records.list(new AbortController().signal)).find((file) => file.endsWith(".intent.json"))?.replace(".intent.json", "") ?? "";
    await backend.close();
    expect(await runCommand(["restore", record, "--backend", store.url], { env: store.env })).toMatchObject({ exitCode: 0 });
    expect((await pulumi.up("dev")).output).toContain("the stack is currently locked by 1 lock(s)");
  });
});

function podsFile(name: string): string {
  return join(folder, `pods-${name}.json`);
}

/** A cluster where no pod of that name lives, seen now. */
function snapshot(): object {
  const old = "2026-01-01T00:00:00Z";
  return {
    kind: "List",
    items: [
      { kind: "Pod", metadata: { name: "coredns", namespace: "kube-system", creationTimestamp: old }, spec: { containers: [] }, status: { phase: "Running" } },
      {
        kind: "Node",
        metadata: { name: "node-1", creationTimestamp: old },
        status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: old, lastHeartbeatTime: new Date().toISOString() }] },
      },
      { kind: "Stack", metadata: { name: "app", namespace: "iac" }, spec: { stack: "organization/demo/dev" } },
    ],
  };
}
