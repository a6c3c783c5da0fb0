import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { findClusters, type AccessOptions } from "../../src/kubernetes/kubeconfig.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kubeconfig-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, contexts: readonly string[], current?: string): string {
  const file = join(folder, name);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, JSON.stringify({ contexts: contexts.map((context) => ({ name: context, context: {} })), "current-context": current }));
  return file;
}

function find(options: Partial<AccessOptions>): ReturnType<typeof findClusters> {
  return findClusters({ contexts: [], env: {}, requireExplicitContext: false, ...options });
}

describe("which clusters are asked", () => {
  it("the current context of --kubeconfig", () => {
    const file = write("config", ["a", "b"], "b");
    expect(find({ kubeconfig: file })).toEqual([{ kind: "context", files: [file], context: "b" }]);
  });

  it("every --context is a cluster", () => {
    const file = write("config", ["a", "b", "c"], "b");
    expect(find({ kubeconfig: file, contexts: ["c", "a"] }).map((access) => access.kind === "context" && access.context)).toEqual(["c", "a"]);
  });

  it("a context that is given twice is one cluster", () => {
    expect(find({ kubeconfig: write("config", ["a", "b"], "b"), contexts: ["a", "a"] })).toHaveLength(1);
  });

  it("KUBECONFIG may name several files: the first current context counts", () => {
    const files = [write("one", ["a"]), write("two", ["b"], "b"), write("three", ["c"], "c")];
    expect(find({ env: { KUBECONFIG: files.join(":") } })).toEqual([{ kind: "context", files, context: "b" }]);
  });

  it("~/.kube/config is the default", () => {
    const file = write(".kube/config", ["a"], "a");
    expect(find({ env: { HOME: folder } })).toEqual([{ kind: "context", files: [file], context: "a" }]);
  });
});

describe("what is refused", () => {
  it.each<[string, () => Partial<AccessOptions>, RegExp]>([
    ["nothing at all", () => ({}), /no cluster to ask/],
    ["an empty home", () => ({ env: { HOME: folder } }), /no cluster to ask/],
    ["a file that is not there", () => ({ kubeconfig: join(folder, "none") }), /does not exist/],
    ["a KUBECONFIG that is not there", () => ({ env: { KUBECONFIG: join(folder, "none") } }), /does not exist/],
    [
      "a file that is no kubeconfig",
      () => {
        writeFileSync(join(folder, "bad"), "contexts: 7");
        return { kubeconfig: join(folder, "bad") };
      },
      /it is no kubeconfig, see contexts/,
    ],
    ["an unknown context", () => ({ kubeconfig: write("config", ["a"], "a"), contexts: ["b"] }), /has no context "b"/],
    ["no current context", () => ({ kubeconfig: write("config", ["a"]) }), /has no current context/],
    [
      "a removal with several contexts and none chosen",
      () => ({ kubeconfig: write("config", ["a", "b"], "a"), requireExplicitContext: true }),
      /has 2 contexts/,
    ],
    ["a context without a kubeconfig", () => ({ contexts: ["a"] }), /there is no kubeconfig/],
  ])("%s", (_, options, message) => {
    expect(() => find(options())).toThrow(expect.objectContaining({ code: "cluster-not-configured", exitCode: 2, message: expect.stringMatching(message) }));
  });

  it.each([
    ["users:\n- name: a\n  user:\n    token: secret: token\n", /it is no YAML, see line 4, column 12$/],
    ['users:\n- name: a\n  user:\n    token: "secret\n    x: y\n', /it is no YAML, see line 6, column 1$/],
    ["users:\n- name: a\n  user:\n    token: *secret\n", /it is no kubeconfig$/],
  ])("P7: %j, without a word of the token", (content, message) => {
    const file = join(folder, "bad");
    writeFileSync(file, content);
    expect(() => find({ kubeconfig: file })).toThrow(expect.objectContaining({ code: "cluster-not-configured", message: expect.stringMatching(message) }));
    expect(() => find({ kubeconfig: file })).not.toThrow(/secret/);
  });

  it("but a removal with one context needs no --context", () => {
    expect(find({ kubeconfig: write("config", ["a"], "a"), requireExplicitContext: true })).toHaveLength(1);
  });
});
