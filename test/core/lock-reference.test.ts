import { describe, expect, it } from "vitest";

import { findLockReferences, type LockReference } from "../../src/core/lock-reference.ts";

const KEY = ".pulumi/locks/organization/shop/dev/26872864-1c1f-4e0e-9b0a-0a2b8c1d9e55.json";
const CREATED = "created by pulumi@shop-workspace-0 (pid 300) at 2026-12-01T05:25:54Z";
const owner = { username: "pulumi", hostname: "shop-workspace-0", pid: 300 };

describe("a lock is found in", () => {
  it.each<readonly [text: string, what: string, expected: LockReference]>([
    [KEY, "its key", { key: KEY }],
    [`team/a/${KEY}`, "its key with the backend's prefix", { key: KEY }],
    [`azblob://state/team/a/${KEY}`, "its URL", { key: KEY, backendUrl: "azblob://state/team/a" }],
    [`  azblob://state/${KEY}: ${CREATED}`, "Pulumi's line", { key: KEY, backendUrl: "azblob://state", owner }],
    [`file:///state/${KEY}?no_tmp_dir=true: ${CREATED}`, "the line of a folder", { key: KEY, backendUrl: "file:///state?no_tmp_dir=true", owner }],
    [
      `s3://acme-iac?region=eu-west-1&awssdk=v2/${KEY}: ${CREATED}`,
      "the line of an older Pulumi",
      { key: KEY, backendUrl: "s3://acme-iac?region=eu-west-1&awssdk=v2", owner },
    ],
    [
      `the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the lock file with \`pulumi cancel\`.\n  file:///state/${KEY}: created by DOMAIN\\jo smith@host (pid 7) at 2026-12-01T05:25:54Z`,
      "the whole error, of a user with a space",
      { key: KEY, backendUrl: "file:///state", owner: { username: "DOMAIN\\jo smith", hostname: "host", pid: 7 } },
    ],
    [`(see ${KEY}).`, "a sentence", { key: KEY }],
    [".pulumi/locks/dev/5b1d.json.189c2f4e6b1d3a00.tmp", "a stranded file", { key: ".pulumi/locks/dev/5b1d.json.189c2f4e6b1d3a00.tmp" }],
  ])("%j: %s", (text, _what, expected) => {
    expect(findLockReferences(text)).toEqual([expected]);
  });
});

it("several locks are found in one message", () => {
  const text = `locked by 2 lock(s).\n  azblob://state/${KEY}: ${CREATED}\n  azblob://state/.pulumi/locks/dev/b.json: created by a@b (pid 1) at 2026-12-01T05:25:54Z`;
  expect(findLockReferences(text).map(({ key, owner: by }) => [key, by?.hostname])).toEqual([
    [KEY, "shop-workspace-0"],
    [".pulumi/locks/dev/b.json", "b"],
  ]);
});

it.each(["", "update failed", ".pulumi/locks/", ".pulumi/locks/dev/", "azblob://state/.pulumi/stacks/dev.json"])("%j names no lock", (text) => {
  expect(findLockReferences(text)).toEqual([]);
});

it("a hostile message of a megabyte ends within its limit", () => {
  expect(findLockReferences(`${"a://".repeat(250_000)}${KEY}`)).toEqual([]);
  expect(findLockReferences(`${KEY}: created by ${"@".repeat(250_000)}`)).toEqual([{ key: KEY }]);
  expect(findLockReferences(`${"a".repeat(60_000)}/${KEY}${":".repeat(60_000)}x`)).toHaveLength(1);
});
