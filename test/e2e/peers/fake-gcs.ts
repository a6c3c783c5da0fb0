import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { findPeer } from "./build-peers.ts";
import { findFreePort, startChild, stopChild } from "./child.ts";
import { waitForPort } from "./versitygw.ts";

/** An emulator of Google's storage that the real Pulumi CLI works with; it ignores the preconditions of a delete. */
export async function startFakeGcs(bucket: string): Promise<{ readonly port: number; readonly stop: () => Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), "fake-gcs-"));
  // A folder in its data is a bucket.
  mkdirSync(join(folder, "data", bucket), { recursive: true });
  const port = await findFreePort();
  const words = [
    "-scheme",
    "http",
    "-host",
    "127.0.0.1",
    "-port",
    String(port),
    "-public-host",
    `127.0.0.1:${port}`,
    "-external-url",
    `http://127.0.0.1:${port}`,
    "-backend",
    "memory",
    "-data",
    join(folder, "data"),
  ];
  const child = startChild(findPeer("fake-gcs-server"), words, join(folder, "log"));
  await waitForPort(port);
  return {
    port,
    stop: async () => {
      await stopChild(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
