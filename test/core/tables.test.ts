import { describe, expect, it } from "vitest";

import { accountForLock, wantsStack } from "../../src/core/accounting.ts";
import type { BackendIdentity } from "../../src/core/backend-identity.ts";
import { formatIdentity } from "../../src/core/backend-identity.ts";
import { keyPrefix, meansBackend, splitBackendUrl } from "../../src/core/backend-url.ts";
import { mayHaveHostname } from "../../src/core/hostname.ts";
import { escapeKeyFor, meansStack, parseStackReference, stackFolder, unescapeKey } from "../../src/core/key.ts";
import { BUILTIN_OWNERS } from "../../src/core/owner.ts";
import { refuseTooMany } from "../../src/core/plan.ts";
import { chooseExitCode } from "../../src/core/report.ts";
import { escapeUntrusted, formatJson, joinSome, quoteUntrusted } from "../../src/core/text.ts";
import { formatDuration, formatTimestamp, parseTimestamp, SECOND } from "../../src/core/time.ts";
import { aCluster, aNode, aPod, aStack, ownerPattern } from "./builders.ts";

describe("timestamps, as Go writes and reads them", () => {
  it.each([
    ["2022-11-04T22:06:59.123456789Z", 1_667_599_619_123_456_789n],
    ["2026-11-28T10:12:03.123456789+01:00", 1_795_857_123_123_456_789n],
    ["2026-03-10T02:17:21.406113-08:00", 1_773_137_841_406_113_000n],
    ["2026-03-10T12:00:00Z", 1_773_144_000_000_000_000n],
    ["1969-12-31T23:59:59.5Z", -500_000_000n],
  ])("%s", (text, nanoseconds) => {
    expect(parseTimestamp(text)).toBe(nanoseconds);
  });

  it.each([
    "",
    "yesterday",
    "20261128T101203Z",
    "2026-11-28 10:12:03Z",
    "2026-11-28T10:12:60Z",
    "2026-02-30T00:00:00Z",
    "2026-11-28T25:00:00Z",
    "2026-11-28T10:12:03",
    "2026-11-28T10:12:03.Z",
    "2026-11-28T10:12:03.1234567890Z",
    "2026-11-28t10:12:03z",
    " 2026-11-28T10:12:03Z",
    "2026-11-28T10:12:03Z[UTC]",
  ])("%j is none", (text) => {
    expect(parseTimestamp(text)).toBeUndefined();
  });

  it("keep all nine decimals when written again", () => {
    expect(formatTimestamp(parseTimestamp("2022-11-04T23:06:59.123456789+01:00") ?? 0n)).toBe("2022-11-04T22:06:59.123456789Z");
  });

  it.each([
    [0n, "0 s"],
    [SECOND / 4n, "250 ms"],
    [59n * SECOND, "59 s"],
    [61n * SECOND, "1 min 1 s"],
    [7_200n * SECOND, "2 h"],
    [244_000n * SECOND, "2 d 19 h"],
    [-3n * SECOND, "-3 s"],
  ])("%s ns in words: %s", (length, words) => {
    expect(formatDuration(length)).toBe(words);
  });
});

