import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { parseTimestamp } from "../../src/core/time.ts";
import type { ClusterSource } from "../../src/kubernetes/cluster-source.ts";
import type { StackName } from "../../src/kubernetes/write-stacks.ts";
import { StubApiServer } from "./stub-api-server.ts";

const { signal } = new AbortController();
const stack: StackName = { namespace: "iac", name: "shop", uid: "uid-1" };
const event = { message: "removed", at: parseTimestamp("2026-03-10T12:00:00.5Z") ?? 0n, id: "run1-0", reporter: "janitor-0" };

let server: StubApiServer;
let cluster: ClusterSource;
beforeEach(async () => {
  server = new StubApiServer();
  await server.start();
  cluster = server.open();
});
afterEach(async () => {
  await cluster.close();
  await server.stop();
});

it("a requeue is one merge patch of one annotation, of the very Stack that was seen", async () => {
  expect(await cluster.requeueStack?.(stack, "now", signal)).toEqual({ kind: "written" });
  expect(server.writes).toEqual([
    {
      line: "PATCH /apis/pulumi.com/v1/namespaces/iac/stacks/shop",
      contentType: "application/merge-patch+json",
      body: { metadata: { uid: "uid-1", annotations: { "pulumi.com/reconciliation-request": "now" } } },
    },
  ]);
});

it("an Event names the Stack as kubectl describe looks for it", async () => {
  expect(await cluster.tellStack?.(stack, event, signal)).toEqual({ kind: "written" });
  expect(server.writes).toMatchObject([
    {
      line: "POST /api/v1/namespaces/iac/events",
      body: {
        metadata: { namespace: "iac", name: "shop.run1-0" },
        involvedObject: { apiVersion: "pulumi.com/v1", kind: "Stack", namespace: "iac", name: "shop", uid: "uid-1" },
        reason: "StaleLockRemoved",
        message: "removed",
        firstTimestamp: "2026-03-10T12:00:00Z",
      },
    },
  ]);
});

describe.each(["requeueStack", "tellStack"] as const)("%s", (write) => {
  const attempt = async (name: StackName = stack): Promise<unknown> =>
    write === "requeueStack" ? await cluster.requeueStack?.(name, "now", signal) : await cluster.tellStack?.(name, event, signal);

  it.each([
    [403, write === "requeueStack" ? 'the verb "patch" on stacks.pulumi.com is not allowed' : 'the verb "create" on events is not allowed'],
    [404, "it is no longer there"],
    [409, "another Stack of that name is there now"],
    [422, "the API server answered 422 Stub"],
  ])("a refusal with %i is told, and sent once", async (status, problem) => {
    server.answer = () => ({ kind: "status", status });
    expect(await attempt()).toMatchObject({ kind: "refused", problem: expect.stringContaining(problem) });
    expect(server.calls).toHaveLength(1);
  });

  it("a server that cuts the connection is told, and sent once", async () => {
    server.answer = () => ({ kind: "cut" });
    expect(await attempt()).toMatchObject({ kind: "refused" });
    expect(server.calls).toHaveLength(1);
  });

  it.each(["../../secrets/a", "Shop", "", "a/b", "a?b=c"])("no request is made of the name %j", async (name) => {
    expect([await attempt({ ...stack, name }), await attempt({ ...stack, namespace: name })]).toMatchObject([{ kind: "refused" }, { kind: "refused" }]);
    expect(server.calls).toEqual([]);
  });
});

it.each([
  ["requeue", [], [{ verb: "patch", group: "pulumi.com", resource: "stacks" }]],
  [
    "event",
    ["a", "b"],
    [
      { verb: "create", group: "", resource: "events", namespace: "a" },
      { verb: "create", group: "", resource: "events", namespace: "b" },
    ],
  ],
] as const)("whether there is the right to %s is asked in the words of a Role", async (what, namespaces, asked) => {
  server.answer = () => ({ kind: "status", status: 201, body: { status: { allowed: true } } });
  const some = server.open({ namespaces });
  expect(await some.reviewStackWrite?.(what, signal)).toBe(true);
  expect(server.writes.map(({ body }) => body)).toMatchObject(asked.map((resourceAttributes) => ({ spec: { resourceAttributes } })));
  server.answer = () => ({ kind: "status", status: 201, body: { status: { allowed: false } } });
  expect(await some.reviewStackWrite?.(what, signal)).toBe(false);
  server.answer = () => ({ kind: "status", status: 500 });
  expect(await some.reviewStackWrite?.(what, signal)).toBeUndefined();
  await some.close();
});
