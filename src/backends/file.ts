import { createHash, randomUUID } from "node:crypto";
import { constants, type BigIntStats } from "node:fs";
import { access, link, lstat, mkdir, readdir, rename, rm, rmdir, unlink } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { dirname, join } from "node:path";

import { formatIdentity, type BackendIdentity } from "../core/backend-identity.ts";
import { LOCKS_FOLDER, STACKS_FOLDER } from "../core/key.ts";
import { describeTooLarge, MAX_LOCK_BYTES, parseLockBody, type LockContent } from "../core/lock.ts";
import { JanitorError, systemCode } from "../errors.ts";
import {
  RECORDS_FOLDER,
  type Backend,
  type BackendOptions,
  type Deletion,
  type LockEntry,
  type LockRead,
  type Recovered,
  type RecordStore,
  type StateRead,
  type WriteCheck,
} from "./backend.ts";
import { MAX_RECORD_BYTES } from "./driver.ts";
import { readFileSettings } from "./file-settings.ts";
import { createFile, DRAFT, isFolder, listFiles, makeFolder, readRegularFile, syncFolder, unlessMissing, wrapFileError, type FileRead } from "./file-system.ts";

/**
 * Where a lock waits between being taken out of its folder and being removed: outside `.pulumi/locks`, where Pulumi would count it, and
 * on the same file system. Below it a folder for each removal, and in that the lock under its key.
 */
const ASIDE_FOLDER = ".pulumi-lock-janitor/aside/";

/** gocloud keeps an object's metadata in a file beside it (blob/fileblob/attrs.go); it is no lock and goes with its lock. */
const ATTRS = ".attrs";

const NAMES_PER_PAGE = 1_000;

/** Milliseconds after which a draft is a crashed run's. */
const OLD_DRAFT = 600_000;

/** Opens a folder as a backend. Throws `backend-url-invalid`, and `backend-missing` when the folder is not there. */
export async function openFile({ url, now }: BackendOptions): Promise<Backend> {
  const settings = readFileSettings(url, homedir());
  const root = join(settings.root, settings.prefix);
  const identity: BackendIdentity = { scheme: "file", path: settings.root, prefix: settings.prefix };
  const backend = formatIdentity(identity);
  // gocloud puts the prefix before the key as it is; a prefix that is no folder would make other names of ".pulumi".
  if (settings.prefix !== "" && !settings.prefix.endsWith("/"))
    throw new JanitorError("backend-url-invalid", `${backend}: a prefix in a file:// URL has to end in "/"`, {
      hint: "Pulumi takes it as it is: write the URL as in its own PULUMI_BACKEND_URL.",
    });
  const guard = async <Value>(action: string, operation: () => Promise<Value>): Promise<Value> => {
    try {
      return await operation();
    } catch (error) {
      throw wrapFileError(error, backend, action);
    }
  };
  await guard("open the folder", async () => {
    if (!(await isFolder(settings.root)))
      throw new JanitorError("backend-missing", `${backend}: there is no such folder`, { hint: "Check the URL, and that the volume is mounted here." });
  });
  const folder = new LockFolder(root, now);
  return {
    identity,
    concurrency: 32,
    credential: `the user ${userInfo().username}`,
    checkWrites: async () => [await checkFolder("remove locks", join(root, LOCKS_FOLDER)), await checkFolder("write records", join(root, RECORDS_FOLDER))],
    records: openRecords(root, guard),
    listLocks: () => folder.listLocks(guard),
    readLock: async (key) => {
      try {
        return await folder.readLock(key);
      } catch (error) {
        return { kind: "found", version: "", content: { kind: "unread", problem: wrapFileError(error, backend, "read the lock").message } };
      }
    },
    readState: (key, mostBytes) => guard("read a checkpoint", () => readState(root, key, mostBytes)),
    deleteLock: (key, version) => guard("remove a lock", () => folder.deleteLock(key, version)),
    createLock: (key, body) => guard("put a lock back", () => folder.createLock(key, body)),
    // A folder has no clock of its own: its times are the writer's (on NFS too).
    clockOffset: () => undefined,
    recover: (hasIntent) => guard("recover a lock that was moved aside", () => folder.recover(hasIntent)),
    close: () => Promise.resolve(),
  };
}

type Guard = <Value>(action: string, operation: () => Promise<Value>) => Promise<Value>;

