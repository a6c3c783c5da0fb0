import { open } from "node:fs/promises";

import type { AuditRecord } from "../core/record.ts";
import { describeError, JanitorError } from "../errors.ts";
import type { AuditPage } from "./audit-log.ts";
import { foldPage, tryRecord, type ReadRecord } from "./browse-records.ts";

/** Which records of a file are asked for: a file may hold those of several backends. */
type RecordFilter = (record: AuditRecord) => boolean;

/** Reads the removals of a file of records, the newest first. Throws `record-failed` where the file cannot be read, also when there is none. */
export async function* browseFile(path: string, wanted: RecordFilter): AsyncGenerator<AuditPage> {
  yield await readFileOnce(path, wanted);
}

/** Reads all that a file of records has of one removal. Throws as `browseFile`. */
export async function findInFile(path: string, id: string, wanted: RecordFilter): Promise<AuditPage> {
  return await readFileOnce(path, (record) => record.id === id && wanted(record), id);
}

/** `about`: what a line that cannot be read must hold to be told; empty for every such line. */
async function readFileOnce(path: string, wanted: RecordFilter, about = ""): Promise<AuditPage> {
  const read: ReadRecord[] = [];
  try {
    const file = await open(path, "r");
    let number = 0;
    for await (const line of file.readLines({ encoding: "utf8" })) {
      number += 1;
      if (line.trim() === "") continue;
      const item = tryRecord(line, `${path}, line ${number},`);
      if (item.kind === "unreadable" ? line.includes(about) : wanted(item.record)) read.push(item);
    }
  } catch (error) {
    throw new JanitorError("record-failed", `the audit log ${path} could not be read: ${describeError(error)}`, {
      cause: error,
      hint: "--audit-log names the file that the removals were written to.",
    });
  }
  return foldPage(`${path}, `, read);
}
