import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { generate } from "selfsigned";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { wrapPostgresError } from "../../src/backends/postgres-errors.ts";
import { readPostgresSettings } from "../../src/backends/postgres-settings.ts";
import { openPostgres } from "../../src/backends/postgres.ts";
import { JanitorError } from "../../src/errors.ts";
import { aLock, describeBackendContract, type StoreFixture } from "./contract.ts";
import { POSTGRES_PASSWORD, PostgresProxy, startPostgres, type PostgresServer } from "./postgres-server.ts";

// As Pulumi makes it (pkg/backend/diy/postgres/schema.sql).
const SCHEMA = "CREATE TABLE pulumi_state (key TEXT PRIMARY KEY, data JSON NOT NULL, updated_at TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now())";

async function createStore(server: PostgresServer, proxy: PostgresProxy): Promise<StoreFixture> {
  proxy.mode = "pass";
  // With an underscore, which LIKE would take for a wildcard (C29).
  const database = `iac_state_${randomUUID().replaceAll("-", "").slice(0, 12)}`;
  await server.query("postgres", `CREATE DATABASE ${database}`);
  await server.query(database, SCHEMA, "GRANT ALL ON pulumi_state TO janitor");
  const client = await server.client(database);
  const put = async (key: string, body: Uint8Array): Promise<void> => {
    const data = JSON.stringify({ data: Buffer.from(body).toString("base64") });
    await client.query("INSERT INTO pulumi_state (key, data) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET data = $2, updated_at = now()", [key, data]);
  };
  const all = async (statement: string): Promise<void> => void (await client.query(statement));
  return {
    open: ({ wholePages } = { wholePages: false }) =>
      openPostgres(
        {
          url: `postgres://janitor:${POSTGRES_PASSWORD}@127.0.0.1:${proxy.port}/${database}?sslmode=disable`,
          env: {},
          requestTimeout: 1_500,
          now: () => Date.now(),
        },
        wholePages ? {} : { pageSize: 10 },
      ),
    put: (key, body) => put(`${database}/${key}`, body),
    putOutside: (key, body) => put(`${database.replaceAll("_", "X")}/${key}`, body),
    get: async (key) => {
      const { rows } = await client.query<{ readonly body: string }>("SELECT data->>'data' AS body FROM pulumi_state WHERE key = $1", [`${database}/${key}`]);
      return rows[0] === undefined ? undefined : Buffer.from(rows[0].body, "base64");
    },
    remove: async (key) => void (await client.query("DELETE FROM pulumi_state WHERE key = $1", [`${database}/${key}`])),
    destroy: () => all("DROP TABLE pulumi_state"),
    faults: {
      deny: (what) => all(`REVOKE ${what === "delete" ? "DELETE" : what === "write" ? "INSERT" : "SELECT"} ON pulumi_state FROM janitor`),
      hang: () => {
        proxy.mode = "hang";
      },
      cut: () => {
        proxy.mode = "cut";
      },
      loseAnswerOfDelete: (whatFollows) => {
        proxy.mode = "lose-delete";
        proxy.meanwhile = () => (whatFollows === "denied" ? all("REVOKE DELETE ON pulumi_state FROM janitor") : Promise.resolve());
      },
      lieAboutListing: () => {
        throw new Error("a statement's answer is whole, or an error");
      },
      heal: async () => {
        proxy.mode = "pass";
        await all("GRANT ALL ON pulumi_state TO janitor");
      },
    },
    secrets: [POSTGRES_PASSWORD],
    close: () => client.end(),
  };
}

describeBackendContract({
  name: "postgres, the real server",
  severalPages: 25,
  folderMarkers: [],
  listingCannotLie: "a statement's answer is whole, or an error",
  start: async () => {
    const server = await startPostgres();
    await server.query("postgres", `CREATE ROLE janitor LOGIN PASSWORD '${POSTGRES_PASSWORD}'`);
    const proxy = new PostgresProxy(server.port);
    await proxy.start();
    return {
      stop: async () => {
        await proxy.stop();
        await server.stop();
      },
      create: () => createStore(server, proxy),
    };
  },
});

