// What people really met in their stores and lock files, each situation by its id, through the whole command: real stores, or a proxy before them that
// answers as the service of the case did. Every time is moved so that the case's now, 2026-03-10T12:00:00Z, is the test's.
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";

import { CreateBucketCommand, GetObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { startFauxqs } from "fauxqs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { auditRecord } from "../../src/core/record.ts";
import { FaultProxy, type Fault } from "../backends/fault-proxy.ts";
import { POSTGRES_PASSWORD, startPostgres, type PostgresServer } from "../backends/postgres-server.ts";
import { CaseWorld, keyOf, REMOVE, type LockBody } from "./field-case.ts";
import type { Access } from "./peers/stores.ts";

let world: CaseWorld;
beforeEach(async () => {
  world = new CaseWorld();
  await world.start();
  world.addNodes({ name: "node-1" });
});
afterEach(() => world.stop());

const RUNNERS = ["--owner", "iac-runner-*"] as const;
/** For stores that keep their own time: they take every lock of a test for a new one. */
const AT_ANY_AGE = ["--min-age", "0s"] as const;

/** The body of a dead runner's lock. */
function bodyOf(hostname: string): LockBody {
  return { pid: 88, username: "deploy", hostname, timestamp: "2026-03-10T09:14:27.118204511Z" };
}

const DEAD = bodyOf("iac-runner-5f7c8b9d6c-m2x4q");
const [FIRST, SECOND, THIRD] = ["iac-runner-a", "iac-runner-b", "iac-runner-c"].map((hostname) => keyOf(hostname));

describe("odd owners", () => {
  const laptop: LockBody = { pid: 1, username: "m.okafor", hostname: "Mirrens-MacBook-Pro.local", timestamp: "2026-03-10T02:17:21.406113-08:00" };

  it.each([
    ["C15 a suspended laptop, hours old by its offset, under a key that a person chose", laptop, 6_158],
    ["C15 trap: months old", { ...laptop, timestamp: "2025-11-10T02:17:21.406113-08:00" }, 120 * 86_400 + 6_158],
  ])("%s: foreign", async (_title, body, age) => {
    const key = world.addLock(body, { key: ".pulumi/locks/sandbox-freeze/manual.json" });
    const { verdicts, exitCode, report } = await world.sweep(...RUNNERS, ...REMOVE);
    expect({ verdicts, exitCode, left: world.keys }).toEqual({ verdicts: ["foreign: no-pattern, keep"], exitCode: 0, left: [key] });
    expect(report.locks[0]).toMatchObject({ stack: "sandbox-freeze", id: "manual", owner: { timestamp: world.tell(body.timestamp) } });
    expect(report.locks[0]?.ageSeconds).toBeGreaterThanOrEqual(age);
    expect(report.locks[0]?.ageSeconds).toBeLessThan(age + 120);
  });

  it.each([
    ["C17 an empty user is fine", { ...DEAD, username: "" }, "stale: pod-not-found, deleted", 0],
    ["C17 localhost", { ...DEAD, hostname: "localhost" }, "foreign: no-pattern, keep", 0],
    ["C17 an empty host", { ...DEAD, hostname: "" }, "unreadable: empty-hostname, keep", 3],
  ])("%s", async (_title, body, expected, code) => {
    const key = world.addLock(body);
    const { verdicts, exitCode } = await world.sweep(...RUNNERS, ...REMOVE);
    expect({ verdicts, exitCode, there: world.keys.includes(key) }).toEqual({ verdicts: [expected], exitCode: code, there: !expected.startsWith("stale") });
    // An empty name would ask for a list.
    expect(world.api.lines.filter((line) => /\/pods\/$|metadata\.name(=|%3D)(&|$)/.test(line))).toEqual([]);
  });
});

describe("odd files", () => {
  const FOLDER = ".pulumi/locks/organization/shop/prod";
  const OLD = "2026-03-10T00:00:00Z";
  const whole = JSON.stringify(DEAD);

  it("C20 bodies that do not parse stay, each with its key, and hold nobody up; unknown fields are none", async () => {
    const bodies = {
      "1-empty": ["", "unreadable: empty, keep"],
      "2-cut": ['{"pid":61,"username":"pulumi","hostn', "unreadable: not-json, keep"],
      "3-mark": [`\ufeff{"pid":61,"username":"pulumi","hostname":"x","timestamp":"${OLD}"}`, "unreadable: not-json, keep"],
      "4-more": [
        `{"pid":61,"username":"pulumi","hostname":"iac-runner-5f7c8b9d6c-m2x4q","timestamp":"${OLD}","pipeline":"4711","message":"nightly"}`,
        "stale: pod-not-found, deleted",
      ],
      "5-null": ["null", "unreadable: not-a-lock, keep"],
    } as const;
    const keys = Object.entries(bodies).map(([name, [body]]) => world.addBody(`${FOLDER}/${name}.json`, body, OLD));
    const { verdicts, exitCode, report } = await world.sweep(...RUNNERS, ...REMOVE);
    expect({ verdicts, exitCode }).toEqual({ verdicts: Object.values(bodies).map(([, expected]) => expected), exitCode: 3 });
    expect(world.keys).toEqual(keys.filter((key) => !key.includes("4-more")));
    const unreadable = report.locks.filter(({ verdict }) => verdict === "unreadable");
    expect(unreadable.filter(({ key, message }) => !message.includes(key))).toEqual([]);
    const { stdout } = await world.run({ url: world.backend, env: {} }, ...RUNNERS);
    expect(unreadable.filter(({ key }) => !stdout.includes(key))).toEqual([]);
  });

  it("C25 old and new layout side by side: all are locks, and all of one owner fare alike", async () => {
    for (const stack of ["shop-cache-prod", "organization/shop/prod", "organization"]) {
      world.addBody(`.pulumi/locks/${stack}/9d0c2b77.json`, whole, OLD);
      world.addBody(`.pulumi/locks/${stack}/held.json`, JSON.stringify(bodyOf("iac-runner-here")), OLD);
    }
    world.addPods({ name: "iac-runner-here" });
    const { report, exitCode } = await world.sweep(...RUNNERS, ...REMOVE);
    expect(exitCode).toBe(0);
    expect(report.locks.map(({ stack, id, verdict, action }) => `${stack} ${id}: ${verdict}, ${action}`)).toEqual(
      ["organization", "organization/shop/prod", "shop-cache-prod"].flatMap((stack) => [`${stack} 9d0c2b77: stale, deleted`, `${stack} held: held, keep`]),
    );
    expect(world.keys.every((key) => key.endsWith("/held.json"))).toBe(true);
  });

  it("C27 the local backend's side files: attributes go with their lock, a stranded temporary file is a lock", async () => {
    world.addBody(`${FOLDER}/2b77.json`, whole, OLD);
    world.addBody(`${FOLDER}/2b77.json.attrs`, "{}", OLD);
    const orphan = world.addBody(`${FOLDER}/5ce1.json.attrs`, "{}", OLD);
    world.addBody(`${FOLDER}/83aa.json.189c2f4e6b1d3a00.tmp`, whole, OLD);
    const cut = world.addBody(`${FOLDER}/84ab.json.189c2f4e6b1d3a01.tmp`, whole.slice(0, 40), OLD);
    const { report, verdicts, exitCode } = await world.sweep(...RUNNERS, ...REMOVE);
    expect(report.locks.map(({ key }) => key.slice(FOLDER.length + 1))).toEqual([
      "2b77.json",
      "83aa.json.189c2f4e6b1d3a00.tmp",
      "84ab.json.189c2f4e6b1d3a01.tmp",
    ]);
    expect({ verdicts, exitCode }).toEqual({
      verdicts: ["stale: pod-not-found, deleted", "stale: pod-not-found, deleted", "unreadable: not-json, keep"],
      exitCode: 3,
    });
    expect(world.keys).toEqual([orphan, cut]);
  });
});

describe("Postgres", () => {
  let server: PostgresServer;
  const tail = ".pulumi/locks/organization/shop/prod/2b77.json";
  beforeAll(async () => {
    server = await startPostgres();
    await server.query("postgres", "CREATE DATABASE iac_state_db");
    await server.query(
      "iac_state_db",
      "CREATE TABLE iac_state (key TEXT PRIMARY KEY, data JSON NOT NULL, updated_at TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now())",
    );
  });
  afterAll(() => server.stop());

  const access = (table: string): Access => ({
    url: `postgres://postgres:${POSTGRES_PASSWORD}@127.0.0.1:${server.port}/iac_state_db?sslmode=disable&table=${table}`,
    env: {},
  });

  it("C29 the row below the database's name is decoded, judged and removed; the one that LIKE would take for it is not", async () => {
    const client = await server.client("iac_state_db");
    const data = { data: Buffer.from(world.tell(JSON.stringify(DEAD))).toString("base64") };
    for (const database of ["iac_state_db", "iacXstateXdb"])
      await client.query("INSERT INTO iac_state VALUES ($1, $2, $3)", [`${database}/${tail}`, data, world.tell("2026-03-10T09:14:27Z")]);
    const { report, verdicts, exitCode, output } = await world.sweepStore(access("iac_state"), ...RUNNERS, ...REMOVE);
    const { rows } = await client.query<{ readonly key: string }>("SELECT key FROM iac_state WHERE key LIKE '%/locks/%'");
    await client.end();
    expect({ verdicts, exitCode, rows }).toEqual({
      verdicts: ["stale: pod-not-found, deleted"],
      exitCode: 0,
      rows: [{ key: `iacXstateXdb/${tail}` }],
    });
    expect(report.locks).toMatchObject([{ key: tail, owner: { pid: 88, hostname: DEAD.hostname }, storedAt: world.tell("2026-03-10T09:14:27Z") }]);
    expect(output).not.toContain(POSTGRES_PASSWORD);
  });

  it("C29 a table that is not there is an error, and is not made", async () => {
    const { report, exitCode, output } = await world.sweepStore(access("no_such_table"), ...RUNNERS, ...REMOVE);
    expect({ exitCode, error: report.backends[0]?.error?.code }).toEqual({ exitCode: 1, error: "backend-missing" });
    expect(output).not.toContain(POSTGRES_PASSWORD);
    const client = await server.client("iac_state_db");
    const { rows } = await client.query("SELECT to_regclass('no_such_table')::text AS found");
    await client.end();
    expect(rows).toEqual([{ found: null }]);
  });
});

describe("S3", () => {
  const KEYS = { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "a-secret-key" };
  let server: Awaited<ReturnType<typeof startFauxqs>>;
  let proxy: FaultProxy;
  let client: S3Client;
  let bucket = "";
  beforeAll(async () => {
    // A server that ignores If-Match on DELETE, as MinIO does.
    server = await startFauxqs({ port: 0, logger: false });
    proxy = new FaultProxy(`http://127.0.0.1:${server.port}`);
    await proxy.start();
    client = new S3Client({
      endpoint: `http://127.0.0.1:${server.port}`,
      region: "us-east-1",
      forcePathStyle: true,
      credentials: { accessKeyId: KEYS.AWS_ACCESS_KEY_ID, secretAccessKey: KEYS.AWS_SECRET_ACCESS_KEY },
      requestChecksumCalculation: "WHEN_REQUIRED",
    });
  });
  afterAll(async () => {
    client.destroy();
    await proxy.stop();
    await server.stop();
  });
  beforeEach(async () => {
    bucket = `b-${randomUUID()}`;
    await client.send(new CreateBucketCommand({ Bucket: bucket }));
    proxy.fault = () => undefined;
    proxy.correct = () => Promise.resolve(undefined);
    proxy.requests.length = 0;
  });

  const access = (): Access => ({ url: `s3://${bucket}?endpoint=127.0.0.1:${proxy.port}&disableSSL=true&s3ForcePathStyle=true&region=us-east-1`, env: KEYS });
  const put = async (body: LockBody, key = keyOf(body.hostname)): Promise<void> =>
    void (await client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: world.tell(JSON.stringify(body)) })));
  const list = async (prefix = ".pulumi/"): Promise<readonly string[]> => {
    const { Contents: objects = [] } = await client.send(new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix }));
    return objects.map(({ Key: key = "" }) => key);
  };
  const denied: Fault = {
    kind: "answer",
    status: 403,
    headers: { "content-type": "application/xml" },
    body: '<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>',
  };

  it("C30 a server that may ignore If-Match: read again right before the delete, and the record says so", async () => {
    await put(DEAD);
    const { verdicts, exitCode, report } = await world.sweepStore(access(), ...RUNNERS, ...AT_ANY_AGE, ...REMOVE);
    expect({ verdicts, exitCode, left: await list() }).toEqual({ verdicts: ["stale: pod-not-found, deleted"], exitCode: 0, left: [] });
    const ofLock = proxy.lines.filter((line) => line.includes(keyOf(DEAD.hostname)));
    expect(ofLock.slice(-2)).toEqual([expect.stringMatching(/^(GET|HEAD) /), expect.stringMatching(/^DELETE /)]);
    expect(report.locks[0]?.note).toContain("does not enforce the condition");
    const outcome = (await list(".pulumi-lock-janitor/audit/")).find((key) => key.endsWith(".outcome.json"));
    const { Body: text } = await client.send(new GetObjectCommand({ Bucket: bucket, Key: outcome }));
    expect(auditRecord.parse(JSON.parse((await text?.transformToString()) ?? "")).note).toContain("does not enforce the condition");
  });

  it("C30 another version that comes just before the delete stays", async () => {
    await put(DEAD);
    // The record is written when everything has been judged; nothing but the last reading comes after it.
    proxy.correct = async ({ method }) => {
      if (method === "PUT") await put(bodyOf("iac-runner-here"), keyOf(DEAD.hostname));
      return undefined;
    };
    const { verdicts, exitCode } = await world.sweepStore(access(), ...RUNNERS, ...AT_ANY_AGE, ...REMOVE);
    expect({ verdicts, exitCode, left: await list() }).toEqual({ verdicts: ["stale: pod-not-found, changed"], exitCode: 0, left: [keyOf(DEAD.hostname)] });
  });

  describe("one of three locks is refused", () => {
    beforeEach(async () => {
      for (const hostname of ["iac-runner-a", "iac-runner-b", "iac-runner-c"]) await put(bodyOf(hostname));
    });

    it("C32 a: 403 to a read is not 'gone': undetermined, with the permissions that may be missing", async () => {
      proxy.fault = ({ method, path }) => (method === "GET" && path.includes("iac-runner-a") ? denied : undefined);
      const { verdicts, exitCode, report } = await world.sweepStore(access(), ...RUNNERS, ...AT_ANY_AGE, ...REMOVE);
      expect(verdicts).toEqual(["undetermined: lock-not-read, keep", "stale: pod-not-found, deleted", "stale: pod-not-found, deleted"]);
      expect({ exitCode, left: await list() }).toEqual({ exitCode: 3, left: [FIRST] });
      expect(report.locks[0]?.message).toMatch(/s3:GetObject.*s3:ListBucket.*kms:Decrypt/);
    });

    it("C32 b: 403 to a delete: an error of that lock, the others go, exit 1", async () => {
      proxy.fault = ({ method, path }) => (method === "DELETE" && path.includes("iac-runner-a") ? denied : undefined);
      const { verdicts, exitCode, report } = await world.sweepStore(access(), ...RUNNERS, ...AT_ANY_AGE, ...REMOVE);
      expect(verdicts).toEqual(["stale: pod-not-found, failed", "stale: pod-not-found, deleted", "stale: pod-not-found, deleted"]);
      expect({ exitCode, left: await list() }).toEqual({ exitCode: 1, left: [FIRST] });
      expect(report.locks[0]?.note).toContain("s3:DeleteObject");
    });

    it("C32 a dry run tries no delete, so it does not claim that one would go through", async () => {
      proxy.fault = ({ method }) => (method === "GET" ? undefined : denied);
      const { exitCode, report } = await world.sweepStore(access(), ...RUNNERS, ...AT_ANY_AGE, "--confirm-delay", "0s");
      expect({ exitCode, would: report.summary.wouldRemove, removed: report.summary.removed }).toEqual({ exitCode: 0, would: 3, removed: 0 });
      expect(proxy.requests.filter(({ method }) => method !== "GET")).toEqual([]);
      expect(await list()).toEqual([FIRST, SECOND, THIRD]);
    });
  });

  it("C33 path style, a prefix and a profile: the lock below the prefix is found", async () => {
    await put(DEAD, `attic/${keyOf(DEAD.hostname)}`);
    await put(DEAD);
    writeFileSync(join(world.folder, "credentials"), "[store]\naws_access_key_id = test\naws_secret_access_key = a-secret-key\n");
    const { report, exitCode } = await world.sweepStore(
      {
        url: `s3://${bucket}/attic?region=no1&awssdk=v2&profile=store&s3ForcePathStyle=true&endpoint=http://127.0.0.1:${proxy.port}`,
        env: { AWS_SHARED_CREDENTIALS_FILE: join(world.folder, "credentials") },
      },
      ...RUNNERS,
      ...AT_ANY_AGE,
      ...REMOVE,
    );
    expect({ exitCode, keys: report.locks.map(({ key, action }) => [key, action]) }).toEqual({ exitCode: 0, keys: [[keyOf(DEAD.hostname), "deleted"]] });
    expect(await list("")).toEqual(expect.arrayContaining([keyOf(DEAD.hostname)]));
    expect(proxy.requests[0]?.path).toMatch(new RegExp(`^/${bucket}/?\\?.*prefix=attic%2F`));
  });

  it.each([
    ["C33 an endpoint without a scheme is https", "s3://iac?endpoint=HOST&s3ForcePathStyle=true", "TLS"],
    ["C33 disableSSL makes it http", "s3://iac?endpoint=HOST&disableSSL=true&s3ForcePathStyle=true", "GET /iac"],
    ["C33 trap: but it takes no https from an endpoint that says so", "s3://iac?endpoint=https://HOST&disableSSL=true&s3ForcePathStyle=true", "TLS"],
  ])("%s: %s", async (_title, url, expected) => {
    const seen: string[] = [];
    const listener = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", (bytes) => {
        // The first byte of a TLS handshake.
        seen.push(bytes[0] === 0x16 ? "TLS" : bytes.toString("latin1").slice(0, expected.length));
        socket.destroy();
      });
    });
    await new Promise<void>((done) => {
      listener.listen(0, "127.0.0.1", done);
    });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address.
    const { port } = listener.address() as AddressInfo;
    const access = { url: url.replace("HOST", `127.0.0.1:${port}`), env: { ...KEYS, AWS_REGION: "us-east-1" } };
    const { report, exitCode } = await world.sweepStore(access, "--request-timeout", "2s");
    listener.close();
    expect({ exitCode, identity: report.backends[0]?.identity }).toMatchObject({ exitCode: 1, identity: { endpoint: `127.0.0.1:${port}`, bucket: "iac" } });
    expect(Array.from(new Set(seen))).toEqual([expected]);
  });

  it.each([
    ["C33 an unknown parameter", "s3://iac?endpoint=https://s3.lab.example&insecure=true", "has no parameter"],
    ["C33 a service's host", "s3://s3.eu-west-1.amazonaws.com/acme-iac", "is the host of a service"],
    ["C33 a lock's URL", "s3://acme-iac?region=eu-west-1&awssdk=v2/.pulumi/locks/organization/shop/prod/2b77.json", "URL of a lock"],
  ])("%s: %s is a clear error", async (_title, url, message) => {
    const { exitCode, stdout, stderr } = await world.run({ url, env: KEYS });
    expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 2, stdout: "", stderr: expect.stringContaining(message) });
  });
});
