// Credentials by real exchanges with stub servers: what reaches the store is checked, not what reaches the SDK.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { generate } from "selfsigned";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { openGcs } from "../../src/backends/gcs.ts";
import { runCommand } from "../cli/command.ts";

interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** A server that notes every request and answers as told. */
interface Stub {
  readonly port: number;
  readonly seen: Seen[];
  readonly stop: () => Promise<void>;
}

type Answer = { readonly status?: number; readonly headers?: Readonly<Record<string, string>>; readonly body: string } | "refuse";

const folder = mkdtempSync(join(tmpdir(), "credentials-"));
const never = new AbortController().signal;
const pods = join(folder, "pods.json");
let tls: { readonly key: string; readonly cert: string };
const stubs: Stub[] = [];

beforeAll(async () => {
  writeFileSync(pods, JSON.stringify({ kind: "List", items: [] }));
  const made = await generate([{ name: "commonName", value: "localhost" }], {
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
  });
  tls = { key: made.private, cert: made.cert };
  writeFileSync(join(folder, "ca.pem"), tls.cert);
});
afterAll(async () => {
  for (const stub of stubs) await stub.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function startStub(answer: (seen: Seen, earlier: number) => Answer, secure = false): Promise<Stub> {
  const seen: Seen[] = [];
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      const call = { method: request.method ?? "", path: request.url ?? "", headers: request.headers, body };
      const given = answer(call, seen.length);
      seen.push(call);
      if (given === "refuse") request.socket.destroy();
      else response.writeHead(given.status ?? 200, given.headers).end(given.body);
    });
  };
  const server = secure ? createHttpsServer(tls, handle) : createHttpServer(handle);
  await new Promise<void>((done) => {
    server.listen(0, "127.0.0.1", done);
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address.
  const { port } = server.address() as AddressInfo;
  const stub = {
    port,
    seen,
    stop: async () => {
      server.closeAllConnections();
      await new Promise<void>((done) => {
        server.close(() => done());
      });
    },
  };
  stubs.push(stub);
  return stub;
}

const json = (body: object): Answer => ({ headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
const xml = (body: string): Answer => ({ headers: { "content-type": "application/xml" }, body: `<?xml version="1.0"?>${body}` });
const inAnHour = (): string => new Date(Date.now() + 3_600_000).toISOString();

async function sweep(backend: string, env: Readonly<Record<string, string>>): Promise<{ readonly exitCode: number | undefined; readonly output: string }> {
  const { exitCode, stdout, stderr } = await runCommand(["sweep", "--backend", backend, "--pods-from", pods, "--request-timeout", "5s"], {
    env: { HOME: folder, ...env },
  });
  return { exitCode, output: `${stdout}${stderr}` };
}

describe("S3", () => {
  const startStore = (): Promise<Stub> => startStub(() => xml("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"));
  const urlOf = ({ port }: Stub): string => `s3://state?endpoint=127.0.0.1:${port}&disableSSL=true&s3ForcePathStyle=true&region=eu-west-1`;

  it("static keys sign the request", async () => {
    const store = await startStore();
    expect(await sweep(urlOf(store), { AWS_ACCESS_KEY_ID: "AKIASTATIC", AWS_SECRET_ACCESS_KEY: "s3cr3t" })).toMatchObject({ exitCode: 0 });
    expect(store.seen[0]?.headers["authorization"]).toContain("Credential=AKIASTATIC/");
  });

  it("IRSA: the pod's token is changed for keys at STS, and these sign", async () => {
    const store = await startStore();
    const sts = await startStub(() =>
      xml(
        `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIAIRSA</AccessKeyId><SecretAccessKey>x</SecretAccessKey><SessionToken>session-of-irsa</SessionToken><Expiration>${inAnHour()}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
      ),
    );
    writeFileSync(join(folder, "irsa"), "token-of-the-pod");
    const env = {
      AWS_WEB_IDENTITY_TOKEN_FILE: join(folder, "irsa"),
      AWS_ROLE_ARN: "arn:aws:iam::1:role/janitor",
      AWS_ENDPOINT_URL_STS: `http://127.0.0.1:${sts.port}`,
    };
    const result = await sweep(urlOf(store), env);
    expect(result).toMatchObject({ exitCode: 0 });
    expect(new URLSearchParams(sts.seen[0]?.body).get("WebIdentityToken")).toBe("token-of-the-pod");
    expect(store.seen[0]?.headers).toMatchObject({ authorization: expect.stringContaining("Credential=ASIAIRSA/"), "x-amz-security-token": "session-of-irsa" });
    expect(result.output).not.toContain("token-of-the-pod");
  });

  it("EKS Pod Identity: the agent gives keys for the pod's token", async () => {
    const store = await startStore();
    const agent = await startStub(() => json({ AccessKeyId: "ASIAPOD", SecretAccessKey: "x", Token: "session-of-pod", Expiration: inAnHour() }));
    writeFileSync(join(folder, "pod-identity"), "token-of-pod-identity");
    const env = {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://127.0.0.1:${agent.port}/v1/credentials`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: join(folder, "pod-identity"),
    };
    expect(await sweep(urlOf(store), env)).toMatchObject({ exitCode: 0 });
    expect(agent.seen[0]?.headers["authorization"]).toBe("token-of-pod-identity");
    expect(store.seen[0]?.headers["authorization"]).toContain("Credential=ASIAPOD/");
  });

  it("none at all: nothing is sent, and the message says what to set", async () => {
    const store = await startStore();
    const { exitCode, output } = await sweep(urlOf(store), { AWS_EC2_METADATA_DISABLED: "true" });
    expect({ exitCode, output, sent: store.seen.length }).toMatchObject({
      exitCode: 1,
      output: expect.stringContaining("no credentials could be found"),
      sent: 0,
    });
  });
});

describe("Azure", () => {
  const LIST = '<EnumerationResults ServiceEndpoint="x" ContainerName="state"><Blobs></Blobs><NextMarker /></EnumerationResults>';
  const startStore = (): Promise<Stub> => startStub(() => xml(LIST), true);
  const env = ({ port }: Stub): Readonly<Record<string, string>> => ({
    AZURE_STORAGE_ACCOUNT: "acme",
    AZURE_STORAGE_DOMAIN: `localhost:${port}`,
    NODE_EXTRA_CA_CERTS: join(folder, "ca.pem"),
  });

  it("a SAS token goes with the request, and nowhere else; a private authority is trusted by NODE_EXTRA_CA_CERTS", async () => {
    const store = await startStore();
    const result = await sweep("azblob://state", { ...env(store), AZURE_STORAGE_SAS_TOKEN: "sv=2024-01-01&sp=rl&sig=a-secret-signature" });
    expect(result).toMatchObject({ exitCode: 0 });
    expect(store.seen[0]?.path).toContain("sig=a-secret-signature");
    expect(result.output).not.toContain("a-secret-signature");
  });

  it("a key signs the request", async () => {
    const store = await startStore();
    expect(await sweep("azblob://state", { ...env(store), AZURE_STORAGE_KEY: "c2VjcmV0" })).toMatchObject({ exitCode: 0 });
    expect(store.seen[0]?.headers["authorization"]).toMatch(/^SharedKey acme:/);
  });

  it("workload identity: the pod's token is changed for a bearer token", async () => {
    const store = await startStore();
    const authority: Stub = await startStub((seen) => {
      const base = `https://localhost:${authority.port}/tenant`;
      if (seen.method === "POST") return json({ token_type: "Bearer", expires_in: 3_600, access_token: "bearer-of-azure" });
      return json({
        token_endpoint: `${base}/oauth2/v2.0/token`,
        authorization_endpoint: `${base}/a`,
        issuer: `${base}/v2.0`,
        jwks_uri: `${base}/k`,
        end_session_endpoint: `${base}/e`,
      });
    }, true);
    writeFileSync(join(folder, "federated"), "federated-token-of-the-pod");
    const identity = {
      AZURE_TENANT_ID: "tenant",
      AZURE_CLIENT_ID: "client",
      AZURE_FEDERATED_TOKEN_FILE: join(folder, "federated"),
      AZURE_AUTHORITY_HOST: `https://localhost:${authority.port}/`,
    };
    const result = await sweep("azblob://state", { ...env(store), ...identity });
    expect(result).toMatchObject({ exitCode: 0 });
    const asked = authority.seen.find(({ method }) => method === "POST");
    expect(new URLSearchParams(asked?.body).get("client_assertion")).toBe("federated-token-of-the-pod");
    expect(store.seen[0]?.headers["authorization"]).toBe("Bearer bearer-of-azure");
  });
});

describe("GCS", () => {
  const startStore = (): Promise<Stub> => startStub(() => json({ kind: "storage#objects", items: [] }));
  const list = async (store: Stub, env: Readonly<Record<string, string>>): Promise<void> => {
    const backend = await openGcs({ url: "gs://state", env, requestTimeout: 5_000, now: () => Date.now() }, { apiEndpoint: `http://127.0.0.1:${store.port}` });
    for await (const page of backend.listLocks(never)) expect(page).toEqual([]);
  };

  it("GOOGLE_OAUTH_ACCESS_TOKEN is the bearer token", async () => {
    const store = await startStore();
    await list(store, { GOOGLE_OAUTH_ACCESS_TOKEN: "token-of-the-user" });
    expect(store.seen[0]?.headers["authorization"]).toBe("Bearer token-of-the-user");
  });

  it("GKE's metadata server, which refuses in a pod's first seconds: asked again, never gone past to anonymous", async () => {
    const store = await startStore();
    const metadata = await startStub((seen, earlier) => {
      if (earlier < 4) return "refuse";
      const headers = { "metadata-flavor": "Google", "content-type": "application/json" };
      if (seen.path.includes("/token")) return { headers, body: JSON.stringify({ access_token: "token-of-gke", expires_in: 3_600, token_type: "Bearer" }) };
      return { headers, body: seen.path.includes("universe") ? "googleapis.com" : seen.path.includes("project-id") ? "project" : "{}" };
    });
    const before = { ...process.env };
    // The SDK takes these from the process.
    Object.assign(process.env, { GCE_METADATA_HOST: `127.0.0.1:${metadata.port}`, METADATA_SERVER_DETECTION: "assume-present", HOME: folder });
    try {
      await list(store, {});
    } finally {
      process.env = before;
    }
    expect(store.seen.map(({ headers }) => headers["authorization"])).toEqual(["Bearer token-of-gke"]);
    expect(metadata.seen.length).toBeGreaterThan(4);
  });
});

describe("a proxy of the environment", () => {
  it.each([
    [
      "S3",
      "s3://state?endpoint=store.invalid&disableSSL=true&s3ForcePathStyle=true&region=eu-west-1",
      { AWS_ACCESS_KEY_ID: "AKIA", AWS_SECRET_ACCESS_KEY: "x" },
    ],
    ["Azure", "azblob://state?protocol=http&domain=store.invalid&localemu=true", { AZURE_STORAGE_ACCOUNT: "acme", AZURE_STORAGE_KEY: "c2VjcmV0" }],
  ])("%s goes through it, and past it for what NO_PROXY names", async (_, url, env) => {
    const proxy = await startStub(() => xml("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"));
    await sweep(url, { ...env, HTTP_PROXY: `http://127.0.0.1:${proxy.port}`, http_proxy: `http://127.0.0.1:${proxy.port}` });
    expect(proxy.seen[0]?.path).toMatch(/^http:\/\/store\.invalid\//);
    const before = proxy.seen.length;
    await sweep(url, {
      ...env,
      HTTP_PROXY: `http://127.0.0.1:${proxy.port}`,
      http_proxy: `http://127.0.0.1:${proxy.port}`,
      NO_PROXY: "store.invalid",
      no_proxy: "store.invalid",
    });
    expect(proxy.seen.length).toBe(before);
  });
});
