import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** A listener before a server, that hands each connection on as a pair. */
export abstract class TcpProxy {
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((socket) => {
    this.#sockets.add(socket);
    const upstream = connect(this.#target, "127.0.0.1");
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      one.on("error", () => undefined);
      one.on("close", () => other.destroy());
    }
    this.join(socket, upstream);
  });

  constructor(target: number) {
    this.#target = target;
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

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((done) => {
      this.#server.close(() => done());
    });
  }

  /** Passes on what comes, or does not. Where one side closes, the other is closed too. */
  protected abstract join(socket: Socket, upstream: Socket): void;
}
