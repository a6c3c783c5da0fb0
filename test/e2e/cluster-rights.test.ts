// What the janitor sees of a real API server with rights of every kind, and how little it asks.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { checkReport } from "../../src/core/check-report.ts";
import { sweepReport, type SweepReport } from "../../src/core/report.ts";
import { ApiClient } from "../../src/kubernetes/api-client.ts";
import type { ClusterSource } from "../../src/kubernetes/cluster-source.ts";
import { findClusters } from "../../src/kubernetes/kubeconfig.ts";
import { openLiveCluster } from "../../src/kubernetes/live-cluster.ts";
import { startAzurite, type Azurite } from "../backends/azurite.ts";
import { FaultProxy } from "../backends/fault-proxy.ts";
import { runCommand } from "../cli/command.ts";
import { ControlPlane, type User } from "./peers/control-plane.ts";
import { Workloads } from "./peers/workloads.ts";

const plane = new ControlPlane();
const workloads = new Workloads(plane);
const folder = mkdtempSync(join(tmpdir(), "cluster-rights-"));
const never = new AbortController().signal;

const LIST_ALL = [
  { apiGroups: [""], resources: ["pods", "nodes"], verbs: ["list"] },
  { apiGroups: ["pulumi.com"], resources: ["stacks"], verbs: ["list"] },
  { apiGroups: ["auto.pulumi.com"], resources: ["workspaces"], verbs: ["list"] },
  { apiGroups: [""], resources: ["namespaces"], verbs: ["get"], resourceNames: ["kube-system"] },
];

const FOLLOW_ALL = [
  { apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"] },
  { apiGroups: ["pulumi.com"], resources: ["stacks"], verbs: ["list", "watch"] },
];

beforeAll(async () => {
  await plane.start();
  await workloads.prepare();
  await grant("reader", LIST_ALL);
  await grant("lister", [{ apiGroups: [""], resources: ["pods"], verbs: ["list"] }]);
  await grant("namespaced", [{ apiGroups: [""], resources: ["pods"], verbs: ["list"] }], "iac");
  await workloads.addStack("live", "organization/demo/live");
  await workloads.addWorkspace("live");
});
afterAll(async () => {
  await plane.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function grant(user: User, rules: readonly object[], namespace?: string): Promise<void> {
  const base = "/apis/rbac.authorization.k8s.io/v1";
  const [kind, path] = namespace === undefined ? ["ClusterRole", base] : ["Role", `${base}/namespaces/${namespace}`];
  await plane.create(`${path}/${kind.toLowerCase()}s`, { metadata: { name: user }, rules });
  await plane.create(`${path}/${kind.toLowerCase()}bindings`, {
    metadata: { name: user },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name: user },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: user }],
  });
}

function open(
  user: User,
  options: { readonly pageSize?: number; readonly namespaces?: readonly string[]; readonly client?: (client: ApiClient) => ApiClient } = {},
): ClusterSource {
  const [access] = findClusters({ kubeconfig: plane.writeKubeconfig(user), contexts: [], env: {}, requireExplicitContext: false });
  if (access === undefined) throw new Error("no access");
  const client = new ApiClient({ access, env: {}, requestTimeout: 10_000, now: () => Date.now() });
  return openLiveCluster({
    name: user,
    client: options.client?.(client) ?? client,
    namespaces: options.namespaces ?? [],
    ownPod: undefined,
    ...(options.pageSize === undefined ? {} : { pageSize: options.pageSize }),
  });
}

