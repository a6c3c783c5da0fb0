import { chmodSync } from "node:fs";
import { join } from "node:path";

import { openBackend } from "../../src/backends/open.ts";
import { CONDITIONAL_STORES, type Access, type RunningStore } from "../e2e/peers/stores.ts";
import type { Site } from "./site.ts";

export const SCHEMES = ["file", "azblob", "s3", "postgres"] as const;
export type Scheme = (typeof SCHEMES)[number];

/** How all backends are reached from one place. */
export class Reach {
  readonly #accesses: ReadonlyMap<Scheme, Access>;

  constructor(accesses: ReadonlyMap<Scheme, Access>) {
    this.#accesses = accesses;
  }

  url(scheme: Scheme): string {
    return this.#accesses.get(scheme)?.url ?? "";
  }

  /** What the backends want to have in the environment, all of them together. */
  get env(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#accesses.values()].flatMap(({ env }) => Object.entries(env)));
  }
}

/** One backend of each kind, on the machine's loopback. */
export class Backends {
  readonly #stores = new Map<Scheme, RunningStore>();
  readonly #outside = new Map<Scheme, Access>();
  #pods = new Reach(new Map());
  #commands = new Reach(new Map());
  /** The folder that is a backend, where pods can have one of the host's. */
  folder: string | undefined;

  async start(site: Site): Promise<void> {
    for (const scheme of SCHEMES) {
      // In a cluster that is not the test's own, no folder is shared: another bucket's prefix stands for it.
      const kind = scheme === "file" && !site.isOwn ? "s3" : scheme;
      const store = this.#stores.get(kind) ?? (await startStore(kind));
      this.#stores.set(kind, store);
      this.#outside.set(scheme, await store.open(kind === scheme ? "field" : "in-place-of-a-folder"));
    }
    this.#pods = new Reach(new Map([...this.#outside].map(([scheme, access]) => [scheme, moveTo(site.hostAddress, access)])));
    this.#commands = site.isOwn ? this.#pods : new Reach(this.#outside);
    if (site.isOwn) {
      const folder = this.#pods.url("file").replace("file://", "");
      // Pods write there as a user of their own.
      chmodSync(join(folder, ".."), 0o755);
      chmodSync(folder, 0o777);
      this.folder = folder;
    }
    await site.relay([...this.#stores.values()].flatMap(({ port }) => port ?? []));
  }

  /** As pods know them. */
  get pods(): Reach {
    return this.#pods;
  }

  /** As the commands know them that are run by the site. */
  get commands(): Reach {
    return this.#commands;
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
    for (const store of this.#stores.values()) await store.stop();
  }
}

/** An address as pods have it in place of the loopback; Azure's is told that an account is in the path there, too. */
function moveTo(address: string, { url, env }: Access): Access {
  const move = (text: string): string => text.replaceAll("127.0.0.1", address);
  const moved = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, move(value)]));
  return { url: move(url), env: "AZURE_STORAGE_DOMAIN" in env ? { ...moved, AZURE_STORAGE_IS_LOCAL_EMULATOR: "true" } : moved };
}

async function startStore(scheme: Scheme): Promise<RunningStore> {
  const store = await CONDITIONAL_STORES.find(([name]) => name === scheme)?.[1]();
  if (store === undefined) throw new Error(`there is no store for ${scheme}`);
  return store;
}
