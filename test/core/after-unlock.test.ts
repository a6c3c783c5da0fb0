import { describe, expect, it } from "vitest";

import { findStacksOf } from "../../src/core/accounting.ts";
import { composeEvent, describeAfterUnlock, mayRequeue, warnAfterUnlock, type AfterUnlock, type Unlocked } from "../../src/core/after-unlock.ts";
import type { BackendIdentity } from "../../src/core/backend-identity.ts";
import { combinePendingOperations, countPendingOperations, type PendingOperations } from "../../src/core/checkpoint.ts";
import type { StackResource } from "../../src/core/cluster.ts";
import { findCheckpointKeys } from "../../src/core/key.ts";
import { BUILTIN_OWNERS } from "../../src/core/owner.ts";
import { aLock, aLockWithBody, aStack, judge, ownerPattern } from "./builders.ts";

const KEY = ".pulumi/locks/organization/shop/prod/1.json";
const STATE: BackendIdentity = { scheme: "azblob", account: "acme", container: "state", prefix: "" };

describe("where the checkpoint of a lock's stack is", () => {
  it.each([
    [KEY, ".pulumi/stacks/shop/prod"],
    [".pulumi/locks/pulumi-operator.dev.global/6f0e.json", ".pulumi/stacks/pulumi-operator.dev.global"],
    [".pulumi/locks/organization/a__0x23__b/prod/1.json", ".pulumi/stacks/a__0x23__b/prod"],
  ])("%s: %s", (key, path) => {
    expect(findCheckpointKeys(key)).toEqual([`${path}.json`, `${path}.json.gz`, `${path}.json.zst`]);
  });

  it.each([
    ".pulumi/locks/1.json",
    ".pulumi/locks/organization/shop/1.json",
    ".pulumi/locks/acme/shop/prod/1.json",
    ".pulumi/locks/organization/shop/prod/more/1.json",
    ".pulumi/locks/organization//prod/1.json",
    "elsewhere/organization/shop/prod/1.json",
  ])("%s: nowhere", (key) => {
    expect(findCheckpointKeys(key)).toEqual([]);
  });
});

describe("pending operations of a checkpoint", () => {
  const inVersion = (version: number, latest: unknown): string => JSON.stringify({ version, checkpoint: { stack: "organization/shop/prod", latest } });
  it.each<readonly [what: string, text: string, expected: object]>([
    ["none", inVersion(3, { resources: [] }), { kind: "none" }],
    ["an empty list", inVersion(3, { pending_operations: [] }), { kind: "none" }],
    ["null", inVersion(3, { pending_operations: null }), { kind: "none" }],
    ["two", inVersion(3, { pending_operations: [{ type: "creating" }, { type: "updating" }] }), { kind: "some", count: 2 }],
    ["one, of a newer version", inVersion(4, { pending_operations: [{}] }), { kind: "some", count: 1 }],
    ["of a stack that was never updated", inVersion(3, undefined), { kind: "none" }],
    ["of a stack whose update left nothing", inVersion(3, null), { kind: "none" }],
    ["of an old version", inVersion(1, {}), { kind: "unknown", problem: expect.stringContaining("no version that is known") }],
    ["of a version to come", inVersion(5, {}), { kind: "unknown" }],
    ["in another shape", inVersion(3, { pending_operations: 2 }), { kind: "unknown" }],
    ["of no checkpoint at all", "[]", { kind: "unknown" }],
    ["of a text that is cut off", inVersion(3, {}).slice(0, -3), { kind: "unknown", problem: "its checkpoint is no JSON" }],
    ["of one that is nested too deep", "[".repeat(200_000), { kind: "unknown", problem: "its checkpoint is no JSON" }],
  ])("%s", (_what, text, expected) => {
    expect(countPendingOperations(text)).toMatchObject(expected);
  });

  const NONE = { kind: "none" } as const;
  const SOME = { kind: "some", count: 2 } as const;
  const UNKNOWN = { kind: "unknown", problem: "403" } as const;
  it.each<readonly [found: readonly PendingOperations[], expected: object]>([
    [[], { kind: "unknown", problem: "it has no checkpoint" }],
    [[NONE], NONE],
    [[NONE, NONE], NONE],
    [[NONE, SOME], SOME],
    [[SOME, UNKNOWN], SOME],
    [[NONE, UNKNOWN], UNKNOWN],
  ])("of several checkpoints %j: %j", (found, expected) => {
    expect(combinePendingOperations(found)).toEqual(expected);
  });

  it.each([
    [undefined, true],
    [NONE, true],
    [SOME, false],
    [UNKNOWN, false],
  ])("%j: requeued %s", (pending, expected) => {
    expect(mayRequeue(pending)).toBe(expected);
  });
});

