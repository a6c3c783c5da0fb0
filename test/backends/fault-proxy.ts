import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** A request as the proxy saw it. */
export interface SeenRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** What the proxy does to a request instead of, or after, passing it on. */
export type Fault =
  | { readonly kind: "answer"; readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  /** Closes the connection without an answer; `after`: once the server has done what was asked. `meanwhile` runs right before. */
  | { readonly kind: "cut"; readonly after: boolean; readonly meanwhile?: () => void }
  /** Never answers. */
  | { readonly kind: "hang" }
  | { readonly kind: "rewrite"; readonly body: (text: string) => string };

/** A reverse proxy in front of a store: it notes every request, and can play a bad network or a server that says no. */
export class FaultProxy {
  readonly requests: SeenRequest[] = [];
  /** Chooses the fault of a request; undefined passes it on as it is. */
  fault: (seen: SeenRequest) => Fault | undefined = () => undefined;
  /** What the server does otherwise than the one it stands for; asked where there is no fault. */
  correct: (seen: SeenRequest) => Promise<Fault | undefined> = () => Promise.resolve(undefined);
  readonly #target: URL;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((incoming, answer) => void this.#handle(incoming, answer));

  constructor(target: string) {
    this.#target = new URL(target);
    this.#server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((done) => {
      this.#server.listen(0, "127.0.0.1", done);
    });
  }

  get port(): number {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address.
    return (this.#server.address() as AddressInfo).port;
  }

  /** "GET /path" of every request so far, without queries. */
  get lines(): readonly string[] {
    return this.requests.map(({ method, path }) => `${method} ${path.split("?")[0] ?? ""}`);
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((done) => {
      this.#server.close(() => done());
    });
  }

  async #handle(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    const seen: SeenRequest = { method: incoming.method ?? "", path: incoming.url ?? "", headers: incoming.headers };
    this.requests.push(seen);
    const fault = this.fault(seen) ?? (await this.correct(seen));
    switch (fault?.kind) {
      case "answer":
        incoming.resume();
        answer.writeHead(fault.status, fault.headers).end(fault.body ?? "");
        return;
      case "hang":
        incoming.resume();
        return;
      case "cut":
        if (fault.after) {
          this.#forward(incoming, () => {
            fault.meanwhile?.();
            incoming.socket.destroy();
          });
          return;
        }
        fault.meanwhile?.();
        incoming.socket.destroy();
        return;
      case "rewrite":
        this.#forward(incoming, (status, headers, body) => {
          const text = Buffer.from(fault.body(body.toString("utf8")));
          answer.writeHead(status, { ...headers, "content-length": String(text.length) }).end(text);
        });
        return;
      case undefined:
        this.#forward(incoming, (status, headers, body) => answer.writeHead(status, headers).end(body));
    }
  }

  #forward(incoming: IncomingMessage, finish: (status: number, headers: Record<string, string | string[]>, body: Buffer) => void): void {
    const outgoing = request(
      { host: this.#target.hostname, port: this.#target.port, method: incoming.method, path: incoming.url, headers: incoming.headers },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => {
          const headers = Object.fromEntries(
            Object.entries(response.headers).flatMap(([name, value]) => (value === undefined || name === "transfer-encoding" ? [] : [[name, value]])),
          );
          finish(response.statusCode ?? 502, headers, Buffer.concat(chunks));
        });
      },
    );
    outgoing.on("error", () => incoming.socket.destroy());
    incoming.pipe(outgoing);
  }
}
