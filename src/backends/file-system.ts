import { randomUUID } from "node:crypto";
import { constants, type BigIntStats } from "node:fs";
import { link, lstat, mkdir, open, readdir, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";

import { describeError, JanitorError, systemCode, type ErrorCode } from "../errors.ts";

/** Runs an operation for which a missing file is an answer: undefined then. */
export async function unlessMissing<Value>(operation: Promise<Value>): Promise<Value | undefined> {
  try {
    return await operation;
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}

/** Turns a file error into one that names the backend, what was tried and what to do. */
export function wrapFileError(error: unknown, backend: string, action: string): JanitorError {
  if (error instanceof JanitorError) return error;
  const code = systemCode(error);
  const [kind, problem, hint] = describeCode(code);
  return new JanitorError(kind, `${backend}: could not ${action}: ${problem ?? describeError(error)}`, {
    cause: error,
    ...(hint === undefined ? {} : { hint }),
  });
}

function describeCode(code: string | undefined): readonly [ErrorCode, string | undefined, string | undefined] {
  switch (code) {
    case "EACCES":
    case "EPERM":
      return ["backend-denied", "permission denied", "The janitor's user needs to read, and to remove, files there."];
    case "ENOENT":
    case "ENOTDIR":
      return ["backend-missing", "there is no such folder", "Check the URL, and that the volume is mounted here."];
    case "EROFS":
      return ["backend-denied", "the file system is read-only", "Mount the volume for writing."];
    case "ENOSPC":
    case "EDQUOT":
      return ["backend-failed", "no space is left, so no record could be written", "Free some space: nothing is removed without a record."];
    case "EXDEV":
      return [
        "backend-failed",
        "the folder of locks is a mount of its own",
        "Mount the whole backend as one file system: a lock is moved aside before it is removed.",
      ];
    case undefined:
    default:
      return ["backend-failed", undefined, undefined];
  }
}

/** Makes what was written to a folder (a new, renamed or removed entry) survive a loss of power. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } catch (error) {
    // Windows and some network file systems cannot sync a folder: the entry is then as durable as they make it.
    const code = systemCode(error);
    if (code !== "EPERM" && code !== "EINVAL" && code !== "EBADF" && code !== "ENOTSUP") throw error;
  } finally {
    await handle.close();
  }
}

/** Makes a folder and every missing one above it, durably. */
export async function makeFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true });
  if (first === undefined) return;
  for (let made = folder; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made));
}

/** The ending of files that are being written. */
export const DRAFT = ".draft";

/**
 * Writes a file durably, only if none of that name is there; nobody ever sees a part of it. `draftFolder` is where it is written first, on the same file
 * system.
 */
export async function createFile(path: string, bytes: Uint8Array, draftFolder: string): Promise<"created" | "exists"> {
  const draft = join(draftFolder, `.${randomUUID()}${DRAFT}`);
  const handle = await open(draft, "wx", 0o644);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
  try {
    await link(draft, path);
  } catch (error) {
    if (systemCode(error) === "EEXIST") return "exists";
    throw error;
  } finally {
    await unlink(draft);
  }
  await syncFolder(dirname(path));
  return "created";
}

/** What a path holds: the bytes of a regular file up to a limit, with its stat; or that it is none. */
export type FileRead =
  | { readonly kind: "file"; readonly bytes: Uint8Array; readonly stats: BigIntStats }
  | { readonly kind: "too-large"; readonly stats: BigIntStats }
  | { readonly kind: "not-a-file"; readonly stats: BigIntStats };

/** Reads at most `limit` bytes of a regular file, never through a symbolic link; undefined when nothing is there. */
export async function readRegularFile(path: string, limit: number): Promise<FileRead | undefined> {
  const stats = await unlessMissing(lstat(path, { bigint: true }));
  if (stats === undefined) return undefined;
  if (!stats.isFile()) return { kind: "not-a-file", stats };
  if (stats.size > BigInt(limit)) return { kind: "too-large", stats };
  const handle = await unlessMissing(open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0)));
  if (handle === undefined) return undefined;
  try {
    const opened = await handle.stat({ bigint: true });
    if (opened.size > BigInt(limit)) return { kind: "too-large", stats: opened };
    return { kind: "file", bytes: new Uint8Array(await handle.readFile()), stats: opened };
  } finally {
    await handle.close();
  }
}

/** How many folders are listed at once: each waits in memory with what it holds. */
const FOLDERS_AT_ONCE = 16;

/** Every file below a folder that is no folder itself, as paths relative to it with "/" between; none where it is missing. */
export async function listFiles(folder: string): Promise<readonly string[]> {
  const files: string[] = [];
  const folders = [""];
  const listSome = async (): Promise<void> => {
    for (let path = folders.pop(); path !== undefined; path = folders.pop()) {
      const entries = (await unlessMissing(readdir(join(folder, path), { withFileTypes: true }))) ?? [];
      for (const entry of entries) {
        if (entry.isDirectory()) folders.push(`${path}${entry.name}/`);
        else files.push(path + entry.name);
      }
    }
  };
  while (folders.length > 0) await Promise.all(Array.from({ length: FOLDERS_AT_ONCE }, listSome));
  return files.toSorted();
}

/** True when the path is a folder; throws where that cannot be told. */
export async function isFolder(path: string): Promise<boolean> {
  return (await unlessMissing(stat(path)))?.isDirectory() ?? false;
}