describe("the Stacks that are told", () => {
  const patterns = [...BUILTIN_OWNERS, ownerPattern("iac-runner-*")];
  const namesOf = (stacks: readonly StackResource[], hostname: string, owners = patterns): readonly string[] =>
    findStacksOf(KEY, hostname, owners, STATE, stacks).map(({ name }) => name);

  it("are all that account for the lock, and Workspaces are not", () => {
    const stacks = [
      aStack({ name: "app", backend: "azblob://state" }),
      aStack({ name: "same", namespace: "other" }),
      aStack({ name: "other-backend", backend: "azblob://other" }),
      aStack({ name: "other-stack", stacks: ["organization/shop/dev"] }),
      aStack({ name: "workspace", kind: "Workspace" }),
    ];
    expect(namesOf(stacks, "iac-runner-a", [ownerPattern("iac-runner-*")])).toEqual(["app", "same"]);
  });

  it("of the operator's pods are those with the workspace's name", () => {
    const stacks = [aStack({ name: "app" }), aStack({ name: "app", namespace: "other" }), aStack({ name: "other" })];
    expect(namesOf(stacks, "app-workspace-0", BUILTIN_OWNERS.slice(1))).toEqual(["app", "app"]);
  });

  it("of a host that no pattern matches have to name the lock's backend", () => {
    const stacks = [aStack({ name: "silent" }), aStack({ name: "named", backend: "azblob://state" }), aStack({ name: "other", backend: "s3://state" })];
    expect(namesOf(stacks, "laptop.local", [])).toEqual(["named"]);
  });
});

describe("the Event on a Stack", () => {
  const judgement = judge(aLock(), { owners: ["app-workspace-*"] });

  it("says what was removed, whose it was and why", () => {
    expect(composeEvent(aLock(), judgement, undefined)).toEqual({
      type: "Normal",
      reason: "LockRemoved",
      message: 'Removed the lock "1" of "organization/shop/prod", whose owner "pulumi@app-workspace-0" (pid 7) is gone (pod-not-found).',
    });
  });

  it("warns of pending operations", () => {
    const { type, message } = composeEvent(aLock(), judgement, { kind: "some", count: 2 });
    expect(type).toBe("Warning");
    expect(message).toMatch(/is gone \(pod-not-found\)\. Its checkpoint holds 2 pending operations: see to them before the next update\.$/);
  });

  it("of a lock that went on a person's word says so", () => {
    const held = { ...judgement, verdict: "held" as const, reason: "container-running" as const };
    expect(composeEvent(aLock(), held, undefined).message).toContain(
      'on a person\'s word: it was held (container-running), of "pulumi@app-workspace-0" (pid 7).',
    );
    const unreadable = aLockWithBody("");
    expect(composeEvent(unreadable, { ...judgement, verdict: "unreadable", reason: "empty" }, undefined).message).toBe(
      'Removed the lock "1" of "organization/shop/prod", on a person\'s word: it was unreadable (empty).',
    );
  });

  it.each([
    ["a colour", "\u001b[31mred"],
    ["reordered text", "\u202egnp.exe"],
    ["lines", "a\nb\r\nc"],
    ["very long", "x".repeat(5_000)],
    ["very long, of many bytes", "日本".repeat(5_000)],
    ["very long, all of it escaped", "\u{10ffff}".repeat(5_000)],
  ])("P7: with a hostname and a user that are %s is short, and acts on nothing", (_what, text) => {
    const lock = aLock({
      hostname: text,
      username: text,
      key: `.pulumi/locks/organization/${text.slice(0, 200).replaceAll("/", "")}/prod/${text.slice(0, 200)}.json`,
    });
    const { message } = composeEvent(lock, judgement, { kind: "some", count: 12 });
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(1_024);
    expect(message).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Cn}\p{Co}]/u);
    expect(message).toContain("12 pending operations");
  });
});

describe("what a report says of it", () => {
  const told = { cluster: "prod", namespace: "iac", name: "app" };
  const unlocked = (done: AfterUnlock | undefined, pendingOperations?: PendingOperations): Unlocked => ({
    stack: "organization/shop/prod",
    key: KEY,
    ...(done === undefined ? {} : { afterUnlock: done }),
    ...(pendingOperations === undefined ? {} : { pendingOperations }),
  });

  it.each<readonly [what: string, lock: Unlocked, lines: readonly string[]]>([
    ["nothing", unlocked(undefined), []],
    ["no pending operations", unlocked(undefined, { kind: "none" }), []],
    ["no Stack", unlocked({ stacks: [] }), []],
    ["both told", unlocked({ stacks: [{ ...told, requeued: true, event: true }] }), ['Stack "iac/app" of "prod": told to try again, told by an Event']],
    [
      "not to be requeued",
      unlocked({ stacks: [{ ...told, requeued: false }] }, { kind: "some", count: 1 }),
      [expect.stringContaining("holds 1 pending operation:")],
    ],
    ["not known", unlocked(undefined, { kind: "unknown", problem: "403" }), ["whether its checkpoint holds pending operations is not known: 403"]],
    [
      "a failure",
      unlocked({ stacks: [{ ...told, requeued: false, event: true, problem: "no right" }] }),
      ['Stack "iac/app" of "prod": told by an Event, not everything could be told: no right'],
    ],
    ["Stacks that are not known", unlocked({ stacks: [], problem: "not listed" }), ["not listed"]],
  ])("%s", (_what, lock, lines) => {
    expect(describeAfterUnlock(lock)).toEqual(lines);
  });

  it("and warns once of what is alike", () => {
    const failed = unlocked({ stacks: [{ ...told, requeued: false, problem: "no right" }] });
    expect(
      warnAfterUnlock([failed, failed, unlocked(undefined, { kind: "some", count: 1 }), unlocked(undefined, { kind: "unknown", problem: "403" })]),
    ).toEqual([
      expect.stringMatching(/^pending operations are in the checkpoint of "organization\/shop\/prod"/),
      'whether pending operations are in the checkpoint is not known of "organization/shop/prod"',
      'Stack "iac/app" could not be told of its lock\'s removal: no right',
    ]);
    expect(warnAfterUnlock([unlocked({ stacks: [{ ...told, requeued: true }] })])).toEqual([]);
  });
});