describe("P7: text of strangers", () => {
  it.each([
    ["plain", "plain"],
    ["日本 ünï", "日本 ünï"],
    ["\u001b[31mred", "\\u{1b}[31mred"],
    ["a\nb\tc\r", "a\\u{a}b\\u{9}c\\u{d}"],
    ["\u202eevil\u2066", "\\u{202e}evil\\u{2066}"],
    ["zero\u200bwidth\ufeff", "zero\\u{200b}width\\u{feff}"],
    ["line\u2028sep", "line\\u{2028}sep"],
    ["\ud800lone", "\\u{d800}lone"],
    ["tag\u{e0041}", "tag\\u{e0041}"],
  ])("%j is shown as %j", (text, shown) => {
    expect(escapeUntrusted(text)).toBe(shown);
  });

  it("is harmless in JSON too, and the same once it is read", () => {
    const text = "a\u001b[2J\u202eb\u{e0041}c\n日本";
    expect(formatJson({ text })).not.toMatch(/[\p{Cf}]/u);
    expect(JSON.parse(formatJson({ text }))).toEqual({ text });
  });

  it.each([{}, { a: undefined, b: null }, { list: [], one: [1], many: [{ a: [] }, "x\ny", {}] }, { nested: { deep: [1, { b: 2 }] } }])(
    "%j in parts is what JSON.stringify makes of it",
    (document) => {
      expect(formatJson(document)).toBe(`${JSON.stringify(document, undefined, 2)}\n`);
    },
  );

  it("is cut to a length that can be read", () => {
    expect(quoteUntrusted("x".repeat(500)).length).toBeLessThan(140);
  });

  it.each([
    [[], ""],
    [["a"], "a"],
    [["a", "b"], "a and b"],
    [["a", "b", "c", "d", "e"], "a, b, c and 2 more"],
  ])("%j in words: %s", (items, words) => {
    expect(joinSome(items)).toBe(words);
  });
});

describe("the name of a stack in spec.stack, as Pulumi reads it", () => {
  it.each([
    ["dev", "organization/shop/dev", true],
    ["dev", "dev", true],
    ["organization/dev", "organization/shop/dev", true],
    ["organization/shop/dev", "organization/shop/dev", true],
    ["organization/shop/dev", "organization/dns/dev", false],
    ["shop/dev", "organization/shop/dev", true],
    ["dev", "organization/shop/prod", false],
    ["prod", "organization/shop/prod/deeper", false],
    ["a/b/c/d", "organization/b/c", false],
    ["", "dev", false],
    ["shop/", "organization/shop/dev", false],
    ["pulumi-operator.dev.global", "pulumi-operator.dev.global", true],
  ])("%s for a lock of %s: %s", (name, locked, expected) => {
    const reference = parseStackReference(name);
    expect(reference !== undefined && meansStack(reference, locked)).toBe(expected);
  });
});

describe("a Stack that accounts for a lock", () => {
  const azure: BackendIdentity = { scheme: "azblob", account: "acme", container: "state", prefix: "team/" };
  const key = ".pulumi/locks/organization/shop/prod/1.json";
  it.each([
    ["the same stack, no backend named", aStack(), "accounted"],
    ["another stack", aStack({ stacks: ["organization/shop/dev"] }), "unaccounted"],
    ["the same backend", aStack({ backend: "azblob://state/team" }), "accounted"],
    ["the same backend, spelled otherwise", aStack({ backend: "azblob://state/team/?storage_account=acme" }), "accounted"],
    ["another account", aStack({ backend: "azblob://state/team?storage_account=other" }), "unaccounted"],
    ["another prefix", aStack({ backend: "azblob://state" }), "unaccounted"],
    ["another container", aStack({ backend: "azblob://other/team" }), "unaccounted"],
    ["another scheme", aStack({ backend: "s3://state/team" }), "unaccounted"],
    ["no URL at all", aStack({ backend: "state" }), "unaccounted"],
    ["another workspace's name", aStack({ name: "other" }), "unaccounted"],
    ["a Workspace", aStack({ kind: "Workspace" }), "accounted"],
  ])("%s", (_, stack, expected) => {
    expect(accountForLock(key, "app-workspace-0", BUILTIN_OWNERS.slice(1), azure, [aCluster({ stacks: [stack] })]).kind).toBe(expected);
  });

  it("an operator of v1 has any name", () => {
    expect(
      accountForLock(key, "pulumi-kubernetes-operator-a-b", BUILTIN_OWNERS.slice(0, 1), azure, [aCluster({ stacks: [aStack({ name: "whatever" })] })]).kind,
    ).toBe("accounted");
  });

  it("found in one cluster suffices; not found, every cluster must have been seen", () => {
    const unlisted = { ...aCluster({ name: "b" }), stacks: { kind: "unlisted" as const, problem: "403" } };
    expect(accountForLock(key, "app-workspace-0", BUILTIN_OWNERS.slice(1), azure, [unlisted, aCluster()]).kind).toBe("accounted");
    expect(accountForLock(key, "app-workspace-0", BUILTIN_OWNERS.slice(1), azure, [unlisted, aCluster({ stacks: [] })]).kind).toBe("not-listed");
  });

  it.each([
    ["built-in", undefined, true],
    ["explicit", undefined, false],
    ["built-in", "no" as const, false],
    ["explicit", "yes" as const, true],
  ])("a pattern that is %s with --require-stack=%s wants one: %s", (pattern, require, wants) => {
    expect(wantsStack(pattern === "built-in" ? BUILTIN_OWNERS : [...BUILTIN_OWNERS, ownerPattern("iac-runner-*")], require)).toBe(wants);
  });
});

