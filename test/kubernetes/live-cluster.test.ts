import { afterEach, beforeEach, describe, expect, it } from "vitest";

import type { ClusterObservation } from "../../src/core/cluster.ts";
import type { ClusterSource } from "../../src/kubernetes/cluster-source.ts";
import { aNodeObject, aPodObject, StubApiServer, type SeenCall, type StubAnswer } from "./stub-api-server.ts";

const never = new AbortController().signal;
const PODS = "/api/v1/pods";

let server: StubApiServer;
let cluster: ClusterSource;
beforeEach(async () => {
  server = new StubApiServer();
  await server.start();
  server.objects.set("/api/v1/nodes", [aNodeObject("node-1")]);
  server.objects.set(PODS, [aPodObject("app-workspace-0"), aPodObject("other-workspace-0"), aPodObject("third-workspace-0")]);
  cluster = server.open();
});
afterEach(async () => {
  await cluster.close();
  await server.stop();
});

async function observe(...hostnames: readonly string[]): Promise<ClusterObservation> {
  return await cluster.observe(new Set(hostnames), never);
}

function onPods(answer: (call: SeenCall, earlier: number) => StubAnswer | undefined): void {
  server.answer = (call, earlier) => (call.path === PODS ? answer(call, earlier) : undefined);
}

const EXPIRED: StubAnswer = { kind: "status", status: 410, body: { kind: "Status", reason: "Expired", metadata: { continue: "an-inconsistent-token" } } };

