// Stacks name backends, and whoever may create a Stack names what he likes: what the janitor opens of it, with a real API server and a real server of S3.
import { createServer, type AddressInfo, type Server } from "node:net";

import { CreateBucketCommand, ListObjectsV2Command, S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { checkReport, type CheckReport } from "../../src/core/check-report.ts";
import { sweepReport, type SweepReport } from "../../src/core/report.ts";
import type { S3Server } from "../backends/s3-fixture.ts";
import { runCommand } from "../cli/command.ts";
import { ControlPlane } from "./peers/control-plane.ts";
import { Pulumi } from "./peers/pulumi.ts";
import { startVersitygw } from "./peers/versitygw.ts";
import { Workloads } from "./peers/workloads.ts";

/** Where a hostile Stack wants the janitor to connect to: a server that counts who does. */
class Trap {
  connections = 0;
  readonly #server: Server = createServer((socket) => {
    this.connections += 1;
    socket.destroy();
  });

  async start(): Promise<void> {
    await new Promise<void>((done) => {
      this.#server.listen(0, "127.0.0.1", done);
    });
  }

  get place(): string {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address.
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    await new Promise((done) => {
      this.#server.close(done);
    });
  }
}

/** Kinds of hostile URLs, by what they lead to; `springs`: given as --backend they do lead there, so the trap is one. */
const HOSTILE: readonly { readonly name: string; readonly url: (place: string) => string; readonly springs?: boolean }[] = [
  { name: "s3-endpoint", url: (place) => `s3://acme-iac?endpoint=http://${place}&s3ForcePathStyle=true&region=us-east-1`, springs: true },
  { name: "s3-endpoint-tls", url: (place) => `s3://acme-x?region=us-east-1&endpoint=https://${place}` },
  { name: "s3-endpoint-plain", url: (place) => `s3://acme-x?region=us-east-1&endpoint=${place}&disableSSL=true&s3ForcePathStyle=true`, springs: true },
  { name: "s3-endpoint-encoded", url: (place) => `s3://acme-x?region=us-east-1&%65ndpoint=http://${place}&s3ForcePathStyle=true`, springs: true },
  { name: "s3-user", url: (place) => `s3://acme-x@${place}` },
  { name: "s3-host", url: (place) => `s3://${place}/acme-x` },
  { name: "s3-fragment", url: (place) => `s3://acme-x#@${place}` },
  { name: "azblob-domain", url: (place) => `azblob://acme-x?storage_account=acme&domain=${place}&protocol=http`, springs: true },
  { name: "azblob-other-account", url: (place) => `azblob://acme-x?storage_account=evil&domain=${place}&protocol=http&localemu=true`, springs: true },
  { name: "azblob-cdn", url: (place) => `azblob://acme-x?cdn=true&domain=${place}&protocol=http`, springs: true },
  { name: "gs-universe", url: (place) => `gs://acme-x?universe_domain=${place}` },
  { name: "postgres", url: (place) => `postgres://acme:password@${place}/acme?sslmode=disable`, springs: true },
  { name: "postgres-parameters", url: (place) => `postgres:///acme?host=${place.split(":")[0] ?? ""}&port=${place.split(":")[1] ?? ""}`, springs: true },
  { name: "postgresql", url: (place) => `postgresql://${place}/acme` },
  { name: "http", url: (place) => `http://${place}` },
  { name: "https", url: (place) => `https://${place}/acme` },
  { name: "unknown", url: (place) => `rediss://${place}/acme` },
];

const URL_OF_STACK = "s3://acme-iac/team/a?region=us-east-1&awssdk=v2";
const ALLOW = ["s3://acme-*/**", "gs://acme-*/**", "azblob://acme-*/**"].flatMap((glob) => ["--discover-allow", glob]);

const plane = new ControlPlane();
const workloads = new Workloads(plane);
const traps = new Map<string, Trap>();
let store: S3Server;
let client: S3Client;
let pulumi: Pulumi;
let env: Readonly<Record<string, string>> = {};
const stops: (() => void | Promise<void>)[] = [];

async function listLocks(): Promise<readonly string[]> {
  const { Contents: objects = [] } = await client.send(new ListObjectsV2Command({ Bucket: "acme-iac", Prefix: "team/a/.pulumi/locks/" }));
  return objects.flatMap(({ Key: key }) => (key?.endsWith(".json") === true ? [key.replace("team/a/", "")] : []));
}