describe("rights of every kind: complete, or the missing verb is named", () => {
  const incomplete = (text: string): object => ({ kind: "incomplete", problem: expect.stringContaining(text) });
  const unlisted = (text: string): object => ({ kind: "unlisted", problem: expect.stringContaining(text) });
  it.each<[User, readonly string[], object]>([
    ["reader", [], { pods: { kind: "complete" }, nodes: { kind: "listed" }, stacks: { kind: "listed" }, uid: expect.any(String) }],
    ["lister", [], { pods: { kind: "complete" }, nodes: unlisted('"list" on nodes'), stacks: unlisted('"list" on stacks.pulumi.com') }],
    ["namespaced", [], { pods: incomplete('"list" on pods'), nodes: unlisted('"list" on nodes') }],
    ["namespaced", ["iac"], { pods: { kind: "complete", total: 1 }, nodes: unlisted('"list" on nodes'), namespaces: ["iac"] }],
    ["namespaced", ["iac", "default"], { pods: incomplete('"list" on pods in namespace default') }],
    ["nobody", [], { pods: incomplete('"list" on pods'), nodes: unlisted('"list" on nodes') }],
  ])("%s asking for namespaces %j", async (user, namespaces, expected) => {
    const cluster = open(user, { namespaces });
    expect(await cluster.observe(new Set(["live-workspace-0"]), never)).toMatchObject(expected);
    await cluster.close();
  });

  it("a token that is not known", async () => {
    const kubeconfig = plane.writeKubeconfig("reader");
    const file = join(folder, "wrong-token");
    writeFileSync(file, readFileSync(kubeconfig, "utf8").replace("token-of-reader", "wrong"));
    const [access] = findClusters({ kubeconfig: file, contexts: [], env: {}, requireExplicitContext: false });
    if (access === undefined) throw new Error("no access");
    const cluster = openLiveCluster({
      name: "x",
      client: new ApiClient({ access, env: {}, requestTimeout: 10_000, now: () => Date.now() }),
      namespaces: [],
      ownPod: undefined,
    });
    expect((await cluster.observe(new Set(["a"]), never)).pods).toMatchObject({ kind: "incomplete", problem: expect.stringContaining("not accepted") });
    await cluster.close();
  });
});

describe("the right to look at processes", () => {
  const probeAs = async (user: User): Promise<object | undefined> => {
    const cluster = open(user);
    const [pod] = await cluster.findNamesakes("live-workspace-0", never);
    if (pod === undefined) throw new Error("the pod is not there");
    const containers = pod.containers.map((container) => ({ ...container, containerId: "containerd://c1" }));
    const seen = { missing: await cluster.findMissingExecVerbs?.("iac", never), processes: await cluster.probe?.({ ...pod, containers }, never) };
    await cluster.close();
    return seen;
  };

  it("is missing: both verbs are named, and the refusal is understood", async () => {
    const problem = expect.stringContaining('not allowed (403): it wants the verbs "get" and "create" on pods/exec');
    expect(await probeAs("lister")).toEqual({ missing: ["get", "create"], processes: { kind: "could-not-look", problem } });
  });

  it("is half there: since Kubernetes 1.35 a WebSocket wants create, too", async () => {
    await grant("execer", [
      { apiGroups: [""], resources: ["pods"], verbs: ["list"] },
      { apiGroups: [""], resources: ["pods/exec"], verbs: ["get"] },
    ]);
    expect(await probeAs("execer")).toMatchObject({ missing: ["create"], processes: { kind: "could-not-look", problem: expect.stringContaining("403") } });
  });

  it("is there: the API server tries, and this pod's node does not answer", async () => {
    const problem = expect.stringMatching(
      /^container "pulumi": the API server (answered \d+ to the command|says that no command can be run in it \(400\)|does not find it)/,
    );
    expect(await probeAs("admin")).toEqual({ missing: [], processes: { kind: "could-not-look", problem } });
  });
});

