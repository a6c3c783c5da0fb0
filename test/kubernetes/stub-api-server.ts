import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";

import { WebSocketServer, type WebSocket } from "ws";

import { ApiClient } from "../../src/kubernetes/api-client.ts";
import type { ClusterSource } from "../../src/kubernetes/cluster-source.ts";
import { findClusters } from "../../src/kubernetes/kubeconfig.ts";
import { openLiveCluster, type LiveClusterOptions } from "../../src/kubernetes/live-cluster.ts";

/** A request that the stub saw. */
export interface SeenCall {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** What came with it; whole once the answer has been sent and read. */
  readonly body: () => string;
}

/** What the stub answers: a body with 200, a status, nothing at all, or a cut connection. */
export type StubAnswer =
  | { readonly kind: "body"; readonly body: unknown; readonly headers?: Readonly<Record<string, string>> }
  | { readonly kind: "status"; readonly status: number; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> }
  | { readonly kind: "text"; readonly text: string }
  /** A watch: each object as a line; `cut` breaks the connection behind them, else it stays open. */
  | { readonly kind: "lines"; readonly lines: readonly object[]; readonly ending: "end" | "cut" | "stay" }
  | { readonly kind: "hang" }
  | { readonly kind: "cut" };

/** An API server that answers as a test tells it to; what no answer is set for is an empty list. */
export class StubApiServer {
  readonly calls: SeenCall[] = [];
  /** Chooses the answer of a call; undefined leaves it to the objects below. */
  answer: (call: SeenCall, earlier: number) => StubAnswer | undefined = () => undefined;
  readonly objects = new Map<string, readonly object[]>();
  /** Runs a command in a container: what it does with the WebSocket is what the runtime does. */
  exec: (call: SeenCall, socket: WebSocket) => void = (_, socket) => socket.terminate();
  /** Of the protocols that a WebSocket is offered. */
  chooseProtocol: (offered: readonly string[]) => string | undefined = ([first]) => first;
  readonly folder = mkdtempSync(join(tmpdir(), "stub-api-"));
  readonly #sockets = new Set<Socket>();
  readonly #webSockets = new WebSocketServer({ noServer: true, handleProtocols: (offered) => this.chooseProtocol(Array.from(offered)) ?? false });
  readonly #server = createServer((incoming, response) => {
    const { call, answer } = this.#notice(incoming);
    const chosen = answer ?? this.#defaultAnswer(call);
    switch (chosen.kind) {
      case "body":
        response.writeHead(200, { "content-type": "application/json", ...chosen.headers }).end(JSON.stringify(chosen.body));
        return;
      case "status":
        response
          .writeHead(chosen.status, { "content-type": "application/json", ...chosen.headers })
          .end(JSON.stringify(chosen.body ?? { kind: "Status", reason: "Stub" }));
        return;
      case "text":
        response.writeHead(200).end(chosen.text);
        return;
      case "lines":
        response.writeHead(200, { "content-type": "application/json" });
        response.write(chosen.lines.map((line) => `${JSON.stringify(line)}\n`).join(""), () => {
          if (chosen.ending === "cut") incoming.socket.destroy();
        });
        if (chosen.ending === "end") response.end();
        return;
      case "hang":
        return;
      case "cut":
        incoming.socket.destroy();
    }
  });

  async start(host = "127.0.0.1"): Promise<void> {
    this.#server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    this.#server.on("upgrade", (incoming, socket, head) => this.#upgrade(incoming, socket, head));
    await new Promise<void>((done) => {
      this.#server.listen(0, host, done);
    });
  }

  get port(): number {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address.
    return (this.#server.address() as AddressInfo).port;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** Paths of all calls, with the parameters that matter. */
  get lines(): readonly string[] {
    return this.calls.map(({ path, query }) => `${path}${query.size === 0 ? "" : `?${query.toString()}`}`);
  }

  /** A kubeconfig whose one user has a token file, so that a token can be changed. */
  writeKubeconfig({ server = `http://127.0.0.1:${this.port}`, token = "first-token" } = {}): string {
    writeFileSync(join(this.folder, "token"), token);
    const file = join(this.folder, "kubeconfig");
    writeFileSync(
      file,
      JSON.stringify({
        apiVersion: "v1",
        kind: "Config",
        "current-context": "stub",
        clusters: [{ name: "stub", cluster: { server, "insecure-skip-tls-verify": true } }],
        users: [{ name: "stub", user: { tokenFile: join(this.folder, "token") } }],
        contexts: [{ name: "stub", context: { cluster: "stub", user: "stub" } }],
      }),
    );
    return file;
  }

  open(options: Partial<LiveClusterOptions> = {}, env: Readonly<Record<string, string>> = {}, server?: string): ClusterSource {
    const file = this.writeKubeconfig(server === undefined ? {} : { server });
    const [access] = findClusters({ kubeconfig: file, contexts: [], env: {}, requireExplicitContext: false });
    if (access === undefined) throw new Error("the kubeconfig has no context");
    const client = new ApiClient({ access, env, requestTimeout: 500, now: () => Date.now() });
    return openLiveCluster({ name: "stub", client, namespaces: [], ownPod: undefined, ...options });
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((done) => {
      this.#server.close(() => done());
    });
    rmSync(this.folder, { recursive: true, force: true });
  }

  #notice(incoming: IncomingMessage): { readonly call: SeenCall; readonly answer: StubAnswer | undefined } {
    const url = new URL(incoming.url ?? "/", "http://stub");
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    const body = (): string => Buffer.concat(chunks).toString();
    const call = { method: incoming.method ?? "", path: url.pathname, query: url.searchParams, headers: incoming.headers, body };
    const earlier = this.calls.filter(({ path }) => path === call.path).length;
    this.calls.push(call);
    return { call, answer: this.answer(call, earlier) };
  }

  /** A WebSocket, unless the test answers otherwise: with a status, with silence, with a cut connection. */
  #upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { call, answer } = this.#notice(incoming);
    if (answer?.kind === "cut") socket.destroy();
    else if (answer?.kind === "status") socket.end(`HTTP/1.1 ${answer.status} Stub\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}`);
    else if (answer === undefined) this.#webSockets.handleUpgrade(incoming, socket, head, (accepted) => this.exec(call, accepted));
  }

  #defaultAnswer({ path, query }: SeenCall): StubAnswer {
    if (path === "/api/v1/namespaces/kube-system") return { kind: "body", body: { metadata: { uid: "uid-of-kube-system" } } };
    const name = /^metadata\.name=(.*)$/.exec(query.get("fieldSelector") ?? "")?.[1];
    const items = (this.objects.get(path) ?? []).filter(
      (item) => name === undefined || ("metadata" in item && JSON.stringify(item.metadata).includes(`"name":"${name}"`)),
    );
    const limit = Number(query.get("limit") ?? 500);
    const first = Number(query.get("continue") ?? 0);
    const next = first + limit < items.length ? String(first + limit) : "";
    return { kind: "body", body: { kind: "List", metadata: { continue: next }, items: items.slice(first, first + limit) } };
  }
}

export function aPodObject(name: string, namespace = "iac", spec: object = {}): object {
  return {
    metadata: { name, namespace, uid: `uid-of-${name}`, creationTimestamp: "2026-03-01T00:00:00Z" },
    spec: { nodeName: "node-1", containers: [{ name: "pulumi" }], ...spec },
    status: { phase: "Running", containerStatuses: [{ name: "pulumi", restartCount: 0, state: { running: { startedAt: "2026-03-01T00:00:10Z" } } }] },
  };
}

export function aNodeObject(name: string): object {
  return {
    metadata: { name, creationTimestamp: "2026-01-01T00:00:00Z" },
    status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:01:00Z", lastHeartbeatTime: new Date().toISOString() }] },
  };
}
