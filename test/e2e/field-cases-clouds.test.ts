// What people really met in Azure's and Google's stores, each situation by its id, through the whole command: Azurite, which has real leases, snapshots and
// SAS tokens, and a stub of Google's API, each behind a proxy that answers as the service of the case did.
import { randomUUID } from "node:crypto";
import { join } from "node:path";

import { ContainerSASPermissions, generateBlobSASQueryParameters, StorageSharedKeyCredential, type ContainerClient } from "@azure/storage-blob";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { AZURITE_KEY, startAzurite, type Azurite } from "../backends/azurite.ts";
import { FaultProxy, type Fault } from "../backends/fault-proxy.ts";
import { GcsStub } from "../backends/gcs-stub.ts";
import { CaseWorld, keyOf, REMOVE, type LockBody } from "./field-case.ts";
import type { Access } from "./peers/stores.ts";

/** A dead runner's lock that the store refuses to remove, and one that it does not. */
const REFUSED = keyOf("iac-runner-a");
const OTHER = keyOf("iac-runner-b");
const BOTH_DEAD: readonly LockBody[] = ["iac-runner-a", "iac-runner-b"].map((hostname) => ({
  pid: 88,
  username: "deploy",
  hostname,
  timestamp: "2026-03-10T09:14:27.118204511Z",
}));
/** The store takes every lock of a test for a new one. */
const SWEEP = ["--owner", "iac-runner-*", "--min-age", "0s"] as const;

let world: CaseWorld;
beforeEach(async () => {
  world = new CaseWorld();
  await world.start();
  world.addNodes({ name: "node-1" });
});
afterEach(() => world.stop());

describe("Azure", () => {
  let azurite: Azurite;
  let proxy: FaultProxy;
  let container: ContainerClient;
  beforeAll(async () => {
    azurite = await startAzurite();
    proxy = new FaultProxy(`http://127.0.0.1:${azurite.port}`);
    await proxy.start();
  });
  afterAll(async () => {
    await proxy.stop();
    await azurite.stop();
  });
  beforeEach(async () => {
    container = await azurite.createContainer(`c${randomUUID()}`);
    for (const body of BOTH_DEAD) {
      const text = world.tell(JSON.stringify(body));
      await container.getBlockBlobClient(keyOf(body.hostname)).upload(text, text.length);
    }
    proxy.fault = () => undefined;
    proxy.requests.length = 0;
  });

  const access = (): Access => ({ url: `azblob://${container.containerName}`, env: azurite.env(proxy.port) });
  const list = async (): Promise<readonly string[]> => {
    const names: string[] = [];
    for await (const { name } of container.listBlobsFlat({ prefix: ".pulumi/" })) names.push(name);
    return names;
  };
  const refuse = (status: number, code: string): Fault => ({ kind: "answer", status, headers: { "x-ms-error-code": code } });
  const refuseDelete = (status: number, code: string) => (): Promise<void> => {
    proxy.fault = ({ method, path }) => (method === "DELETE" && path.includes("iac-runner-a") ? refuse(status, code) : undefined);
    return Promise.resolve();
  };

  it("C35 403 to the list is an error that names the role and the permission, not 'no locks'", async () => {
    proxy.fault = ({ path }) => (path.includes("comp=list") ? refuse(403, "AuthorizationPermissionMismatch") : undefined);
    const { report, exitCode } = await world.sweepStore(access(), ...SWEEP, ...REMOVE);
    expect({ exitCode, error: report.backends[0]?.error }).toEqual({
      exitCode: 1,
      error: { code: "backend-denied", message: expect.stringMatching(/AuthorizationPermissionMismatch.*permission "l".*Storage Blob Data Contributor/) },
    });
    expect(await list()).toEqual([REFUSED, OTHER]);
  });

  it.each([
    ["C35 the right to delete is missing", refuseDelete(403, "AuthorizationPermissionMismatch"), /permission "d"/],
    [
      "C35 a lease, which is never broken",
      async () => void (await container.getBlobClient(REFUSED).getBlobLeaseClient().acquireLease(60)),
      /LeaseIdMissing.*never broken/,
    ],
    ["C35 a retention policy", refuseDelete(409, "BlobImmutableDueToPolicy"), /BlobImmutableDueToPolicy/],
    ["C35 snapshots", async () => void (await container.getBlobClient(REFUSED).createSnapshot()), /SnapshotsPresent/],
  ])("%s: an error of that lock, sent once; the other goes, exit 1", async (_title, prepare, note) => {
    await prepare();
    const { verdicts, exitCode, report } = await world.sweepStore(access(), ...SWEEP, ...REMOVE);
    expect(verdicts).toEqual(["stale: pod-not-found, failed", "stale: pod-not-found, deleted"]);
    expect({ exitCode, left: await list() }).toEqual({ exitCode: 1, left: [REFUSED] });
    expect(report.locks[0]?.note).toMatch(note);
    expect(proxy.lines.filter((line) => line.startsWith("DELETE"))).toHaveLength(2);
  });

  describe("a SAS token with the permissions r and l", () => {
    const withToken = (): Access => {
      const { AZURE_STORAGE_KEY: _, ...env } = azurite.env(proxy.port);
      const token = generateBlobSASQueryParameters(
        {
          containerName: container.containerName,
          permissions: ContainerSASPermissions.parse("rl"),
          expiresOn: new Date(Date.now() + 3_600_000),
        },
        new StorageSharedKeyCredential(env["AZURE_STORAGE_ACCOUNT"] ?? "", AZURITE_KEY),
      );
      return { ...access(), env: { ...env, AZURE_STORAGE_SAS_TOKEN: token.toString() } };
    };

    it("C35 is enough to look", async () => {
      const { verdicts, exitCode } = await world.sweepStore(withToken(), ...SWEEP, "--confirm-delay", "0s");
      expect({ verdicts, exitCode }).toEqual({ verdicts: Array.from({ length: 2 }, () => "stale: pod-not-found, would-delete"), exitCode: 0 });
    });

    it.each([
      ["C35 removes nothing, since no record can be written: permission c", [], /no record could be written.*AuthorizationPermissionMismatch/],
      ["C35 with the record elsewhere, the delete is refused: permission d", ["--audit-log", "audit.ndjson"], /permission "d"/],
    ])("%s", async (_title, words, note) => {
      const elsewhere = words.map((word) => (word.startsWith("--") ? word : join(world.folder, word)));
      const { verdicts, exitCode, report } = await world.sweepStore(withToken(), ...SWEEP, ...REMOVE, ...elsewhere);
      expect(verdicts).toEqual(Array.from({ length: 2 }, () => "stale: pod-not-found, failed"));
      expect({ exitCode, left: await list() }).toEqual({ exitCode: 1, left: [REFUSED, OTHER] });
      for (const lock of report.locks) expect(lock.note).toMatch(note);
    });
  });
});