describe("paging on a real API server", () => {
  beforeAll(async () => {
    for (let number = 0; number < 6; number += 1) await workloads.addBarePod(`page-${number}`);
  });

  it("limit=1 sees every pod", async () => {
    const cluster = open("reader", { pageSize: 1 });
    expect((await cluster.observe(new Set(["page-5"]), never)).pods).toMatchObject({ kind: "complete", total: 7, pods: [{ name: "page-5" }] });
    await cluster.close();
  });

  it("a continue token that expires starts the list over (410, C23)", async () => {
    let slow = true;
    const answers: string[] = [];
    const cluster = open("reader", {
      pageSize: 3,
      client: (client) => {
        const get = client.get.bind(client);
        client.get = async (path, query, signal) => {
          if (slow && query["continue"] !== undefined && path === "/api/v1/pods") {
            slow = false;
            // etcd forgets the revision of the first page: two compactions go by, with a change before each.
            for (let round = 0; round < 4; round += 1) {
              await plane.create("/api/v1/namespaces/iac/configmaps", { metadata: { generateName: "change-" } });
              await sleep(2_100);
            }
          }
          const answer = await get(path, query, signal);
          if (path === "/api/v1/pods") answers.push(answer.kind === "refused" ? String(answer.status) : answer.kind);
          return answer;
        };
        return client;
      },
    });
    expect((await cluster.observe(new Set(["page-5"]), never)).pods).toMatchObject({ kind: "complete", total: 7, pods: [{ name: "page-5" }] });
    expect(answers).toEqual(["ok", "410", "ok", "ok", "ok"]);
    await cluster.close();
  });
});

describe("a sweep with these rights", () => {
  const state = join(folder, "state");
  const addLock = (hostname: string, stack: string, id = "1"): void => {
    const path = join(state, ".pulumi/locks/organization/demo", stack, `${id}.json`);
    const hourAgo = new Date(Date.now() - 3_600_000);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify({ pid: 7, username: "pulumi", hostname, timestamp: hourAgo.toISOString() }));
    utimesSync(path, hourAgo, hourAgo);
  };
  const sweep = async (user: User, ...words: readonly string[]): Promise<SweepReport> => {
    const { stdout, stderr } = await runCommand([
      "sweep",
      "--backend",
      `file://${state}`,
      "--kubeconfig",
      plane.writeKubeconfig(user),
      "--owner",
      "iac-runner-*",
      "--output",
      "json",
      "--confirm-delay",
      "0s",
      ...words,
    ]);
    if (stdout === "") throw new Error(stderr);
    return sweepReport.parse(JSON.parse(stdout));
  };
  beforeEach(() => {
    rmSync(state, { recursive: true, force: true });
    mkdirSync(state);
    addLock("iac-runner-gone", "gone");
  });

  it.each<[User, readonly string[], string, number]>([
    ["reader", [], "stale: pod-not-found", 0],
    ["lister", [], "undetermined: nodes-not-listed", 3],
    ["lister", ["--unreachable-nodes=ignore"], "stale: pod-not-found", 0],
    ["namespaced", [], "undetermined: list-incomplete", 1],
    ["namespaced", ["--namespace", "iac"], "undetermined: nodes-not-listed", 3],
    ["nobody", [], "undetermined: list-incomplete", 1],
  ])("%s %j: %s, exit %i", async (user, words, expected, exitCode) => {
    const report = await sweep(user, ...words);
    expect(report.locks.map(({ verdict, reason }) => `${verdict}: ${reason}`)).toEqual([expected]);
    expect(report.exitCode).toBe(exitCode);
  });

  it("P1: what a person overrides is in the report", async () => {
    expect((await sweep("lister", "--unreachable-nodes=ignore", "--namespace", "iac")).overrides).toEqual(
      expect.arrayContaining([
        { option: "--unreachable-nodes", value: "ignore" },
        { option: "--namespace", value: "iac" },
        { option: "--owner", value: "iac-runner-*" },
      ]),
    );
  });
});

describe("check tells which rights are missing", () => {
  it.each<[User, readonly string[]]>([
    ["reader", []],
    ["lister", ["list nodes", "pod-not-found", "pod-ended", "pod-recreated", "container-restarted"]],
    ["nobody", ["list pods", "list nodes", "pod-not-found", "pod-ended", "pod-recreated", "container-restarted"]],
  ])("%s lacks %j", async (user, missing) => {
    const state = mkdtempSync(join(folder, "check-"));
    const { stdout, stderr } = await runCommand(["check", "--backend", `file://${state}`, "--kubeconfig", plane.writeKubeconfig(user), "--output", "json"]);
    if (stdout === "") throw new Error(stderr);
    const { items } = checkReport.parse(JSON.parse(stdout));
    expect(items.filter(({ status }) => status === "denied").map(({ name }) => name)).toEqual(missing);
    expect(items.find(({ name }) => name === "user")?.message).toBe(`"${user}"`);
  });

  it.each<[User, readonly string[], boolean]>([
    ["admin", [], true],
    ["reader", [], false],
    ["follower", [], false],
    ["follower", ["iac"], true],
  ])("%s asking for namespaces %j may follow changes: %s", async (user, namespaces, allowed) => {
    if (user === "follower" && namespaces.length === 0) await grant("follower", FOLLOW_ALL, "iac");
    const cluster = open(user, { namespaces });
    expect((await cluster.reviewFollowing?.(never))?.map((item) => item.allowed)).toEqual([allowed, allowed]);
    await cluster.close();
  });
});

