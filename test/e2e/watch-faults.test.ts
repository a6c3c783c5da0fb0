// watch on a real API server and real stores that fail in every way it must live through: it sees nothing for a while, says so, removes nothing wrong meanwhile, and
// everything provable in the end.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import pLimit from "p-limit";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";

import type { WatchEvent } from "../../src/core/watch-event.ts";
import { startAzurite, type Azurite } from "../backends/azurite.ts";
import { FickleProxy, type Fickleness } from "../backends/fickle-proxy.ts";
import { findPeer } from "./peers/build-peers.ts";
import { waitFor } from "./peers/child.ts";
import { ControlPlane } from "./peers/control-plane.ts";
import { RunningWatch } from "./peers/running-watch.ts";
import { Workloads } from "./peers/workloads.ts";

const plane = new ControlPlane();
const workloads = new Workloads(plane);
let azurite: Azurite;
let proxy: FickleProxy;
let container: Awaited<ReturnType<Azurite["createContainer"]>>;
let state = "";
let numbers = 0;

const stops: (() => Promise<void>)[] = [];
beforeAll(async () => {
  stops.push(() => plane.stop());
  await plane.start();
  await workloads.prepare();
  await workloads.addBarePod("iac-runner-live");
  await grant();
  azurite = await startAzurite();
  stops.push(azurite.stop);
  proxy = new FickleProxy(azurite.port);
  await proxy.start();
  stops.push(() => proxy.stop());
  // Beyond the clock skew, so that a lock that is written now is later than its pod.
  await sleep(2_500);
});
afterAll(async () => {
  for (const stop of stops.toReversed()) await stop();
});
beforeEach(async () => {
  proxy.mood = "answers";
  state = `state-${(numbers += 1)}`;
  container = await azurite.createContainer(state);
  await addLock("iac-runner-live");
});

/** The README's rights and `watch`, for the service account that the janitor runs as. */
async function grant(): Promise<void> {
  const base = "/apis/rbac.authorization.k8s.io/v1";
  await plane.create("/api/v1/namespaces/iac/serviceaccounts", { metadata: { name: "janitor" } });
  await plane.create(`${base}/clusterroles`, {
    metadata: { name: "janitor" },
    rules: [
      { apiGroups: [""], resources: ["pods", "nodes"], verbs: ["list", "watch"] },
      { apiGroups: ["pulumi.com"], resources: ["stacks"], verbs: ["list", "watch"] },
      { apiGroups: ["auto.pulumi.com"], resources: ["workspaces"], verbs: ["list"] },
      { apiGroups: [""], resources: ["namespaces"], verbs: ["get"], resourceNames: ["kube-system"] },
    ],
  });
  await plane.create(`${base}/clusterrolebindings`, {
    metadata: { name: "janitor" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "janitor" },
    subjects: [{ kind: "ServiceAccount", name: "janitor", namespace: "iac" }],
  });
}

const keyOf = (hostname: string): string => `.pulumi/locks/organization/demo/${hostname}/1.json`;

async function addLock(hostname: string): Promise<void> {
  const body = JSON.stringify({ pid: 7, username: "pulumi", hostname, timestamp: new Date().toISOString() });
  await container.getBlockBlobClient(keyOf(hostname)).upload(body, body.length);
}

async function isThere(hostname: string): Promise<boolean> {
  return await container.getBlockBlobClient(keyOf(hostname)).exists();
}

async function waitForRemoval(hostname: string): Promise<void> {
  await waitFor(`the removal of the lock of ${hostname}`, async () => ((await isThere(hostname)) ? undefined : true), { every: 200, within: 90_000 });
}

async function startWatch(kubeconfig: string, ...words: readonly string[]): Promise<RunningWatch> {
  const backend = ["--backend", `azblob://${state}`, "--owner", "iac-runner-*", "--no-builtin-owners", "--delete", "--exclusive", "--kubeconfig", kubeconfig];
  const quick = ["--min-age", "0s", "--clock-skew", "1s", "--settle", "1s", "--confirm-delay", "100ms", "--request-timeout", "2s"];
  return await RunningWatch.start([...backend, ...quick, ...words], azurite.env(proxy.port));
}

/** What was told of locks: each once, with what became of it. */
function describeLocks(events: readonly WatchEvent[]): readonly string[] {
  return events
    .flatMap((event) => (event.event === "lock" ? [`${event.lock.owner?.hostname ?? ""} ${event.lock.verdict} ${event.lock.action}`] : []))
    .toSorted();
}

const HELD = "iac-runner-live held keep";

