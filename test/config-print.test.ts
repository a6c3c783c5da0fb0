import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { renderSettings } from "../src/config-print.ts";
import { checkSettings, collectSettings, readSettings } from "../src/config.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "config-print-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(text: string): string {
  const file = join(folder, "janitor.yaml");
  writeFileSync(file, text);
  return file;
}

function print(flags: Readonly<Record<string, unknown>>, env: Readonly<Record<string, string>>, text?: string): string {
  const values = collectSettings(flags, env, text === undefined ? undefined : write(text));
  checkSettings(values);
  return renderSettings(values, env);
}

describe("config print", () => {
  it("tells of each setting where it comes from", () => {
    const text = print(
      { settle: "1m" },
      { PULUMI_LOCK_JANITOR_MIN_AGE: "2m", PULUMI_BACKEND_URL: "azblob://state" },
      "clockSkew: 9s\nowners: [iac-runner-*]\n",
    );
    expect(text).toContain("settle: 1m # --settle\n");
    expect(text).toContain("minAge: 2m # PULUMI_LOCK_JANITOR_MIN_AGE\n");
    expect(text).toMatch(/clockSkew: 9s # .*janitor\.yaml, line 1, column 12, clockSkew\n/);
    expect(text).toMatch(/# .*janitor\.yaml, line 2, column 9, owners\nowners:\n {2}- iac-runner-\*\n/);
    expect(text).toContain("confirmDelay: 6s # the default\n");
    expect(text).toContain("# PULUMI_BACKEND_URL\nbackends:\n  - azblob://state\n");
  });

  it("is a configuration file that says the same", () => {
    const flags = {
      minAge: "3m",
      owners: ["iac-runner-*=pulumi"],
      outputs: ["json"],
      failOn: ["stale"],
      unreachableNodes: ["ignore:n1"],
      listen: ":80",
      discover: true,
    };
    const given = readSettings(flags, {}, undefined);
    expect(readSettings({}, {}, write(print(flags, {})))).toEqual(given);
  });

  it("P7: shows no secret of a backend, its environment or a lock's URL", () => {
    const text = print(
      { locks: ["postgres://u:hunter2@h/db/.pulumi/locks/organization/a/b/1.json"] },
      { PULUMI_LOCK_JANITOR_VERBOSE: "true" },
      [
        "backends:",
        "  - postgres://u:hunter2@h/db?sslpassword=hunter2",
        "  - url: azblob://state",
        "    env: { AZURE_STORAGE_KEY: hunter2, OTHER: { variable: MY_KEY }, FILE: { file: /run/key } }",
      ].join("\n"),
    );
    expect(text).not.toContain("hunter2");
    expect(text).toContain('AZURE_STORAGE_KEY: "****"');
    expect(text).toContain("variable: MY_KEY");
    expect(print({ backends: ["postgres://u:hunter2@h/db"] }, {})).not.toContain("hunter2");
    expect(print({}, { PULUMI_BACKEND_URL: "postgres://u:hunter2@h/db" })).not.toContain("hunter2");
  });

  it("P7: nothing of it acts on the terminal", () => {
    const text = print({ kubeconfig: "a\u001b[2J\u202eb", contexts: ["\u202e"] }, {});
    // oxlint-disable-next-line eslint/no-control-regex -- that is what must not be there.
    expect(text).not.toMatch(/[\u001b\u202e]/);
  });
});
