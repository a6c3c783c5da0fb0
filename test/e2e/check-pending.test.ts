// What --check-pending finds in checkpoints that the real CLI wrote, plain and compressed.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from "node:zlib";

import { afterAll, describe, expect, it } from "vitest";
import { z } from "zod";

import { openBackend } from "../../src/backends/open.ts";
import type { PendingOperations } from "../../src/core/checkpoint.ts";
import { readPendingOperations } from "../../src/read-checkpoint.ts";
import { Pulumi } from "./peers/pulumi.ts";

const folder = mkdtempSync(join(tmpdir(), "check-pending-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const checkpoint = z.looseObject({ checkpoint: z.looseObject({ latest: z.looseObject({}) }) });

/** What an update leaves that was killed while it made a resource. */
const HALF_MADE = {
  resource: { urn: "urn:pulumi:dev::demo::random:index/randomId:RandomId::half-made", custom: true, type: "random:index/randomId:RandomId" },
  type: "creating",
};

interface Form {
  readonly read: (bytes: Buffer) => Buffer;
  readonly write: (bytes: Buffer) => Buffer;
}

const PLAIN: Form = { read: (bytes) => bytes, write: (bytes) => bytes };
const GZIP: Form = { read: (bytes) => gunzipSync(bytes), write: (bytes) => gzipSync(bytes) };
const ZSTD: Form = { read: (bytes) => zstdDecompressSync(bytes), write: (bytes) => zstdCompressSync(bytes) };

async function look(url: string): Promise<PendingOperations> {
  const backend = await openBackend({ url, env: {}, requestTimeout: 10_000, now: () => Date.now() });
  const found = await readPendingOperations(backend, ".pulumi/locks/organization/demo/dev/1.json", new AbortController().signal);
  await backend.close();
  return found;
}

describe("a checkpoint of the real Pulumi", () => {
  it.each<readonly [what: string, env: Readonly<Record<string, string>>, file: string, form: Form]>([
    ["plain", {}, "demo/dev.json", PLAIN],
    ["gzip", { PULUMI_DIY_BACKEND_GZIP: "true" }, "demo/dev.json.gz", GZIP],
    ["zstd", { PULUMI_DIY_BACKEND_ZSTD: "true" }, "demo/dev.json.zst", ZSTD],
  ])("%s: none of a new stack and after an update, one where the CLI sees one", async (what, env, file, { read, write }) => {
    const state = join(folder, what);
    mkdirSync(state);
    const stacks = join(state, ".pulumi/stacks");
    const pulumi = new Pulumi(`file://${state}`, env);
    await pulumi.init("dev");
    expect(await look(`file://${state}`)).toEqual({ kind: "none" });
    const { ok, output } = await pulumi.up("dev");
    expect(ok, output).toBe(true);
    expect(readdirSync(stacks, { recursive: true })).toContain(file);
    expect(await look(`file://${state}`)).toEqual({ kind: "none" });
    const written = checkpoint.parse(JSON.parse(read(readFileSync(join(stacks, file))).toString()));
    written.checkpoint.latest["pending_operations"] = [HALF_MADE];
    writeFileSync(join(stacks, file), write(Buffer.from(JSON.stringify(written))));
    expect((await pulumi.exportState("dev")).output).toContain("half-made");
    expect(await look(`file://${state}`)).toEqual({ kind: "some", count: 1 });
    pulumi.remove();
  });
});
