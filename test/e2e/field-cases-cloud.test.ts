// What people really met at Azure and Google, each situation by its id, through the whole command: real servers, or a proxy before them that
// answers as the service of the case did.
import { ContainerSASPermissions, generateBlobSASQueryParameters, StorageSharedKeyCredential } from "@azure/storage-blob";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { AZURITE_KEY, startAzurite, type Azurite } from "../backends/azurite.ts";
import { FaultProxy, type Fault, type SeenRequest } from "../backends/fault-proxy.ts";
import { GcsStub } from "../backends/gcs-stub.ts";
import { CaseWorld, keyOf, REMOVE, type CaseOutcome } from "./field-case.ts";
import { inspectStore, openStore } from "./fresh-locks.ts";
import type { Access } from "./peers/stores.ts";

const HOSTS = ["iac-runner-a", "iac-runner-b"] as const;
const [FIRST, SECOND] = HOSTS.map((hostname) => keyOf(hostname));

let world: CaseWorld;
beforeEach(async () => {
  world = new CaseWorld();
  await world.start();
  world.addNodes({ name: "node-1" });
});
afterEach(() => world.stop());

/** Puts the locks of two runners that are gone, straight into the store. */
async function putLocks(access: Access): Promise<void> {
  const backend = await openStore(access);
  for (const hostname of HOSTS) {
    const body = { pid: 88, username: "deploy", hostname, timestamp: "2026-03-10T09:14:27.118204511Z" };
    await backend.createLock(keyOf(hostname), Buffer.from(world.tell(JSON.stringify(body))));
  }
  await backend.close();
}

async function leftIn(access: Access): Promise<readonly string[]> {
  return Array.from((await inspectStore(access)).left.keys()).toSorted();
}

/** The store's time of every lock is now. */
async function sweep(access: Access, ...words: readonly string[]): Promise<CaseOutcome> {
  return await world.sweepStore(access, "--owner", "iac-runner-*", "--min-age", "0s", ...words);
}

const isDeleteOfFirst = ({ method, path }: SeenRequest): boolean => method === "DELETE" && path.includes(HOSTS[0]);
const countDeletes = (proxy: FaultProxy): number => proxy.requests.filter(isDeleteOfFirst).length;

describe("Azure", () => {
  let azurite: Azurite;
  let proxy: FaultProxy;
  let containers = 0;
  let direct: Access;
  let access: Access;
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
    containers += 1;
    await azurite.createContainer(`state-${containers}`);
    proxy.fault = () => undefined;
    proxy.requests.length = 0;
    direct = { url: `azblob://state-${containers}`, env: azurite.env() };
    access = { url: direct.url, env: azurite.env(proxy.port) };
    await putLocks(direct);
  });

  const refusal = (status: number, code: string): Fault => ({ kind: "answer", status, headers: { "x-ms-error-code": code } });

  it("C35 a list that is denied is an error that names the role, never 'no locks'", async () => {
    proxy.fault = ({ path }) => (path.includes("comp=list") ? refusal(403, "AuthorizationPermissionMismatch") : undefined);
    const { exitCode, report, output } = await sweep(access, ...REMOVE);
    expect({ exitCode, code: report.backends[0]?.error?.code, left: await leftIn(direct) }).toEqual({
      exitCode: 1,
      code: "backend-denied",
      left: [FIRST, SECOND],
    });
    expect(output).toMatch(/Storage Blob Data/);
  });

  it("C35 a SAS token of rl: the list works, each removal is an error that names the permission d", async () => {
    const { AZURE_STORAGE_KEY, ...env } = direct.env;
    const token = generateBlobSASQueryParameters(
      {
        containerName: `state-${containers}`,
        permissions: ContainerSASPermissions.parse("rlc"),
        expiresOn: new Date(Date.now() + 600_000),
      },
      new StorageSharedKeyCredential("devstoreaccount1", AZURE_STORAGE_KEY ?? ""),
    ).toString();
    const { verdicts, exitCode, report, output } = await sweep({ url: direct.url, env: { ...env, AZURE_STORAGE_SAS_TOKEN: token } }, ...REMOVE);
    expect({ verdicts, exitCode }).toEqual({ verdicts: ["stale: pod-not-found, failed", "stale: pod-not-found, failed"], exitCode: 1 });
    expect(report.locks.map(({ note }) => note)).toEqual([expect.stringContaining('permission "d"'), expect.stringContaining('permission "d"')]);
    expect(await leftIn(direct)).toEqual([FIRST, SECOND]);
    expect(output).not.toContain(new URLSearchParams(token).get("sig"));
    expect(output).not.toContain(AZURITE_KEY);
  });

  it.each([
    ["C35 a lease, which is never broken", 412, "LeaseIdMissing", /lease.*never broken/],
    ["C35 a retention policy", 409, "BlobImmutableDueToPolicy", /retention policy/],
    ["C35 snapshots", 409, "SnapshotsPresent", /snapshots/],
  ])("%s: %i %s is an error of that lock, asked once; the other goes", async (_title, status, code, message) => {
    proxy.fault = (seen) => (isDeleteOfFirst(seen) ? refusal(status, code) : undefined);
    const { verdicts, exitCode, report } = await sweep(access, ...REMOVE);
    expect({ verdicts, exitCode }).toEqual({ verdicts: ["stale: pod-not-found, failed", "stale: pod-not-found, deleted"], exitCode: 1 });
    expect(report.locks[0]?.note).toMatch(message);
    expect(countDeletes(proxy)).toBe(1);
    expect(proxy.requests.filter(({ headers }) => headers["x-ms-lease-action"] !== undefined)).toEqual([]);
    expect(await leftIn(direct)).toEqual([FIRST]);
  });
});