describe("backend URLs", () => {
  it.each([
    ["s3://bucket", ""],
    ["s3://bucket/", ""],
    ["s3://bucket/team/state", "team/state/"],
    ["s3://bucket/team/state/", "team/state/"],
    ["s3://bucket//team", "team/"],
    ["s3://bucket?prefix=a", "a"],
    ["s3://bucket/b?prefix=a/", "a/b/"],
    ["gs://bucket/a%20b", "a b/"],
  ])("%s has the prefix %j", (url, prefix) => {
    const parts = splitBackendUrl(url);
    expect(parts === undefined ? undefined : keyPrefix(parts)).toBe(prefix);
  });

  it.each<[string, BackendIdentity, boolean]>([
    ["s3://b?region=eu-west-1&awssdk=v2", { scheme: "s3", bucket: "b", prefix: "" }, true],
    ["s3://b?endpoint=https://minio.lab:9000", { scheme: "s3", bucket: "b", endpoint: "minio.lab:9000", prefix: "" }, true],
    ["s3://b?endpoint=other.lab", { scheme: "s3", bucket: "b", endpoint: "minio.lab", prefix: "" }, false],
    ["s3://b?endpoint=minio.lab", { scheme: "s3", bucket: "b", prefix: "" }, true],
    ["gs://b/x", { scheme: "gs", bucket: "b", prefix: "x/" }, true],
    ["file:///state", { scheme: "file", path: "/mnt/elsewhere", prefix: "" }, true],
    ["postgres://u:p@pg.lab/db", { scheme: "postgres", endpoint: "pg.lab:5432", database: "db", table: "pulumi_state", prefix: "db/" }, true],
    ["postgresql://pg.lab:5433/db", { scheme: "postgres", endpoint: "pg.lab:5432", database: "db", table: "pulumi_state", prefix: "db/" }, false],
    ["postgres://pg.lab/db?table=t", { scheme: "postgres", endpoint: "pg.lab:5432", database: "db", table: "pulumi_state", prefix: "db/" }, false],
  ])("%s means %o: %s", (url, identity, same) => {
    expect(meansBackend(url, identity)).toBe(same);
  });

  it("an identity is shown without anything secret", () => {
    expect(formatIdentity({ scheme: "azblob", account: "acme", container: "state", prefix: "team/" })).toBe("azblob://state/team (account acme)");
  });

  it("the folder of a lock is its stack's", () => {
    expect(stackFolder(".pulumi/locks/organization/shop/prod/1.json")).toBe(".pulumi/locks/organization/shop/prod/");
  });
});

describe("a prefix as gocloud spells it in a store", () => {
  it.each([
    ["azblob", "team a/100%/a#b?c\\d/", "team a/100__0x25__/a__0x23__b__0x3f__c__0x5c__d/"],
    ["azblob", "a\u0001b", "a__0x1__b"],
    ["s3", "100%/a#b/../c\u001f/", "100%/a#b/..__0x2f__c__0x1f__/"],
    ["gs", "a\nb/../c#", "a__0xa__b/..__0x2f__c#"],
  ] as const)("%s: %j", (scheme, prefix, spelled) => {
    expect(escapeKeyFor(scheme, prefix)).toBe(spelled);
    expect(unescapeKey(spelled)).toBe(prefix);
  });
});

