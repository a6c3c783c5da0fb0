import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import type { AuditRecord } from "../../src/core/record.ts";
import { newRecordId } from "../../src/output/audit-log.ts";
import { openFileAuditLog } from "../../src/output/file-audit-log.ts";

const never = new AbortController().signal;
const backend = { scheme: "file", path: "/srv/state", prefix: "" } as const;

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "audit-log-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function anIntent(key: string): AuditRecord {
  return {
    version: 1,
    event: "intent",
    id: newRecordId(key, "2026-03-10T12:00:00Z"),
    at: "2026-03-10T12:00:00Z",
    runId: "run-1",
    janitor: { version: "0.0.0", hostname: "test" },
    backend,
    key,
    lockVersion: "v1",
    body: "e30=",
    owner: { username: "pulumi", hostname: "iac-runner-a", pid: 7, timestamp: "2026-03-10T11:00:00Z" },
    verdict: "stale",
    reason: "pod-not-found",
    message: "no pod",
    evidence: { rules: [], candidates: [], clusters: [] },
    overrides: [],
    clusters: [],
  };
}

describe("the audit log in a file", () => {
  it("keeps one line an event and puts the events of a removal together", async () => {
    const log = openFileAuditLog(join(folder, "audit.ndjson"), backend);
    const [first, second] = [anIntent(".pulumi/locks/a/1.json"), anIntent(".pulumi/locks/a/2.json")];
    await log.append(first, "intent");
    await log.append(second, "intent");
    await log.append({ ...first, event: "outcome", action: "deleted" }, "outcome");
    expect(readFileSync(join(folder, "audit.ndjson"), "utf8").trimEnd().split("\n")).toHaveLength(3);
    expect((await log.readAll(never)).map(({ intent, outcome }) => [intent.key, outcome?.action])).toEqual(
      expect.arrayContaining([
        [first.key, "deleted"],
        [second.key, undefined],
      ]),
    );
    expect((await log.readOpen(never)).intents.map(({ key }) => key)).toEqual([second.key]);
  });

  it("writes no event of a removal twice", async () => {
    const log = openFileAuditLog(join(folder, "audit.ndjson"), backend);
    const intent = anIntent(".pulumi/locks/a/1.json");
    expect([await log.append(intent, "intent"), await log.append(intent, "intent")]).toEqual(["created", "exists"]);
  });

  it("survives a line that a crash has cut, and goes on in a line of its own", async () => {
    const path = join(folder, "audit.ndjson");
    const log = openFileAuditLog(path, backend);
    await log.append(anIntent(".pulumi/locks/a/1.json"), "intent");
    appendFileSync(path, '{"version":1,"event":"outc');
    await log.append(anIntent(".pulumi/locks/a/2.json"), "intent");
    expect(await log.readAll(never)).toHaveLength(2);
  });

  it("refuses a line that is JSON and no record, naming it", async () => {
    const path = join(folder, "audit.ndjson");
    appendFileSync(path, '{"version":2}\n');
    await expect(openFileAuditLog(path, backend).readAll(never)).rejects.toMatchObject({ code: "record-invalid", message: expect.stringContaining("line 1") });
  });

  it("goes on behind a line of a later version: it is told, and neither open nor ended, and nor is the removal that it names", async () => {
    const path = join(folder, "audit.ndjson");
    const log = openFileAuditLog(path, backend);
    const [first, second] = [anIntent(".pulumi/locks/a/1.json"), anIntent(".pulumi/locks/a/2.json")];
    await log.append(first, "intent");
    appendFileSync(path, `${JSON.stringify({ ...first, version: 2, event: "outcome", action: "deleted" })}\n`);
    expect(await log.append(second, "intent")).toBe("created");
    expect(await log.readOpen(never)).toEqual({
      intents: [second],
      unreadable: [{ place: `${path}, line 2,`, message: expect.stringContaining("a later janitor wrote") }],
    });
  });

  it.each<readonly [what: string, line: (restored: AuditRecord) => string, kept: boolean]>([
    ["is whole, though its intent is not there", (restored) => JSON.stringify(restored), true],
    ["is of a later version", (restored) => JSON.stringify({ ...restored, version: 2 }), true],
    ["is of a later version and tells the lock by its id only", ({ id }) => JSON.stringify({ version: 2, event: "put-back", id }), true],
    ["is broken", (restored) => JSON.stringify(restored).slice(0, -1), true],
    ["was cut before it was whole, so that nothing was put back", (restored) => JSON.stringify(restored).split(',"restoredAt"')[0] ?? "", false],
    ["is only an intent of a later version", (restored) => JSON.stringify({ ...restored, version: 2, event: "intent" }), false],
  ])("P5: a record of a lock that was put back, which %s", async (_what, line, kept) => {
    const path = join(folder, "audit.ndjson");
    const [one, other] = [".pulumi/locks/a/1.json", ".pulumi/locks/a/2.json"];
    appendFileSync(path, `${line({ ...anIntent(one), event: "outcome", action: "deleted", restoredAt: "2026-03-10T13:00:00Z" })}\n`);
    expect(Array.from(await openFileAuditLog(path, backend).findRestored([one, other], never))).toEqual(kept ? [one] : []);
  });

  it("shows the records of its own backend only", async () => {
    const path = join(folder, "audit.ndjson");
    await openFileAuditLog(path, backend).append(anIntent(".pulumi/locks/a/1.json"), "intent");
    expect(await openFileAuditLog(path, { ...backend, path: "/srv/other" }).readAll(never)).toEqual([]);
  });

  it("says that nothing is removed where it cannot be written", async () => {
    const log = openFileAuditLog(join(folder, "missing", "audit.ndjson"), backend);
    await expect(log.append(anIntent(".pulumi/locks/a/1.json"), "intent")).rejects.toMatchObject({
      code: "record-failed",
      message: expect.stringContaining("nothing is removed"),
    });
  });
});
