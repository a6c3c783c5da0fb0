import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { S3Server } from "../../backends/s3-fixture.ts";
import { findPeer } from "./build-peers.ts";
import { findFreePort, startChild, stopChild, waitFor } from "./child.ts";

/** Its objects are files below a folder, with their ETags in extended attributes. */
interface Versitygw extends S3Server {
  readonly data: string;
}

/** A real server of S3 that honours If-Match on DELETE: versitygw over a folder. Unless told to, it closes each connection, as no S3 in the field does. */
export async function startVersitygw({ keepAlive = false } = {}): Promise<Versitygw> {
  const folder = mkdtempSync(join(tmpdir(), "versitygw-"));
  const data = join(folder, "data");
  mkdirSync(data);
  const port = await findFreePort();
  const [accessKeyId, secretAccessKey] = ["versity-root", "a-secret-of-versity"];
  const child = startChild(
    findPeer("versitygw"),
    ["--access", accessKeyId, "--secret", secretAccessKey, "--port", `127.0.0.1:${port}`, ...(keepAlive ? ["--keep-alive", "--quiet"] : []), "posix", data],
    join(folder, "log"),
  );
  await waitForPort(port);
  return {
    port,
    accessKeyId,
    secretAccessKey,
    data,
    stop: async () => {
      await stopChild(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Waits until something listens. */
export async function waitForPort(port: number): Promise<void> {
  await waitFor(
    `port ${port}`,
    () =>
      new Promise<true | undefined>((done) => {
        const socket = connect(port, "127.0.0.1");
        socket.once("connect", () => {
          socket.destroy();
          done(true);
        });
        socket.once("error", () => done(undefined));
      }),
  );
}
