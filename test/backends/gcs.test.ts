import { randomUUID } from "node:crypto";

import { beforeEach, describe, expect, it } from "vitest";

import type { Backend } from "../../src/backends/backend.ts";
import { wrapGoogleError } from "../../src/backends/gcs-errors.ts";
import { readGcsSettings } from "../../src/backends/gcs-settings.ts";
import { openGcs } from "../../src/backends/gcs.ts";
import { aLock, describeBackendContract } from "./contract.ts";
import { FaultProxy } from "./fault-proxy.ts";
import { playGcsFaults } from "./gcs-fixture.ts";
import { GcsStub, type Stored } from "./gcs-stub.ts";

const PREFIX = "team/state/";
const never = new AbortController().signal;

describe.each([
  ["which enforces conditions, as Google does", true],
  ["which is taken for an emulator, so the generation is compared right before", false],
] as const)("gs on a stub %s", (name, enforcesConditions) => {
  describeBackendContract({
    name: `gs: ${name}`,
    severalPages: 25,
    folderMarkers: [".pulumi/locks/", ".pulumi/locks/organization/"],
    preflight: ["allowed", "unknown"],
    start: async () => {
      const stub = new GcsStub();
      await stub.start();
      const proxy = new FaultProxy(`http://127.0.0.1:${stub.port}`);
      await proxy.start();
      return {
        stop: async () => {
          await proxy.stop();
          await stub.stop();
        },
        create: () => {
          proxy.fault = () => undefined;
          const bucket = `b-${randomUUID()}`;
          const objects = new Map<string, Stored>();
          stub.buckets.set(bucket, objects);
          return Promise.resolve({
            open: ({ wholePages } = { wholePages: false }) =>
              openGcs(
                { url: `gs://${bucket}/${PREFIX}`, env: { STORAGE_EMULATOR_HOST: `127.0.0.1:${proxy.port}` }, requestTimeout: 1_500, now: () => Date.now() },
                { enforcesConditions, ...(wholePages ? {} : { pageSize: 10 }) },
              ),
            put: (key: string, body: Uint8Array) => Promise.resolve(stub.put(bucket, PREFIX + key, body)),
            putOutside: (key: string, body: Uint8Array) => Promise.resolve(stub.put(bucket, `team/statue/${key}`, body)),
            get: (key: string) => Promise.resolve(stub.buckets.get(bucket)?.get(PREFIX + key)?.bytes),
            remove: (key: string) => {
              objects.delete(PREFIX + key);
              return Promise.resolve();
            },
            destroy: () => {
              stub.buckets.delete(bucket);
              return Promise.resolve();
            },
            faults: playGcsFaults(proxy),
            secrets: [],
            close: () => Promise.resolve(),
          });
        },
      };
    },
  });
});

describe("gs:// URLs with their environment, as Pulumi reads them (C37)", () => {
  it.each<[string, Readonly<Record<string, string>>, object]>([
    ["gs://acme-iac-state/ops", {}, { bucket: "acme-iac-state", prefix: "ops/", credential: { kind: "default" } }],
    ["gs://b?access_id=-", { GOOGLE_CREDENTIALS: "{}" }, { credential: { kind: "anonymous" } }],
    ["gs://b?anonymous=true", {}, { credential: { kind: "anonymous" } }],
    ["gs://b?access_id=me", {}, { credential: { kind: "default" } }],
    ["gs://b", { GOOGLE_CREDENTIALS: '{"type":"service_account"}', GOOGLE_OAUTH_ACCESS_TOKEN: "t" }, { credential: { kind: "json" } }],
    ["gs://b", { GOOGLE_OAUTH_ACCESS_TOKEN: "t", GOOGLE_APPLICATION_CREDENTIALS: "/k" }, { credential: { kind: "access-token", token: "t" } }],
    ["gs://b", { GOOGLE_APPLICATION_CREDENTIALS: "/k" }, { credential: { kind: "default", keyFile: "/k" } }],
    ["gs://b?universe_domain=u.example", {}, { universeDomain: "u.example" }],
    ["gs://b", { STORAGE_EMULATOR_HOST: "http://localhost:4443" }, { endpoint: "http://localhost:4443", credential: { kind: "anonymous" } }],
    ["gs://b", { STORAGE_EMULATOR_HOST: "localhost:4443" }, { endpoint: "http://localhost:4443" }],
  ])("%s with %o", (url, env, expected) => {
    expect(readGcsSettings(url, env)).toMatchObject(expected);
  });

  it.each<[string, Readonly<Record<string, string>>, string]>([
    ["gs://b", { GOOGLE_CREDENTIALS: "/var/secrets/key.json" }, "GOOGLE_CREDENTIALS holds no JSON"],
    ["gs://", {}, "needs a bucket"],
    ["gs://storage.googleapis.com/b", {}, "is the host of a service"],
    ["gs://b?nope=1", {}, "no parameter"],
    ["gs://b?anonymous=perhaps", {}, "neither true nor false"],
  ])("%s with %o is refused", (url, env, message) => {
    expect(() => readGcsSettings(url, env)).toThrow(expect.objectContaining({ code: "backend-url-invalid", message: expect.stringContaining(message) }));
  });

  it("without any credentials nothing is sent, rather than sent by nobody", async () => {
    await expect(
      openGcs({ url: "gs://b", env: { GOOGLE_APPLICATION_CREDENTIALS: "/nonexistent/key.json" }, requestTimeout: 1_000, now: () => Date.now() }),
    ).rejects.toMatchObject({ code: "backend-denied" });
  });
});

