// The way to a command in a container is that of every other request: certificates, proxies, and an API server that would rather speak HTTP/2.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { createSecureServer } from "node:http2";
import { connect as connectSocket, type AddressInfo, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";

import { generate } from "selfsigned";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocketServer } from "ws";

import { ApiClient } from "../../src/kubernetes/api-client.ts";
import { findClusters } from "../../src/kubernetes/kubeconfig.ts";

const never = new AbortController().signal;

let folder = "";
const ends: (() => Promise<void>)[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "exec-"));
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  rmSync(folder, { recursive: true, force: true });
});

async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  await new Promise<void>((done) => {
    server.listen(0, "127.0.0.1", done);
  });
  ends.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((done) => {
      server.close(done);
    });
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address.
  return (server.address() as AddressInfo).port;
}

/** An API server over TLS, for 127.0.0.1 and server.example, that prefers HTTP/2 as the real one does; every command answers "done". */
async function startApiServer(): Promise<{ readonly port: number; readonly versions: string[] }> {
  const altNames = [
    { type: 7 as const, ip: "127.0.0.1" },
    { type: 2 as const, value: "server.example" },
  ];
  const made = await generate([{ name: "commonName", value: "server" }], { extensions: [{ name: "subjectAltName", altNames }] });
  writeFileSync(join(folder, "ca.pem"), made.cert);
  const versions: string[] = [];
  const webSockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => Array.from(offered)[0] ?? false });
  const server = createSecureServer({ key: made.private, cert: made.cert, allowHTTP1: true }, (incoming, answer) => {
    versions.push(incoming.httpVersion);
    answer.setHeader("content-type", "application/json");
    answer.end("{}");
  });
  server.on("upgrade", (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    versions.push(`websocket over ${incoming.httpVersion} as ${incoming.headers.authorization ?? "nobody"}`);
    webSockets.handleUpgrade(incoming, socket, head, (accepted) => {
      accepted.send(Buffer.from("\u{1}done"));
      accepted.send(Buffer.from(`\u{3}${JSON.stringify({ status: "Success" })}`));
    });
  });
  return { port: await listen(server), versions };
}

function open(cluster: object, env: Readonly<Record<string, string>> = {}): ApiClient {
  const file = join(folder, "kubeconfig");
  writeFileSync(
    file,
    JSON.stringify({
      "current-context": "a",
      clusters: [{ name: "a", cluster: { "certificate-authority": "ca.pem", ...cluster } }],
      users: [{ name: "a", user: { token: "t" } }],
      contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
    }),
  );
  const [access] = findClusters({ kubeconfig: file, contexts: [], env: {}, requireExplicitContext: false });
  if (access === undefined) throw new Error("the kubeconfig has no context");
  const client = new ApiClient({ access, env, requestTimeout: 2_000, now: () => Date.now() });
  ends.unshift(() => client.close());
  return client;
}

async function run(client: ApiClient): Promise<string> {
  const answer = await client.runCommand("/api/v1/namespaces/iac/pods/a/exec?command=sh", 100, never);
  return answer.kind === "ok" ? new TextDecoder().decode(answer.output) : JSON.stringify(answer);
}

describe("a command in a container", () => {
  it("goes over HTTP/1.1, beside requests that the server answers over HTTP/2", async () => {
    const { port, versions } = await startApiServer();
    const client = open({ server: `https://127.0.0.1:${port}` });
    expect(await client.get("/api/v1/pods", {}, never)).toMatchObject({ kind: "ok" });
    expect(await run(client)).toBe("done");
    expect(await client.get("/api/v1/pods", {}, never)).toMatchObject({ kind: "ok" });
    expect(versions).toEqual(["2.0", "websocket over 1.1 as Bearer t", "2.0"]);
  });

  it("a server of another authority is not believed", async () => {
    const { port, versions } = await startApiServer();
    const other = await generate([{ name: "commonName", value: "other" }]);
    writeFileSync(join(folder, "ca.pem"), other.cert);
    expect(await run(open({ server: `https://127.0.0.1:${port}` }))).toContain("not of the configured authority");
    expect(versions).toEqual([]);
  });

  it("nobody listens", async () => {
    const { port } = await startApiServer();
    for (const end of ends.splice(0)) await end();
    expect(await run(open({ server: `https://127.0.0.1:${port}` }))).toContain("nothing listens");
  });

  it.each(["HTTPS_PROXY", "proxy-url"])("goes through a tunnel of %s, and the server is still who it must be", async (by) => {
    const { port, versions } = await startApiServer();
    const tunnels: string[] = [];
    const proxy = createHttpServer();
    proxy.on("connect", (incoming, socket: Socket) => {
      tunnels.push(incoming.url ?? "");
      const onward = connectSocket(port, "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
        socket.pipe(onward).pipe(socket);
      });
      for (const end of [socket, onward]) end.on("error", () => end.destroy());
    });
    const uri = `127.0.0.1:${await listen(proxy)}`;
    const elsewhere = { server: `https://api.example:${port}`, "tls-server-name": "server.example" };
    const client = by === "proxy-url" ? open({ ...elsewhere, "proxy-url": `http://${uri}` }) : open(elsewhere, { HTTPS_PROXY: uri });
    expect(await run(client)).toBe("done");
    expect(tunnels).toEqual([`api.example:${port}`]);
    expect(versions).toEqual(["websocket over 1.1 as Bearer t"]);
  });
});
