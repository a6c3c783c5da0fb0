import * as z from "zod";

import { quoteUntrusted } from "./text.ts";
import { parseTimestamp, type EpochNanoseconds } from "./time.ts";

/** A lock is a few hundred bytes; what is larger is no lock and is not read whole. */
export const MAX_LOCK_BYTES = 64 * 1024;

/** Who made a lock, as its body says (pkg/backend/diy/lock.go, `lockContent`). */
export interface Owner {
  /** May be empty, or `DOMAIN\user` on Windows. */
  readonly username: string;
  /** The kernel's node name where pulumi ran. */
  readonly hostname: string;
  readonly pid: number;
  /** The writer's clock as written, with its offset and all its decimals. */
  readonly timestamp: string;
  /** The same time as a number. */
  readonly lockedAt: EpochNanoseconds;
}

export type UnreadableReason = "empty" | "too-large" | "not-json" | "not-a-lock" | "empty-hostname" | "no-timestamp" | "not-a-file";

/** What is known of a lock's body. */
export type LockContent =
  | { readonly kind: "readable"; readonly owner: Owner; readonly bytes: Uint8Array }
  | { readonly kind: "unreadable"; readonly reason: UnreadableReason; readonly problem: string; readonly bytes?: Uint8Array }
  | { readonly kind: "unread"; readonly problem: string };

/** A lock as found in its backend. */
export interface ObservedLock {
  /** Relative to the backend's prefix: `.pulumi/locks/…`. */
  readonly key: string;
  /** What identifies this very object to a conditional delete: an ETag, a generation, a row's text. */
  readonly version: string;
  /** The store's time of it; the writer has no hand in it. Absent where the store has none. */
  readonly storedAt?: EpochNanoseconds;
  readonly content: LockContent;
}

/** The later of the writer's and the store's time of a lock: it is no older than that, whatever one of the clocks says. */
export function latestTimeOf({ lockedAt }: Pick<Owner, "lockedAt">, storedAt: EpochNanoseconds | undefined): EpochNanoseconds {
  return storedAt !== undefined && storedAt > lockedAt ? storedAt : lockedAt;
}

const lockBody = z.object({
  pid: z.int().positive(),
  username: z.string().default(""),
  hostname: z.string(),
  timestamp: z.string().optional(),
});

// Go's zero time: what an absent timestamp would be read as, and what Pulumi never writes.
const GO_ZERO_TIME = parseTimestamp("0001-01-01T00:00:00Z");

/** Reads the body of a lock. Never throws: what is no lock comes back as `unreadable`, with what is wrong. */
export function parseLockBody(bytes: Uint8Array): LockContent {
  const unreadable = (reason: UnreadableReason, problem: string): LockContent => ({ kind: "unreadable", reason, problem, bytes });
  if (bytes.length > MAX_LOCK_BYTES) return describeTooLarge(bytes.length);
  if (bytes.length === 0) return unreadable("empty", "the file is empty");
  const parsed = parseJson(bytes);
  if (parsed.kind === "broken") return unreadable("not-json", parsed.problem);
  const body = lockBody.safeParse(parsed.value);
  if (!body.success) {
    const issue = body.error.issues[0];
    return unreadable("not-a-lock", `it is JSON but no lock: ${quoteUntrusted(issue?.path.join(".") ?? "")} ${issue?.message ?? ""}`);
  }
  const { pid, username, hostname, timestamp } = body.data;
  if (hostname.trim() === "") return unreadable("empty-hostname", "its hostname is empty, so it names no owner");
  const lockedAt = timestamp === undefined ? undefined : parseTimestamp(timestamp);
  if (timestamp === undefined || lockedAt === undefined || lockedAt === GO_ZERO_TIME) {
    return unreadable("no-timestamp", timestamp === undefined ? "it has no timestamp" : `its timestamp ${quoteUntrusted(timestamp)} is none`);
  }
  return { kind: "readable", owner: { username, hostname, pid, timestamp, lockedAt }, bytes };
}

/** The content of an object too large to be a lock; its size in bytes. */
export function describeTooLarge(size: number): LockContent {
  return { kind: "unreadable", reason: "too-large", problem: `it has ${size} bytes, a lock never more than ${MAX_LOCK_BYTES}` };
}

type ParsedJson = { readonly kind: "parsed"; readonly value: unknown } | { readonly kind: "broken"; readonly problem: string };

function parseJson(bytes: Uint8Array): ParsedJson {
  try {
    // A byte order mark is kept, so that JSON.parse refuses it as Go's parser does.
    return { kind: "parsed", value: JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)) };
  } catch {
    return { kind: "broken", problem: "its text is not JSON, cut off or overwritten perhaps" };
  }
}
