import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startFauxqs } from "fauxqs";
import { describe, expect, it, vi } from "vitest";

import type { Backend } from "../../src/backends/backend.ts";
import { wrapAwsError } from "../../src/backends/s3-errors.ts";
import { readS3Settings } from "../../src/backends/s3-settings.ts";
import { openS3 } from "../../src/backends/s3.ts";
import { aLock, describeBackendContract, type StoreFixture } from "./contract.ts";
import { FaultProxy, type Fault } from "./fault-proxy.ts";
import { contractS3, createS3Store, type S3Server } from "./s3-fixture.ts";

/** A server that ignores If-Match on DELETE and deletes, as MinIO does. */
async function startFaux(): Promise<S3Server> {
  const server = await startFauxqs({ port: 0, logger: false });
  return { port: server.port, accessKeyId: "test", secretAccessKey: "a-secret-key", stop: () => server.stop() };
}

describeBackendContract(contractS3("s3 on a server that ignores If-Match on DELETE (C30)", startFaux));

describe("s3:// URLs as people really write them (C33)", () => {
  it.each<[string, Readonly<Record<string, string>>, object]>([
    [
      "s3://iac/attic?region=no1&awssdk=v2&profile=store&s3ForcePathStyle=true&endpoint=https://s3.lab.example",
      {},
      { bucket: "iac", prefix: "attic/", region: "no1", profile: "store", pathStyle: true, endpoint: "https://s3.lab.example" },
    ],
    [
      "s3://iac?endpoint=store.lab.example:9000&s3ForcePathStyle=true",
      {},
      { endpoint: "https://store.lab.example:9000", https: true, requestChecksums: "WHEN_REQUIRED" },
    ],
    ["s3://iac?endpoint=store.lab.example:9000&disableSSL=true&s3ForcePathStyle=true", {}, { endpoint: "http://store.lab.example:9000", https: false }],
    ["s3://iac?endpoint=https://s3.lab.example&disableSSL=true", {}, { endpoint: "https://s3.lab.example", https: true }],
    ["s3://iac?use_path_style=true", {}, { pathStyle: true, https: true }],
    [
      "s3://iac",
      { AWS_ENDPOINT_URL_S3: "http://s3.lab.example", AWS_ENDPOINT_URL: "http://aws.lab.example" },
      { endpoint: "http://s3.lab.example", https: false },
    ],
    ["s3://iac", { AWS_ENDPOINT_URL: "https://aws.lab.example" }, { endpoint: "https://aws.lab.example" }],
    ["s3://iac?endpoint=x.example", { AWS_ENDPOINT_URL_S3: "http://s3.lab.example" }, { endpoint: "https://x.example" }],
    ["s3://iac?disable_https=true", {}, { https: false }],
    ["s3://iac?hostname_immutable=true&endpoint=x.example", {}, { pathStyle: true }],
    ["s3://iac?dualstack=true&fips=1&accelerate=t&anonymous=false", {}, { dualstack: true, fips: true, accelerate: true, anonymous: false }],
    ["s3://iac?role=arn:aws:iam::1:role/x&rate_limiter_capacity=5", {}, { role: "arn:aws:iam::1:role/x" }],
    ["s3://iac?ssetype=AES256&kmskeyid=k", {}, { encryption: "AES256", kmsKeyId: "k" }],
    ["s3://iac?request_checksum_calculation=when_supported&endpoint=x.example", {}, { requestChecksums: "WHEN_SUPPORTED" }],
    ["s3://iac?endpoint=x.example", { AWS_REQUEST_CHECKSUM_CALCULATION: "when_supported" }, { requestChecksums: "WHEN_SUPPORTED" }],
    ["s3://iac", { AWS_REGION: "eu-west-1", AWS_PROFILE: "p" }, { region: "eu-west-1", profile: "p" }],
    ["s3://iac", { AWS_DEFAULT_REGION: "eu-west-2" }, { region: "eu-west-2" }],
  ])("%s", (url, env, expected) => {
    expect(readS3Settings(url, env)).toMatchObject(expected);
  });

  it.each([
    ["s3://iac?endpoint=https://s3.lab.example&insecure=true", 'no parameter "insecure"'],
    ["s3://s3.eu-west-1.amazonaws.com/acme-iac", "is the host of a service"],
    ["s3://minio.lab:9000/acme", "is the host of a service"],
    ["s3://", "needs a bucket"],
    ["s3://iac?anonymous=perhaps", "neither true nor false"],
    ["s3://iac?role=admin", "is no ARN"],
    ["s3://iac?ssetype=rot13", "ssetype is none of"],
    ["s3://iac?request_checksum_calculation=never", "neither when_required"],
    ["s3://iac?rate_limiter_capacity=fast", "is no number"],
    ["s3://iac?endpoint=ftp://x", "is no address"],
    ["s3://iac?endpoint=u:p@host", "is no address"],
  ])("%s is refused", (url, message) => {
    expect(() => readS3Settings(url, {})).toThrow(expect.objectContaining({ code: "backend-url-invalid", message: expect.stringContaining(message) }));
  });
});

