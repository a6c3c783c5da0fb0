import pLimit from "p-limit";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import type { Backend, LockEntry } from "../../src/backends/backend.ts";
import { formatIdentity } from "../../src/core/backend-identity.ts";
import { MAX_LOCK_BYTES } from "../../src/core/lock.ts";
import { JanitorError } from "../../src/errors.ts";
import { readLocks } from "../../src/read-locks.ts";

/** Faults that a fixture can play; a backend without a network states that it has none. */
export interface FaultSwitch {
  /** The server says no to requests of a kind. */
  readonly deny: (what: "list" | "read" | "delete" | "write") => void | Promise<void>;
  /** The server never answers. */
  readonly hang: () => void;
  /** The connection is cut before the server sees the request. */
  readonly cut: () => void;
  /** The first delete is done by the server, and its answer lost. `denied`: the server says no to every delete and read that follows. */
  readonly loseAnswerOfDelete: (whatFollows?: "denied") => void;
  /** The listing goes on for ever with the same token, or ends too early where the protocol lets one see it. */
  readonly lieAboutListing: () => void;
  readonly heal: () => void | Promise<void>;
}

/** One empty store, made anew for each test; keys are relative to the backend's prefix. */
export interface StoreFixture {
  /** With small pages, unless the pages of real use are wanted. */
  readonly open: (options?: { readonly wholePages: boolean }) => Promise<Backend>;
  readonly put: (key: string, body: Uint8Array) => Promise<void>;
  readonly get: (key: string) => Promise<Uint8Array | undefined>;
  readonly remove: (key: string) => Promise<void>;
  /** Puts an object beside the prefix, where the backend must not look. */
  readonly putOutside: (key: string, body: Uint8Array) => Promise<void>;
  /** Makes the whole container, bucket or folder go away. */
  readonly destroy: () => Promise<void>;
  /** Absent only where the backend states why. */
  readonly faults?: FaultSwitch;
  /** Text that must never be in a message. */
  readonly secrets: readonly string[];
  readonly close: () => Promise<void>;
}

/** A backend under the contract. */
export interface ContractedBackend {
  readonly name: string;
  /** Starts what all tests share. */
  readonly start: () => Promise<{ readonly create: () => Promise<StoreFixture>; readonly stop: () => Promise<void> }>;
  /** How many locks make at least three pages. */
  readonly severalPages: number;
  /** Folder markers as the store has them; none where a folder is no object. */
  readonly folderMarkers: readonly string[];
  /** Why of two deletes at once both may be told that they removed the lock; absent where the store tells exactly one. */
  readonly racesUntold?: string;
  /** How many locks a peer bears that is too slow for 10,000, and why. */
  readonly slowPeer?: { readonly locks: number; readonly why: string };
  /** Why a listing of this store cannot end too early. */
  readonly listingCannotLie?: string;
  /** What the preflight can tell without writing; both, unless said otherwise. */
  readonly preflight?: readonly ["allowed" | "unknown", "allowed" | "unknown"];
  /** Why the store tells no time of its own. */
  readonly clockUntold?: string;
  /** Why the tests of a bad network do not apply; absent for every backend that has one. */
  readonly withoutNetwork?: string;
}

const KEY = ".pulumi/locks/organization/shop/prod/2b77c4d1-8e2f-4b8e-a1a5-6f2b0c9d8e7f.json";
const CHECKPOINT = ".pulumi/stacks/shop/prod.json";
const never = new AbortController().signal;

export function aLock(hostname = "app-workspace-0", pid = 7): Uint8Array {
  return Buffer.from(JSON.stringify({ pid, username: "pulumi", hostname, timestamp: "2026-03-10T11:00:00.123456789Z" }));
}