describe("Google", () => {
  const stub = new GcsStub();
  let proxy: FaultProxy;
  beforeAll(async () => {
    await stub.start();
    proxy = new FaultProxy(`http://127.0.0.1:${stub.port}`);
    await proxy.start();
  });
  afterAll(async () => {
    await proxy.stop();
    await stub.stop();
  });
  beforeEach(() => {
    stub.buckets.set("acme-iac-state", new Map());
    proxy.fault = () => undefined;
    proxy.requests.length = 0;
  });

  const access = (): Access => ({ url: "gs://acme-iac-state/ops", env: { STORAGE_EMULATOR_HOST: `127.0.0.1:${proxy.port}` } });
  const put = (body: LockBody, key = keyOf(body.hostname)): void => stub.put("acme-iac-state", `ops/${key}`, Buffer.from(world.tell(JSON.stringify(body))));
  const list = (): readonly string[] =>
    Array.from(stub.buckets.get("acme-iac-state")?.keys() ?? [])
      .filter((key) => key.startsWith("ops/.pulumi/"))
      .map((key) => key.slice("ops/".length))
      .toSorted();
  const refuse = (code: number, message: string, reason: string): Fault => ({
    kind: "answer",
    status: code,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ error: { code, message, errors: [{ reason, message }] } }),
  });
  const deletesOf = (name: string): readonly (string | null)[] =>
    proxy.requests
      .filter(({ method, path }) => method === "DELETE" && path.includes(name))
      .map(({ path }) => new URL(path, "http://x").searchParams.get("ifGenerationMatch"));

  it("C19 the unlock failed in the store, and its pod is fine: held at any age, and the age is told", async () => {
    const key = ".pulumi/locks/organization/ops/team-otter/5b1d0c2e-0f6d-4d8e-8a77-3f1a2b9c4d5e.json";
    const body = { pid: 9_912, username: "svc", hostname: "deploy-api-6c5f9d7b84-2lkqz", timestamp: "2026-03-07T16:27:08.310522Z" };
    put(body, key);
    world.addPods({ name: body.hostname });
    const { verdicts, exitCode, report } = await world.sweepStore(access(), "--owner", "deploy-api-*", "--min-age", "0s", ...REMOVE);
    expect({ verdicts, exitCode, left: list() }).toEqual({ verdicts: ["held: container-running, keep"], exitCode: 0, left: [key] });
    expect(report.warnings).toEqual([expect.stringMatching(/held for longer than 2 h.*organization\/ops\/team-otter by deploy-api-\S+ for 2 d 19 h/)]);
  });

  it("C37 403 to the list is an error, not 'no locks'", async () => {
    BOTH_DEAD.forEach((body) => put(body));
    proxy.fault = ({ method, path }) =>
      method === "GET" && /\/o\?/.test(path)
        ? refuse(403, "x@y.iam does not have storage.objects.list access to the Google Cloud Storage bucket (or it may not exist)", "forbidden")
        : undefined;
    const { report, exitCode } = await world.sweepStore(access(), ...SWEEP, ...REMOVE);
    expect({ exitCode, error: report.backends[0]?.error }).toEqual({
      exitCode: 1,
      error: { code: "backend-denied", message: expect.stringMatching(/403.*storage\.objects\.list/) },
    });
    expect(list()).toEqual([REFUSED, OTHER]);
  });

  it("C37 a retention policy: an error of that lock with the date, sent once; the other goes, exit 1", async () => {
    BOTH_DEAD.forEach((body) => put(body));
    const message = "Object 'x' is subject to bucket's retention policy and cannot be deleted, overwritten or archived until 2026-03-20T10:00:00.000Z";
    proxy.fault = ({ method, path }) => (method === "DELETE" && path.includes("iac-runner-a") ? refuse(403, message, "retentionPolicyNotMet") : undefined);
    const { verdicts, exitCode, report } = await world.sweepStore(access(), ...SWEEP, ...REMOVE);
    expect(verdicts).toEqual(["stale: pod-not-found, failed", "stale: pod-not-found, deleted"]);
    expect({ exitCode, left: list(), sent: deletesOf("iac-runner-a").length }).toEqual({ exitCode: 1, left: [REFUSED], sent: 1 });
    expect(report.locks[0]?.note).toContain("until 2026-03-20T10:00:00");
  });

  it("C37 503 to the delete, twice: sent again on the same generation", async () => {
    BOTH_DEAD.forEach((body) => put(body));
    proxy.fault = ({ method, path }) =>
      method === "DELETE" && path.includes("iac-runner-a") && deletesOf("iac-runner-a").length <= 2 ? refuse(503, "backendError", "backendError") : undefined;
    const { verdicts, exitCode } = await world.sweepStore(access(), ...SWEEP, ...REMOVE);
    expect(verdicts).toEqual([expect.stringMatching(/^stale: pod-not-found, deleted/), "stale: pod-not-found, deleted"]);
    const sent = deletesOf("iac-runner-a");
    expect({ exitCode, left: list(), sent: sent.length, generations: new Set(sent).size }).toEqual({ exitCode: 0, left: [], sent: 3, generations: 1 });
  });

  it("C37 412: another version came in between, which stays", async () => {
    BOTH_DEAD.forEach((body) => put(body));
    proxy.fault = ({ method, path }) => {
      if (method === "DELETE" && path.includes("iac-runner-a"))
        put({ pid: 1, username: "deploy", hostname: "iac-runner-here", timestamp: "2026-03-10T12:00:00Z" }, REFUSED);
      return undefined;
    };
    const { verdicts, exitCode } = await world.sweepStore(access(), ...SWEEP, ...REMOVE);
    expect(verdicts).toEqual(["stale: pod-not-found, changed", "stale: pod-not-found, deleted"]);
    expect({ exitCode, left: list() }).toEqual({ exitCode: 0, left: [REFUSED] });
    expect(deletesOf("iac-runner-a")).toEqual([expect.stringMatching(/^\d+$/)]);
  });

  it("C37 GOOGLE_CREDENTIALS with a file's name is a clear error", async () => {
    const { exitCode, stdout, stderr } = await world.run({ url: access().url, env: { GOOGLE_CREDENTIALS: "/var/secrets/key.json" } }, ...SWEEP);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    expect(stderr).toMatch(/GOOGLE_CREDENTIALS holds no JSON.*GOOGLE_APPLICATION_CREDENTIALS/);
  });
});