describe("what GCS refuses (C37)", () => {
  const refusal = (code: number, message: string, reason: string): Error => Object.assign(new Error(message), { code, errors: [{ reason }] });
  it.each([
    ["list the locks", 403, "x does not have storage.objects.list access (or it may not exist)", "forbidden", "backend-denied", /storage.objects.list/],
    [
      "remove a lock",
      403,
      "Object is subject to bucket's retention policy and cannot be deleted until 2026-03-20T10:00:00Z",
      "retentionPolicyNotMet",
      "lock-protected",
      /until 2026-03-20T10:00:00Z/,
    ],
    ["remove a lock", 403, "Object is under active Temporary hold", "forbidden", "lock-protected", /hold/],
    ["list the locks", 401, "Anonymous caller", "required", "backend-denied", /GOOGLE_CREDENTIALS/],
    ["list the locks", 404, "The specified bucket does not exist.", "notFound", "backend-missing", /bucket/],
  ] as const)("%s: %i %s", (action, status, message, reason, code, text) => {
    const error = wrapGoogleError(refusal(status, message, reason), "gs://b", action);
    expect(error.code).toBe(code);
    expect(`${error.message} ${error.hint ?? ""}`).toMatch(text);
  });

  it("503 on delete, twice, is sent again on the same generation (C37)", async () => {
    const stub = new GcsStub();
    await stub.start();
    stub.buckets.set("b", new Map());
    stub.put("b", ".pulumi/locks/a/1.json", aLock());
    const proxy = new FaultProxy(`http://127.0.0.1:${stub.port}`);
    await proxy.start();
    let refused = 0;
    proxy.fault = ({ method }) =>
      method === "DELETE" && ++refused <= 2
        ? { kind: "answer", status: 503, headers: { "content-type": "application/json" }, body: '{"error":{"code":503,"message":"backendError"}}' }
        : undefined;
    const backend = await openGcs({ url: "gs://b", env: { STORAGE_EMULATOR_HOST: `127.0.0.1:${proxy.port}` }, requestTimeout: 1_500, now: () => Date.now() });
    const read = await backend.readLock(".pulumi/locks/a/1.json", never);
    expect(await backend.deleteLock(".pulumi/locks/a/1.json", read.kind === "found" ? read.version : "")).toMatchObject({ kind: "deleted" });
    const deletes = proxy.requests
      .filter(({ method }) => method === "DELETE")
      .map(({ path }) => new URL(path, "http://x").searchParams.get("ifGenerationMatch"));
    expect([deletes.length, new Set(deletes).size]).toEqual([3, 1]);
    await proxy.stop();
    await stub.stop();
  });
});

describe("the clock of GCS", () => {
  const key = ".pulumi/locks/a/1.json";
  let stub: GcsStub;
  beforeEach(async () => {
    stub = new GcsStub();
    await stub.start();
    stub.buckets.set("b", new Map());
    return async () => await stub.stop();
  });
  const openBehind = async (milliseconds: number): Promise<Backend> =>
    await openGcs({ url: "gs://b", env: { STORAGE_EMULATOR_HOST: `127.0.0.1:${stub.port}` }, requestTimeout: 1_500, now: () => Date.now() - milliseconds });

  it.each([
    ["a lock", aLock()],
    ["an empty one, which is asked for twice", new Uint8Array()],
  ])("is that of the answer to a read of %s", async (_, body) => {
    stub.put("b", key, body);
    const backend = await openBehind(3_600_000);
    expect(backend.clockOffset()).toBeUndefined();
    await backend.readLock(key, never);
    expect(Math.abs(Number((backend.clockOffset() ?? 0n) / 1_000_000_000n) - 3_600)).toBeLessThanOrEqual(2);
  });
});