beforeAll(async () => {
  stops.push(() => plane.stop());
  await plane.start();
  await workloads.prepare();
  await workloads.addBarePod("something-else");

  store = await startVersitygw();
  const { port, accessKeyId, secretAccessKey } = store;
  client = new S3Client({ endpoint: `http://127.0.0.1:${port}`, region: "us-east-1", forcePathStyle: true, credentials: { accessKeyId, secretAccessKey } });
  stops.push(
    () => store.stop(),
    () => client.destroy(),
  );
  await client.send(new CreateBucketCommand({ Bucket: "acme-iac" }));
  env = {
    AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}`,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AZURE_STORAGE_ACCOUNT: "acme",
    AZURE_STORAGE_KEY: Buffer.from("a-secret-of-azure").toString("base64"),
    GOOGLE_OAUTH_ACCESS_TOKEN: "a-secret-of-google",
    PGPASSWORD: "a-secret-of-postgres",
  };

  // The real CLI dies with its lock in place; what its next update says is what the operator writes into the Stack.
  pulumi = new Pulumi(URL_OF_STACK, env);
  stops.push(() => pulumi.remove());
  await pulumi.init("dev");
  await pulumi.killDuringUpdate("dev", "shop-workspace-0", async () => (await listLocks()).length > 0);
  const { output } = await pulumi.up("dev");
  await workloads.addStack("shop", "organization/demo/dev", { backend: URL_OF_STACK, message: `up failed: exit status 255\nstderr: ${output}` });

  for (const { name, url } of HOSTILE) {
    const trap = new Trap();
    await trap.start();
    stops.push(() => trap.stop());
    traps.set(name, trap);
    await workloads.addStack(name, "organization/demo/dev", { backend: url(trap.place) });
  }
  await workloads.addStack("hostile-file", "organization/demo/dev", { backend: "file:///" });
});
afterAll(async () => {
  for (const stop of stops.toReversed()) await stop();
});

async function run(...words: readonly string[]): Promise<{ readonly document: unknown; readonly text: string }> {
  const { stdout, stderr } = await runCommand([...words, "--kubeconfig", plane.writeKubeconfig("admin"), "--output", "json"], { env });
  if (stdout === "") throw new Error(stderr);
  return { document: JSON.parse(stdout), text: stdout + stderr };
}

async function sweep(...words: readonly string[]): Promise<SweepReport> {
  const { document, text } = await run("sweep", "--min-age", "0s", "--confirm-delay", "0s", "--discover", ...ALLOW, ...words);
  for (const secret of [store.secretAccessKey, "a-secret-of", "acme:password"]) expect(text, "P7").not.toContain(secret);
  return sweepReport.parse(document);
}

function expectNoConnection(): void {
  expect(Object.fromEntries(Array.from(traps, ([name, { connections }]) => [name, connections]))).toEqual(
    Object.fromEntries(HOSTILE.map(({ name }) => [name, 0])),
  );
}

describe("with hostile Stacks in the cluster", () => {
  it("a dry run opens the admitted backend alone, finds its lock, and tells which Stack it blocks", async () => {
    const [key = ""] = await listLocks();
    const report = await sweep();
    const identity = { scheme: "s3", endpoint: env["AWS_ENDPOINT_URL_S3"]?.replace("http://", ""), bucket: "acme-iac", prefix: "team/a/" };
    expect(report.backends).toEqual([{ identity, name: `s3://acme-iac/team/a (endpoint ${identity.endpoint})`, discovered: true, locks: 1 }]);
    expect(report.locks).toMatchObject([{ key, verdict: "stale", reason: "pod-not-found", action: "would-delete" }]);
    expect(report.stacks).toEqual([
      {
        cluster: "admin",
        namespace: "iac",
        name: "shop",
        stack: "organization/demo/dev",
        blockedBy: [{ key, backend: identity, verdict: "stale", reason: "pod-not-found" }],
      },
    ]);
    const told = report.warnings.join("\n");
    for (const parameter of ["endpoint", "domain", "universe_domain", "cdn"]) expect(told).toContain(`its parameter ${parameter} would say where or as whom`);
    for (const what of ["a folder is never taken", "a database is never taken", "a Pulumi service", "not written plainly", "its scheme is not known"])
      expect(told).toContain(what);
    expect(report.exitCode).toBe(0);
    expectNoConnection();
  });

  it("check tells the same, and connects to none of them", async () => {
    const { document } = await run("check", "--discover", ...ALLOW);
    const report: CheckReport = checkReport.parse(document);
    const found = report.items.filter(({ area }) => area === "discovery").map(({ name, message }) => `${name} ${message}`);
    expect(found[0]).toBe('added s3://acme-iac/team/a of Stack "iac/shop"');
    expect(found.slice(1).every((line) => line.startsWith("not added"))).toBe(true);
    expect(report.items).toContainEqual(
      expect.objectContaining({ subject: expect.stringContaining("s3://acme-iac/team/a (endpoint 127.0.0.1:"), name: "list locks", status: "ok" }),
    );
    expectNoConnection();
  });

  it("the real run removes the lock with its record there, and the Stack is blocked no longer", async () => {
    const report = await sweep("--delete", "--exclusive");
    expect(report.locks).toMatchObject([{ action: "deleted" }]);
    expect(report.overrides).toContainEqual({ option: "--exclusive", value: "" });
    expect([report.stacks, await listLocks()]).toEqual([[], []]);
    const { Contents: records = [] } = await client.send(new ListObjectsV2Command({ Bucket: "acme-iac", Prefix: "team/a/.pulumi-lock-janitor/audit/" }));
    expect(records).toHaveLength(2);
    expect(await pulumi.up("dev")).toMatchObject({ ok: true });
    expectNoConnection();
  });

  it("P5: where the Stacks may not be listed, that is an error of the run", async () => {
    const words = ["sweep", "--discover", ...ALLOW, "--kubeconfig", plane.writeKubeconfig("nobody"), "--output", "json"];
    const { exitCode, stdout } = await runCommand(words, { env });
    expect(exitCode).toBe(1);
    expect(sweepReport.parse(JSON.parse(stdout)).clusters).toMatchObject([{ error: expect.stringContaining('"list" on stacks.pulumi.com') }]);
  });
});

it.each(HOSTILE.filter(({ springs }) => springs === true))("the trap $name is one: as --backend its URL leads there", async ({ name, url }) => {
  const trap = traps.get(name);
  await run("sweep", "--backend", url(trap?.place ?? ""), "--request-timeout", "5s", "--timeout", "10s");
  expect(trap?.connections).toBeGreaterThan(0);
});
