// Credentials, certificates and proxies on the way to the API server: what reaches the server is checked.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type Server } from "node:http";
import { createServer as createHttpsServer, type Server as HttpsServer } from "node:https";
import { connect as connectSocket, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { generate } from "selfsigned";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { ApiClient, type ApiAnswer } from "../../src/kubernetes/api-client.ts";
import { findClusters } from "../../src/kubernetes/kubeconfig.ts";
import { limitCredentials } from "../../src/kubernetes/open-clusters.ts";
import { FaultProxy } from "../backends/fault-proxy.ts";
import { StubApiServer } from "./stub-api-server.ts";

const never = new AbortController().signal;
const PODS = "/api/v1/pods";
const EXEC = { apiVersion: "client.authentication.k8s.io/v1", interactiveMode: "Never" };

let folder = "";
let server: StubApiServer;
let client: ApiClient;
/** Milliseconds by which the clock of the client is ahead. */
let ahead = 0;
const ends: (() => Promise<void> | void)[] = [];
beforeEach(async () => {
  ahead = 0;
  folder = mkdtempSync(join(tmpdir(), "connection-"));
  server = new StubApiServer();
  await server.start();
});
afterEach(async () => {
  await client.close();
  for (const end of ends.splice(0)) await end();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Kubeconfig {
  readonly user?: object;
  readonly cluster?: object;
  readonly userName?: string;
  readonly clusterName?: string;
}

function writeKubeconfig(file: string, { user = {}, cluster = {}, userName = "a", clusterName = "a" }: Kubeconfig): void {
  writeFileSync(
    join(folder, file),
    JSON.stringify({
      "current-context": "a",
      clusters: [{ name: "a", cluster: { server: `http://127.0.0.1:${server.port}`, "insecure-skip-tls-verify": true, ...cluster } }],
      users: [{ name: "a", user }],
      contexts: [{ name: "a", context: { cluster: clusterName, user: userName } }],
    }),
  );
}

function open(kubeconfig: Kubeconfig, env: Readonly<Record<string, string>> = {}, files: readonly string[] = ["kubeconfig"]): ApiClient {
  writeKubeconfig("kubeconfig", kubeconfig);
  const paths = files.map((file) => join(folder, file));
  const [access] = findClusters({ contexts: [], env: { KUBECONFIG: paths.join(":") }, requireExplicitContext: false });
  if (access === undefined) throw new Error("the kubeconfig has no context");
  client = new ApiClient({ access, env, requestTimeout: 1_000, now: () => Date.now() + ahead });
  return client;
}

async function get(signal = never): Promise<ApiAnswer> {
  return await client.get(PODS, {}, signal);
}

function writePlugin(script: string): string {
  const file = join(folder, "plugin");
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return file;
}

function tokensSeen(): readonly (string | undefined)[] {
  return server.calls.map(({ headers }) => headers.authorization);
}

async function listen(listener: Server | HttpsServer): Promise<number> {
  await new Promise<void>((done) => {
    listener.listen(0, "127.0.0.1", done);
  });
  ends.push(async () => {
    listener.closeAllConnections();
    await new Promise((done) => {
      listener.close(done);
    });
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address.
  return (listener.address() as AddressInfo).port;
}

describe("credentials are those of the moment", () => {
  it("a token file is read again: bound tokens rotate", async () => {
    const tokenFile = join(folder, "token");
    writeFileSync(tokenFile, "first");
    open({ user: { tokenFile: "token" } });
    await get();
    writeFileSync(tokenFile, "second\n");
    await get();
    expect(tokensSeen()).toEqual(["Bearer first", "Bearer second"]);
  });

  it("a plugin runs once for requests that begin together, and not again while its token lasts", async () => {
    open({ user: { exec: { ...EXEC, command: writePlugin(`echo run >> ${folder}/runs; echo '{"status":{"token":"t"}}'`) } } });
    await Promise.all([get(), get(), get()]);
    await get();
    expect(tokensSeen()).toEqual(Array.from({ length: 4 }, () => "Bearer t"));
    expect(readFileSync(join(folder, "runs"), "utf8")).toBe("run\n");
  });

  it("a token that is no longer accepted is asked for again, once", async () => {
    const command = writePlugin(`echo "{\\"status\\":{\\"token\\":\\"$(cat ${folder}/token)\\"}}"`);
    writeFileSync(join(folder, "token"), "old");
    open({ user: { exec: { ...EXEC, command } } });
    let valid = "Bearer old";
    server.answer = ({ headers }) => (headers.authorization === valid ? undefined : { kind: "status", status: 401 });
    await get();
    valid = "Bearer new";
    writeFileSync(join(folder, "token"), "new");
    expect(await get()).toMatchObject({ kind: "ok" });
    valid = "none";
    expect(await get()).toMatchObject({ kind: "refused", status: 401 });
    expect(tokensSeen()).toEqual(["Bearer old", "Bearer old", "Bearer new", "Bearer new", "Bearer new"]);
  });

  it.each(["a read", "a watch"])(
    "of credentials that are replaced some time after they ran out, the new ones are taken: %s finds them refused",
    async (what) => {
      open({ user: { token: "old" } });
      let valid = "Bearer old";
      server.answer = ({ headers }) => (headers.authorization === valid ? undefined : { kind: "status", status: 401 });
      await get();
      valid = "Bearer new";
      const refused = what === "a read" ? get() : client.follow(PODS, { watch: "1" }, 1_000, never);
      expect(await refused).toMatchObject({ kind: "refused", status: 401 });
      writeKubeconfig("kubeconfig", { user: { token: "new" } });
      expect(await get()).toMatchObject({ kind: "refused" });
      ahead = 15_000;
      expect(await get()).toMatchObject({ kind: "ok" });
    },
  );

  it("what never was accepted is not tried twice", async () => {
    open({ user: { token: "wrong" } });
    server.answer = () => ({ kind: "status", status: 401 });
    await get();
    expect(server.calls).toHaveLength(1);
  });

  it("a plugin that works again is believed again", async () => {
    const command = writePlugin("exit 1");
    open({ user: { exec: { ...EXEC, command } } });
    expect((await get()).kind).toBe("unreachable");
    writePlugin(`echo '{"status":{"token":"t"}}'`);
    expect((await get()).kind).toBe("ok");
  });
});

describe("credentials that cannot be had are a problem of that cluster, told without a secret (P7)", () => {
  it.each([
    ["prints something else", "echo secret-token", /gave no credentials/],
    ["fails", "echo secret-token >&2; exit 1", /gave no credentials/],
    ["prints half of it", `printf '{"status":{"token":"secret-token'`, /gave no credentials/],
  ])("a plugin that %s", async (_, script, problem) => {
    open({ user: { exec: { ...EXEC, command: writePlugin(script) } } });
    const answer = await get();
    expect(answer).toMatchObject({ kind: "unreachable", problem: expect.stringMatching(problem) });
    expect(JSON.stringify(answer)).not.toContain("secret");
    expect(server.calls).toEqual([]);
  });

  it("a plugin that is not there", async () => {
    open({ user: { exec: { ...EXEC, command: "/no/such/plugin" } } });
    expect(await get()).toMatchObject({ kind: "unreachable", problem: 'the credential plugin "/no/such/plugin" was not found' });
  });

  it("a token file that is not there", async () => {
    open({ user: { tokenFile: "none" } });
    expect(await get()).toMatchObject({ kind: "unreachable", problem: "the credentials could not be read (ENOENT)" });
  });

  it("a token that cannot be sent", async () => {
    open({ user: { token: "secret\ntoken" } });
    expect(JSON.stringify(await get())).not.toContain("secret");
  });

  it("a plugin that waits for a person does not outlast the signal", async () => {
    open({ user: { exec: { ...EXEC, command: writePlugin("exec sleep 5") } } });
    const began = Date.now();
    await expect(get(AbortSignal.timeout(200))).rejects.toThrow(/timeout/);
    expect(Date.now() - began).toBeLessThan(2_000);
  });
});

describe("a plugin that hangs", () => {
  const isRunning = (file: string): boolean => {
    try {
      return process.kill(Number(readFileSync(join(folder, file), "utf8")), 0);
    } catch {
      return false;
    }
  };
  const openHung = (script = "exec sleep 60"): ApiClient => open({ user: { exec: { ...EXEC, command: writePlugin(`echo $$ > ${folder}/pid; ${script}`) } } });

  it("is given up after a request's time, with what to do, and the next try begins anew", async () => {
    openHung();
    const answer = await get();
    expect(answer).toMatchObject({
      kind: "unreachable",
      problem: `the credential plugin "${folder}/plugin" of context "a" gave no credentials within 1 s: run kubectl to see what it waits for, or raise --request-timeout`,
    });
    writePlugin(`echo '{"status":{"token":"t"}}'`);
    expect((await get()).kind).toBe("ok");
  });

  it("is given up once for requests that wait together", async () => {
    openHung(`echo run >> ${folder}/runs; exec sleep 60`);
    const answers = await Promise.all([get(), get(), get()]);
    expect(answers.map(({ kind }) => kind)).toEqual(["unreachable", "unreachable", "unreachable"]);
    expect(readFileSync(join(folder, "runs"), "utf8")).toBe("run\n");
  });

  it.each([
    ["that can be asked", "exec sleep 60"],
    ["that does not listen", "trap '' TERM; while :; do sleep 1; done"],
  ])("is ended then, one %s", async (_, script) => {
    openHung(script);
    await get();
    await vi.waitFor(() => expect(isRunning("pid")).toBe(false), { timeout: 4_000 });
  });

  it("is ended with the connection, when a deadline came first", async () => {
    openHung();
    await expect(get(AbortSignal.timeout(300))).rejects.toThrow(/timeout/);
    expect(isRunning("pid")).toBe(true);
    await client.close();
    await vi.waitFor(() => expect(isRunning("pid")).toBe(false), { timeout: 2_000 });
  });

  it.each([
    ["a request's time", 30_000, false, 30_000],
    ["at a terminal, where it may ask a person, five minutes", 30_000, true, 300_000],
    ["at a terminal no less than a request's time", 600_000, true, 600_000],
  ])("has %s", (_, requestTimeout, atTerminal, limit) => {
    expect(limitCredentials(requestTimeout, atTerminal)).toBe(limit);
  });
});

describe("what can never work is said before anything is sent", () => {
  it.each<[string, Kubeconfig, RegExp]>([
    ["a cluster without a server", { cluster: { server: undefined } }, /clusters\[0\]\.cluster\.server is missing/],
    ["a context without its cluster", { clusterName: "other" }, /names no cluster/],
    ["a context without its user", { userName: "other" }, /names no user/],
    ["a server that is no address", { cluster: { server: "cluster.example:6443" } }, /no https:\/\/ address|no URL/],
    ["credentials in the clear", { cluster: { "insecure-skip-tls-verify": false } }, /http:\/\/ address/],
    ["a SOCKS proxy", { cluster: { "proxy-url": "socks5://user:secret@proxy:1080" } }, /SOCKS proxy/],
    ["a proxy that is no address", { cluster: { "proxy-url": "secret proxy" } }, /the proxy is no URL/],
  ])("%s", async (_, kubeconfig, message) => {
    open(kubeconfig);
    await expect(get()).rejects.toMatchObject({ code: "cluster-not-configured", message: expect.stringMatching(message) });
    await expect(get()).rejects.not.toThrow(/secret/);
    expect(server.calls).toEqual([]);
  });

  it("but a context without any user is sent without credentials (kubectl proxy)", async () => {
    open({ userName: "" });
    expect((await get()).kind).toBe("ok");
    expect(tokensSeen()).toEqual([undefined]);
  });

  it("several files: the first that has a name wins, as with kubectl", async () => {
    writeKubeconfig("second", { user: { token: "of-the-second" }, cluster: { server: "http://127.0.0.1:1" } });
    open({ user: { token: "of-the-first" } }, {}, ["kubeconfig", "second"]);
    expect((await get()).kind).toBe("ok");
    expect(tokensSeen()).toEqual(["Bearer of-the-first"]);
  });
});

describe("certificates", () => {
  const altNames = [
    { type: 7 as const, ip: "127.0.0.1" },
    { type: 2 as const, value: "server.example" },
  ];
  const make = async (name: string): Promise<{ readonly key: string; readonly cert: string }> => {
    const made = await generate([{ name: "commonName", value: name }], { extensions: [{ name: "subjectAltName", altNames }] });
    return { key: made.private, cert: made.cert };
  };
  /** Whose certificate each connection came with. */
  let seen: (string | undefined)[] = [];
  const startTls = async ({ key, cert }: { readonly key: string; readonly cert: string }): Promise<number> => {
    seen = [];
    const listener = createHttpsServer({ key, cert, requestCert: true, rejectUnauthorized: false }, (_, answer) => {
      answer.end("{}");
    });
    listener.on("secureConnection", (socket) => {
      const { subject } = socket.getPeerCertificate();
      seen.push(typeof subject?.CN === "string" ? subject.CN : undefined);
    });
    return await listen(listener);
  };
  const secure = (port: number, user: object = {}): Kubeconfig => ({
    user,
    cluster: { server: `https://127.0.0.1:${port}`, "insecure-skip-tls-verify": false, "certificate-authority": "ca.pem" },
  });

  it("a server of another authority is not believed", async () => {
    const port = await startTls(await make("server"));
    writeFileSync(join(folder, "ca.pem"), (await make("other")).cert);
    open(secure(port, { token: "secret" }));
    expect(await get()).toMatchObject({ kind: "unreachable", problem: expect.stringContaining("not of the configured authority") });
    expect(seen).toEqual([]);
  });

  it("a client certificate that was renewed is the one that is sent", async () => {
    const pair = await make("server");
    const port = await startTls(pair);
    writeFileSync(join(folder, "ca.pem"), pair.cert);
    open(secure(port, { "client-certificate": "client.pem", "client-key": "client.key" }));
    for (const name of ["first", "second"]) {
      const { key, cert } = await make(name);
      writeFileSync(join(folder, "client.pem"), cert);
      writeFileSync(join(folder, "client.key"), key);
      for (let round = 0; round < 5; round += 1) expect((await get()).kind).toBe("ok");
    }
    expect(Array.from(new Set(seen))).toEqual(["first", "second"]);
    // A connection that is not quite free yet makes a second one.
    expect(seen.length).toBeLessThanOrEqual(4);
  });

  it.each(["HTTPS_PROXY", "proxy-url"])("https goes through a tunnel of %s, and the server is still who it must be", async (by) => {
    const pair = await make("server");
    const port = await startTls(pair);
    writeFileSync(join(folder, "ca.pem"), pair.cert);
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
    const proxyPort = await listen(proxy);
    const { user, cluster } = secure(port);
    const elsewhere = { server: `https://api.example:${port}`, "tls-server-name": "server.example" };
    const uri = `127.0.0.1:${proxyPort}`;
    open(
      { ...(user === undefined ? {} : { user }), cluster: { ...cluster, ...elsewhere, ...(by === "proxy-url" ? { "proxy-url": `http://${uri}` } : {}) } },
      by === "proxy-url" ? {} : { HTTPS_PROXY: uri },
    );
    expect(await get()).toMatchObject({ kind: "ok" });
    expect(tunnels).toEqual([`api.example:${port}`]);
  });
});

describe("proxies, as kubectl takes them", () => {
  let proxy: FaultProxy;
  beforeEach(async () => {
    proxy = new FaultProxy(`http://127.0.0.1:${server.port}`);
    await proxy.start();
    ends.push(() => proxy.stop());
  });
  const at = (host: string): Kubeconfig => ({ cluster: { server: `http://${host}:${server.port}` } });

  it.each<[string, string, Readonly<Record<string, string>>]>([
    ["HTTP_PROXY", "api.example", {}],
    ["a NO_PROXY that names others", "api.example", { NO_PROXY: "other.example,10.0.0.0/8,api.example:1" }],
    ["a NO_PROXY with an address range that it is not in", "192.0.2.7", { NO_PROXY: "10.0.0.0/8,192.0.3.0/24,2001:db8::/32,192.0.2.0/99" }],
  ])("through it: %s", async (_, host, env) => {
    open(at(host), { HTTP_PROXY: `http://127.0.0.1:${proxy.port}`, ...env });
    expect((await get()).kind).toBe("ok");
    expect(proxy.requests).toHaveLength(1);
  });

  it.each<[string, string, Readonly<Record<string, string>>]>([
    ["NO_PROXY with its name", "localhost", { NO_PROXY: "localhost" }],
    ["a loopback address", "127.0.0.1", {}],
    ["localhost", "localhost", {}],
  ])("past it: %s", async (_, host, env) => {
    open(at(host), { HTTP_PROXY: `http://127.0.0.1:${proxy.port}`, ...env });
    expect((await get()).kind).toBe("ok");
    expect(proxy.requests).toEqual([]);
  });
});