describe("the API server", () => {
  it("is killed and started again: meanwhile the watch is not ready and says why; what ended meanwhile is removed, without waiting for the interval", async () => {
    await workloads.addBarePod("iac-runner-a");
    await sleep(1_500);
    await addLock("iac-runner-a");
    const watch = await startWatch(plane.writeKubeconfig("admin"), "--interval", "1h");
    expect((await watch.readStatus()).ready).toBe("ok");
    await plane.killApiServer();
    const blind = await watch.waitUntil("the watch to see that it is blind", ({ ready }) => ready !== "ok");
    expect(blind.ready).toMatch(/^could not follow (pods|stacks\.pulumi\.com) of cluster admin: /);
    expect(blind.healthy).toBe("ok");
    expect(blind.metrics).toContain('errors_total{kind="watch",source="admin"}');
    expect(blind.metrics).toContain('following{cluster="admin",resource="pods"} 0');
    await sleep(4_000);
    await plane.restartApiServer();
    await workloads.finish("iac-runner-a");
    await waitForRemoval("iac-runner-a");
    await watch.waitUntil("the watch to be ready again", ({ ready }) => ready === "ok");
    expect(await watch.readMetric('following{cluster="admin",resource="pods"}')).toBe(1);
    const { exitCode, events } = await watch.stop();
    expect({ exitCode, locks: describeLocks(events) }).toEqual({
      exitCode: 0,
      locks: ["iac-runner-a held keep", "iac-runner-a stale deleted", HELD].toSorted(),
    });
    expect(await isThere("iac-runner-live")).toBe(true);
  });

  it("forgets the version at which the watch is to go on (410): it begins anew, and looks", async () => {
    await workloads.addBarePod("iac-runner-b");
    await sleep(1_500);
    await addLock("iac-runner-b");
    const way = new FickleProxy(Number(new URL(plane.server).port));
    await way.start();
    const kubeconfig = join(plane.folder, "kubeconfig-by-proxy");
    writeFileSync(kubeconfig, readFileSync(plane.writeKubeconfig("admin"), "utf8").replace(plane.server, `https://127.0.0.1:${way.port}`));
    const watch = await startWatch(kubeconfig, "--interval", "1h");
    const countStarts = (): number => plane.requestsOf("admin").filter((line) => line === "list pods of one").length;
    const starts = countStarts();
    expect(starts).toBeGreaterThan(0);
    way.mood = "refuses";
    await watch.waitUntil("the watch to see that it is blind", ({ ready }) => ready !== "ok");
    await workloads.finish("iac-runner-b");
    // etcd forgets what was before: some compactions, with a change before each.
    for (let round = 0; round < 4; round += 1) {
      await plane.create("/api/v1/namespaces/iac/configmaps", { metadata: { generateName: "change-" } });
      await sleep(2_100);
    }
    expect(countStarts()).toBe(starts);
    way.mood = "answers";
    await waitForRemoval("iac-runner-b");
    expect(countStarts()).toBe(starts + 1);
    await watch.waitUntil("the watch to be ready again", ({ ready }) => ready === "ok");
    const { exitCode, events } = await watch.stop();
    await way.stop();
    expect({ exitCode, locks: describeLocks(events) }).toEqual({
      exitCode: 0,
      locks: ["iac-runner-b held keep", "iac-runner-b stale deleted", HELD].toSorted(),
    });
    expect(await isThere("iac-runner-live")).toBe(true);
  });

  it("no longer takes the token: the watch says so, and goes on with the new one from the file", async () => {
    const tokens = new Tokens();
    const first = await tokens.create("first");
    const kubeconfig = tokens.writeKubeconfig(first);
    const watch = await startWatch(kubeconfig, "--interval", "1s");
    await watch.waitUntil("the watch to be ready", ({ ready }) => ready === "ok");
    await tokens.revoke("first");
    await addLock("iac-runner-gone");
    const refused = await watch.waitUntil("the watch to be refused", ({ ready }) => ready !== "ok");
    expect(refused.ready).toContain("could not read");
    expect(refused.metrics).toContain('errors_total{kind="cluster",source="janitor"}');
    await sleep(3_000);
    expect(await isThere("iac-runner-live")).toBe(true);
    tokens.write(await tokens.create("second"));
    await addLock("iac-runner-gone-too");
    await waitForRemoval("iac-runner-gone");
    await waitForRemoval("iac-runner-gone-too");
    await watch.waitUntil("the watch to be ready again", ({ ready }) => ready === "ok");
    const { exitCode, events } = await watch.stop();
    expect(exitCode).toBe(0);
    expect(events.map(({ event }) => event)).toEqual(expect.arrayContaining(["problem", "solved"]));
    expect(await isThere("iac-runner-live")).toBe(true);
  });
});

