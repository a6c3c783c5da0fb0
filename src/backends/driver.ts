import type { Nanoseconds } from "../core/time.ts";
import { describeWithHint, JanitorError, type ErrorCode } from "../errors.ts";
import type { Deletion, LockRead } from "./backend.ts";

/** What went wrong, in the words of one store. */
export interface FailureDescription {
  readonly code: ErrorCode;
  readonly problem: string;
  readonly hint?: string;
}

/** Makes the typed error of a failure, which names the backend and what was tried; one that is typed already stays as it is. */
export function composeBackendError(error: unknown, backend: string, action: string, describe: () => FailureDescription): JanitorError {
  if (error instanceof JanitorError) return error;
  const { code, problem, hint } = describe();
  return new JanitorError(code, `${backend}: could not ${action}: ${problem}`, { cause: error, ...(hint === undefined ? {} : { hint }) });
}

/** Reads a lock; one that may not be read is a lock all the same, of which nothing is known. */
export async function readUnlessDenied(read: () => Promise<LockRead>): Promise<LockRead> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof JanitorError) || error.code !== "backend-denied") throw error;
    return { kind: "found", version: "", content: { kind: "unread", problem: describeWithHint(error) } };
  }
}

/**
 * Sends a conditional delete, and once more on the same condition when nobody answered. What is gone the second time may be gone by the
 * first. Throws `backend-unreachable` when nobody answered twice.
 */
export async function deleteTwice(send: () => Promise<Deletion | "unanswered">, backend: string): Promise<Deletion> {
  const first = await send();
  if (first !== "unanswered") return first;
  const second = await send();
  if (second === "unanswered") {
    throw new JanitorError("backend-unreachable", `${backend}: could not remove a lock: the service did not answer twice; it may have been removed`, {
      hint: "The next run tells.",
    });
  }
  return second.kind === "vanished" ? { kind: "deleted-unconfirmed" } : second;
}

/** A store's clock less the janitor's, from the Date of an answer; both in milliseconds. A Date has whole seconds: a difference of less says nothing. */
export function compareClocks(date: number, now: number): Nanoseconds {
  const ahead = date - now;
  return BigInt(Math.trunc(ahead > 0 ? ahead : ahead < -1_000 ? ahead + 1_000 : 0)) * 1_000_000n;
}
