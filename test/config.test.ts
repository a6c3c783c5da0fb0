import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { readSettings, resolveBackends } from "../src/config.ts";
import { MINUTE, SECOND } from "../src/core/time.ts";
import { longName, SWEEP_OPTIONS, variableOf } from "../src/options.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "config-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function writeConfig(text: string): string {
  const file = join(folder, "config.yaml");
  writeFileSync(file, text);
  return file;
}

describe("flags, variables and file", () => {
  it("flags win over variables, variables over the file", () => {
    const file = writeConfig("minAge: 1m\nsettle: 1m\nclockSkew: 1m\n");
    const settings = readSettings({ minAge: "3m" }, { PULUMI_LOCK_JANITOR_MIN_AGE: "2m", PULUMI_LOCK_JANITOR_SETTLE: "2m" }, file);
    expect([settings.minAge, settings.settle, settings.clockSkew]).toEqual([3n * MINUTE, 2n * MINUTE, MINUTE]);
  });

  it.each(SWEEP_OPTIONS.flatMap((option) => variableOf(option) ?? []))("%s is read", (name) => {
    const values: Readonly<Record<string, string>> = {
      DELETE: "true",
      EXCLUSIVE: "true",
      BUILTIN_OWNERS: "false",
      STEP_SUMMARY: "false",
      VERBOSE: "true",
      QUIET: "true",
      REQUIRE_STACK: "no",
      MAX_DELETIONS: "7",
      UNREACHABLE_NODES: "ignore:n1",
      OUTPUT: "json",
      FAIL_ON: "stale",
      OWNER: "iac-runner-*",
      NAMESPACE: "iac",
      DISCOVER: "true",
      PROBE_PROCESSES: "true",
      REQUEUE_STACKS: "true",
      STACK_EVENTS: "true",
      CHECK_PENDING: "true",
      DISCOVER_ALLOW: "s3://acme-*",
    };
    const value = values[name.replace("PULUMI_LOCK_JANITOR_", "")] ?? "9m";
    expect(readSettings({}, { [name]: value }, undefined)).not.toEqual(readSettings({}, {}, undefined));
  });

  it("a list in a variable is separated by spaces", () => {
    expect(readSettings({}, { PULUMI_LOCK_JANITOR_OWNER: "iac-runner-* ci-job-*=build" }, undefined).owners).toEqual([
      { glob: "iac-runner-*", profile: "explicit" },
      { glob: "ci-job-*", container: "build", profile: "explicit" },
    ]);
  });

  it.each([
    ["90s", 90n * SECOND],
    ["1h30m", 90n * MINUTE],
    ["250ms", SECOND / 4n],
    ["2d", 2_880n * MINUTE],
  ])("the duration %s", (text, length) => {
    expect(readSettings({ minAge: text }, {}, undefined).minAge).toBe(length);
  });
});

