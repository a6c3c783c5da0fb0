import { afterEach, beforeEach, describe, expect, it } from "vitest";

import type { ClusterSign, ClusterSource } from "../../src/kubernetes/cluster-source.ts";
import { aPodObject, StubApiServer, type SeenCall, type StubAnswer } from "./stub-api-server.ts";

const PODS = "/api/v1/pods";
const STACKS = "/apis/pulumi.com/v1/stacks";

let server: StubApiServer;
let cluster: ClusterSource;
let stop: AbortController;
/** All but that changes come. */
let signs: ClusterSign[];
/** Of what changes came, each time they began to. */
let followed: string[];
let following: Promise<void> | undefined;

beforeEach(async () => {
  server = new StubApiServer();
  await server.start();
  cluster = server.open();
  stop = new AbortController();
  signs = [];
  followed = [];
});
afterEach(async () => {
  stop.abort();
  await following;
  await cluster.close();
  await server.stop();
});

const stay: StubAnswer = { kind: "lines", lines: [], ending: "stay" };
const version: StubAnswer = { kind: "body", body: { kind: "PodList", metadata: { resourceVersion: "100" }, items: [] } };

/** Answers the watches of one resource one after the other; every other watch stays open and silent. */
function answerWatches(path: string, answers: readonly StubAnswer[]): void {
  let next = 0;
  server.answer = (call: SeenCall): StubAnswer | undefined => {
    if (call.query.get("watch") !== "1") return call.query.get("limit") === "1" ? version : undefined;
    if (call.path !== path) return stay;
    const answer = answers[next];
    next += 1;
    return answer ?? stay;
  };
}

function follow(): void {
  following = cluster.follow?.((sign) => (sign.kind === "followed" ? followed.push(sign.what) : signs.push(sign)), stop.signal);
}

async function until<Value>(look: () => Value | undefined): Promise<Value> {
  return await expect
    .poll(look, { timeout: 10_000, interval: 10 })
    .toBeDefined()
    .then(() => look() ?? Promise.reject(new Error("it went away")));
}

/** The resource versions that watches of a resource began at. */
function watchesOf(path: string): readonly (string | null)[] {
  return server.calls.filter((call) => call.path === path && call.query.get("watch") === "1").map(({ query }) => query.get("resourceVersion"));
}

function changed(type: string, object: object, resourceVersion: string): object {
  const { metadata = {}, ...rest }: { metadata?: object } = { ...object };
  return { type, object: { ...rest, metadata: { ...metadata, resourceVersion } } };
}

const restarted = {
  ...aPodObject("app-workspace-0"),
  status: {
    phase: "Running",
    containerStatuses: [
      {
        name: "pulumi",
        restartCount: 1,
        state: { running: { startedAt: "2026-03-10T11:00:00Z" } },
        lastState: { terminated: { finishedAt: "2026-03-10T10:59:59Z" } },
      },
    ],
  },
};

describe("signs", () => {
  it.each([
    ["a pod that was deleted", changed("DELETED", aPodObject("app-workspace-0"), "101"), ["app-workspace-0"]],
    ["a pod whose container restarted", changed("MODIFIED", restarted, "101"), ["app-workspace-0"]],
    ["a pod that ended", changed("MODIFIED", { ...aPodObject("job"), status: { phase: "Succeeded" } }, "101"), ["job"]],
    ["a pod with a hostname of its own", changed("DELETED", aPodObject("worker", "ci", { hostname: "iac-a" }), "101"), ["iac-a"]],
    ["not: a pod that was made", changed("ADDED", restarted, "101"), []],
    ["not: a pod that runs on", changed("MODIFIED", aPodObject("app-workspace-0"), "101"), []],
    ["not: what is no pod", changed("DELETED", { metadata: { name: 7 } }, "101"), []],
  ])("%s", async (_what, line, expected) => {
    answerWatches(PODS, [{ kind: "lines", lines: [line, changed("DELETED", aPodObject("last"), "102")], ending: "stay" }]);
    follow();
    await until(() => signs.find((sign) => sign.kind === "pod" && sign.hostname === "last"));
    expect(signs.flatMap((sign) => (sign.kind === "pod" ? [sign.hostname] : []))).toEqual([...expected, "last"]);
  });

  it("a Stack whose update failed, with its message; not one that went through", async () => {
    const stack = (state: string): object => ({ metadata: { name: "app" }, status: { lastUpdate: { state, message: `${state} on a lock` } } });
    answerWatches(STACKS, [
      { kind: "lines", lines: [changed("MODIFIED", stack("succeeded"), "1"), changed("MODIFIED", stack("failed"), "2")], ending: "stay" },
    ]);
    follow();
    await until(() => signs[0]);
    expect(signs).toEqual([{ kind: "stack", message: "failed on a lock" }]);
  });
});

