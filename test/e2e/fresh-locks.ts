import type { Backend } from "../../src/backends/backend.ts";
import { openBackend } from "../../src/backends/open.ts";
import type { RemovalHistory } from "../../src/core/record.ts";
import { openAuditLog } from "../../src/output/open-audit-log.ts";
import type { Access } from "./peers/stores.ts";

const LOCKED_AT = new Date(Date.now() - 3_600_000).toISOString();

/** How a sweep removes locks that were put into their store just now, though their own time is an hour ago. */
export const SWEEP_FRESH_LOCKS: readonly string[] = ["--delete", "--exclusive", "--min-age", "0s", "--clock-skew", "1s"];

/** How long to wait, in milliseconds, between the locks and a snapshot: it proves absence only for what the store had before it was taken. */
export const SNAPSHOT_AFTER = 2_500;

export async function openStore({ url, env }: Access): Promise<Backend> {
  return await openBackend({ url, env, requestTimeout: 10_000, now: () => Date.now() });
}

/** Puts locks whose pods do not exist; gives their keys. */
export async function putStaleLocks(access: Access, count: number): Promise<readonly string[]> {
  const backend = await openStore(access);
  const keys = Array.from({ length: count }, (_, number) => `.pulumi/locks/organization/shop/stack-${number % 7}/lock-${number}.json`);
  await Promise.all(
    keys.map((key, number) => {
      const body = JSON.stringify({ pid: number + 1, username: "pulumi", hostname: `iac-runner-${number % 40}`, timestamp: LOCKED_AT });
      return backend.createLock(key, Buffer.from(body));
    }),
  );
  await backend.close();
  return keys;
}

/** The locks that are left and can be read, with their bodies, and what the records say. */
export async function inspectStore(access: Access): Promise<{ readonly left: ReadonlyMap<string, Uint8Array>; readonly histories: readonly RemovalHistory[] }> {
  const never = new AbortController().signal;
  const backend = await openStore(access);
  const left = new Map<string, Uint8Array>();
  for await (const page of backend.listLocks(never)) {
    for (const { key } of page) {
      const read = await backend.readLock(key, never);
      if (read.kind === "found" && read.content.kind === "readable") left.set(key, read.content.bytes);
    }
  }
  const histories = await openAuditLog("backend", backend).readAll(never);
  await backend.close();
  return { left, histories };
}
