import pLimit from "p-limit";

import type { RecordStore } from "../backends/backend.ts";
import { isWithin, type TimeSpan, type UnreadableRecord } from "../core/audit-entry.ts";
import { EVENT_KINDS, type AuditRecord, type EventKind } from "../core/record.ts";
import { parseTimestamp, SECOND, type EpochNanoseconds } from "../core/time.ts";
import { describeWithHint, JanitorError } from "../errors.ts";
import { parseRecord, sortHistories, type AuditPage } from "./audit-log.ts";

/** How many records are read at once. */
export const READS_AT_ONCE = 16;

const REMOVALS_PER_PAGE = 100;

/** The name of one event's object: `<id>.<kind>.json`. */
export interface RecordName {
  readonly id: string;
  readonly kind: EventKind;
  readonly name: string;
}

/** Reads a record's name; nothing for what is no record's. */
export function parseName(name: string): readonly RecordName[] {
  const match = /^([0-9A-Za-z-]+)\.([a-z]+)\.json$/.exec(name);
  const kind = EVENT_KINDS.find((candidate) => candidate === match?.[2]);
  return match?.[1] === undefined || kind === undefined ? [] : [{ id: match[1], kind, name }];
}

/** Reads the removals of a store of records page by page. Throws where the store itself cannot be read. */
export async function* browseStore(records: RecordStore, span: TimeSpan, signal: AbortSignal): AsyncGenerator<AuditPage> {
  const names = (await records.list(signal)).flatMap(parseName).filter(({ id }) => mayBeWithin(id, span));
  const byId = Map.groupBy(names, ({ id }) => id);
  const ids = Array.from(byId.keys()).toSorted().toReversed();
  for (let start = 0; start < ids.length; start += REMOVALS_PER_PAGE) {
    const page = ids.slice(start, start + REMOVALS_PER_PAGE);
    yield await readPage(
      records,
      page.flatMap((id) => byId.get(id) ?? []),
      signal,
    );
  }
}

/** Reads all that a store of records has of one removal, without listing the store. */
export async function findInStore(records: RecordStore, id: string, signal: AbortSignal): Promise<AuditPage> {
  // Nothing else names a record, and what a person writes must not lead out of the folder.
  if (!/^[0-9A-Za-z-]+$/.test(id)) return { removals: [], unreadable: [] };
  const read = await Promise.all(EVENT_KINDS.map(async (kind) => await readOne(records, { id, kind, name: `${id}.${kind}.json` }, signal)));
  return foldPage(
    records.place,
    read.filter((item) => item !== undefined),
  );
}

/** A record, or why it could not be read. */
export type ReadRecord = { readonly kind: "record"; readonly record: AuditRecord } | { readonly kind: "unreadable"; readonly problem: UnreadableRecord };

/** Puts what was read together; an event whose intent is missing is told, unless that one could not be read. */
export function foldPage(place: string, read: readonly ReadRecord[]): AuditPage {
  const { records, unreadable } = sortOut(read);
  const removals = sortHistories(records).toReversed();
  const known = new Set(removals.map(({ id }) => id));
  const lost = new Set(records.map(({ id }) => id).filter((id) => !known.has(id) && !unreadable.some((problem) => problem.place.includes(id))));
  return { removals, unreadable: [...unreadable, ...Array.from(lost, (id) => ({ place: `${place}${id}`, message: "its intent is missing" }))] };
}

/** Keeps the records from what could not be read. */
export function sortOut(read: readonly ReadRecord[]): { readonly records: readonly AuditRecord[]; readonly unreadable: readonly UnreadableRecord[] } {
  return {
    records: read.flatMap((item) => (item.kind === "record" ? [item.record] : [])),
    unreadable: read.flatMap((item) => (item.kind === "unreadable" ? [item.problem] : [])),
  };
}

/** Reads one record, or tells why it is none. */
export function tryRecord(text: string, place: string): ReadRecord {
  try {
    return { kind: "record", record: parseRecord(text, place) };
  } catch (error) {
    return { kind: "unreadable", problem: { place, message: describeWithHint(error) } };
  }
}

async function readPage(records: RecordStore, names: readonly RecordName[], signal: AbortSignal): Promise<AuditPage> {
  return foldPage(records.place, await readAllListed(records, names, signal));
}

/** Reads the records that a listing named, or tells why one cannot be read. Throws where the store itself cannot be read. */
export async function readAllListed(records: RecordStore, names: readonly RecordName[], signal: AbortSignal): Promise<readonly ReadRecord[]> {
  const limit = pLimit(READS_AT_ONCE);
  return await Promise.all(names.map((name) => limit(async () => await readListed(records, name, signal))));
}

async function readListed(records: RecordStore, name: RecordName, signal: AbortSignal): Promise<ReadRecord> {
  const place = `${records.place}${name.name}`;
  try {
    const message = "it is listed and cannot be read: it is gone since, or too large for a record";
    return (await readOne(records, name, signal)) ?? { kind: "unreadable", problem: { place, message } };
  } catch (error) {
    // One object may be closed to us alone; whatever else goes wrong is the store's.
    if (error instanceof JanitorError && error.code === "backend-denied") return { kind: "unreadable", problem: { place, message: describeWithHint(error) } };
    throw error;
  }
}

async function readOne(records: RecordStore, { id, name }: RecordName, signal: AbortSignal): Promise<ReadRecord | undefined> {
  const place = `${records.place}${name}`;
  const bytes = await records.read(name, signal);
  if (bytes === undefined) return undefined;
  const read = tryRecord(new TextDecoder().decode(bytes), place);
  return read.kind === "record" && read.record.id !== id ? { kind: "unreadable", problem: { place, message: `it holds the record ${read.record.id}` } } : read;
}

/** When a removal was begun, as its id says: in whole seconds; undefined for an id of another form. */
function timeOfId(id: string): EpochNanoseconds | undefined {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-/.exec(id);
  if (match === null) return undefined;
  const [, year = "", month = "", day = "", hour = "", minute = "", second = ""] = match;
  return parseTimestamp(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

/** Leaves out what cannot lie in a stretch of time; the record itself has the last word. */
function mayBeWithin(id: string, { since, until }: TimeSpan): boolean {
  const at = timeOfId(id);
  return isWithin(at, { ...(since === undefined ? {} : { since: since - SECOND }), ...(until === undefined ? {} : { until }) });
}