describe("a watch that ends", () => {
  it("goes on at the version it had seen, bookmarks included, and nothing is lost", async () => {
    answerWatches(PODS, [
      { kind: "lines", lines: [changed("DELETED", aPodObject("a"), "105"), changed("BOOKMARK", {}, "120")], ending: "end" },
      { kind: "lines", lines: [changed("DELETED", aPodObject("b"), "121")], ending: "cut" },
    ]);
    follow();
    await until(() => watchesOf(PODS)[2]);
    expect(watchesOf(PODS)).toEqual(["100", "120", "121"]);
    expect(signs).toEqual([
      { kind: "pod", hostname: "a" },
      { kind: "pod", hostname: "b" },
    ]);
  });

  it.each<readonly [what: string, answer: StubAnswer, problem: RegExp]>([
    ["410 in the stream", { kind: "lines", lines: [{ type: "ERROR", object: { code: 410 } }], ending: "end" }, /ended \(410\)/],
    ["410 in place of it", { kind: "status", status: 410 }, /410/],
  ])("by %s begins anew at a fresh version, and tells that changes may be missing", async (_what, answer, problem) => {
    answerWatches(PODS, [{ kind: "lines", lines: [changed("DELETED", aPodObject("a"), "105")], ending: "end" }, answer]);
    follow();
    await until(() => watchesOf(PODS)[2]);
    expect(watchesOf(PODS)).toEqual(["100", "105", "100"]);
    const lost = signs.flatMap((sign) => (sign.kind === "lost" ? [sign.problem] : []));
    expect(lost).toEqual([expect.stringMatching(problem)]);
  });

  it("by 410 tells so once it has begun anew: a look that is made then misses nothing", async () => {
    answerWatches(PODS, [{ kind: "status", status: 410 }]);
    follow();
    await until(() => signs[0]);
    const lists = server.calls.filter(({ path, query }) => path === PODS && query.get("limit") === "1");
    expect(lists).toHaveLength(2);
  });

  it.each<readonly [what: string, answer: StubAnswer, problem: RegExp, denied: boolean]>([
    ["is not allowed", { kind: "status", status: 403 }, /"watch" on pods is not allowed/, true],
    ["is overloaded", { kind: "status", status: 429 }, /429/, false],
    ["is cut off before anything came", { kind: "cut" }, /failed/, false],
    ["is no watch", { kind: "text", text: "<html>token=secret</html>\n" }, /cut off/, false],
  ])("which %s is tried again, at the same version: nothing is lost, and no text of the server is repeated", async (_what, answer, problem, denied) => {
    answerWatches(PODS, [answer]);
    follow();
    await until(() => watchesOf(PODS)[1]);
    expect(watchesOf(PODS)).toEqual(["100", "100"]);
    await expect.poll(() => followed).toContain("pods");
    expect(signs).toEqual([{ kind: "unfollowed", what: "pods", problem: expect.stringMatching(problem), denied }]);
    expect(JSON.stringify(signs)).not.toContain("secret");
  });

  it("which cannot be begun tells, once it can, that changes may be missing", async () => {
    answerWatches(PODS, []);
    const later = server.answer;
    let refusals = 0;
    server.answer = (call, earlier) => {
      const begins = call.path === PODS && call.query.get("limit") === "1";
      return begins && ++refusals === 1 ? { kind: "status", status: 403 } : later(call, earlier);
    };
    follow();
    await until(() => watchesOf(PODS)[0]);
    const problem = expect.stringMatching(/"list" on pods is not allowed/);
    expect(signs).toEqual([
      { kind: "unfollowed", what: "pods", problem, denied: true },
      { kind: "lost", problem },
    ]);
  });
});

it("a Stack's watch that is not allowed is told; of a kind that is not there nothing is missed", async () => {
  answerWatches(PODS, []);
  const withPods = server.answer;
  let status = 404;
  server.answer = (call, earlier) => (call.path.includes("stacks") ? { kind: "status", status } : withPods?.(call, earlier));
  follow();
  await until(() => server.calls.find(({ path }) => path.includes("stacks")));
  status = 403;
  await until(() => signs[0]);
  const problem = expect.stringContaining('"list" on stacks.pulumi.com is not allowed');
  expect(signs).toEqual([{ kind: "unfollowed", what: "stacks.pulumi.com", problem, denied: true }]);
});

it("a signal ends it while a watch is silent", async () => {
  answerWatches(PODS, []);
  follow();
  await until(() => watchesOf(PODS)[0]);
  stop.abort();
  await following;
  expect(signs).toEqual([]);
});
