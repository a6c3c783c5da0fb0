import { describe, expect, it } from "vitest";

import type { BackendIdentity } from "../../src/core/backend-identity.ts";
import { findBlockedStacks, type SeenBackend } from "../../src/core/blocked-stacks.ts";
import type { StackResource } from "../../src/core/cluster.ts";
import type { ReportedStack } from "../../src/core/report.ts";
import { aStack } from "./builders.ts";

const KEY = ".pulumi/locks/organization/shop/prod/26872864.json";
const STATE: BackendIdentity = { scheme: "azblob", account: "acme", container: "state", prefix: "team/a/" };
const OTHER: BackendIdentity = { scheme: "s3", bucket: "other", prefix: "" };

/** A Stack whose latest update failed on the lock of the given URL. */
function aBlockedStack(url = `azblob://state/team/a/${KEY}`, stack: Partial<StackResource> = {}): StackResource {
  const lastUpdateMessage = `up failed: the stack is currently locked by 1 lock(s). Either wait…\n  ${url}: created by pulumi@app-workspace-0 (pid 300) at 2026-12-01T05:25:54Z`;
  return aStack({ lastUpdateState: "failed", lastUpdateMessage, ...stack });
}

function seen(identity: BackendIdentity = STATE, keys: readonly string[] = [KEY], listed = true): SeenBackend {
  return { identity, listed, locks: keys.map((key) => ({ key, verdict: "stale", reason: "pod-not-found" })) };
}

function find(stacks: readonly StackResource[], backends: readonly SeenBackend[], ofSome = false): ReportedStack[] {
  return findBlockedStacks([{ cluster: "prod", stacks }], backends, ofSome);
}

const BLOCKED = { key: KEY, backend: STATE, verdict: "stale", reason: "pod-not-found" };

describe("a Stack is blocked", () => {
  it.each([
    ["Pulumi's line", `azblob://state/team/a/${KEY}`],
    ["with the account", `azblob://state/team/a/${KEY}?storage_account=acme`],
    ["of an older Pulumi", `azblob://state/team/a?storage_account=acme/${KEY}`],
    ["its key alone", KEY],
  ])("by a lock that is there: %s", (_what, url) => {
    expect(find([aBlockedStack(url)], [seen(), seen(OTHER, [])])).toEqual([
      { cluster: "prod", namespace: "iac", name: "app", stack: "organization/shop/prod", blockedBy: [BLOCKED] },
    ]);
  });

  it("by a lock whose key the store spells in another way", () => {
    const key = ".pulumi/locks/organization/shop/prod__0x23__1/a.json";
    const [stack] = find([aBlockedStack("azblob://state/team/a/.pulumi/locks/organization/shop/prod#1/a.json")], [seen(STATE, [key])]);
    expect(stack?.blockedBy).toMatchObject([{ key, verdict: "stale" }]);
  });

  it("by each of several locks, each once", () => {
    const second = ".pulumi/locks/organization/shop/prod/second.json";
    const lines = [KEY, second, KEY].map((key) => `azblob://state/team/a/${key}`).join(" and ");
    const [stack] = find([aBlockedStack(lines)], [seen(STATE, [KEY, second])]);
    expect(stack?.blockedBy.map(({ key }) => key)).toEqual([KEY, second]);
  });

  it("by a lock in a backend that is not of this run, which is said", () => {
    const [stack] = find([aBlockedStack(`azblob://state/team/b/${KEY}`)], [seen()]);
    expect(stack?.blockedBy).toEqual([{ key: KEY, message: "its backend is not one that this sweep could look into" }]);
  });

  it("by a lock in a backend that could not be read, which is said", () => {
    const [stack] = find([aBlockedStack()], [seen(STATE, [], false)]);
    expect(stack?.blockedBy).toEqual([{ key: KEY, backend: STATE, message: "that backend could not be read" }]);
  });

  it("where its own spec.backend tells the backend that the message does not", () => {
    const stack = aBlockedStack(KEY, { backend: "s3://other" });
    expect(find([stack], [seen(), seen(OTHER, [])])).toEqual([]);
    expect(find([stack], [seen(), seen(OTHER)])[0]?.blockedBy).toMatchObject([{ backend: OTHER }]);
  });
});

describe("a Stack is not blocked", () => {
  it.each<readonly [what: string, stack: StackResource]>([
    ["whose lock is gone", aBlockedStack(`azblob://state/team/a/.pulumi/locks/organization/shop/prod/gone.json`)],
    ["whose update succeeded", aBlockedStack(undefined, { lastUpdateState: "succeeded" })],
    ["whose update failed for another reason", aStack({ lastUpdateState: "failed", lastUpdateMessage: "signal: killed" })],
    ["without a status", aStack()],
    ["that is a Workspace", aBlockedStack(undefined, { kind: "Workspace" })],
    ["whose message names what is too long for a key", aBlockedStack(`azblob://nowhere/.pulumi/locks/${"a".repeat(2_000)}.json`)],
  ])("%s", (_what, stack) => {
    expect(find([stack], [seen()])).toEqual([]);
  });
});

it("where only some locks were looked at, only those are told", () => {
  const stacks = [aBlockedStack(), aBlockedStack(`azblob://state/team/a/.pulumi/locks/organization/dns/dev/1.json`), aBlockedStack(`s3://elsewhere/${KEY}`)];
  expect(find(stacks, [seen()], true).map(({ blockedBy }) => blockedBy)).toEqual([[BLOCKED]]);
});

it("Stacks come in the order of cluster, namespace and name", () => {
  const clusters = ["b", "a"].map((cluster) => ({ cluster, stacks: ["y", "x"].map((name) => aBlockedStack(undefined, { name })) }));
  expect(findBlockedStacks(clusters, [seen()], false).map(({ cluster, name }) => cluster + name)).toEqual(["ax", "ay", "bx", "by"]);
});