describe("how little is asked", () => {
  let azurite: Azurite;
  let proxy: FaultProxy;
  beforeAll(async () => {
    azurite = await startAzurite();
    proxy = new FaultProxy(`http://127.0.0.1:${azurite.port}`);
    await proxy.start();
  });
  afterAll(async () => {
    await proxy.stop();
    await azurite.stop();
  });

  /** Sweeps a container with the given locks; gives what was asked of the store and of the cluster. */
  async function count(
    container: string,
    locks: readonly (readonly [hostname: string, stack: string])[],
  ): Promise<{ readonly store: readonly string[]; readonly cluster: readonly string[] }> {
    const client = await azurite.createContainer(container);
    const lines = locks.map(([hostname, stack], index) => {
      // The living owner is as old as this test, and its locks are younger.
      const age = stack === "live" ? 0 : 3_600_000;
      const body = JSON.stringify({ pid: 7 + index, username: "pulumi", hostname, timestamp: new Date(Date.now() - age).toISOString() });
      return client.getBlockBlobClient(`.pulumi/locks/organization/demo/${stack}/${index}.json`).upload(body, body.length);
    });
    await Promise.all(lines);
    proxy.requests.length = 0;
    const before = plane.requestsOf("reader").length;
    const { exitCode, stderr } = await runCommand(
      [
        "sweep",
        "--backend",
        `azblob://${container}`,
        "--kubeconfig",
        plane.writeKubeconfig("reader"),
        "--owner",
        "iac-runner-*",
        "--min-age",
        "0s",
        "--confirm-delay",
        "0s",
        "--fail-on",
        "none",
      ],
      { env: azurite.env(proxy.port) },
    );
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    const store = proxy.requests.map(({ method, path }) => (path.includes("comp=list") ? "list" : method === "GET" ? "read" : method));
    return { store, cluster: plane.requestsOf("reader").slice(before) };
  }

  it("no locks: one list, and nothing of Kubernetes", async () => {
    expect(await count("idle", [])).toEqual({ store: ["list"], cluster: [] });
  });

  it("four locks of one living owner: four reads, and one request for the owner", async () => {
    const { store, cluster } = await count(
      "held",
      Array.from({ length: 4 }, () => ["live-workspace-0", "live"] as const),
    );
    expect(store.toSorted()).toEqual(["list", "read", "read", "read", "read"]);
    expect(cluster).toEqual(["list pods by name"]);
  });

  it("owners that are not found: one request each, and the whole list once for all, at either look", async () => {
    const { store, cluster } = await count("gone", [
      ["iac-runner-a", "a"],
      ["iac-runner-a", "b"],
      ["iac-runner-b", "c"],
      ["live-workspace-0", "live"],
    ]);
    // The dry run looks a second time at the three that it would remove, as the real run does; and asks the audit log which ones a person put back.
    expect(store.toSorted()).toEqual(["list", "list", "read", "read", "read", "read", "read", "read", "read"]);
    const counted = new Map<string, number>();
    for (const line of cluster) counted.set(line, (counted.get(line) ?? 0) + 1);
    expect(Object.fromEntries(counted)).toEqual({
      "list pods by name": 3 + 2,
      "list pods": 2,
      "list nodes": 2,
      "list stacks": 2,
      "list workspaces": 2,
      "get namespaces": 2,
    });
  });
});