describe("Google", () => {
  let stub: GcsStub;
  let proxy: FaultProxy;
  let direct: Access;
  let access: Access;
  beforeAll(async () => {
    stub = new GcsStub();
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
    const reach = (port: number): Access => ({
      url: "gs://acme-iac-state/ops",
      env: { STORAGE_EMULATOR_HOST: `127.0.0.1:${port}`, GOOGLE_OAUTH_ACCESS_TOKEN: "a-token" },
    });
    direct = reach(stub.port);
    access = reach(proxy.port);
  });

  const refusal = (status: number, message: string, reason: string): Fault => ({
    kind: "answer",
    status,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ error: { code: status, message, errors: [{ message, reason }] } }),
  });

  it("C19 the unlock failed at the store, and its pod is fine: held, and told to be held for long", async () => {
    const hostname = "deploy-api-6c5f9d7b84-2lkqz";
    const key = ".pulumi/locks/organization/ops/team-otter/5b1d0c2e-0f6d-4d8e-8a77-3f1a2b9c4d5e.json";
    const backend = await openStore(direct);
    await backend.createLock(key, Buffer.from(world.tell(JSON.stringify({ pid: 9_912, username: "svc", hostname, timestamp: "2026-03-07T16:27:08.310522Z" }))));
    await backend.close();
    world.addPods({ name: hostname });
    const { verdicts, exitCode, report } = await sweep(access, "--owner", "deploy-api-*", ...REMOVE);
    expect({ verdicts, exitCode, left: await leftIn(direct) }).toEqual({ verdicts: ["held: container-running, keep"], exitCode: 0, left: [key] });
    expect(report.warnings).toEqual([expect.stringMatching(/team-otter by deploy-api-6c5f9d7b84-2lkqz for 2 d 19 h/)]);
  });

  it("C37 a list that is denied is an error, never 'no locks'", async () => {
    await putLocks(direct);
    const message =
      "svc@acme does not have storage.objects.list access to the Google Cloud Storage bucket. Permission denied on resource (or it may not exist).";
    proxy.fault = ({ method, path }) => (method === "GET" && /\/o(\?|$)/.test(path) ? refusal(403, message, "forbidden") : undefined);
    const { exitCode, report, output } = await sweep(access, ...REMOVE);
    expect({ exitCode, code: report.backends[0]?.error?.code, left: await leftIn(direct) }).toEqual({
      exitCode: 1,
      code: "backend-denied",
      left: [FIRST, SECOND],
    });
    expect(output).toContain("storage.objects.list");
  });

  it("C37 a retention policy: an error of that lock with the date, asked once; the other goes", async () => {
    await putLocks(direct);
    const message = "Object 'x' is subject to bucket's retention policy and cannot be deleted or overwritten until 2026-03-20T10:00:00.000Z";
    proxy.fault = (seen) => (isDeleteOfFirst(seen) ? refusal(403, message, "retentionPolicyNotMet") : undefined);
    const { verdicts, exitCode, report } = await sweep(access, ...REMOVE);
    expect({ verdicts, exitCode }).toEqual({ verdicts: ["stale: pod-not-found, failed", "stale: pod-not-found, deleted"], exitCode: 1 });
    expect(report.locks[0]?.note).toContain("2026-03-20T10:00:00");
    expect(countDeletes(proxy)).toBe(1);
    expect(await leftIn(direct)).toEqual([FIRST]);
  });

  it("C37 503 to a delete, twice: sent again with the same generation", async () => {
    await putLocks(direct);
    proxy.fault = (seen) => (isDeleteOfFirst(seen) && countDeletes(proxy) <= 2 ? refusal(503, "Backend Error", "backendError") : undefined);
    const { exitCode, report } = await sweep(access, ...REMOVE);
    expect({ exitCode, removed: report.summary.removed, left: await leftIn(direct) }).toEqual({ exitCode: 0, removed: 2, left: [] });
    const generations = proxy.requests.filter(isDeleteOfFirst).map(({ path }) => new URL(path, "http://x").searchParams.get("ifGenerationMatch"));
    expect(generations).toHaveLength(3);
    expect(generations[0]).toMatch(/^\d+$/);
    expect(new Set(generations).size).toBe(1);
  });

  it("C37 412 to a delete: the lock changed, and stays", async () => {
    await putLocks(direct);
    proxy.fault = (seen) =>
      isDeleteOfFirst(seen) ? refusal(412, "At least one of the pre-conditions you specified did not hold.", "conditionNotMet") : undefined;
    const { verdicts, exitCode } = await sweep(access, ...REMOVE);
    expect({ verdicts, exitCode }).toEqual({ verdicts: ["stale: pod-not-found, changed", "stale: pod-not-found, deleted"], exitCode: 0 });
    expect(await leftIn(direct)).toEqual([FIRST]);
  });

  it("C37 GOOGLE_CREDENTIALS holds the text of a key, and no path", async () => {
    const { exitCode, stdout, stderr } = await world.run({ url: access.url, env: { GOOGLE_CREDENTIALS: "/var/secrets/key.json" } });
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    expect(stderr).toContain("GOOGLE_CREDENTIALS holds no JSON. It is the text of a key, not a file's name");
  });
});
