import { randomUUID } from "node:crypto";

import { describe, expect, it } from "vitest";

import { wrapAzureError } from "../../src/backends/azblob-errors.ts";
import { readAzblobSettings } from "../../src/backends/azblob-settings.ts";
import { openAzblob } from "../../src/backends/azblob.ts";
import { AZURITE_KEY, startAzurite } from "./azurite.ts";
import { describeBackendContract, type FaultSwitch } from "./contract.ts";
import { FaultProxy, type SeenRequest } from "./fault-proxy.ts";
import { playHttpFaults } from "./http-faults.ts";

const PREFIX = "team/state/";

/** What a request to Blob storage does, told by its method and query. */
function kindOf({ method, path }: SeenRequest): "list" | "read" | "delete" | "write" | "other" {
  if (method === "GET") return path.includes("comp=list") ? "list" : "read";
  return method === "DELETE" ? "delete" : method === "PUT" ? "write" : "other";
}

function playFaults(proxy: FaultProxy): FaultSwitch {
  return playHttpFaults(proxy, {
    kindOf,
    denial: () => ({ kind: "answer", status: 403, headers: { "x-ms-error-code": "AuthorizationPermissionMismatch" } }),
    lie: (page) => page.replace(/<NextMarker>[^<]*<\/NextMarker>|<NextMarker ?\/>/, "<NextMarker>again</NextMarker>"),
  });
}

describeBackendContract({
  name: "azblob",
  severalPages: 25,
  folderMarkers: [".pulumi/locks/", ".pulumi/locks/organization/"],
  start: async () => {
    const azurite = await startAzurite();
    const proxy = new FaultProxy(`http://127.0.0.1:${azurite.port}`);
    await proxy.start();
    return {
      stop: async () => {
        await proxy.stop();
        await azurite.stop();
      },
      create: async () => {
        proxy.fault = () => undefined;
        const name = `c${randomUUID()}`;
        const container = await azurite.createContainer(name);
        return {
          open: ({ wholePages } = { wholePages: false }) =>
            openAzblob(
              { url: `azblob://${name}/${PREFIX}`, env: azurite.env(proxy.port), requestTimeout: 2_000, now: () => Date.now() },
              wholePages ? {} : { pageSize: 10 },
            ),
          put: async (key, body) => void (await container.getBlockBlobClient(PREFIX + key).upload(body, body.length)),
          putOutside: async (key, body) => void (await container.getBlockBlobClient(`team/statue/${key}`).upload(body, body.length)),
          get: async (key) =>
            (await container.getBlobClient(PREFIX + key).exists()) ? await container.getBlobClient(PREFIX + key).downloadToBuffer() : undefined,
          remove: async (key) => void (await container.getBlobClient(PREFIX + key).delete()),
          destroy: async () => void (await container.delete()),
          faults: playFaults(proxy),
          secrets: [AZURITE_KEY],
          close: () => Promise.resolve(),
        };
      },
    };
  },
});

describe("azblob:// URLs with their environment, as gocloud reads them", () => {
  const key = { AZURE_STORAGE_ACCOUNT: "acme", AZURE_STORAGE_KEY: "c2VjcmV0" };
  const connection = "DefaultEndpointsProtocol=http;AccountName=fromstring;AccountKey=c2VjcmV0;EndpointSuffix=core.windows.net";
  it.each([
    [
      "azblob://state",
      key,
      { account: "acme", container: "state", prefix: "", serviceUrl: "https://acme.blob.core.windows.net", credential: { kind: "shared-key" } },
    ],
    ["azblob://state/team/a", key, { prefix: "team/a/" }],
    ["azblob://state/team/a/?prefix=x", key, { prefix: "xteam/a/" }],
    ["azblob://state?storage_account=other", key, { account: "other", serviceUrl: "https://other.blob.core.windows.net" }],
    ["azblob://state?domain=blob.core.chinacloudapi.cn", key, { serviceUrl: "https://acme.blob.core.chinacloudapi.cn" }],
    ["azblob://state?domain=localhost:10000&protocol=http", key, { serviceUrl: "http://localhost:10000/acme" }],
    ["azblob://state?domain=store.lab:10000&localemu=true", key, { serviceUrl: "https://store.lab:10000/acme" }],
    ["azblob://state?domain=cdn.example&cdn=1", key, { serviceUrl: "https://cdn.example" }],
    [
      "azblob://state",
      { ...key, AZURE_STORAGE_DOMAIN: "d.example", AZURE_STORAGE_PROTOCOL: "http", AZURE_STORAGE_IS_CDN: "true" },
      { serviceUrl: "http://d.example" },
    ],
    ["azblob://state", { ...key, AZURE_STORAGE_DOMAIN: "d.example", AZURE_STORAGE_IS_LOCAL_EMULATOR: "1" }, { serviceUrl: "https://d.example/acme" }],
    ["azblob://state", { ...key, AZURE_STORAGE_SAS_TOKEN: "sv=1" }, { credential: { kind: "shared-key" } }],
    [
      "azblob://state",
      { AZURE_STORAGE_ACCOUNT: "acme", AZURE_STORAGE_SAS_TOKEN: "?sv=1&sig=x", AZURE_STORAGE_CONNECTION_STRING: connection },
      { credential: { kind: "sas", token: "sv=1&sig=x" } },
    ],
    [
      "azblob://state",
      { AZURE_STORAGE_CONNECTION_STRING: connection },
      { account: "fromstring", serviceUrl: "http://fromstring.blob.core.windows.net", credential: { kind: "connection-string" } },
    ],
    ["azblob://state", { AZURE_STORAGEBLOB_CONNECTIONSTRING: connection }, { account: "fromstring" }],
    ["azblob://state", { AZURE_STORAGE_ACCOUNT: "acme" }, { credential: { kind: "identity" } }],
    ["azblob://state", { AZURE_STORAGE_ACCOUNT: "acme", AZURE_STORAGE_KEY: "" }, { credential: { kind: "identity" } }],
  ])("%s with %o", (url, env, expected) => {
    expect(readAzblobSettings(url, env)).toMatchObject(expected);
  });

  it.each([
    ["azblob://state", {}, "the storage account is not known"],
    ["azblob://", key, "needs a container"],
    ["azblob://acme.blob.core.windows.net/state", key, "is the host of a service"],
    ["azblob://state?nope=1", key, "no parameter"],
    ["azblob://state?cdn=perhaps", key, "neither true nor false"],
    ["azblob://state?protocol=ftp", key, "neither https nor http"],
    ["azblob://state?domain=a&domain=b", key, "given twice"],
    ["azblob://state?domain=evil/path", key, "is no host"],
    ["azblob://state?protocol=http", { AZURE_STORAGE_ACCOUNT: "acme" }, "plain http"],
    ["azblob://state?storage_account=UPPER", key, "is no name of a storage account"],
  ])("%s with %o is refused", (url, env, message) => {
    expect(() => readAzblobSettings(url, env)).toThrow(expect.objectContaining({ code: "backend-url-invalid", message: expect.stringContaining(message) }));
  });
});

