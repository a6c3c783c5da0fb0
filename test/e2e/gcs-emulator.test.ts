// The contract on fake-gcs-server, which ignores the preconditions of a delete: the generation is compared right before.
import { randomUUID } from "node:crypto";

import { openGcs } from "../../src/backends/gcs.ts";
import { describeBackendContract } from "../backends/contract.ts";
import { FaultProxy } from "../backends/fault-proxy.ts";
import { playGcsFaults } from "../backends/gcs-fixture.ts";
import { startFakeGcs } from "./peers/fake-gcs.ts";

const PREFIX = "team/state/";

describeBackendContract({
  name: "gs on fake-gcs-server",
  severalPages: 25,
  folderMarkers: [".pulumi/locks/", ".pulumi/locks/organization/"],
  preflight: ["allowed", "unknown"],
  slowPeer: { locks: 1_000, why: "the emulator takes longer for each object the more it holds; the stub of test/backends/gcs-stub.ts has the 10,000" },
  racesUntold: "the emulator does not enforce the generation of a delete",
  start: async () => {
    const server = await startFakeGcs("unused");
    const proxy = new FaultProxy(`http://127.0.0.1:${server.port}`);
    await proxy.start();
    const base = `http://127.0.0.1:${server.port}`;
    return {
      stop: async () => {
        await proxy.stop();
        await server.stop();
      },
      create: async () => {
        proxy.fault = () => undefined;
        const bucket = `b-${randomUUID()}`;
        await fetch(`${base}/storage/v1/b?project=test`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ name: bucket }),
        });
        const objectUrl = (key: string): string => `${base}/storage/v1/b/${bucket}/o/${encodeURIComponent(key)}`;
        const put = async (key: string, body: Uint8Array): Promise<void> =>
          void (await fetch(`${base}/upload/storage/v1/b/${bucket}/o?uploadType=media&name=${encodeURIComponent(key)}`, {
            method: "POST",
            body: Buffer.from(body),
          }));
        const remove = async (key: string): Promise<void> => void (await fetch(objectUrl(key), { method: "DELETE" }));
        return {
          open: ({ wholePages } = { wholePages: false }) =>
            openGcs(
              { url: `gs://${bucket}/${PREFIX}`, env: { STORAGE_EMULATOR_HOST: `127.0.0.1:${proxy.port}` }, requestTimeout: 5_000, now: () => Date.now() },
              wholePages ? {} : { pageSize: 10 },
            ),
          put: (key, body) => put(PREFIX + key, body),
          putOutside: (key, body) => put(`team/statue/${key}`, body),
          get: async (key) => {
            const response = await fetch(`${objectUrl(PREFIX + key)}?alt=media`);
            return response.status === 200 ? new Uint8Array(await response.arrayBuffer()) : undefined;
          },
          remove: (key) => remove(PREFIX + key),
          destroy: async () => void (await fetch(`${base}/storage/v1/b/${bucket}`, { method: "DELETE" })),
          faults: playGcsFaults(proxy),
          secrets: [],
          close: () => Promise.resolve(),
        };
      },
    };
  },
});
