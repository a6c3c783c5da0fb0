import { promisify } from "node:util";
import { gunzip } from "node:zlib";

import pLimit from "p-limit";

import type { Backend } from "./backends/backend.ts";
import { countPendingOperations, listCheckpointKeys, type PendingOperations } from "./core/checkpoint.ts";
import { describeError } from "./errors.ts";

/** The largest checkpoint that is read, in bytes, as it is stored and unpacked: it is parsed as a whole. */
const MAX_CHECKPOINT_BYTES = 64 * 1_024 * 1_024;

/** Checkpoints are large: few at once keep the memory bounded. */
const CONCURRENCY = 2;

const unpack = promisify(gunzip);

/** Looks for operations that an update of a lock's stack left half done. Never throws for what a store refuses: then it is not known. */
export async function checkPending(backend: Backend, lockKeys: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, PendingOperations>> {
  const limit = pLimit(CONCURRENCY);
  const found = await Promise.all(lockKeys.map((key) => limit(async () => [key, await checkStack(backend, key, signal)] as const)));
  return new Map(found);
}

async function checkStack(backend: Backend, lockKey: string, signal: AbortSignal): Promise<PendingOperations> {
  try {
    // Where both are there, one is older; which, Pulumi tells by their times. Either may hold what is looked for.
    const read = await Promise.all(listCheckpointKeys(lockKey).map((key) => readCheckpoint(backend, key, signal)));
    const all = read.filter((pending) => pending !== undefined);
    const unknown = all.find(({ kind }) => kind === "unknown");
    // A stack without a checkpoint has never been updated.
    return unknown ?? { kind: "counted", count: Math.max(0, ...all.map((pending) => (pending.kind === "counted" ? pending.count : 0))) };
  } catch (error) {
    return { kind: "unknown", problem: describeError(error) };
  }
}

async function readCheckpoint(backend: Backend, key: string, signal: AbortSignal): Promise<PendingOperations | undefined> {
  const read = await backend.readObject(key, MAX_CHECKPOINT_BYTES, signal);
  switch (read.kind) {
    case "gone":
      return undefined;
    case "too-large":
      return { kind: "unknown", problem: `the checkpoint is larger than ${MAX_CHECKPOINT_BYTES / 1_024 / 1_024} MiB` };
    case "whole":
      return countPendingOperations(new TextDecoder().decode(key.endsWith(".gz") ? await unpackBounded(read.bytes) : read.bytes));
  }
}

async function unpackBounded(bytes: Uint8Array): Promise<Uint8Array> {
  try {
    return await unpack(bytes, { maxOutputLength: MAX_CHECKPOINT_BYTES });
  } catch (error) {
    throw new Error(`the checkpoint could not be unpacked: ${describeError(error)}`, { cause: error });
  }
}