describe("a whole list", () => {
  it("keeps only pods with one of the hostnames, and counts all", async () => {
    const { pods, nodes, uid } = await observe("app-workspace-0");
    expect(pods).toMatchObject({ kind: "complete", total: 3, pods: [{ name: "app-workspace-0" }] });
    expect(nodes).toMatchObject({ kind: "listed", nodes: [{ name: "node-1" }] });
    expect(uid).toBe("uid-of-kube-system");
  });

  it("goes page by page, and never asks the API server's cache (C22)", async () => {
    await cluster.close();
    cluster = server.open({ pageSize: 1 });
    expect((await observe("third-workspace-0")).pods).toMatchObject({ kind: "complete", total: 3, pods: [{ name: "third-workspace-0" }] });
    const pages = server.calls.filter(({ path }) => path === PODS);
    expect(pages.map(({ query }) => query.get("continue"))).toEqual([null, "1", "2"]);
    expect(pages.some(({ query }) => query.has("resourceVersion"))).toBe(false);
  });

  it("410 half-way starts over, without the token that the 410 offers (C23)", async () => {
    await cluster.close();
    cluster = server.open({ pageSize: 2 });
    onPods((_, earlier) => (earlier === 1 ? EXPIRED : undefined));
    expect((await observe("app-workspace-0")).pods).toMatchObject({ kind: "complete", total: 3, pods: [{ name: "app-workspace-0" }] });
    expect(server.calls.filter(({ path }) => path === PODS).map(({ query }) => query.get("continue"))).toEqual([null, "2", null, "2"]);
  });

  it("410 every time ends as incomplete, never as a short list (C23)", async () => {
    await cluster.close();
    cluster = server.open({ pageSize: 2 });
    onPods(({ query }) => (query.has("continue") ? EXPIRED : undefined));
    expect((await observe("third-workspace-0")).pods).toMatchObject({ kind: "incomplete", problem: expect.stringContaining("410") });
  });

  it.each<[string, StubAnswer, RegExp]>([
    [
      "403",
      { kind: "status", status: 403, body: { kind: "Status", reason: "Forbidden", message: "secret-of-the-server" } },
      /the verb "list" on pods is not allowed/,
    ],
    ["401", { kind: "status", status: 401 }, /credentials were not accepted/],
    ["500, again and again", { kind: "status", status: 500 }, /500/],
    ["no JSON", { kind: "text", text: "<html>" }, /is no JSON/],
    ["no JSON that a parser would quote", { kind: "text", text: "secret-of-the-server" }, /is no JSON/],
    ["JSON that is no list", { kind: "body", body: { items: "none" } }, /is no list/],
    ["a list without items", { kind: "body", body: { kind: "PodList", metadata: {} } }, /is no list/],
    ["a Status with 200", { kind: "body", body: { kind: "Status", metadata: {}, items: [] } }, /is no list/],
    [
      "a list that says it has more, and not where",
      { kind: "body", body: { kind: "PodList", metadata: { remainingItemCount: 7 }, items: [] } },
      /before its end/,
    ],
    ["an item that is no pod", { kind: "body", body: { kind: "PodList", metadata: {}, items: [{ metadata: { name: "x" } }] } }, /could not be read/],
    ["no answer", { kind: "hang" }, /did not answer in time/],
    ["a cut connection", { kind: "cut" }, /request failed/],
    ["the same token for ever", { kind: "body", body: { kind: "PodList", metadata: { continue: "again" }, items: [] } }, /in circles/],
  ])("%s is an incomplete list with a reason", async (_, answer, problem) => {
    onPods(() => answer);
    const { pods } = await observe("app-workspace-0");
    expect(pods).toMatchObject({ kind: "incomplete", problem: expect.stringMatching(problem) });
    expect(JSON.stringify(pods, (__, value: unknown) => (typeof value === "bigint" ? String(value) : value))).not.toContain("secret-of-the-server");
  });

  it.each([
    ["in question, whose status cannot be read: the list is incomplete", "app-workspace-0", "incomplete"],
    ["that is not in question: what is wrong with its status changes nothing", "other-workspace-0", "complete"],
    ["whose own hostname is in question, not its name: incomplete", "renamed", "incomplete"],
  ])("a pod %s", async (_, hostname, kind) => {
    const spoilt = {
      metadata: { name: "app-workspace-0", namespace: "iac" },
      spec: { hostname: hostname === "renamed" ? "renamed" : "app-workspace-0" },
      status: 7,
    };
    server.objects.set(PODS, [spoilt, aPodObject("other-workspace-0")]);
    expect((await observe(hostname)).pods).toMatchObject({ kind, total: kind === "complete" ? 2 : 1 });
  });

  it("a pod whose hostname cannot be told makes the list incomplete, whoever is in question", async () => {
    server.objects.set(PODS, [{ metadata: { name: "x", namespace: "iac" }, spec: { hostname: 7 } }, aPodObject("other-workspace-0")]);
    expect((await observe("other-workspace-0")).pods).toMatchObject({ kind: "incomplete", problem: expect.stringContaining("could not be read") });
  });

  it("a second page that is no list is no end of the list", async () => {
    await cluster.close();
    cluster = server.open({ pageSize: 2 });
    onPods(({ query }) => (query.has("continue") ? { kind: "body", body: { kind: "Status", metadata: {}, status: "Success" } } : undefined));
    expect((await observe("third-workspace-0")).pods).toMatchObject({ kind: "incomplete", problem: expect.stringContaining("is no list") });
  });

  it("pages of two snapshots are no list: a pod that moves between them is on neither", async () => {
    onPods(({ query }) => ({
      kind: "body",
      body: {
        kind: "PodList",
        metadata: query.has("continue") ? { resourceVersion: "9" } : { resourceVersion: "5", continue: "next" },
        items: [aPodObject(query.has("continue") ? "b" : "a")],
      },
    }));
    expect((await observe("app-workspace-0")).pods).toMatchObject({ kind: "incomplete", problem: expect.stringContaining("not of one snapshot") });
  });

  it("429 with Retry-After is asked again", async () => {
    onPods((_, earlier) => (earlier === 0 ? { kind: "status", status: 429, headers: { "retry-after": "0" } } : undefined));
    expect((await observe("app-workspace-0")).pods.kind).toBe("complete");
  });

  it("nodes and Stacks that may not be listed say so, and do not hide the pods", async () => {
    server.answer = ({ path }) => (/nodes|stacks/.test(path) ? { kind: "status", status: 403 } : undefined);
    const { pods, nodes, stacks } = await observe("app-workspace-0");
    expect(pods.kind).toBe("complete");
    expect(nodes).toMatchObject({ kind: "unlisted", problem: expect.stringContaining('"list" on nodes') });
    expect(stacks).toMatchObject({ kind: "unlisted", problem: expect.stringContaining('"list" on stacks.pulumi.com') });
  });

  it("Workspaces that may not be listed leave the Stacks, and say so", async () => {
    server.answer = ({ path }) => (path.includes("workspaces") ? { kind: "status", status: 403 } : undefined);
    const problem = expect.stringContaining('"list" on workspaces.auto.pulumi.com');
    expect((await observe("app-workspace-0")).stacks).toEqual({ kind: "listed", stacks: [], withoutWorkspaces: problem });
  });

  it("a cluster without the operator's kinds has no Stacks, which is known", async () => {
    server.answer = ({ path }) => (path.startsWith("/apis/") ? { kind: "status", status: 404 } : undefined);
    expect((await observe("app-workspace-0")).stacks).toEqual({ kind: "listed", stacks: [] });
  });

  it("Stacks and Workspaces are read", async () => {
    server.objects.set("/apis/pulumi.com/v1/stacks", [
      { kind: "Stack", metadata: { name: "app", namespace: "iac" }, spec: { stack: "organization/shop/dev", backend: "s3://b" } },
    ]);
    server.objects.set("/apis/auto.pulumi.com/v1alpha1/workspaces", [
      { kind: "Workspace", metadata: { name: "ws", namespace: "iac" }, spec: { stacks: [{ name: "dev" }] } },
    ]);
    const { stacks } = await observe("app-workspace-0");
    expect(await cluster.listStacks(never), "asked for alone").toEqual(stacks);
    expect(stacks).toEqual({
      kind: "listed",
      stacks: [
        { kind: "Stack", namespace: "iac", name: "app", stacks: ["organization/shop/dev"], backend: "s3://b" },
        { kind: "Workspace", namespace: "iac", name: "ws", stacks: ["dev"] },
      ],
    });
  });

  it("of chosen namespaces asks for these only, and says so", async () => {
    await cluster.close();
    cluster = server.open({ namespaces: ["iac", "ci"] });
    server.objects.set("/api/v1/namespaces/iac/pods", [aPodObject("app-workspace-0")]);
    expect(await observe("app-workspace-0")).toMatchObject({ namespaces: ["iac", "ci"], pods: { kind: "complete", total: 1 } });
    expect(server.lines.some((line) => line.startsWith(PODS))).toBe(false);
  });
});