describe("the hostname of a pod", () => {
  const nodes = [aNode({ hostnames: ["node-1", "node-1.internal", "10.0.0.7"] })];
  it.each([
    ["its name", {}, "app-workspace-0", true],
    ["another name", {}, "app-workspace-1", false],
    ["upper case", {}, "APP-Workspace-0", true],
    ["fully qualified by the cluster", { subdomain: "s", setHostnameAsFqdn: true }, "app-workspace-0.s.iac.svc.cluster.local", true],
    ["fully qualified, though it should not be: only adds", {}, "app-workspace-0.example.org", true],
    ["spec.hostname", { hostname: "x" }, "x", true],
    ["the name behind spec.hostname", { hostname: "x" }, "app-workspace-0", false],
    ["hostnameOverride before spec.hostname", { hostname: "x", hostnameOverride: "y.example" }, "y.example", true],
    ["hostNetwork: never its name", { hostNetwork: true }, "app-workspace-0", false],
    ["hostNetwork: its node's name", { hostNetwork: true }, "node-1", true],
    ["hostNetwork: its node's other name", { hostNetwork: true }, "node-1.internal", true],
    ["hostNetwork: a node that is gone", { hostNetwork: true, nodeName: "node-9" }, "node-9", true],
  ])("%s", (_, pod, hostname, expected) => {
    expect(mayHaveHostname(aPod(pod), hostname, nodes)).toBe(expected);
  });

  it.each([
    [`${"a".repeat(62)}-b`, "a".repeat(62)],
    [`${"a".repeat(60)}-..b`, "a".repeat(60)],
    ["a".repeat(80), "a".repeat(63)],
  ])("the name %s is cut to %s", (name, hostname) => {
    expect(mayHaveHostname(aPod({ name }), hostname, nodes)).toBe(true);
  });
});

describe("the valve", () => {
  const removals = (backend: string, owners: number): { backend: string; hostname: string }[] =>
    Array.from({ length: owners }, (_, number) => ({ backend, hostname: `h${number}` }));
  it.each([
    [50, []],
    [51, ["a"]],
  ])("%i owners in one backend", (owners, refused) => {
    expect(refuseTooMany(removals("a", owners), 50).map(({ backend }) => backend)).toEqual(refused);
  });
  it("counts each backend by itself, and owners once", () => {
    expect(refuseTooMany([...removals("a", 3), ...removals("a", 3), ...removals("b", 2)], 3)).toEqual([]);
  });
});

describe("the exit code: the first of 1, 4, 3, 5, 0", () => {
  const stale = { verdict: "stale", action: "would-delete" } as const;
  const removed = { verdict: "stale", action: "deleted" } as const;
  const failed = { verdict: "stale", action: "failed" } as const;
  const undetermined = { verdict: "undetermined", action: "keep" } as const;
  const nothing = { failed: false, refused: false, cutShort: false };
  it.each([
    [{ locks: [], ...nothing }, ["undetermined"] as const, 0],
    [{ locks: [undetermined], ...nothing }, ["undetermined"] as const, 3],
    [{ locks: [undetermined], ...nothing }, ["unreadable"] as const, 0],
    [{ locks: [stale], ...nothing }, [] as const, 0],
    [{ locks: [stale], ...nothing }, ["stale"] as const, 5],
    [{ locks: [removed], ...nothing }, ["stale"] as const, 0],
    [{ locks: [stale, undetermined], ...nothing }, ["stale", "undetermined"] as const, 3],
    [{ locks: [undetermined], ...nothing, refused: true }, ["undetermined"] as const, 4],
    [{ locks: [failed], ...nothing, refused: true }, [] as const, 1],
    [{ locks: [], ...nothing, failed: true }, [] as const, 1],
    [{ locks: [], ...nothing, cutShort: true }, [] as const, 3],
  ])("%j with --fail-on %j: %i", (result, failOn, code) => {
    expect(chooseExitCode(result, failOn)).toBe(code);
  });
});