describe("postgres:// URLs with their environment, as Pulumi reads them (C29)", () => {
  it.each<[string, Readonly<Record<string, string>>, object]>([
    [
      "postgres://janitor:secret@pg.internal.example:5432/iac_state_db?sslmode=require&table=iac_state",
      {},
      {
        host: "pg.internal.example",
        port: 5_432,
        user: "janitor",
        password: "secret",
        database: "iac_state_db",
        table: "iac_state",
        prefix: "iac_state_db/",
        tls: { kind: "unchecked" },
      },
    ],
    ["postgresql://pg/db", {}, { host: "pg", port: 5_432, table: "pulumi_state", tls: { kind: "unchecked" } }],
    ["postgres://u:p%40ss%3Aword@pg:6432/db", {}, { user: "u", password: "p@ss:word", port: 6_432 }],
    ["postgres://[::1]:5433/db?sslmode=disable", {}, { host: "::1", port: 5_433, tls: { kind: "off" } }],
    [
      "postgres:///db",
      { PGHOST: "h", PGPORT: "1", PGUSER: "u", PGPASSWORD: "p", PGSSLMODE: "disable" },
      { host: "h", port: 1, user: "u", password: "p", tls: { kind: "off" } },
    ],
    ["postgres://pg/db?sslmode=verify-full", {}, { tls: { kind: "checked", checkHost: true } }],
    ["postgres://pg/db?sslmode=verify-ca", {}, { tls: { kind: "checked", checkHost: false } }],
    ["postgres://pg/db?table=iac.state", {}, { table: "iac.state" }],
  ])("%s with %o", (url, env, expected) => {
    expect(readPostgresSettings(url, env)).toMatchObject(expected);
  });

  it.each([
    ["postgres://pg", "needs a database"],
    ["postgres://pg/db?table=x;drop", "is no table's name"],
    ["postgres://pg/db?sslmode=perhaps", "is none of disable"],
    ["postgres://pg/db?nope=1", "no parameter"],
    ["postgres://pg:port/db", "the host is no address"],
    ["postgres://pg/db?sslrootcert=/nonexistent.pem", "could not be read"],
  ])("%s is refused", (url, message) => {
    expect(() => readPostgresSettings(url, {})).toThrow(expect.objectContaining({ code: "backend-url-invalid", message: expect.stringContaining(message) }));
  });
});

describe("what Postgres refuses", () => {
  it.each([
    ["list the locks", "42501", "backend-denied", /SELECT/],
    ["remove a lock", "42501", "backend-denied", /DELETE/],
    ["list the locks", "28P01", "backend-denied", /PGPASSWORD/],
    ["list the locks", "42P01", "backend-missing", /the janitor never does/],
    ["list the locks", "3D000", "backend-missing", /database/],
    ["list the locks", "57P03", "backend-unreachable", /did not answer/],
    ["list the locks", "SELF_SIGNED_CERT_IN_CHAIN", "backend-unreachable", /sslrootcert/],
  ] as const)("%s: %s", (action, sqlState, code, text) => {
    const error = wrapPostgresError(Object.assign(new Error("text of the server"), { code: sqlState }), "postgres://pg/db", action);
    expect(error.code).toBe(code);
    expect(`${error.message} ${error.hint ?? ""}`).toMatch(text);
    expect(error.message).not.toContain("text of the server");
  });
});

it("a row that Pulumi did not write is no lock, and no crash", async () => {
  const server = await startPostgres();
  await server.query("postgres", "CREATE DATABASE db");
  await server.query(
    "db",
    SCHEMA,
    `INSERT INTO pulumi_state (key, data) VALUES ('db/.pulumi/locks/a/1.json', '{"x":1}'), ('db/.pulumi/locks/a/2.json', '[]'), ('db/.pulumi/locks/a/3.json', '{"data":"${Buffer.from(aLock()).toString("base64")}"}')`,
  );
  const backend = await openPostgres({
    url: `postgres://postgres:${POSTGRES_PASSWORD}@127.0.0.1:${server.port}/db?sslmode=disable`,
    env: {},
    requestTimeout: 2_000,
    now: () => Date.now(),
  });
  const kinds = [];
  for (const id of [1, 2, 3]) {
    const read = await backend.readLock(`.pulumi/locks/a/${id}.json`, new AbortController().signal);
    kinds.push(read.kind === "found" ? read.content.kind : read.kind);
  }
  expect(kinds).toEqual(["unreadable", "unreadable", "readable"]);
  await backend.close();
  await server.stop();
});

describe("TLS as lib/pq reads it", () => {
  let server: PostgresServer;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "postgres-tls-"));
    const made = await generate([{ name: "commonName", value: "localhost" }], {
      extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
    });
    writeFileSync(join(folder, "ca.pem"), made.cert);
    server = await startPostgres({ cert: made.cert, key: made.private });
    await server.query("postgres", "CREATE DATABASE db");
    await server.query("db", SCHEMA);
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it.each([
    ["localhost", "", /^listed$/],
    ["localhost", "sslmode=require", /^listed$/],
    ["localhost", "sslmode=disable", /^listed$/],
    ["localhost", "sslmode=verify-full&sslrootcert=CA", /^listed$/],
    ["127.0.0.1", "sslmode=verify-ca&sslrootcert=CA", /^listed$/],
    ["127.0.0.1", "sslmode=verify-full&sslrootcert=CA", /certificate is not to be trusted/],
    ["localhost", "sslmode=verify-full", /certificate is not to be trusted/],
    ["localhost", "sslmode=verify-ca", /certificate is not to be trusted/],
  ])("%s with %j: %s", async (host, query, outcome) => {
    const url = `postgres://postgres:${POSTGRES_PASSWORD}@${host}:${server.port}/db?${query.replace("CA", join(folder, "ca.pem"))}`;
    const backend = await openPostgres({ url, env: {}, requestTimeout: 3_000, now: () => Date.now() });
    const list = async (): Promise<string> => {
      for await (const page of backend.listLocks(new AbortController().signal)) if (page.length > 0) return "locks";
      return "listed";
    };
    expect(await list().catch((error: unknown) => (error instanceof JanitorError ? error.message : "another error"))).toMatch(outcome);
    await backend.close();
  });
});