describe("what Azure refuses (C35)", () => {
  const refusal = (statusCode: number, code: string): Error =>
    Object.assign(new Error("text of the service"), { name: "RestError", statusCode, code, details: { errorCode: code } });
  it.each([
    ["list the locks", 403, "AuthorizationPermissionMismatch", "backend-denied", /"Storage Blob Data Contributor"/],
    ["remove a lock", 403, "AuthorizationPermissionMismatch", "backend-denied", /permission "d"/],
    ["list the locks", 403, "AuthenticationFailed", "backend-denied", /expired/],
    ["list the locks", 403, "KeyBasedAuthenticationNotPermitted", "backend-denied", /identity/],
    ["list the locks", 404, "ContainerNotFound", "backend-missing", /container/],
    ["remove a lock", 412, "LeaseIdMissing", "lock-protected", /never broken/],
    ["remove a lock", 409, "BlobImmutableDueToPolicy", "lock-protected", /retention policy/],
    ["remove a lock", 409, "SnapshotsPresent", "lock-protected", /snapshots/],
    ["list the locks", 503, "ServerBusy", "backend-failed", /503/],
  ] as const)("%s: %i %s", (action, status, code, expected, text) => {
    const error = wrapAzureError(refusal(status, code), "azblob://state (account acme)", action);
    expect(error.code).toBe(expected);
    expect(error.message).toContain(`azblob://state (account acme): could not ${action}`);
    expect(`${error.message} ${error.hint ?? ""}`).toMatch(text);
    expect(error.message).not.toContain("text of the service");
  });

  it("leases and snapshots protect a lock in a real store too, without a retry", async () => {
    const azurite = await startAzurite();
    const proxy = new FaultProxy(`http://127.0.0.1:${azurite.port}`);
    await proxy.start();
    const container = await azurite.createContainer("protected");
    const backend = await openAzblob({ url: "azblob://protected", env: azurite.env(proxy.port), requestTimeout: 2_000, now: () => Date.now() });
    const never = new AbortController().signal;
    for (const [key, protect] of [
      [".pulumi/locks/a/leased.json", async () => void (await container.getBlobClient(".pulumi/locks/a/leased.json").getBlobLeaseClient().acquireLease(60))],
      [".pulumi/locks/a/copied.json", async () => void (await container.getBlobClient(".pulumi/locks/a/copied.json").createSnapshot())],
    ] as const) {
      await container.getBlockBlobClient(key).upload("{}", 2);
      await protect();
      const read = await backend.readLock(key, never);
      await expect(backend.deleteLock(key, read.kind === "found" ? read.version : "")).rejects.toMatchObject({ code: "lock-protected" });
      expect(await container.getBlobClient(key).exists()).toBe(true);
    }
    expect(proxy.lines.filter((line) => line.startsWith("DELETE"))).toHaveLength(2);
    await proxy.stop();
    await azurite.stop();
  });

  it("a hierarchical namespace's folders are no locks: told by their metadata", async () => {
    const azurite = await startAzurite();
    const container = await azurite.createContainer("lake");
    await container.getBlockBlobClient(".pulumi/locks/organization").upload("", 0, { metadata: { hdi_isfolder: "true" } });
    await container.getBlockBlobClient(".pulumi/locks/organization/shop/prod/1.json").upload("{}", 2);
    const backend = await openAzblob({ url: "azblob://lake", env: azurite.env(), requestTimeout: 2_000, now: () => Date.now() });
    const keys: string[] = [];
    for await (const page of backend.listLocks(new AbortController().signal)) keys.push(...page.map(({ key }) => key));
    expect(keys).toEqual([".pulumi/locks/organization/shop/prod/1.json"]);
    await azurite.stop();
  });
});
