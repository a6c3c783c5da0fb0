import { describe, expect, it } from "vitest";

import type { BackendIdentity } from "../../src/core/backend-identity.ts";
import { isSelected, isWanted, parseWantedLock, type LockSelection } from "../../src/core/wanted-lock.ts";

const UUID = "26872864-1c1f-4e0e-9b0a-0a2b8c1d9e55";
const KEY = `.pulumi/locks/organization/shop/dev/${UUID}.json`;
const STATE: BackendIdentity = { scheme: "azblob", account: "acme", container: "state", prefix: "" };

function names(text: string, key: string, backend: BackendIdentity = STATE): boolean {
  const parsed = parseWantedLock(text);
  if (parsed.kind === "refused") throw new Error(parsed.problem);
  return isWanted(parsed.wanted, key, backend);
}

describe("a lock is named by", () => {
  it.each([
    [UUID, "its id"],
    [`${UUID}.json`, "its file"],
    [`organization/shop/dev/${UUID}`, "its stack and id"],
    [KEY, "its key"],
    [`azblob://state/${KEY}`, "its URL"],
    [`  azblob://state/${KEY}: created by pulumi@shop-workspace-0 (pid 300) at 2026-12-01T05:25:54Z\n`, "Pulumi's line"],
  ])("%j, %s", (text) => {
    expect(names(text, KEY)).toBe(true);
    expect(names(text, KEY.replace("2687", "0000"))).toBe(false);
  });

  it("what a person placed by hand has no UUID", () => expect(names("manual", ".pulumi/locks/dev/manual.json")).toBe(true));
  it("what was left half written has another ending", () => expect(names("5b.json.18.tmp", ".pulumi/locks/dev/5b.json.18.tmp")).toBe(true));
  it("a part of an id names nothing", () => expect(names(UUID.slice(0, 8), KEY)).toBe(false));
  it("the URL of another container names nothing here", () => expect(names(`azblob://other/${KEY}`, KEY)).toBe(false));
  it("a key that the store spells with escapes is named as Pulumi prints it", () =>
    expect(names(".pulumi/locks/a#b/1.json", ".pulumi/locks/a__0x23__b/1.json")).toBe(true));
});

it.each(["", "two words", "azblob://state", `${KEY} ${KEY.replace("dev", "prod")}`])("%j names no one lock", (text) => {
  expect(parseWantedLock(text).kind).toBe("refused");
});

describe("a sweep is about", () => {
  const ALL: LockSelection = { projects: [], stacks: [], locks: [] };
  it.each<readonly [what: string, selection: Partial<LockSelection>, key: string, expected: boolean]>([
    ["everything", {}, KEY, true],
    ["a project", { projects: ["shop"] }, KEY, true],
    ["another project", { projects: ["other"] }, KEY, false],
    ["a project, and a lock of the legacy layout", { projects: ["shop"] }, ".pulumi/locks/shop/1.json", false],
    ["a stack of any project", { stacks: ["dev"] }, KEY, true],
    ["a stack in full", { stacks: ["organization/shop/dev"] }, KEY, true],
    ["a stack of another project", { stacks: ["organization/other/dev"] }, KEY, false],
    ["a legacy stack", { stacks: ["edge.qa"] }, ".pulumi/locks/edge.qa/1.json", true],
    ["one of two stacks", { stacks: ["prod", "dev"] }, KEY, true],
    ["a project and a stack, of which both must match", { projects: ["shop"], stacks: ["prod"] }, KEY, false],
    ["a lock", { locks: [{ kind: "id", id: UUID }] }, KEY, true],
    ["another lock", { locks: [{ kind: "id", id: "x" }] }, KEY, false],
  ])("%s", (_what, selection, key, expected) => {
    expect(isSelected({ ...ALL, ...selection }, key, STATE)).toBe(expected);
  });
});