describe("what is refused, and how", () => {
  it.each([
    [{ minAge: "60" }, '--min-age "60": a duration needs its unit'],
    [{ minAge: "-5m" }, '--min-age "-5m": a duration needs its unit'],
    [{ maxDeletions: "many" }, '--max-deletions "many"'],
    [{ maxDeletions: "0" }, '--max-deletions "0"'],
    [{ owners: ["*"] }, '--owner "*": it matches the 12 hexadecimal digits of a Docker container'],
    [{ owners: ["ok-pod-*", "runner-*"] }, '--owner "runner-*": it matches'],
    [{ discoverAllow: ["s3://*"] }, '--discover-allow "s3://*": it admits nearly every bucket'],
    [{ discoverAllow: ["s3://acme-*", "file:///srv"] }, '--discover-allow "file:///srv": a folder is never taken from a Stack'],
    [{ requireStack: "maybe" }, '--require-stack "maybe"'],
    [{ outputs: ["xml"] }, '--output "xml": an output is table, json, markdown or junit'],
    [{ failOn: ["everything"] }, '--fail-on "everything"'],
    [{ podsTakenAt: "yesterday" }, '--pods-taken-at "yesterday": a time is written as RFC 3339'],
    [{ unreachableNodes: ["all"] }, '--unreachable-nodes "all"'],
    [{ namespaces: ["a/../b"] }, '--namespace "a/../b"'],
  ])("%o", (flags, message) => {
    expect(() => readSettings(flags, {}, undefined)).toThrow(
      expect.objectContaining({ code: "config-invalid", exitCode: 2, message: expect.stringContaining(message) }),
    );
  });

  it.each([
    ["minAge: 5", 'line 1, column 9, minAge "5": '],
    ["backends: []\nminAje: 5m", 'line 2, column 1: there is no setting "minAje"; did you mean "minAge"?'],
    ["minAge: 5m\n  owners: x", "line 1, column 9: Nested mappings are not allowed"],
    ["- a", "is a mapping of settings"],
    ["settle: 1m\nclock-skew: 5s", 'line 2, column 1: there is no setting "clock-skew"; did you mean "clockSkew"?'],
    ["owners:\n  - ok-pod-*\n  - '*'", 'line 3, column 5, owners[1] "*": it matches'],
    ["backends:\n  - url: azblob://a\n    exklusive: true", 'line 3, column 5: there is no key "exklusive"; did you mean "exclusive"?'],
    ["backends:\n  - url: 5", "line 2, column 10, backends[0].url: Invalid input: expected string"],
    ["backends: [5]", "line 1, column 12, backends[0]: a backend is its URL, or a mapping with url, exclusive and env"],
    ["backends: [{ url: azblob://a, env: { KEY: { secret: x } } }]", 'backends[0].env.KEY: this is a text, "{ variable: NAME }"'],
    ["minAge: 5m\nminAge: 6m", "line 2, column 1: Map keys must be unique"],
    ["a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]", "Excessive alias count"],
    ["yes: true", "flag only"],
    ["podsTakenAt: 2026-03-10T12:00:00Z", "flag only"],
    ["unreachableNodes: [ignore]", "flag only"],
  ])("a file with %j", (text, message) => {
    expect(() => readSettings({}, {}, writeConfig(text))).toThrow(
      expect.objectContaining({
        code: "config-invalid",
        message: expect.stringContaining(message),
      }),
    );
  });

  it("all that is wrong is told at once, and no name is suggested that is far away", () => {
    expect(() => readSettings({}, {}, writeConfig("minAge: 5\nnothingLikeIt: 6"))).toThrow(
      /line 1, column 9, minAge[^\n]*\n[^\n]*line 2, column 1: there is no setting "nothingLikeIt"$/,
    );
  });

  it("a file that cannot be read is named", () => {
    expect(() => readSettings({}, {}, join(folder, "none.yaml"))).toThrow(
      expect.objectContaining({ message: expect.stringContaining("none.yaml could not be read") }),
    );
  });

  it("--unreachable-nodes=ignore by a variable: a person says it each time", () => {
    expect(() => readSettings({}, { PULUMI_LOCK_JANITOR_UNREACHABLE_NODES: "ignore" }, undefined)).toThrow(expect.objectContaining({ code: "config-invalid" }));
  });

  it("P7: a backend's URL is not repeated: it may hold a password", () => {
    const file = writeConfig("backends:\n  - { url: 'postgres://u:hunter2@h/db', exklusive: true }\n");
    expect(() => readSettings({}, {}, file)).toThrow(expect.objectContaining({ message: expect.not.stringContaining("hunter2") }));
  });
});

describe("backends", () => {
  it("are PULUMI_BACKEND_URL by default", () => {
    const env = { PULUMI_BACKEND_URL: "azblob://state" };
    expect(resolveBackends(readSettings({}, env, undefined), env)).toEqual([{ url: "azblob://state", exclusive: false, env }]);
  });

  it("may each have an environment of their own, from variables and files", () => {
    const secret = join(folder, "key");
    writeFileSync(secret, "from-a-file\n");
    const file = writeConfig(
      `exclusive: true\nbackends:\n  - url: azblob://a\n    env: { AZURE_STORAGE_KEY: { file: ${secret} } }\n  - url: azblob://b\n    exclusive: false\n    env: { AZURE_STORAGE_KEY: { variable: KEY_B } }\n`,
    );
    const env = { KEY_B: "from-a-variable", AZURE_STORAGE_KEY: "of-the-process" };
    expect(resolveBackends(readSettings({}, env, file), env).map((backend) => [backend.url, backend.exclusive, backend.env["AZURE_STORAGE_KEY"]])).toEqual([
      ["azblob://a", true, "from-a-file"],
      ["azblob://b", false, "from-a-variable"],
    ]);
  });

  it("without any, what to do is said", () => {
    expect(() => resolveBackends(readSettings({}, {}, undefined), {})).toThrow(
      expect.objectContaining({ hint: expect.stringContaining("PULUMI_BACKEND_URL") }),
    );
  });
});

it("every option has its own flag, and every flag its own name in the file", () => {
  const flags = SWEEP_OPTIONS.map(({ flags: words }) => longName(words));
  const keys = SWEEP_OPTIONS.map(({ key }) => key);
  expect([new Set(flags).size, new Set(keys).size]).toEqual([flags.length, keys.length]);
});
