import { randomUUID } from "node:crypto";

import {
  CreateBucketCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";

import { openS3 } from "../../src/backends/s3.ts";
import type { ContractedBackend, FaultSwitch, StoreFixture } from "./contract.ts";
import { FaultProxy, type SeenRequest } from "./fault-proxy.ts";
import { playHttpFaults } from "./http-faults.ts";

/** A running server that speaks S3. */
export interface S3Server {
  readonly port: number;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly stop: () => Promise<void>;
}

const PREFIX = "team/state/";

/** The contract on a server of S3, through a proxy that plays the faults. */
export function contractS3(
  name: string,
  startServer: () => Promise<S3Server>,
  more: Partial<ContractedBackend> & { readonly likeAws?: boolean } = {},
): ContractedBackend {
  const { likeAws = false, ...contract } = more;
  return {
    name,
    severalPages: 25,
    folderMarkers: [".pulumi/locks/", ".pulumi/locks/organization/"],
    racesUntold: "a server that is not AWS answers 204 to the delete of what is gone",
    preflight: ["allowed", "unknown"],
    ...(likeAws ? { racesUntold: "the translation of the answer for what is gone is not atomic" } : {}),
    ...contract,
    start: async () => {
      const server = await startServer();
      const proxy = new FaultProxy(`http://127.0.0.1:${server.port}`);
      await proxy.start();
      return {
        stop: async () => {
          await proxy.stop();
          await server.stop();
        },
        create: () => createS3Store(server, proxy, likeAws),
      };
    },
  };
}

/** An empty bucket, reached through the proxy. `likeAws`: the server is taken for one that enforces conditions. */
export async function createS3Store({ port, accessKeyId, secretAccessKey }: S3Server, proxy: FaultProxy, likeAws: boolean): Promise<StoreFixture> {
  proxy.fault = () => undefined;
  const bucket = `b-${randomUUID()}`;
  const client = new S3Client({
    endpoint: `http://127.0.0.1:${port}`,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
    requestChecksumCalculation: "WHEN_REQUIRED",
  });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  const exists = async (key: string): Promise<boolean> => {
    try {
      await client.send(new HeadObjectCommand({ Bucket: bucket, Key: key }));
      return true;
    } catch {
      return false;
    }
  };
  proxy.correct = async (seen) => {
    const key = decodeURIComponent(seen.path.split("?")[0]?.slice(bucket.length + 2) ?? "");
    return likeAws && kindOf(seen) === "delete" && !(await exists(key)) ? NO_SUCH_KEY : undefined;
  };
  const put = async (key: string, body: Uint8Array): Promise<void> => void (await client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: body })));
  const remove = async (key: string): Promise<void> => void (await client.send(new DeleteObjectCommand({ Bucket: bucket, Key: key })));
  return {
    open: () =>
      openS3(
        {
          url: `s3://${bucket}/${PREFIX}?endpoint=127.0.0.1:${proxy.port}&disableSSL=true&s3ForcePathStyle=true&region=us-east-1`,
          env: { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
          requestTimeout: 2_000,
          now: () => Date.now(),
        },
        { pageSize: 10, ...(likeAws ? { enforcesConditions: true } : {}) },
      ),
    put: (key, body) => put(PREFIX + key, body),
    putOutside: (key, body) => put(`team/statue/${key}`, body),
    get: async (key) => {
      try {
        return await (await client.send(new GetObjectCommand({ Bucket: bucket, Key: PREFIX + key }))).Body?.transformToByteArray();
      } catch {
        return undefined;
      }
    },
    remove: (key) => remove(PREFIX + key),
    destroy: async () => {
      const { Contents: objects = [] } = await client.send(new ListObjectsV2Command({ Bucket: bucket }));
      for (const { Key: key = "" } of objects) await remove(key);
      await client.send(new DeleteBucketCommand({ Bucket: bucket }));
    },
    faults: playFaults(proxy),
    secrets: [secretAccessKey],
    close: () => Promise.resolve(client.destroy()),
  };
}

/** What AWS answers to a conditional delete of what is gone; versitygw says 204. */
const NO_SUCH_KEY = {
  kind: "answer",
  status: 404,
  headers: { "content-type": "application/xml" },
  body: '<?xml version="1.0"?><Error><Code>NoSuchKey</Code></Error>',
} as const;

function kindOf({ method, path }: SeenRequest): "list" | "read" | "delete" | "write" | "other" {
  if (method === "GET" || method === "HEAD") return path.includes("list-type=2") ? "list" : "read";
  return method === "DELETE" ? "delete" : method === "PUT" ? "write" : "other";
}

function playFaults(proxy: FaultProxy): FaultSwitch {
  const denied = '<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>';
  return playHttpFaults(proxy, {
    kindOf,
    denial: ({ method }) => ({ kind: "answer", status: 403, headers: { "content-type": "application/xml" }, body: method === "HEAD" ? "" : denied }),
    lie: (page) => page.replace(/<NextContinuationToken>[^<]*<\/NextContinuationToken>/, "").replace("<IsTruncated>false", "<IsTruncated>true"),
  });
}