/** Every backend keeps the same promises: this is the list of them. */
export function describeBackendContract({
  name,
  start,
  severalPages,
  folderMarkers,
  withoutNetwork,
  racesUntold,
  listingCannotLie,
  clockUntold,
  slowPeer,
  preflight: [mayRemove, mayRecord] = ["allowed", "allowed"],
}: ContractedBackend): void {
  describe(`the contract of backends: ${name}`, () => {
    let shared: Awaited<ReturnType<ContractedBackend["start"]>>;
    let store: StoreFixture;
    let backend: Backend;
    beforeAll(async () => {
      shared = await start();
    }, 60_000);
    afterAll(async () => {
      await shared.stop();
    });
    beforeEach(async () => {
      store = await shared.create();
      backend = await store.open();
      return async () => {
        await backend.close();
        await store.close();
      };
    });

    const listKeys = async (): Promise<readonly string[]> => (await listAll(backend)).map(({ key }) => key).toSorted();
    const versionOf = async (key: string): Promise<string> => {
      const read = await backend.readLock(key, never);
      if (read.kind === "gone") throw new Error(`${key} is gone`);
      return read.version;
    };
    const faults = (): FaultSwitch => {
      if (store.faults === undefined) throw new Error("the fixture plays no faults, and does not say why");
      return store.faults;
    };

    describe("listing", () => {
      it("an empty store has no locks, and that is no error", async () => {
        expect(await listKeys()).toEqual([]);
      });

      it("finds every object below .pulumi/locks in both layouts, whatever it is called", async () => {
        const keys = [
          KEY,
          ".pulumi/locks/pulumi-operator.dev.global/6f0e2a4c.json",
          ".pulumi/locks/organization/9e01.json",
          ".pulumi/locks/organization/shop/prod/manual.json",
          ".pulumi/locks/organization/shop/prod/README.txt",
          ".pulumi/locks/organization/shop/prod/83aa.json.189c2f4e6b1d3a00.tmp",
        ];
        for (const key of keys) await store.put(key, aLock());
        expect(await listKeys()).toEqual(keys.toSorted());
      });

      it.each([
        "with space",
        "ünï çødé 日本",
        "100%",
        "a+b",
        "a#b",
        "a&b=c",
        "q?x",
        "quote'\"",
        "__0x1f__",
        "x".repeat(200),
        "dots..in",
        "comma,semi;",
        "[brackets]{braces}",
      ])("takes the odd name %j through list, read and delete", async (odd) => {
        const key = `.pulumi/locks/organization/shop/prod/${odd}.json`;
        await store.put(key, aLock());
        expect(await listKeys()).toEqual([key]);
        expect(await backend.deleteLock(key, await versionOf(key))).toMatchObject({ kind: "deleted" });
        expect(await store.get(key)).toBeUndefined();
      });

      it("leaves out folder markers", async () => {
        for (const marker of folderMarkers) await store.put(marker, new Uint8Array());
        await store.put(KEY, aLock());
        expect(await listKeys()).toEqual([KEY]);
      });

      it("looks neither beside the prefix nor beside the folder of locks", async () => {
        await store.putOutside(KEY, aLock());
        await store.put(".pulumi/locks-old/organization/shop/prod/1.json", aLock());
        await store.put(".pulumi/stacks/shop/prod.json", aLock());
        await store.put(".pulumi-lock-janitor/audit/1.json", aLock());
        expect(await listKeys()).toEqual([]);
      });

      it("goes through all pages", async () => {
        const keys = Array.from({ length: severalPages }, (_, number) => `.pulumi/locks/organization/shop/stack-${number}/lock.json`);
        for (const key of keys) await store.put(key, aLock());
        expect(await listKeys()).toEqual(keys.toSorted());
      });

      // Half a minute on some stores, so only the end-to-end run takes the contract whole.
      // oxlint-disable-next-line vitest/no-conditional-tests -- as said.
      if (process.env["CONTRACT"] === "whole") {
        const many = slowPeer?.locks ?? 10_000;
        it(`lists and reads ${many} locks, each once`, async () => {
          const keys = Array.from({ length: many }, (_, number) => `.pulumi/locks/organization/shop/stack-${number % 500}/${number}.json`);
          await putMany(store, keys);
          const whole = await store.open({ wholePages: true });
          const { locks: read } = await readLocks(
            whole,
            () => true,
            never,
            () => undefined,
          );
          await whole.close();
          expect(new Set(read.map(({ key }) => key)).size).toBe(many);
          expect(read.filter(({ content }) => content.kind === "readable")).toHaveLength(many);
        }, 180_000);
      }

      it("a store that is not there is an error, never an empty list", async () => {
        await store.destroy();
        await expectError(listKeys(), "backend-missing");
      });
    });

    describe("reading", () => {
      it("gives the body as it is, and when it was stored", async () => {
        await store.put(KEY, aLock());
        const read = await backend.readLock(KEY, never);
        expect(read).toMatchObject({
          kind: "found",
          content: { kind: "readable", owner: { hostname: "app-workspace-0", pid: 7, timestamp: "2026-03-10T11:00:00.123456789Z" } },
        });
        const entry = (await listAll(backend))[0];
        const storedAt = (read.kind === "found" ? read.storedAt : undefined) ?? entry?.storedAt ?? 0n;
        expect(Math.abs(Number(storedAt / 1_000_000n) - Date.now())).toBeLessThan(60_000);
      });

      it("tells the store's clock once a lock was read, where the store has one", async () => {
        await store.put(KEY, aLock());
        await backend.readLock(KEY, never);
        const offset = backend.clockOffset();
        const told = offset === undefined ? "nothing" : Math.abs(Number(offset / 1_000_000n)) < 5_000 ? "about the same" : `${offset} ns`;
        expect(told).toBe(clockUntold === undefined ? "about the same" : "nothing");
      });

      it("tells a lock that is gone", async () => {
        expect(await backend.readLock(KEY, never)).toEqual({ kind: "gone" });
      });

      it.each([
        ["empty", ""],
        ["not-json", '{"pid":61,"hostn'],
        ["not-a-lock", "null"],
        ["too-large", "x".repeat(MAX_LOCK_BYTES + 1)],
      ])("says what is wrong with a body: %s", async (reason, body) => {
        await store.put(KEY, Buffer.from(body));
        expect(await backend.readLock(KEY, never)).toMatchObject({ kind: "found", content: { kind: "unreadable", reason } });
      });

      it("an object far too large for a lock does not hold up the next read", async () => {
        const other = KEY.replace("2b77", "5ce1");
        await store.put(KEY, Buffer.alloc(4 * MAX_LOCK_BYTES, "x"));
        await store.put(other, aLock());
        expect(await backend.readLock(KEY, never)).toMatchObject({ content: { kind: "unreadable", reason: "too-large" } });
        expect(await backend.readLock(other, never)).toMatchObject({ content: { kind: "readable" } });
      });

      it("gives the same version twice, and another once the lock changed", async () => {
        await store.put(KEY, aLock());
        const [first, second] = [await versionOf(KEY), await versionOf(KEY)];
        await store.put(KEY, aLock("other-workspace-0"));
        expect([second === first, (await versionOf(KEY)) === first]).toEqual([true, false]);
      });
    });

    describe("reading a checkpoint", () => {
      it.each([
        [CHECKPOINT, 100_000],
        [`${CHECKPOINT}.gz`, 1],
        [".pulumi/stacks/pulumi-operator.dev.global.json", 70_000],
      ])("gives %s byte for byte", async (key, size) => {
        const body = Buffer.alloc(size, "state ");
        await store.put(key, body);
        const read = await backend.readState(key, size, never);
        if (read.kind !== "whole") throw new Error(`it is ${read.kind}`);
        expect(Buffer.from(read.bytes).equals(body)).toBe(true);
      });

      it("gives nothing of one that is larger than asked for", async () => {
        await store.put(CHECKPOINT, Buffer.alloc(100_000, "x"));
        const read = await backend.readState(CHECKPOINT, 60_000, never);
        expect(read).toMatchObject({ kind: "too-large" });
        expect(read.kind === "too-large" && read.size > 60_000).toBe(true);
        expect(await backend.readState(`${CHECKPOINT}.gz`, 60_000, never)).toEqual({ kind: "gone" });
      });

      it("tells one that is not there", async () => {
        expect(await backend.readState(CHECKPOINT, 1_000, never)).toEqual({ kind: "gone" });
      });

      it("P4: leaves the store as it is", async () => {
        await store.put(CHECKPOINT, Buffer.from("{}"));
        await backend.readState(CHECKPOINT, 1_000, never);
        expect(Buffer.from((await store.get(CHECKPOINT)) ?? []).toString()).toBe("{}");
      });
    });

    describe("P2: removing", () => {
      it("removes exactly the object that was read", async () => {
        const other = KEY.replace("2b77", "5ce1");
        await store.put(KEY, aLock());
        await store.put(other, aLock());
        expect(await backend.deleteLock(KEY, await versionOf(KEY))).toMatchObject({ kind: "deleted" });
        expect([await store.get(KEY), (await store.get(other))?.length]).toEqual([undefined, aLock().length]);
      });

      it("leaves a lock that changed since, byte for byte and in its place", async () => {
        await store.put(KEY, aLock());
        const version = await versionOf(KEY);
        const newer = aLock("other-workspace-0", 99);
        await store.put(KEY, newer);
        expect(await backend.deleteLock(KEY, version)).toEqual({ kind: "changed" });
        expect(Buffer.from((await store.get(KEY)) ?? [])).toEqual(Buffer.from(newer));
        expect(await listKeys()).toEqual([KEY]);
      });

      it("tells a lock that went away by itself", async () => {
        await store.put(KEY, aLock());
        const version = await versionOf(KEY);
        await store.remove(KEY);
        expect(await backend.deleteLock(KEY, version)).toEqual({ kind: "vanished" });
      });

      it("P6: of two at once one removes, and the other is told", async () => {
        const other = await store.open();
        for (let round = 0; round < 10; round += 1) {
          await store.put(KEY, aLock());
          const version = await versionOf(KEY);
          const outcomes = (await Promise.all([backend.deleteLock(KEY, version), other.deleteLock(KEY, version)])).map(({ kind }) => kind);
          const told =
            racesUntold === undefined
              ? [["deleted", "vanished"]]
              : [
                  ["deleted", "vanished"],
                  ["deleted", "deleted"],
                ];
          expect(told, `round ${round}`).toContainEqual(outcomes.toSorted());
        }
        await other.close();
      });
    });

    describe("putting back", () => {
      it("creates a lock byte for byte", async () => {
        expect(await backend.createLock(KEY, aLock())).toBe("created");
        expect(Buffer.from((await store.get(KEY)) ?? [])).toEqual(Buffer.from(aLock()));
      });

      it("never overwrites", async () => {
        await store.put(KEY, aLock("other-workspace-0"));
        expect(await backend.createLock(KEY, aLock())).toBe("exists");
        expect(Buffer.from((await store.get(KEY)) ?? [])).toEqual(Buffer.from(aLock("other-workspace-0")));
      });
    });

    describe("P3: records", () => {
      it("are created only if absent, listed and read", async () => {
        expect(await backend.records.list(never)).toEqual([]);
        expect(await backend.records.create("1.intent.json", Buffer.from("first"))).toBe("created");
        expect(await backend.records.create("1.intent.json", Buffer.from("second"))).toBe("exists");
        expect(await backend.records.create("2.intent.json", Buffer.from("other"))).toBe("created");
        expect((await backend.records.list(never)).toSorted()).toEqual(["1.intent.json", "2.intent.json"]);
        expect(Buffer.from((await backend.records.read("1.intent.json", never)) ?? []).toString()).toBe("first");
        expect(await backend.records.read("none.json", never)).toBeUndefined();
      });

      it("lie beside .pulumi, where Pulumi does not look", async () => {
        await backend.records.create("1.intent.json", Buffer.from("x"));
        expect(await store.get(".pulumi-lock-janitor/audit/1.intent.json")).toBeDefined();
        expect(await listKeys()).toEqual([]);
      });
    });

    describe("the preflight", () => {
      it("P4: tells that locks may be removed and records written, and does neither", async () => {
        await store.put(KEY, aLock());
        expect(await backend.checkWrites()).toMatchObject([
          { action: "remove locks", kind: mayRemove },
          { action: "write records", kind: mayRecord },
        ]);
        expect([await listKeys(), await backend.records.list(never)]).toEqual([[KEY], []]);
        expect(backend.credential).not.toBe("");
        for (const secret of store.secrets) expect(backend.credential).not.toContain(secret);
      });
    });

    if (withoutNetwork !== undefined) return;

    describe("when it goes wrong", () => {
      it("P5: a denied list is an error that names backend, action and what is missing", async () => {
        await store.put(KEY, aLock());
        await faults().deny("list");
        const error = await expectError(listKeys(), "backend-denied");
        expect(error.message).toContain("list the locks");
        expect(error.hint).toBeDefined();
      });

      it("a denied read keeps the lock, unread", async () => {
        await store.put(KEY, aLock());
        await faults().deny("read");
        expect(await backend.readLock(KEY, never)).toMatchObject({ kind: "found", content: { kind: "unread" } });
      });

      it("a denied checkpoint is an error that names what is missing, and no empty one", async () => {
        await store.put(CHECKPOINT, Buffer.from("{}"));
        await faults().deny("read");
        const error = await expectError(backend.readState(CHECKPOINT, 1_000, never), "backend-denied");
        expect(error.message).toContain("read a checkpoint");
        expect(error.hint).toBeDefined();
      });

      it("a denied delete and a denied record are errors, and the lock stays", async () => {
        await store.put(KEY, aLock());
        const version = await versionOf(KEY);
        await faults().deny("delete");
        await expectError(backend.deleteLock(KEY, version), "backend-denied");
        await faults().deny("write");
        await expectError(backend.records.create("1.intent.json", Buffer.from("x")), "backend-denied");
        await faults().heal();
        expect(await store.get(KEY)).toBeDefined();
      });

      it.each([
        ["delete", "denied", mayRecord],
        ["write", mayRemove, mayRecord === "unknown" ? "unknown" : "denied"],
      ] as const)("the preflight tells a denied %s", async (what, removing, recording) => {
        await faults().deny(what);
        expect((await backend.checkWrites()).map(({ kind }) => kind)).toEqual([removing, recording]);
      });

      it("a server that never answers ends within the request's time", async () => {
        faults().hang();
        await expectError(listKeys(), "backend-unreachable");
      });

      it("a connection that is always cut ends as unreachable, after few tries", async () => {
        faults().cut();
        await expectError(listKeys(), "backend-unreachable");
      });

      it("a delete whose answer was lost is told as unconfirmed", async () => {
        await store.put(KEY, aLock());
        const version = await versionOf(KEY);
        faults().loseAnswerOfDelete();
        expect(await backend.deleteLock(KEY, version)).toEqual({ kind: "deleted-unconfirmed" });
        await faults().heal();
        expect(await store.get(KEY)).toBeUndefined();
      });

      it("once a delete had no answer, a refusal of what follows does not tell that the lock is still there", async () => {
        await store.put(KEY, aLock());
        const version = await versionOf(KEY);
        faults().loseAnswerOfDelete("denied");
        const error = await expectError(backend.deleteLock(KEY, version), "backend-unreachable");
        expect(error).toMatchObject({ message: expect.stringContaining("it may have been removed"), hint: "The next run tells." });
        expect(error.cause).toMatchObject({ code: "backend-denied" });
        await faults().heal();
        expect(await store.get(KEY)).toBeUndefined();
      });

      if (listingCannotLie !== undefined) return;

      it("P5: a listing that lies is an error", async () => {
        for (let number = 0; number < severalPages; number += 1) await store.put(`.pulumi/locks/a/${number}.json`, aLock());
        faults().lieAboutListing();
        await expectError(listKeys(), "backend-listing-broken");
      });
    });

    async function expectError(work: Promise<unknown>, code: JanitorError["code"]): Promise<JanitorError> {
      const error: unknown = await work.then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      if (!(error instanceof JanitorError)) throw new Error(`no JanitorError, but ${String(error)}`, { cause: error });
      expect(error.code).toBe(code);
      expect(error.message).toContain(formatIdentity(backend.identity));
      for (const secret of store.secrets) expect(`${error.message} ${error.hint ?? ""}`).not.toContain(secret);
      return error;
    }
  });
}

/** Puts many objects, some at a time. */
async function putMany(store: StoreFixture, keys: readonly string[]): Promise<void> {
  const limit = pLimit(32);
  await Promise.all(keys.map((key) => limit(() => store.put(key, aLock()))));
}

async function listAll(backend: Backend): Promise<readonly LockEntry[]> {
  const entries: LockEntry[] = [];
  for await (const page of backend.listLocks(never)) entries.push(...page);
  return entries;
}
