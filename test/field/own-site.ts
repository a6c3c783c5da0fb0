import { createServer, connect, type Server } from "node:net";
import { join } from "node:path";

import { NODE_ADDRESS } from "../e2e/peers/node/config.ts";
import { Node, type InsideOptions, type InsideResult } from "../e2e/peers/node/node.ts";
import { runCommand } from "./run-command.ts";
import type { Cutter, Machine, Site } from "./site.ts";

/** A node that the test starts, and ends. */
export class OwnSite implements Site {
  readonly isOwn = true;
  readonly hostAddress = NODE_ADDRESS;
  readonly #node: Node;
  readonly #relays: Server[] = [];

  private constructor(node: Node) {
    this.#node = node;
  }

  static async start(): Promise<OwnSite> {
    return new OwnSite(await Node.start());
  }

  get folder(): string {
    return this.#node.folder;
  }

  async run(words: readonly string[], options?: InsideOptions): Promise<InsideResult> {
    return await this.#node.run(words, options);
  }

  async loadImages(images: readonly { readonly file: string }[]): Promise<void> {
    for (const { file } of images) await this.#node.importImage(file);
  }

  /** Nothing of the machine's network is in the node's: what passes between them goes through socket files. */
  async relay(ports: readonly number[]): Promise<void> {
    const sockets = new Map(ports.map((port) => [port, join(this.folder, `relay-${port}`)]));
    for (const [port, socket] of sockets) this.#relays.push(await passOn(port, socket));
    await this.#node.relay(sockets);
  }

  /** The node shares the kernel of the test, which sees all of its processes. */
  openMachines(): Promise<readonly Machine[]> {
    return Promise.resolve([{ node: "n1", sh: (script) => runCommand(["sh", "-c", script]) }]);
  }

  findCutter(): Promise<Cutter> {
    return Promise.resolve({ node: "n1", cutOff: () => this.#node.cutOff(), joinAgain: () => this.#node.joinAgain() });
  }

  async stop(): Promise<void> {
    await this.#node.stop();
    for (const relay of this.#relays) relay.close();
  }
}

/** Passes on what comes to a socket file, or to a port of an address, to a port of the loopback. */
export async function passOn(port: number, from: string | { readonly port: number; readonly host: string }): Promise<Server> {
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    client.pipe(upstream).pipe(client);
    client.on("error", () => upstream.destroy());
    upstream.on("error", () => client.destroy());
  });
  await new Promise<void>((done, fail) => {
    server.once("error", fail);
    server.listen(from, done);
  });
  return server;
}
