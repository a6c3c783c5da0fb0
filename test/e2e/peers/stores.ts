import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";

import { startAzurite } from "../../backends/azurite.ts";
import { GcsStub } from "../../backends/gcs-stub.ts";
import { POSTGRES_PASSWORD, startPostgres } from "../../backends/postgres-server.ts";
import { startVersitygw } from "./versitygw.ts";

/** How a backend is reached: what both Pulumi and the janitor take. */
export interface Access {
  readonly url: string;
  readonly env: Readonly<Record<string, string>>;
}

/** A running store whose deletes keep their conditions, one after the other empty for each name. */
export interface RunningStore {
  /** Where it listens; undefined for a folder. */
  readonly port: number | undefined;
  /** A backend of its own for each name, through another port if one is given. */
  readonly open: (name: string, through?: number) => Promise<Access>;
  readonly stop: () => Promise<void>;
}

/** Every scheme, each on a real server, or for Google's on a stub that keeps its preconditions, as no emulator does. */
export const CONDITIONAL_STORES: readonly (readonly [scheme: "file" | "azblob" | "s3" | "gs" | "postgres", start: () => Promise<RunningStore>])[] = [
  ["file", startFolder],
  ["azblob", startAzblob],
  ["s3", startS3],
  ["gs", startGcs],
  ["postgres", startDatabase],
];

function startFolder(): Promise<RunningStore> {
  const root = mkdtempSync(join(tmpdir(), "store-"));
  return Promise.resolve({
    port: undefined,
    open: (name) => {
      mkdirSync(join(root, name), { recursive: true });
      return Promise.resolve({ url: `file://${join(root, name)}`, env: {} });
    },
    stop: () => Promise.resolve(rmSync(root, { recursive: true, force: true })),
  });
}

async function startAzblob(): Promise<RunningStore> {
  const azurite = await startAzurite();
  await azurite.createContainer("state");
  return {
    port: azurite.port,
    open: (name, through) => Promise.resolve({ url: `azblob://state/${name}`, env: azurite.env(through) }),
    stop: azurite.stop,
  };
}

async function startS3(): Promise<RunningStore> {
  const { port, accessKeyId, secretAccessKey, stop } = await startVersitygw();
  const client = new S3Client({
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
  });
  await client.send(new CreateBucketCommand({ Bucket: "state" }));
  client.destroy();
  return {
    port,
    open: (name, through = port) =>
      Promise.resolve({
        url: `s3://state/${name}?endpoint=127.0.0.1:${through}&disableSSL=true&s3ForcePathStyle=true&region=us-east-1`,
        env: { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
      }),
    stop,
  };
}

async function startGcs(): Promise<RunningStore> {
  const stub = new GcsStub();
  await stub.start();
  stub.buckets.set("state", new Map());
  return {
    port: stub.port,
    open: (name, through = stub.port) =>
      Promise.resolve({ url: `gs://state/${name}`, env: { STORAGE_EMULATOR_HOST: `127.0.0.1:${through}`, GOOGLE_OAUTH_ACCESS_TOKEN: "a-token" } }),
    stop: () => stub.stop(),
  };
}

async function startDatabase(): Promise<RunningStore> {
  const server = await startPostgres();
  return {
    port: server.port,
    open: async (name, through = server.port) => {
      const table = `t_${name.replaceAll(/[^a-z0-9]/g, "_")}`;
      // As Pulumi makes it (pkg/backend/diy/postgres/schema.sql).
      await server.query(
        "postgres",
        `CREATE TABLE IF NOT EXISTS ${table} (key TEXT PRIMARY KEY, data JSON NOT NULL, updated_at TIMESTAMP WITH TIME ZONE NOT NULL DEFAULT now())`,
      );
      return { url: `postgres://postgres:${POSTGRES_PASSWORD}@127.0.0.1:${through}/postgres?sslmode=disable&table=${table}`, env: {} };
    },
    stop: server.stop,
  };
}
