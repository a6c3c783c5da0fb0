// P6: the real command, killed (kill -9) before and after every request that a removal sends. test/cli/crash.test.ts does it for a folder, step by step.
import { setTimeout as sleep } from "node:timers/promises";

import pLimit from "p-limit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { FaultProxy } from "../backends/fault-proxy.ts";
import { PostgresRequestProxy } from "../backends/postgres-requests.ts";
import { runCommand, type CommandResult } from "../cli/command.ts";
import { Workspace } from "../cli/snapshot-files.ts";
import { inspectStore, putStaleLocks, SNAPSHOT_AFTER, SWEEP_FRESH_LOCKS } from "./fresh-locks.ts";
import { CONDITIONAL_STORES, type Access, type RunningStore } from "./peers/stores.ts";

/** When the command is to die. */
interface Death {
  /** The number of a request, from 1. */
  readonly request: number;
  readonly when: "before" | "after";
}

/** What stands between the command and its store: counts requests, and kills at one of them. */
interface Way {
  readonly port: number;
  /** What was asked, in order. */
  readonly asked: () => readonly string[];
  readonly stop: () => Promise<void>;
}

async function openHttpWay(target: number, death: Death | undefined, kill: () => void): Promise<Way> {
  const proxy = new FaultProxy(`http://127.0.0.1:${target}`);
  proxy.fault = () => (proxy.requests.length === death?.request ? { kind: "cut", after: death.when === "after", meanwhile: kill } : undefined);
  await proxy.start();
  return { port: proxy.port, asked: () => proxy.lines, stop: () => proxy.stop() };
}

async function openPostgresWay(target: number, death: Death | undefined, kill: () => void): Promise<Way> {
  const proxy = new PostgresRequestProxy(target);
  const meet =
    (when: Death["when"]) =>
    ({ number }: { readonly number: number }): boolean => {
      const dies = number === death?.request && when === death.when;
      if (dies) kill();
      return !dies;
    };
  proxy.beforeRequest = meet("before");
  proxy.afterRequest = meet("after");
  await proxy.start();
  return { port: proxy.port, asked: () => proxy.requests.map(({ text }) => text), stop: () => proxy.stop() };
}

const OVER_A_NETWORK = CONDITIONAL_STORES.filter(([scheme]) => scheme !== "file");

describe.each(OVER_A_NETWORK)("kill -9 in the middle of a removal on %s", (scheme, start) => {
  let store: RunningStore;
  beforeAll(async () => {
    store = await start();
  });
  afterAll(async () => await store.stop());

  /** A sweep that removes what is stale, through a way of its own. */
  async function sweep(name: string, workspace: Workspace, death?: Death): Promise<CommandResult & { readonly asked: readonly string[] }> {
    const stop = new AbortController();
    const open = scheme === "postgres" ? openPostgresWay : openHttpWay;
    if (store.port === undefined) throw new Error("a store over a network listens somewhere");
    const way = await open(store.port, death, () => stop.abort());
    const { url, env } = await store.open(name, way.port);
    const result = await runCommand(workspace.sweepWordsOn(url, ...SWEEP_FRESH_LOCKS), { env, stop: { when: stop.signal, signal: "SIGKILL" } });
    const asked = way.asked();
    await way.stop();
    return { ...result, asked };
  }

  /** Kills a removal, checks what is left, and lets the next run end it. */
  async function crashAt(death: Death, access: Access, workspace: Workspace, name: string): Promise<void> {
    const place = `${death.when} request ${death.request}`;
    const whole = await inspectStore(access);
    const crashed = await sweep(name, workspace, death);
    expect(crashed.signal, `${place}: ${crashed.stderr}`).toBe("SIGKILL");

    const { left, histories } = await inspectStore(access);
    const kept = left.size > 0 ? Array.from(left.values()) : histories.map(({ intent }) => Buffer.from(intent.body, "base64"));
    expect(
      kept.map((body) => Buffer.from(body).toString()),
      `${place} (${crashed.asked.at(-1) ?? ""}): the lock, or its record`,
    ).toEqual(Array.from(whole.left.values(), (body) => Buffer.from(body).toString()));

    const next = await sweep(name, workspace);
    expect(next.exitCode, `${place}: ${next.stderr}`).toBe(0);
    const after = await inspectStore(access);
    expect(after.left.size, place).toBe(0);
    const actions = after.histories.map(({ outcome }) => outcome?.action ?? "open");
    expect(actions, `${place}: every record has its outcome`).not.toContain("open");
    const removals = actions.filter((action) => action === "deleted" || action === "deleted-unconfirmed");
    expect(removals, `${place}: one removal, one record of it`).toHaveLength(1);
  }

  it("P6: leaves the lock, or its record and no lock; the next run ends clean", async () => {
    await putStaleLocks(await store.open("count"), 1);
    await sleep(SNAPSHOT_AFTER);
    const first = new Workspace();
    const { asked, exitCode, stderr } = await sweep("count", first);
    first.remove();
    expect(exitCode, stderr).toBe(0);
    process.stdout.write(`${scheme}: a removal sends ${asked.length} requests, before and after each of which it was killed:\n  ${asked.join("\n  ")}\n`);
    expect(asked.length).toBeGreaterThan(5);

    const deaths = asked.flatMap((_, index): readonly Death[] => [
      { request: index + 1, when: "before" },
      { request: index + 1, when: "after" },
    ]);
    const stores = new Map<Death, Access>();
    for (const death of deaths) {
      const access = await store.open(nameOf(death));
      await putStaleLocks(access, 1);
      stores.set(death, access);
    }
    await sleep(SNAPSHOT_AFTER);
    const workspace = new Workspace();
    const limit = pLimit(2);
    await Promise.all(Array.from(stores, ([death, access]) => limit(() => crashAt(death, access, workspace, nameOf(death)))));
    workspace.remove();
  }, 300_000);
});

function nameOf({ request, when }: Death): string {
  return `${when}-${request}`;
}
