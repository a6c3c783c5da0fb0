import { promisify } from "node:util";
import { gunzip, zstdDecompress } from "node:zlib";

import type { Backend, StateRead } from "./backends/backend.ts";
import { combinePendingOperations, countPendingOperations, type PendingOperations } from "./core/checkpoint.ts";
import { findCheckpointKeys } from "./core/key.ts";
import { describeWithHint, systemCode } from "./errors.ts";

/** A checkpoint is read whole into memory, and its parsed form takes several times as much: what is larger is not looked into. */
const MAX_CHECKPOINT_BYTES = 32 * 1_024 * 1_024;

const DECOMPRESSORS = [
  { magic: [0x1f, 0x8b], decompress: promisify(gunzip) },
  { magic: [0x28, 0xb5, 0x2f, 0xfd], decompress: promisify(zstdDecompress) },
] as const;

/** Looks whether the checkpoint of the stack that a lock is of holds pending operations. Never throws: what could not be read is not known, and the answer says why. */
export async function readPendingOperations(backend: Backend, lockKey: string, signal: AbortSignal): Promise<PendingOperations> {
  const found: PendingOperations[] = [];
  const keys = findCheckpointKeys(lockKey);
  if (keys.length === 0) return { kind: "unknown", problem: "the lock's place names no stack" };
  try {
    for (const key of keys) {
      const read = await backend.readState(key, MAX_CHECKPOINT_BYTES, signal);
      if (read.kind !== "gone") found.push(await countIn(read));
    }
  } catch (error) {
    return { kind: "unknown", problem: signal.aborted ? "stopped before its checkpoint was read" : describeWithHint(error) };
  }
  return combinePendingOperations(found);
}

async function countIn(read: Exclude<StateRead, { kind: "gone" }>): Promise<PendingOperations> {
  const text = read.kind === "whole" ? await decompress(read.bytes) : "too-large";
  if (text === "too-large")
    return { kind: "unknown", problem: `its checkpoint is larger than the ${MAX_CHECKPOINT_BYTES / 1_024 / 1_024} MiB that are looked into` };
  if (text === "broken") return { kind: "unknown", problem: "its checkpoint is cut off, or no text" };
  return countPendingOperations(text.text);
}

/** A few bytes may stand for very many, so no more than `MAX_CHECKPOINT_BYTES` are ever made of them. */
async function decompress(bytes: Uint8Array): Promise<{ readonly text: string } | "too-large" | "broken"> {
  const compression = DECOMPRESSORS.find(({ magic }) => magic.every((byte, index) => bytes[index] === byte));
  try {
    const plain = compression === undefined ? bytes : await compression.decompress(bytes, { maxOutputLength: MAX_CHECKPOINT_BYTES });
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(plain) };
  } catch (error) {
    return systemCode(error) === "ERR_BUFFER_TOO_LARGE" ? "too-large" : "broken";
  }
}
