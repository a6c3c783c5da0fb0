import { open, readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";

import { formatIdentity, type BackendIdentity } from "../core/backend-identity.ts";
import type { AuditRecord } from "../core/record.ts";
import { describeError, JanitorError, systemCode } from "../errors.ts";
import { kindWithin, parseRecord, sortHistories, type AuditLog } from "./audit-log.ts";
import { browseFile, findInFile } from "./browse-file.ts";

/**
 * The audit log as lines of JSON in one file (`--audit-log FILE`), of which one backend's part is seen, or all without one. Each line is on the disk before the
 * removal goes on.
 */
export function openFileAuditLog(file: string, backend?: BackendIdentity): AuditLog {
  const path = resolve(file);
  const place = backend === undefined ? undefined : formatIdentity(backend);
  const isWanted = (record: AuditRecord): boolean => place === undefined || formatIdentity(record.backend) === place;
  const readRecords = async (): Promise<readonly AuditRecord[]> => (await readLines(path)).filter(isWanted);
  return {
    place: path,
    append: async (record, kind) => {
      const records = await readRecords();
      if (records.some((known) => known.id === record.id && kindWithin(known, records) === kind)) return "exists";
      await appendLine(path, JSON.stringify(record));
      return "created";
    },
    browse: () => browseFile(path, isWanted),
    find: (id) => findInFile(path, id, isWanted),
    readAll: async () => sortHistories(await readRecords()),
    readOpen: async () => sortHistories(await readRecords()).flatMap(({ intent, outcome }) => (outcome === undefined ? [intent] : [])),
    findRestored: async (keys) =>
      new Set(sortHistories(await readRecords()).flatMap(({ intent, restored }) => (restored !== undefined && keys.includes(intent.key) ? [intent.key] : []))),
  };
}

async function readLines(path: string): Promise<readonly AuditRecord[]> {
  const lines = (await readText(path)).split("\n");
  return lines.flatMap((line, index) => {
    if (line.trim() === "") return [];
    try {
      return [parseRecord(line, `${path}, line ${index + 1},`)];
    } catch (error) {
      // A crash in the middle of a write leaves a cut line; its removal had not begun, or its outcome is completed anew.
      if (!isWholeJson(line)) return [];
      throw error;
    }
  });
}

function isWholeJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false;
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (systemCode(error) === "ENOENT") return "";
    throw new JanitorError("record-failed", `the audit log ${path} could not be read: ${describeError(error)}`, { cause: error });
  }
}

async function appendLine(path: string, line: string): Promise<void> {
  try {
    const handle = await open(path, "a+", 0o600);
    try {
      const { size } = await handle.stat();
      const last = Buffer.alloc(1);
      if (size > 0) await handle.read(last, 0, 1, size - 1);
      await handle.appendFile(size > 0 && last[0] !== 0x0a ? `\n${line}\n` : `${line}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    const folder = await open(dirname(path), "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  } catch (error) {
    throw new JanitorError("record-failed", `the audit log ${path} could not be written, so nothing is removed: ${describeError(error)}`, { cause: error });
  }
}
