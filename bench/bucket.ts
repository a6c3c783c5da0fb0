import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { CreateBucketCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import pLimit from "p-limit";

import { startVersitygw } from "../test/e2e/peers/versitygw.ts";

/** A real server of S3 that keeps its connections, as those in the field do, with one bucket. */
export interface Bucket {
  readonly port: number;
  /** Where the server keeps the bucket's objects. */
  readonly data: string;
  readonly env: Readonly<Record<string, string>>;
  readonly url: (folder?: string) => string;
  readonly put: (key: string, body: string) => Promise<void>;
  readonly stop: () => Promise<void>;
}

const NAME = "state";

/** Starts the server with an empty bucket. */
export async function startBucket(): Promise<Bucket> {
  const server = await startVersitygw({ keepAlive: true });
  const credentials = { accessKeyId: server.accessKeyId, secretAccessKey: server.secretAccessKey };
  const client = new S3Client({ endpoint: `http://127.0.0.1:${server.port}`, region: "us-east-1", forcePathStyle: true, credentials });
  await client.send(new CreateBucketCommand({ Bucket: NAME }));
  return {
    port: server.port,
    data: join(server.data, NAME),
    env: { AWS_ACCESS_KEY_ID: server.accessKeyId, AWS_SECRET_ACCESS_KEY: server.secretAccessKey, AWS_REGION: "us-east-1" },
    url: (folder = "") => `s3://${NAME}${folder}?endpoint=127.0.0.1:${server.port}&disableSSL=true&s3ForcePathStyle=true&region=us-east-1`,
    put: async (key, body) => void (await client.send(new PutObjectCommand({ Bucket: NAME, Key: key, Body: body }))),
    stop: async () => {
      client.destroy();
      await server.stop();
    },
  };
}

/** Puts locks of laptops, which no owner pattern matches: none of them needs the cluster. */
export async function putLocks(bucket: Bucket, count: number): Promise<void> {
  const limit = pLimit(32);
  await limit.map(
    Array.from({ length: count }, (_, index) => index),
    (index) => bucket.put(lockKey(index), aLockBody(`laptop-${index % 20}.local`)),
  );
}

export function lockKey(index: number): string {
  return `.pulumi/locks/organization/project-${index % 100}/stack-${index}/${String(index).padStart(8, "0")}-1c1f-4e0e-9b0a-0a2b8c1d9e55.json`;
}

/** A lock of an hour ago, unless said otherwise; in milliseconds. */
export function aLockBody(hostname: string, age = 3_600_000): string {
  return JSON.stringify({ pid: 211, username: "pulumi", hostname, timestamp: new Date(Date.now() - age).toISOString() });
}

/** A kubeconfig of a cluster that nothing answers for, since nothing will ask it. */
export function writeIdleKubeconfig(): { readonly file: string; readonly remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), "bench-"));
  const file = join(folder, "kubeconfig");
  writeFileSync(
    file,
    "apiVersion: v1\nkind: Config\ncurrent-context: idle\nclusters: [{ name: idle, cluster: { server: 'https://127.0.0.1:1' } }]\nusers: [{ name: idle, user: { token: none } }]\ncontexts: [{ name: idle, context: { cluster: idle, user: idle } }]\n",
  );
  return { file, remove: () => rmSync(folder, { recursive: true }) };
}