describe("a backend that is away for a while", () => {
  it.each<Exclude<Fickleness, "answers">>(["refuses", "hangs", "resets"])(
    "and %s: not ready meanwhile, an error by its kind, nothing told as released",
    async (mood) => {
      const watch = await startWatch(plane.writeKubeconfig("admin"), "--interval", "1s");
      await watch.waitUntil("the watch to be ready", ({ ready }) => ready === "ok");
      proxy.mood = mood;
      const away = await watch.waitUntil("the watch to miss the backend", ({ ready }) => ready !== "ok");
      expect(away.ready).toContain(`could not read azblob://${state}`);
      expect(away.healthy).toBe("ok");
      expect(away.metrics).toMatch(new RegExp(`errors_total\\{kind="backend-unreachable",source="azblob://${state}[^"]*"\\} [1-9]`));
      const lastSuccess = await watch.readMetric("last_success_timestamp_seconds");
      await addLock("iac-runner-gone");
      await sleep(6_000);
      expect(await watch.readMetric("last_success_timestamp_seconds")).toBe(lastSuccess);
      proxy.mood = "answers";
      await waitForRemoval("iac-runner-gone");
      await watch.waitUntil("the watch to be ready again", ({ ready }) => ready === "ok");
      expect(await watch.readMetric("last_success_timestamp_seconds")).toBeGreaterThan(lastSuccess);
      const { exitCode, events } = await watch.stop();
      expect({ exitCode, locks: describeLocks(events).filter((line) => line !== HELD) }).toEqual({ exitCode: 0, locks: ["iac-runner-gone stale deleted"] });
      expect(events.map(({ event }) => event).filter((event) => event !== "lock")).toEqual(["problem", "solved"]);
      expect(await isThere("iac-runner-live")).toBe(true);
    },
  );
});

describe("1,000 pods that come and go", () => {
  it("P1: only locks of pods that have gone are removed, all of them are, and sweeps keep their distance", async () => {
    const watch = await startWatch(plane.writeKubeconfig("admin"), "--interval", "1h", "--max-deletions", "1000");
    const begunAt = Date.now();
    const goneAt = new Map<string, number>();
    const limit = pLimit(20);
    await Promise.all(
      Array.from({ length: 1_000 }, (_, number) =>
        limit(async () => {
          const name = `iac-runner-churn-${number}`;
          const path = "/api/v1/namespaces/iac/pods";
          const spec = { nodeName: "node-1", automountServiceAccountToken: false, containers: [{ name: "pulumi", image: "test" }] };
          await plane.create(path, { metadata: { name }, spec });
          if (number % 40 === 0) {
            await workloads.setRunning(name, "pulumi");
            // Later than the pod by more than the skew, as a lock of its own is.
            await sleep(3_000);
            await addLock(name);
            await sleep(1_000);
          }
          await plane.remove(`${path}/${name}`, 0);
          goneAt.set(name, Date.now());
        }),
      ),
    );
    for (let number = 0; number < 1_000; number += 40) await waitForRemoval(`iac-runner-churn-${number}`);
    const seconds = (Date.now() - begunAt) / 1_000;
    const sweeps = await watch.readMetric("sweep_duration_seconds_count");
    const { exitCode, events } = await watch.stop();
    expect(exitCode).toBe(0);
    expect(sweeps).toBeLessThan(seconds / 2 + 3);
    const removed = events.flatMap((event) => (event.event === "lock" && event.lock.action === "deleted" ? [event.lock.owner?.hostname ?? ""] : []));
    expect(removed.toSorted()).toEqual(Array.from({ length: 25 }, (_, number) => `iac-runner-churn-${number * 40}`).toSorted());
    expect(await isThere("iac-runner-live")).toBe(true);
  });
});

it("the metrics have the names and units that Prometheus wants (promtool check metrics)", async () => {
  const watch = await startWatch(plane.writeKubeconfig("admin"));
  const { metrics } = await watch.readStatus();
  await watch.stop();
  const { status, stdout, stderr } = spawnSync(findPeer("promtool"), ["check", "metrics"], { input: `${metrics}\n`, encoding: "utf8" });
  expect({ status, says: stdout + stderr }).toEqual({ status: 0, says: "" });
});

const secretObject = z.object({ metadata: z.object({ uid: z.string() }) });
const tokenRequest = z.object({ status: z.object({ token: z.string() }) });

/** Tokens of the service account, each bound to a Secret, without which the API server no longer takes it. */
class Tokens {
  readonly #file = join(plane.folder, "token-of-janitor");

  async create(name: string): Promise<string> {
    const secret = secretObject.parse(await plane.create("/api/v1/namespaces/iac/secrets", { metadata: { name } }));
    const boundObjectRef = { kind: "Secret", apiVersion: "v1", name, uid: secret.metadata.uid };
    const answer = await plane.create("/api/v1/namespaces/iac/serviceaccounts/janitor/token", {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { boundObjectRef },
    });
    return tokenRequest.parse(answer).status.token;
  }

  async revoke(name: string): Promise<void> {
    await plane.remove(`/api/v1/namespaces/iac/secrets/${name}`);
  }

  write(token: string): void {
    writeFileSync(this.#file, token);
  }

  /** As a pod's: the token is in a file of its own. */
  writeKubeconfig(token: string): string {
    this.write(token);
    const file = join(plane.folder, "kubeconfig-of-janitor");
    writeFileSync(
      file,
      JSON.stringify({
        apiVersion: "v1",
        kind: "Config",
        "current-context": "janitor",
        clusters: [{ name: "test", cluster: { server: plane.server, "certificate-authority": join(plane.folder, "certs/apiserver.crt") } }],
        users: [{ name: "janitor", user: { tokenFile: this.#file } }],
        contexts: [{ name: "janitor", context: { cluster: "test", user: "janitor" } }],
      }),
    );
    return file;
  }
}
