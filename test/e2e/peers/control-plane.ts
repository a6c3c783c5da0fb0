import type { ChildProcess } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { Agent, request } from "undici";

import { findPeer } from "./build-peers.ts";
import { findFreePort, startChild, stopChild, waitFor } from "./child.ts";

/** Users of the API server, each with its token; what they may do is up to the test. */
export const USERS = ["admin", "reader", "namespaced", "lister", "execer", "follower", "nobody"] as const;
export type User = (typeof USERS)[number];

/** A real API server with etcd and the controllers, and without any node: a test plays the kubelet. */
export class ControlPlane {
  readonly folder = mkdtempSync(join(tmpdir(), "control-plane-"));
  readonly #children: ChildProcess[] = [];
  #apiServer: { readonly words: readonly string[]; readonly child: ChildProcess } | undefined;
  #server = "";
  #agent = new Agent();

  /** `asInField`: the API server keeps its snapshots for minutes and answers for pods from its memory. Else continue tokens expire soon, for tests to see. */
  async start({ asInField = false } = {}): Promise<void> {
    const kube = findPeer("kube");
    const [etcdPort, etcdPeerPort, apiPort, controllersPort] = [await findFreePort(), await findFreePort(), await findFreePort(), await findFreePort()];
    const path = (name: string): string => join(this.folder, name);
    const run = (component: string, words: readonly string[]): ChildProcess => {
      const child = startChild(kube, [component, ...words], path(`${component}.log`));
      this.#children.push(child);
      return child;
    };
    const etcd = `http://127.0.0.1:${etcdPort}`;
    const etcdPeer = `http://127.0.0.1:${etcdPeerPort}`;
    run("etcd", [
      `--data-dir=${path("etcd")}`,
      `--listen-client-urls=${etcd}`,
      `--advertise-client-urls=${etcd}`,
      `--listen-peer-urls=${etcdPeer}`,
      `--initial-advertise-peer-urls=${etcdPeer}`,
      `--initial-cluster=default=${etcdPeer}`,
      "--unsafe-no-fsync",
    ]);
    const keys = generateKeyPairSync("rsa", {
      modulusLength: 2_048,
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
      publicKeyEncoding: { type: "spki", format: "pem" },
    });
    writeFileSync(path("sa.key"), keys.privateKey);
    writeFileSync(path("sa.pub"), keys.publicKey);
    writeFileSync(path("tokens.csv"), USERS.map((user) => `token-of-${user},${user},${user}${user === "admin" ? ",system:masters" : ""}\n`).join(""));
    writeFileSync(path("audit-policy.yaml"), "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n");
    const words = [
      `--etcd-servers=${etcd}`,
      // Old revisions of pods go soon, so that a test can see a real continue token expire: the API server's own snapshots would keep them.
      ...(asInField ? [] : ["--etcd-compaction-interval=2s", "--watch-cache-sizes=pods#0"]),
      `--cert-dir=${path("certs")}`,
      `--secure-port=${apiPort}`,
      "--bind-address=127.0.0.1",
      "--authorization-mode=RBAC",
      `--token-auth-file=${path("tokens.csv")}`,
      "--service-account-issuer=https://kubernetes.default.svc",
      `--service-account-key-file=${path("sa.pub")}`,
      `--service-account-signing-key-file=${path("sa.key")}`,
      "--service-cluster-ip-range=10.0.0.0/24",
      "--disable-admission-plugins=ServiceAccount",
      `--audit-policy-file=${path("audit-policy.yaml")}`,
      `--audit-log-path=${path("audit.log")}`,
    ];
    this.#apiServer = { words, child: run("kube-apiserver", words) };
    this.#server = `https://127.0.0.1:${apiPort}`;
    await waitFor("the API server's certificate", () => Promise.resolve(existsSync(path("certs/apiserver.crt")) ? true : undefined));
    this.#agent = new Agent({ connect: { ca: readFileSync(path("certs/apiserver.crt"), "utf8") } });
    await waitFor("the API server", () => this.#isReady());
    run("kube-controller-manager", [
      ...["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"].map((flag) => `--${flag}=${this.writeKubeconfig("admin")}`),
      `--service-account-private-key-file=${path("sa.key")}`,
      `--secure-port=${controllersPort}`,
      "--bind-address=127.0.0.1",
      "--leader-elect=false",
      // The tests say themselves whether a node is Ready.
      "--controllers=*,-node-lifecycle-controller",
    ]);
    await waitFor("the default namespace", async () => ((await this.get("/api/v1/namespaces/default")) === undefined ? undefined : true));
  }

  /** Ends the API server as a power cut does; what it keeps is in etcd. */
  async killApiServer(): Promise<void> {
    const child = this.#apiServer?.child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => {
      child.once("exit", done);
    });
    child.kill("SIGKILL");
    await ended;
  }

  /** Starts the API server again, with the same data at the same address. */
  async restartApiServer(): Promise<void> {
    if (this.#apiServer === undefined) return;
    const { words } = this.#apiServer;
    const child = startChild(findPeer("kube"), ["kube-apiserver", ...words], join(this.folder, "kube-apiserver.log"));
    this.#children.push(child);
    this.#apiServer = { words, child };
    await waitFor("the API server", () => this.#isReady());
  }

  get server(): string {
    return this.#server;
  }

  /** A kubeconfig with one context for each of the given users. */
  writeKubeconfig(user: User, context: string = user): string {
    const file = join(this.folder, `kubeconfig-of-${user}-${context}`);
    writeFileSync(
      file,
      JSON.stringify({
        apiVersion: "v1",
        kind: "Config",
        "current-context": context,
        clusters: [{ name: "test", cluster: { server: this.#server, "certificate-authority": join(this.folder, "certs/apiserver.crt") } }],
        users: [{ name: user, user: { token: `token-of-${user}` } }],
        contexts: [{ name: context, context: { cluster: "test", user } }],
      }),
    );
    return file;
  }

  async get(path: string): Promise<unknown> {
    return await this.#send("GET", path);
  }

  async create(path: string, object: object): Promise<unknown> {
    return await this.#send("POST", path, object, "application/json");
  }

  async patch(path: string, object: object): Promise<unknown> {
    return await this.#send("PATCH", path, object, "application/strategic-merge-patch+json");
  }

  async remove(path: string, gracePeriodSeconds?: number): Promise<void> {
    await this.#send("DELETE", `${path}${gracePeriodSeconds === undefined ? "" : `?gracePeriodSeconds=${gracePeriodSeconds}`}`);
  }

  /** The requests that a user sent so far, "list pods", or "list pods of one" where a watch begins, by the API server's own audit log. */
  requestsOf(user: User): readonly string[] {
    return readFileSync(join(this.folder, "audit.log"), "utf8")
      .split("\n")
      .filter((line) => line.includes(`"username":"${user}"`))
      .map((line) => {
        const event: { readonly verb: string; readonly requestURI: string; readonly objectRef?: { readonly resource?: string } } = JSON.parse(line);
        return `${event.verb} ${event.objectRef?.resource ?? ""}${event.requestURI.includes("fieldSelector") ? " by name" : /[?&]limit=1(?:&|$)/.test(event.requestURI) ? " of one" : ""}`;
      });
  }

  async stop(): Promise<void> {
    await this.#agent.destroy();
    for (const child of this.#children.toReversed()) await stopChild(child);
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #isReady(): Promise<true | undefined> {
    try {
      const { statusCode, body } = await request(`${this.#server}/readyz`, { dispatcher: this.#agent, headers: { authorization: "Bearer token-of-admin" } });
      await body.dump();
      return statusCode === 200 ? true : undefined;
    } catch {
      return undefined;
    }
  }

  async #send(method: "GET" | "POST" | "PATCH" | "DELETE", path: string, object?: object, contentType?: string): Promise<unknown> {
    const headers = { authorization: "Bearer token-of-admin", ...(contentType === undefined ? {} : { "content-type": contentType }) };
    const { statusCode, body } = await request(`${this.#server}${path}`, {
      method,
      headers,
      dispatcher: this.#agent,
      ...(object === undefined ? {} : { body: JSON.stringify(object) }),
    });
    const text = await body.text();
    if (statusCode === 404 && method === "GET") return undefined;
    // A kind that was just made is not ready to be read.
    if (statusCode === 429) return await sleep(200).then(() => this.#send(method, path, object, contentType));
    if (statusCode >= 300) throw new Error(`${method} ${path}: ${statusCode} ${text.slice(0, 400)}`);
    return JSON.parse(text);
  }
}
