import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { describe, expect, it } from "vitest";

import type { Backend } from "../../src/backends/backend.ts";
import { readFileSettings } from "../../src/backends/file-settings.ts";
import { openFile } from "../../src/backends/file.ts";
import { aLock, describeBackendContract, type StoreFixture } from "./contract.ts";

async function open(root: string): Promise<Backend> {
  return await openFile({ url: `file://${root}`, env: {}, requestTimeout: 1_000, now: () => Date.now() });
}

function write(root: string, key: string, body: Uint8Array): void {
  const path = join(root, key);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, body);
}

function createStore(): StoreFixture {
  const outer = mkdtempSync(join(tmpdir(), "file-backend-"));
  const root = join(outer, "state");
  mkdirSync(root);
  return {
    open: () => open(root),
    put: (key, body) => Promise.resolve(write(root, key, body)),
    get: (key) => {
      try {
        return Promise.resolve(readFileSync(join(root, key)));
      } catch {
        return Promise.resolve(undefined);
      }
    },
    remove: (key) => Promise.resolve(rmSync(join(root, key))),
    putOutside: (key, body) => Promise.resolve(write(outer, key, body)),
    destroy: () => {
      rmSync(root, { recursive: true });
      return Promise.resolve();
    },
    secrets: [],
    close: () => Promise.resolve(rmSync(outer, { recursive: true, force: true })),
  };
}

describeBackendContract({
  name: "file",
  start: () => Promise.resolve({ create: () => Promise.resolve(createStore()), stop: () => Promise.resolve() }),
  severalPages: 2_500,
  folderMarkers: [],
  clockUntold: "a folder's times are its writers'",
  withoutNetwork: "a folder has none; what a crash leaves is tested in test/cli/crash.test.ts",
});

describe("file:// URLs, as Pulumi reads them", () => {
  it.each([
    ["file:///srv/state", "/srv/state"],
    ["file:///srv/state/", "/srv/state"],
    ["file:///srv/a%20b", "/srv/a b"],
    ["file:///srv/state?no_tmp_dir=true", "/srv/state"],
    ["file:///srv/state?create_dir=1&metadata=skip", "/srv/state"],
    ["file://~", homedir()],
    ["file://~/state", `${homedir()}/state`],
    ["file://./state", join(process.cwd(), "state")],
    ["file://.", process.cwd()],
    ["file://state", join(process.cwd(), "state")],
  ])("%s", (url, root) => {
    expect(readFileSettings(url, homedir()).root).toBe(root);
  });

  it.each([
    ["file://", "needs a folder"],
    ["file://~other/state", "another user's home"],
    ["file:///srv/state?nope=1", "no parameter"],
  ])("%s is refused", (url, message) => {
    expect(() => readFileSettings(url, homedir())).toThrow(expect.objectContaining({ code: "backend-url-invalid", message: expect.stringContaining(message) }));
  });
});

describe("the file backend's own", () => {
  const KEY = ".pulumi/locks/organization/shop/prod/1.json";

  it("takes a symbolic link for no lock, and does not follow it", async () => {
    const store = createStore();
    const backend = await store.open();
    await store.put(".pulumi/locks/organization/shop/prod/other.json", aLock());
    const root = backend.identity.scheme === "file" ? backend.identity.path : "";
    symlinkSync("/etc/hostname", join(root, KEY));
    expect(await backend.readLock(KEY, new AbortController().signal)).toMatchObject({ kind: "found", content: { kind: "unreadable", reason: "not-a-file" } });
    await store.close();
  });

  it("recovers a lock that was left aside: removed where an intent says so, else put back, never over another", async () => {
    const store = createStore();
    const backend = await store.open();
    const aside = ".pulumi-lock-janitor/aside/a-crashed-run/";
    await store.put(KEY, aLock());
    const read = await backend.readLock(KEY, new AbortController().signal);
    const body = (await store.get(KEY)) ?? new Uint8Array();
    // The version has the file's time in it, which a rename keeps and a copy does not.
    await store.put(`${aside}${KEY}`, body);
    await store.remove(KEY);
    expect(await backend.recover?.(() => false)).toEqual([{ key: KEY, action: "put-back" }]);
    expect(await store.get(KEY)).toEqual(body);

    await store.put(`${aside}${KEY}`, aLock("newer-workspace-0"));
    expect(await backend.recover?.(() => false)).toEqual([{ key: KEY, action: "left-aside" }]);
    expect(await store.get(KEY)).toEqual(body);

    await store.remove(KEY);
    expect(await backend.recover?.(() => true)).toEqual([{ key: KEY, action: "deleted" }]);
    expect([await store.get(KEY), await store.get(`${aside}${KEY}`)]).toEqual([undefined, undefined]);
    expect(read.kind).toBe("found");
    await store.close();
  });

  it.each(["../../etc/passwd", ".pulumi/locks/../../x.json", ".pulumi/stacks/x.json", ".pulumi/locks//x.json"])(
    "refuses the key %s of a forged record",
    async (key) => {
      const store = createStore();
      const backend = await store.open();
      await expect(backend.createLock(key, aLock())).rejects.toMatchObject({ code: "record-invalid" });
      await store.close();
    },
  );
});
