import { chmodSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";

import { openBackend } from "../../src/backends/open.ts";
import { NODE_ADDRESS } from "../e2e/peers/node/config.ts";
import type { Node } from "../e2e/peers/node/node.ts";
import { CONDITIONAL_STORES, type Access, type RunningStore } from "../e2e/peers/stores.ts";

export const SCHEMES = ["file", "azblob", "s3", "postgres"] as const;
export type Scheme = (typeof SCHEMES)[number];

/** One backend of each kind, reached from the test on the machine's loopback and from pods at the node's address. */
export class Backends {
  readonly #stores: RunningStore[] = [];
  readonly #relays: Server[] = [];
  readonly #outside = new Map<Scheme, Access>();
  readonly #inside = new Map<Scheme, Access>();

  async start(node: Node): Promise<void> {
    const ports = new Map<number, string>();
    for (const scheme of SCHEMES) {
      const store = await CONDITIONAL_STORES.find(([name]) => name === scheme)?.[1]();
      if (store === undefined) throw new Error(`there is no store for ${scheme}`);
      this.#stores.push(store);
      const access = await store.open("field");
      this.#outside.set(scheme, access);
      this.#inside.set(scheme, moveInside(access));
      if (store.port === undefined) continue;
      const socket = join(node.folder, `relay-${store.port}`);
      this.#relays.push(await passOn(socket, store.port));
      ports.set(store.port, socket);
    }
    // Pods write there as a user of their own.
    chmodSync(join(this.folder, ".."), 0o755);
    chmodSync(this.folder, 0o777);
    await node.relay(ports);
  }

  /** The folder that is a backend. */
  get folder(): string {
    return this.url("file").replace("file://", "");
  }

  /** As pods and the janitor know it. */
  url(scheme: Scheme): string {
    return this.#inside.get(scheme)?.url ?? "";
  }

  /** What the backends want to have in the environment, all of them together. */
  get env(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#inside.values()].flatMap(({ env }) => Object.entries(env)));
  }

  /** The owners of the locks of one stack, as the store holds them now. */
  async readOwners(scheme: Scheme, stack: string): Promise<readonly { readonly pid: number; readonly hostname: string }[]> {
    const { url, env } = this.#outside.get(scheme) ?? { url: "", env: {} };
    const backend = await openBackend({ url, env, requestTimeout: 10_000, now: () => Date.now() });
    const owners: { pid: number; hostname: string }[] = [];
    const signal = new AbortController().signal;
    for await (const page of backend.listLocks(signal)) {
      for (const { key } of page.filter(({ key }) => key.includes(`/${stack}/`))) {
        const read = await backend.readLock(key, signal);
        if (read.kind === "found" && read.content.kind === "readable") owners.push(read.content.owner);
      }
    }
    await backend.close();
    return owners;
  }

  async stop(): Promise<void> {
    for (const relay of this.#relays) relay.close();
    for (const store of this.#stores) await store.stop();
  }
}

/** An address as the node has it in place of the loopback; Azure's is told that an account is in the path there, too. */
function moveInside({ url, env }: Access): Access {
  const move = (text: string): string => text.replaceAll("127.0.0.1", NODE_ADDRESS);
  const moved = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, move(value)]));
  return { url: move(url), env: "AZURE_STORAGE_DOMAIN" in env ? { ...moved, AZURE_STORAGE_IS_LOCAL_EMULATOR: "true" } : moved };
}

/** The outer half of a relay: from a socket file to a port of the loopback. */
async function passOn(socket: string, port: number): Promise<Server> {
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    client.pipe(upstream).pipe(client);
    client.on("error", () => upstream.destroy());
    upstream.on("error", () => client.destroy());
  });
  await new Promise<void>((done) => {
    server.listen(socket, done);
  });
  return server;
}
