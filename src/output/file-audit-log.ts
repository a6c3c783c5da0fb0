import { open, readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";

import type { UnreadableRecord } from "../core/audit-entry.ts";
import { formatIdentity, type BackendIdentity } from "../core/backend-identity.ts";
import type { AuditRecord, RemovalHistory } from "../core/record.ts";
import { describeError, JanitorError, systemCode } from "../errors.ts";
import { hashKey, kindWithin, sortHistories, type AuditLog, type OpenRecords } from "./audit-log.ts";
import { browseFile, findInFile } from "./browse-file.ts";
import { tryRecord } from "./browse-records.ts";

/**
 * The audit log as lines of JSON in one file (`--audit-log FILE`), of which one backend's part is seen, or all without one. Each line is on the disk before the
 * removal goes on.
 */
export function openFileAuditLog(file: string, backend?: BackendIdentity): AuditLog {
  const path = resolve(file);
  const place = backend === undefined ? undefined : formatIdentity(backend);
  const isWanted = (record: AuditRecord): boolean => place === undefined || formatIdentity(record.backend) === place;
  const readWanted = async (): Promise<ReadLines> => {
    const { records, strange } = await readLines(path);
    return { records: records.filter(isWanted), strange };
  };
  return {
    place: path,
    append: async (record, kind) => {
      const { records } = await readWanted();
      if (records.some((known) => known.id === record.id && kindWithin(known, records) === kind)) return "exists";
      await appendLine(path, JSON.stringify(record));
      return "created";
    },
    browse: () => browseFile(path, isWanted),
    find: (id) => findInFile(path, id, isWanted),
    readAll: async () => {
      const { records, strange } = await readWanted();
      const problem = strange.find(({ content }) => content !== undefined)?.problem;
      if (problem !== undefined) throw new JanitorError("record-invalid", problem.message);
      return sortHistories(records);
    },
    readOpen: async () => findOpen(await readWanted()),
    findRestored: async (keys) => {
      const { records, strange } = await readWanted();
      // Also one whose intent cannot be read.
      const restored = new Set(records.filter(({ restoredAt }) => restoredAt !== undefined).map(({ key }) => key));
      const doubtful = strange.filter(maySayRestored);
      return new Set(keys.filter((key) => restored.has(key) || doubtful.some(({ text }) => isAbout(text, key))));
    },
  };
}

/** A line that is no record of this janitor. `content` is undefined for one that was cut: it is no JSON either. */
interface StrangeLine {
  readonly text: string;
  readonly content: unknown;
  readonly problem: UnreadableRecord;
}

interface ReadLines {
  readonly records: readonly AuditRecord[];
  readonly strange: readonly StrangeLine[];
}

async function readLines(path: string): Promise<ReadLines> {
  const records: AuditRecord[] = [];
  const strange: StrangeLine[] = [];
  for (const [index, text] of (await readText(path)).split("\n").entries()) {
    if (text.trim() === "") continue;
    const read = tryRecord(text, `${path}, line ${index + 1},`);
    if (read.kind === "record") records.push(read.record);
    else strange.push({ text, content: parseJson(text), problem: read.problem });
  }
  return { records, strange };
}

function findOpen({ records, strange }: ReadLines): OpenRecords {
  // A crash in the middle of a write leaves a cut line; its removal had not begun, or its outcome is completed anew.
  const whole = strange.filter(({ content }) => content !== undefined);
  // Any other line may be the outcome of the removal that it names.
  const isOpen = ({ id, outcome }: RemovalHistory): boolean => outcome === undefined && !whole.some(({ text }) => text.includes(id));
  return {
    intents: sortHistories(records)
      .filter(isOpen)
      .map(({ intent }) => intent),
    unreadable: whole.map(({ problem }) => problem),
  };
}

/** Whether a line that cannot be read may be what `restore` wrote. A line that was cut is that only with its last field: no lock is put back before its record is whole. */
function maySayRestored({ text, content }: StrangeLine): boolean {
  if (content === undefined) return text.includes('"restoredAt"');
  return !(typeof content === "object" && content !== null && "event" in content && content.event === "intent");
}

/** Whether a line that cannot be read names a lock: by its key, or by the id of its record. */
function isAbout(text: string, key: string): boolean {
  return text.includes(hashKey(key)) || text.includes(JSON.stringify(key));
}

/** Undefined for what is no JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
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