/** The locks below one folder. */
class LockFolder {
  readonly #root: string;
  readonly #now: () => number;

  constructor(root: string, now: () => number) {
    this.#root = root;
    this.#now = now;
  }

  async *listLocks(guard: Guard): AsyncGenerator<readonly LockEntry[]> {
    const names = await guard("list the locks", async () => {
      const found = await listFiles(join(this.#root, LOCKS_FOLDER));
      // No folder of locks is a backend that never had one; no root is a volume that went away.
      if (found.length === 0) await readdir(this.#root);
      return found;
    });
    const keys = names.filter((name) => !name.endsWith(ATTRS)).map((name) => LOCKS_FOLDER + name);
    for (let first = 0; first < keys.length; first += NAMES_PER_PAGE) yield keys.slice(first, first + NAMES_PER_PAGE).map((key) => ({ key }));
  }

  async readLock(key: string): Promise<LockRead> {
    const read = await readRegularFile(this.#path(key), MAX_LOCK_BYTES);
    if (read === undefined) return { kind: "gone" };
    return { kind: "found", version: versionOf(read), storedAt: read.stats.mtimeNs, content: contentOf(read) };
  }

  async deleteLock(key: string, version: string): Promise<Deletion> {
    const path = this.#path(key);
    const before = await readRegularFile(path, MAX_LOCK_BYTES);
    if (before === undefined) return { kind: "vanished" };
    if (versionOf(before) !== version) return { kind: "changed" };
    // No system call removes a file on a condition: it is taken out of its place, compared again, and only then removed.
    const slot = join(this.#root, ASIDE_FOLDER, randomUUID());
    const aside = join(slot, key);
    await mkdir(dirname(aside), { recursive: true });
    try {
      const moved = await unlessMissing(rename(path, aside).then(() => true));
      if (moved === undefined) return { kind: "vanished" };
      const after = await readRegularFile(aside, MAX_LOCK_BYTES);
      if (after !== undefined && versionOf(after) !== version) {
        await this.#putBack(aside, key);
        return { kind: "changed" };
      }
      if (after !== undefined && (await this.#removeAside(aside, key))) return { kind: "deleted", conditionEnforced: true };
      // Another janitor's recovery was faster: it has removed the lock, or put it back.
      return { kind: (await unlessMissing(lstat(path))) === undefined ? "deleted-unconfirmed" : "changed" };
    } finally {
      await removeEmptyFolders(dirname(aside), join(this.#root, ASIDE_FOLDER));
    }
  }

  async createLock(key: string, body: Uint8Array): Promise<"created" | "exists"> {
    const path = this.#path(key);
    await makeFolder(dirname(path));
    // The draft lies outside the folder of locks: Pulumi counts every file in it.
    const draftFolder = join(this.#root, ASIDE_FOLDER);
    await makeFolder(draftFolder);
    return await createFile(path, body, draftFolder);
  }

  async recover(hasIntent: (key: string, version: string) => boolean): Promise<readonly Recovered[]> {
    const folder = join(this.#root, ASIDE_FOLDER);
    for (const drafts of [folder, join(this.#root, RECORDS_FOLDER)]) await removeOldDrafts(drafts, this.#now());
    const recovered: Recovered[] = [];
    for (const name of await listFiles(folder)) {
      const key = name.slice(name.indexOf("/") + 1);
      const aside = join(folder, name);
      if (!key.startsWith(LOCKS_FOLDER)) continue;
      const read = await readRegularFile(aside, MAX_LOCK_BYTES);
      if (read === undefined) continue;
      if (hasIntent(key, versionOf(read))) {
        if (await this.#removeAside(aside, key)) recovered.push({ key, action: "deleted" });
      } else {
        recovered.push({ key, action: (await this.#putBack(aside, key)) ? "put-back" : "left-aside" });
      }
      await removeEmptyFolders(dirname(aside), folder);
    }
    return recovered;
  }

  /** Ends a removal; false when the lock is no longer aside. The attributes go first: a crash in between leaves the lock for the next run. */
  async #removeAside(aside: string, key: string): Promise<boolean> {
    const path = this.#path(key);
    if ((await unlessMissing(lstat(path))) === undefined) await rm(path + ATTRS, { force: true });
    const removed = (await unlessMissing(unlink(aside).then(() => true))) ?? false;
    await unlessMissing(syncFolder(dirname(path)));
    return removed;
  }

  /** Puts a lock that is not the judged one back into its place, never over another; false when the place is taken. */
  async #putBack(aside: string, key: string): Promise<boolean> {
    const path = this.#path(key);
    await mkdir(dirname(path), { recursive: true });
    try {
      await link(aside, path);
    } catch (error) {
      if (systemCode(error) === "ENOENT") return true;
      if (systemCode(error) !== "EEXIST") throw error;
      if (!(await isSameFile(aside, path))) return false;
    }
    await syncFolder(dirname(path));
    await unlessMissing(unlink(aside));
    return true;
  }

  #path(key: string): string {
    if (!isBelow(LOCKS_FOLDER, key)) throw new JanitorError("record-invalid", "this is no key of a lock");
    return join(this.#root, key);
  }
}

function isBelow(folder: string, key: string): boolean {
  return key.startsWith(folder) && key.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

async function readState(root: string, key: string, mostBytes: number): Promise<StateRead> {
  if (!isBelow(STACKS_FOLDER, key)) return { kind: "gone" };
  const read = await readRegularFile(join(root, key), mostBytes);
  if (read === undefined) return { kind: "gone" };
  if (read.kind === "file") return { kind: "whole", bytes: read.bytes };
  if (read.kind === "too-large") return { kind: "too-large", size: Number(read.stats.size) };
  throw new Error("it is no regular file");
}

function openRecords(root: string, guard: Guard): RecordStore {
  const folder = join(root, RECORDS_FOLDER);
  return {
    place: folder,
    create: (name, bytes) =>
      guard("write a record", async () => {
        await makeFolder(folder);
        return await createFile(join(folder, name), bytes, folder);
      }),
    list: () => guard("list the records", async () => (await listFiles(folder)).filter((name) => name.endsWith(".json") && !name.startsWith("."))),
    read: (name) =>
      guard("read a record", async () => {
        const read = await readRegularFile(join(folder, name), MAX_RECORD_BYTES);
        return read?.kind === "file" ? read.bytes : undefined;
      }),
  };
}

/** Whether a folder, or the nearest one above it that is there, may be written in. */
async function checkFolder(action: WriteCheck["action"], folder: string): Promise<WriteCheck> {
  for (let path = folder; ; path = dirname(path)) {
    try {
      await access(path, constants.W_OK | constants.X_OK);
      return { action, kind: "allowed", note: `${path} may be written in` };
    } catch (error) {
      if (systemCode(error) !== "ENOENT" || path === dirname(path))
        return { action, kind: "denied", note: `${path} may not be written in (${systemCode(error) ?? "unknown"})` };
    }
  }
}

function contentOf(read: FileRead): LockContent {
  switch (read.kind) {
    case "file":
      return parseLockBody(read.bytes);
    case "too-large":
      return describeTooLarge(Number(read.stats.size));
    case "not-a-file":
      return { kind: "unreadable", reason: "not-a-file", problem: "it is no regular file" };
  }
}

/** The version of a file: when it was written, how long it is and what it says. A rename changes none of these. */
function versionOf(read: FileRead): string {
  const digest = read.kind === "file" ? createHash("sha256").update(read.bytes).digest("hex") : read.kind;
  return `${read.stats.mtimeNs}-${read.stats.size}-${digest}`;
}

/** Removes what crashed runs had begun to write; a living one is done with a draft within seconds. */
async function removeOldDrafts(folder: string, now: number): Promise<void> {
  for (const name of await listFiles(folder)) {
    const path = join(folder, name);
    if (!name.startsWith(".") || !name.endsWith(DRAFT)) continue;
    const stats = await unlessMissing(lstat(path));
    if (stats !== undefined && now - stats.mtimeMs > OLD_DRAFT) await rm(path, { force: true });
  }
}

async function isSameFile(one: string, other: string): Promise<boolean> {
  const [first, second] = await Promise.all([one, other].map((path): Promise<BigIntStats | undefined> => unlessMissing(lstat(path, { bigint: true }))));
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev;
}

/** Removes a folder and the ones above it, up to but not including `top`, as long as they are empty. */
async function removeEmptyFolders(folder: string, top: string): Promise<void> {
  for (let path = folder; path.startsWith(top) && path !== top.replace(/[/\\]$/, ""); path = dirname(path)) {
    try {
      await rmdir(path);
    } catch {
      // Not empty, or gone already: both are as it should be.
      return;
    }
  }
}
