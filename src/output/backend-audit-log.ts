import pLimit from "p-limit";

import type { RecordStore } from "../backends/backend.ts";
import type { AuditRecord } from "../core/record.ts";
import { hashKey, parseRecord, sortHistories, type AuditLog } from "./audit-log.ts";
import { browseStore, findInStore, parseName, readAllListed, READS_AT_ONCE, sortOut, type RecordName } from "./browse-records.ts";

/** The audit log inside a backend: one object for each event, `<id>.<kind>.json`, created only if absent. */
export function openBackendAuditLog(records: RecordStore): AuditLog {
  const readNamed = async (names: readonly RecordName[], signal: AbortSignal): Promise<readonly AuditRecord[]> => {
    const limit = pLimit(READS_AT_ONCE);
    const read = await Promise.all(
      names.map(({ name }) =>
        limit(async () => {
          const bytes = await records.read(name, signal);
          return bytes === undefined ? undefined : parseRecord(new TextDecoder().decode(bytes), `${records.place}${name}`);
        }),
      ),
    );
    return read.filter((record) => record !== undefined);
  };
  const list = async (signal: AbortSignal): Promise<readonly RecordName[]> => (await records.list(signal)).flatMap(parseName);
  return {
    place: records.place,
    append: (record, kind) => records.create(`${record.id}.${kind}.json`, new TextEncoder().encode(`${JSON.stringify(record, undefined, 2)}\n`)),
    browse: (span, signal) => browseStore(records, span, signal),
    find: (id, signal) => findInStore(records, id, signal),
    readAll: async (signal) => sortHistories(await readNamed(await list(signal), signal)),
    readOpen: async (signal) => {
      const names = await list(signal);
      const ended = new Set(names.filter(({ kind }) => kind === "outcome" || kind === "completed").map(({ id }) => id));
      const open = names.filter(({ id, kind }) => kind === "intent" && !ended.has(id));
      const { records: intents, unreadable } = sortOut(await readAllListed(records, open, signal));
      return { intents, unreadable };
    },
    // By their names alone: what a record that cannot be read says makes no difference.
    findRestored: async (keys, signal) => {
      const hashes = new Map(keys.map((key) => [hashKey(key), key]));
      const restored = (await list(signal)).filter(({ kind }) => kind === "restored").map(({ id }) => hashes.get(id.split("-")[1] ?? ""));
      return new Set(restored.filter((key) => key !== undefined));
    },
  };
}