describe("the canary", () => {
  it.each([
    ["in the list", { namespace: "iac", name: "app-workspace-0" }, "complete"],
    ["missing", { namespace: "iac", name: "janitor-1" }, "incomplete"],
    ["of another namespace", { namespace: "other", name: "app-workspace-0" }, "incomplete"],
  ])("the janitor's own pod %s", async (_, ownPod, kind) => {
    await cluster.close();
    cluster = server.open({ ownPod });
    expect((await observe("x")).pods.kind).toBe(kind);
  });

  it("counts only in the list that counts, not in one that was given up (410)", async () => {
    await cluster.close();
    cluster = server.open({ ownPod: { namespace: "iac", name: "app-workspace-0" }, pageSize: 2 });
    onPods((_, earlier) => {
      if (earlier !== 1) return undefined;
      server.objects.set(PODS, [aPodObject("other-workspace-0")]);
      return EXPIRED;
    });
    expect((await observe("x")).pods).toMatchObject({ kind: "incomplete", problem: expect.stringContaining("own pod"), total: 1 });
  });

  it.each([
    ["app-workspace-0", "complete"],
    ["janitor-1", "incomplete"],
  ])("is looked for by its name where its namespace cannot be told: %s", async (name, kind) => {
    await cluster.close();
    cluster = server.open({ ownPod: { namespace: undefined, name } });
    expect((await observe("x")).pods.kind).toBe(kind);
  });

  it("is not asked for where its namespace is not", async () => {
    await cluster.close();
    cluster = server.open({ ownPod: { namespace: "janitor", name: "janitor-1" }, namespaces: ["iac"] });
    expect((await observe("x")).pods.kind).toBe("complete");
  });
});

describe("the cheap look by name", () => {
  it("is one small request", async () => {
    expect(await cluster.findNamesakes("app-workspace-0", never)).toMatchObject([{ name: "app-workspace-0" }]);
    expect(server.lines).toEqual(["/api/v1/pods?fieldSelector=metadata.name%3Dapp-workspace-0"]);
  });

  it("asks each of the namespaces, and keeps what any of them has", async () => {
    await cluster.close();
    cluster = server.open({ namespaces: ["iac", "ci"] });
    server.objects.set("/api/v1/namespaces/iac/pods", [aPodObject("app-workspace-0")]);
    expect(await cluster.findNamesakes("app-workspace-0", never)).toHaveLength(1);
    expect(server.calls.map(({ path }) => path)).toEqual(["/api/v1/namespaces/iac/pods", "/api/v1/namespaces/ci/pods"]);
  });

  it.each(["", "a/b", "UPPER", "a b", "..", "x,status.phase=Running", "a=b"])("never sends %j, which is no pod's name (C17)", async (hostname) => {
    expect(await cluster.findNamesakes(hostname, never)).toEqual([]);
    expect(server.calls).toEqual([]);
  });

  it("finds nothing where it is refused: the whole list then tells why", async () => {
    onPods(() => ({ kind: "status", status: 403 }));
    expect(await cluster.findNamesakes("app-workspace-0", never)).toEqual([]);
  });
});

describe("the connection", () => {
  it("is kept for many requests", async () => {
    for (let round = 0; round < 20; round += 1) await cluster.findNamesakes("app-workspace-0", never);
    // A connection that is not quite free yet makes a second one.
    expect(server.connections).toBeLessThanOrEqual(2);
  });

  it("sends nothing before the first look", () => {
    expect(server.calls).toEqual([]);
  });

  it("takes an IPv6 address", async () => {
    const other = new StubApiServer();
    await other.start("::1");
    other.objects.set(PODS, [aPodObject("app-workspace-0")]);
    const source = other.open({}, {}, `http://[::1]:${other.port}`);
    expect((await source.observe(new Set(["app-workspace-0"]), never)).pods.kind).toBe("complete");
    await source.close();
    await other.stop();
  });

  it("tells the API server's clock", async () => {
    server.answer = () => ({ kind: "status", status: 403, headers: { date: new Date(Date.now() + 3_600_000).toUTCString() } });
    const offset = Number((await observe("x")).clockOffset ?? 0n) / 1e9;
    expect(offset).toBeGreaterThan(3_595);
    expect(offset).toBeLessThan(3_605);
  });

  it("an API server that is not there is an incomplete list", async () => {
    await cluster.close();
    cluster = server.open({}, {}, "http://127.0.0.1:1");
    expect((await observe("app-workspace-0")).pods).toMatchObject({ kind: "incomplete", problem: "nothing listens at the API server's address" });
  });
});