describe("what S3 refuses (C32)", () => {
  const refusal = (status: number, name: string): Error => Object.assign(new Error("text of the service"), { name, $metadata: { httpStatusCode: status } });
  it.each([
    ["list the locks", 403, "AccessDenied", "backend-denied", /s3:ListBucket/],
    ["read a lock", 403, "AccessDenied", "backend-denied", /kms:Decrypt/],
    ["remove a lock", 403, "AccessDenied", "backend-denied", /s3:DeleteObject/],
    ["list the locks", 403, "ExpiredToken", "backend-denied", /has expired/],
    ["list the locks", 404, "NoSuchBucket", "backend-missing", /bucket/],
    ["list the locks", 301, "PermanentRedirect", "backend-failed", /another region/],
    ["list the locks", 503, "SlowDown", "backend-failed", /503/],
  ] as const)("%s: %i %s", (action, status, name, code, text) => {
    const error = wrapAwsError(refusal(status, name), "s3://iac", action);
    expect(error.code).toBe(code);
    expect(`${error.message} ${error.hint ?? ""}`).toMatch(text);
    expect(error.message).not.toContain("text of the service");
  });
});

describe("what a server of S3 may answer to a conditional delete", () => {
  const KEY = ".pulumi/locks/organization/shop/prod/1.json";
  async function withStore(
    test: (parts: { readonly backend: Backend; readonly proxy: FaultProxy; readonly store: StoreFixture }) => Promise<void>,
  ): Promise<void> {
    const server = await startFaux();
    const proxy = new FaultProxy(`http://127.0.0.1:${server.port}`);
    await proxy.start();
    const store = await createS3Store(server, proxy, true);
    const backend = await store.open();
    await store.put(KEY, aLock());
    proxy.requests.length = 0;
    await test({ backend, proxy, store });
    await backend.close();
    await store.close();
    await proxy.stop();
    await server.stop();
  }
  const versionOf = async (backend: Backend): Promise<string> => {
    const read = await backend.readLock(KEY, new AbortController().signal);
    return read.kind === "found" ? read.version : "";
  };
  const answer = (status: number, code: string): Fault => ({
    kind: "answer",
    status,
    headers: { "content-type": "application/xml" },
    body: `<?xml version="1.0"?><Error><Code>${code}</Code></Error>`,
  });

  it("the condition is sent, and never a version: in a versioned bucket the current one is hidden, none is removed", async () => {
    await withStore(async ({ backend, proxy }) => {
      const version = await versionOf(backend);
      expect(await backend.deleteLock(KEY, version)).toEqual({ kind: "deleted", conditionEnforced: true });
      const sent = proxy.requests.find(({ method }) => method === "DELETE");
      expect(sent?.headers["if-match"]).toBe(`"${version}"`);
      expect(sent?.path).not.toContain("versionId");
    });
  });

  it("an endpoint of the environment or of a shared profile is no AWS: compared right before", async () => {
    await withStore(async ({ store, proxy }) => {
      const folder = mkdtempSync(join(tmpdir(), "aws-config-"));
      const endpoint = `http://127.0.0.1:${proxy.port}`;
      writeFileSync(join(folder, "config"), `[profile lab]\nregion = us-east-1\nendpoint_url = ${endpoint}\n`);
      const keys = { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "a-secret-key" };
      await versionOf(await store.open());
      const bucket = proxy.requests[0]?.path.split("/")[1] ?? "";
      for (const env of [
        { ...keys, AWS_REGION: "us-east-1", AWS_ENDPOINT_URL_S3: endpoint },
        { ...keys, AWS_PROFILE: "lab" },
      ]) {
        const [what] = Object.keys(env).slice(-1);
        await store.put(KEY, aLock("app-workspace-0"));
        // The SDK itself reads these two of the process.
        vi.stubEnv("AWS_CONFIG_FILE", join(folder, "config"));
        if ("AWS_PROFILE" in env) vi.stubEnv("AWS_PROFILE", env.AWS_PROFILE);
        const backend = await openS3({
          url: `s3://${bucket}/team/state?s3ForcePathStyle=true`,
          env,
          requestTimeout: 2_000,
          now: () => Date.now(),
        });
        expect(await backend.deleteLock(KEY, "another-version"), what).toEqual({ kind: "changed" });
        expect(await backend.deleteLock(KEY, await versionOf(backend)), what).toEqual({ kind: "deleted", conditionEnforced: false });
        await backend.close();
      }
      vi.unstubAllEnvs();
      rmSync(folder, { recursive: true });
    });
  });

  it("409, another request was at it: once more", async () => {
    await withStore(async ({ backend, proxy }) => {
      const version = await versionOf(backend);
      let refused = false;
      proxy.fault = ({ method }) => {
        if (method !== "DELETE" || refused) return undefined;
        refused = true;
        return answer(409, "ConditionalRequestConflict");
      };
      expect(await backend.deleteLock(KEY, version)).toMatchObject({ kind: "deleted" });
    });
  });

  it("501, it knows no condition: compared right before, sent without, and the record is told", async () => {
    await withStore(async ({ backend, proxy, store }) => {
      const version = await versionOf(backend);
      proxy.fault = ({ method, headers }) => (method === "DELETE" && headers["if-match"] !== undefined ? answer(501, "NotImplemented") : undefined);
      expect(await backend.deleteLock(KEY, version)).toEqual({ kind: "deleted", conditionEnforced: false });
      await store.put(KEY, aLock("other-workspace-0"));
      expect(await backend.deleteLock(KEY, version)).toEqual({ kind: "changed" });
      expect(await store.get(KEY)).toBeDefined();
    });
  });
});
