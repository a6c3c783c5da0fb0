import { afterEach, beforeEach, describe, expect, it } from "vitest";

import type { StackEvent } from "../../src/core/after-unlock.ts";
import type { StackResource } from "../../src/core/cluster.ts";
import type { StackRight } from "../../src/kubernetes/cluster-source.ts";
import type { LiveClusterOptions } from "../../src/kubernetes/live-cluster.ts";
import { aStack, at } from "../core/builders.ts";
import { StubApiServer, type StubAnswer } from "./stub-api-server.ts";

const never = new AbortController().signal;
const STACK = aStack({ name: "shop", uid: "uid-of-shop" });
const EVENT: StackEvent = { type: "Normal", reason: "LockRemoved", message: "Removed the lock." };
const AT = at("2026-03-10T12:00:00.5Z");
const PATH = "/apis/pulumi.com/v1/namespaces/iac/stacks/shop";

let server: StubApiServer;
beforeEach(async () => {
  server = new StubApiServer();
  await server.start();
});
afterEach(async () => await server.stop());

async function requeue(stack: StackResource = STACK): Promise<object | undefined> {
  const cluster = server.open();
  const telling = await cluster.requeueStack?.(stack, "2026-03-10T12:00:00.5Z", never);
  await cluster.close();
  return telling;
}

async function writeEvent(stack: StackResource = STACK): Promise<object | undefined> {
  const cluster = server.open();
  const telling = await cluster.writeEvent?.(stack, EVENT, AT, never);
  await cluster.close();
  return telling;
}

describe("a Stack is told to try again", () => {
  it("by one merge patch of one annotation", async () => {
    expect(await requeue()).toEqual({ kind: "told" });
    expect(server.calls.map(({ method, path, query }) => `${method} ${path}?${query.toString()}`)).toEqual([`PATCH ${PATH}?fieldManager=pulumi-lock-janitor`]);
    expect(server.calls[0]?.headers["content-type"]).toBe("application/merge-patch+json");
    expect(JSON.parse(server.calls[0]?.body() ?? "")).toEqual({ metadata: { annotations: { "pulumi.com/reconciliation-request": "2026-03-10T12:00:00.5Z" } } });
  });

  it("whatever its name is: nothing else can be reached by it", async () => {
    await requeue(aStack({ name: "../../secrets/x?y", namespace: "a/b" }));
    expect(server.calls.map(({ path }) => path)).toEqual(["/apis/pulumi.com/v1/namespaces/a%2Fb/stacks/..%2F..%2Fsecrets%2Fx%3Fy"]);
  });

  it.each<readonly [answer: StubAnswer, problem: string]>([
    [{ kind: "status", status: 403 }, 'the verb "patch" on stacks.pulumi.com is not allowed (403)'],
    [{ kind: "status", status: 401 }, "the credentials were not accepted (401)"],
    [{ kind: "status", status: 404, body: { reason: "NotFound" } }, "the API server answered 404 NotFound to the patch of stacks.pulumi.com"],
    [{ kind: "status", status: 422, body: { reason: "Invalid" } }, "the API server answered 422 Invalid to the patch of stacks.pulumi.com"],
    [{ kind: "hang" }, "the API server did not answer in time"],
    [{ kind: "cut" }, "the request failed (UND_ERR_SOCKET)"],
  ])("a refusal is told: %o", async (answer, problem) => {
    server.answer = () => answer;
    expect(await requeue()).toEqual({ kind: "failed", problem });
    expect(server.calls).toHaveLength(1);
  });
});

describe("an Event on a Stack", () => {
  it("is about the very Stack, in its namespace", async () => {
    expect(await writeEvent()).toEqual({ kind: "told" });
    expect(server.calls.map(({ method, path }) => `${method} ${path}`)).toEqual(["POST /api/v1/namespaces/iac/events"]);
    expect(JSON.parse(server.calls[0]?.body() ?? "")).toEqual({
      apiVersion: "v1",
      kind: "Event",
      metadata: { namespace: "iac", name: expect.stringMatching(/^pulumi-lock-janitor\.[0-9a-f-]{36}$/) },
      involvedObject: { apiVersion: "pulumi.com/v1", kind: "Stack", namespace: "iac", name: "shop", uid: "uid-of-shop" },
      type: "Normal",
      reason: "LockRemoved",
      message: "Removed the lock.",
      source: { component: "pulumi-lock-janitor" },
      firstTimestamp: "2026-03-10T12:00:00Z",
      lastTimestamp: "2026-03-10T12:00:00Z",
      count: 1,
    });
  });

  it("a refusal names verb and resource", async () => {
    server.answer = () => ({ kind: "status", status: 403 });
    expect(await writeEvent()).toEqual({ kind: "failed", problem: 'the verb "create" on events is not allowed (403)' });
  });
});

describe("the rights to tell Stacks", () => {
  const missing = async (right: StackRight, options: Partial<LiveClusterOptions> = {}): Promise<readonly string[] | undefined> => {
    const cluster = server.open(options);
    const found = await cluster.findMissingRight?.(right, never);
    await cluster.close();
    return found;
  };
  /** What is allowed, review after review. */
  const allow = (...allowed: readonly boolean[]): void => {
    const left = [...allowed];
    server.answer = () => ({ kind: "body", body: { status: { allowed: left.shift() } } });
  };

  it("are asked for everywhere, or in the namespaces that are asked", async () => {
    allow(true, true);
    expect(await missing("patch stacks.pulumi.com")).toEqual([]);
    expect(await missing("create events", { namespaces: ["iac"] })).toEqual([]);
    const asked = server.calls.map(({ body }): unknown => JSON.parse(body()));
    expect(asked).toMatchObject([
      { kind: "SelfSubjectAccessReview", spec: { resourceAttributes: { verb: "patch", group: "pulumi.com", resource: "stacks" } } },
      { kind: "SelfSubjectAccessReview", spec: { resourceAttributes: { verb: "create", group: "", resource: "events", namespace: "iac" } } },
    ]);
    expect(JSON.stringify(asked[0])).not.toContain("namespace");
  });

  it("are missing everywhere, in one namespace, or nobody tells", async () => {
    allow(false);
    expect(await missing("create events")).toEqual(["every namespace"]);
    allow(true, false);
    expect(await missing("create events", { namespaces: ["iac", "builds"] })).toEqual(["namespace builds"]);
    server.answer = () => ({ kind: "status", status: 404 });
    expect(await missing("create events")).toBeUndefined();
  });
});
