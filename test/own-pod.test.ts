import { beforeEach, describe, expect, it } from "vitest";

import type { Backend } from "../src/backends/backend.ts";
import type { OwnProcess } from "../src/core/own-pod.ts";
import { fromMilliseconds, parseTimestamp, SECOND } from "../src/core/time.ts";
import type { WatchEvent } from "../src/core/watch-event.ts";
import { openBackendAuditLog } from "../src/output/backend-audit-log.ts";
import { watchOwnPod } from "../src/own-pod.ts";
import { MemoryBackend } from "./memory-backend.ts";

const BEGINNING = parseTimestamp("2026-03-10T12:00:00Z") ?? 0n;
const HOST = "app-workspace-0";
const STACK = "organization/shop/prod";

/** A pod with a sidecar in it: its processes, its locks, and what happens when, in milliseconds. */
class PodWorld {
  readonly backend: MemoryBackend;
  readonly events: WatchEvent[] = [];
  readonly stoppings: number[] = [];
  readonly warnings: string[] = [];
  /** When the store refused a call. */
  readonly refused: number[] = [];
  readonly stop = new AbortController();
  processes: OwnProcess[] = [aProcess({ pid: 1, name: "pause", words: [] })];
  at = 0;
  readonly #plan: { readonly at: number; readonly happen: () => void }[] = [];

  /** `backend`: one that other pods write to as well. */
  constructor(backend = new MemoryBackend()) {
    this.backend = backend;
  }

  plan(at: number, happen: () => void): void {
    this.#plan.push({ at, happen });
  }

  /** Pulumi begins an update, and has its lock at once. */
  start(pid: number, { ticks = 100n + BigInt(this.at), stack = STACK, words = ["up", "--stack", "prod"], lock = true } = {}): string {
    this.processes.push(aProcess({ pid, ticks, words, startedAt: this.now }));
    return lock ? this.lock(pid, stack) : "";
  }

  lock(pid: number, stack = STACK, hostname = HOST): string {
    const key = `.pulumi/locks/${stack}/${hostname}-${pid}-${this.at}.json`;
    const timestamp = new Date(Number(this.now / 1_000_000n)).toISOString();
    this.backend.put(key, JSON.stringify({ pid, username: "pulumi", hostname, timestamp }), this.now);
    return key;
  }

  end(pid: number): void {
    this.processes = this.processes.filter((process) => process.pid !== pid);
  }

  /** Has the store refuse some calls until then. */
  refuse(until: number, what: RegExp): void {
    this.backend.before = (call) => {
      if (this.at < until && what.test(call)) {
        this.refused.push(this.at);
        throw new Error("too many requests");
      }
    };
  }

  get now(): bigint {
    return BEGINNING + fromMilliseconds(this.at);
  }

  /** Watches until so many milliseconds have passed, then is told to stop. Gives what is left of the locks. */
  async watch(until: number, { remove = true } = {}): Promise<readonly string[]> {
    this.plan(until, () => this.stop.abort());
    await watchOwnPod({
      delete: remove,
      hostname: HOST,
      skew: 5n * SECOND,
      backends: [{ kind: "open", backend: this.backend, audit: openBackendAuditLog(this.backend.records) }],
      readProcesses: () => Promise.resolve(this.processes),
      newRunId: () => "run-1",
      janitor: { version: "0.0.0-test", hostname: HOST },
      now: () => this.now,
      sleep: (milliseconds) => {
        this.at += milliseconds;
        for (const due of this.#plan.filter(({ at }) => at <= this.at)) {
          this.#plan.splice(this.#plan.indexOf(due), 1);
          due.happen();
        }
        return Promise.resolve();
      },
      stop: this.stop.signal,
      onEvent: (event) => this.events.push(event),
      onStopping: (held) => this.stoppings.push(held),
      onWarning: (message) => this.warnings.push(message),
    });
    return Array.from(this.backend.objects.keys());
  }

  /** What became of each removal in the backend, as the records say. */
  async readOutcomes(): Promise<readonly string[]> {
    const removals = await openBackendAuditLog(this.backend.records).readAll(new AbortController().signal);
    return removals.map(({ outcome }) => outcome?.action ?? "open");
  }

  get told(): readonly string[] {
    return this.events.map((event) => (event.event === "lock" ? `${event.lock.verdict} ${event.lock.action}` : event.event));
  }
}

function aProcess(process: Partial<OwnProcess>): OwnProcess {
  return { pid: 7, ticks: 1n, name: "pulumi", zombie: false, startedAt: BEGINNING, innerPids: [], words: ["up"], ...process };
}

/** Key and version of the lock whose removal has no outcome. */
async function findOpenRemoval({ records }: MemoryBackend): Promise<readonly string[]> {
  const { intents } = await openBackendAuditLog(records).readOpen(new AbortController().signal);
  return intents.flatMap(({ key, lockVersion }) => [key, lockVersion]);
}

let pod: PodWorld;
beforeEach(() => {
  pod = new PodWorld();
});

describe("a sidecar removes a lock whose process it saw alive together with it", () => {
  it("once that process is gone, with a record", async () => {
    pod.plan(1_000, () => pod.start(300));
    pod.plan(20_000, () => pod.end(300));
    expect(await pod.watch(30_000)).toEqual([]);
    expect(pod.told).toEqual(["held keep", "stale deleted"]);
    expect(Array.from(pod.backend.recordObjects.keys(), (name) => name.replace(/^.*\.(intent|outcome)/, "$1"))).toEqual(["intent.json", "outcome.json"]);
  });

  it("without --delete it is told, and stays", async () => {
    pod.plan(1_000, () => pod.start(300));
    pod.plan(20_000, () => pod.end(300));
    expect(await pod.watch(30_000, { remove: false })).toHaveLength(1);
    expect(pod.told).toEqual(["held keep", "stale would-delete"]);
    expect(pod.backend.recordObjects.size).toBe(0);
  });

  it("a process that is left as a zombie holds nothing", async () => {
    pod.plan(1_000, () => pod.start(300));
    pod.plan(20_000, () => (pod.processes = pod.processes.map((process) => (process.pid === 300 ? { ...process, zombie: true } : process))));
    expect(await pod.watch(30_000)).toEqual([]);
  });

  it("its pid is another process's by now: gone all the same", async () => {
    pod.plan(1_000, () => pod.start(300));
    pod.plan(20_000, () => {
      pod.end(300);
      pod.processes.push(aProcess({ pid: 300, ticks: 99_999n }));
    });
    expect(await pod.watch(30_000)).toEqual([]);
  });

  it("the update released it by itself: nothing is written", async () => {
    let key = "";
    pod.plan(1_000, () => (key = pod.start(300)));
    pod.plan(20_000, () => {
      pod.backend.objects.delete(key);
      pod.end(300);
    });
    expect(await pod.watch(30_000)).toEqual([]);
    expect(pod.told).toEqual(["held keep", "stale vanished"]);
    expect(pod.backend.recordObjects.size).toBe(0);
  });

  it("on the way out: told to stop, it waits for the process, and releases what that leaves", async () => {
    pod.plan(1_000, () => pod.start(300));
    pod.plan(21_000, () => pod.end(300));
    expect(await pod.watch(20_000)).toEqual([]);
    expect(pod.at).toBeLessThan(21_500);
    expect(pod.stoppings).toEqual([1]);
  });
});

describe("a sidecar tries a removal again that failed", () => {
  /** A pulumi takes its lock, and is killed after 20 seconds, when the store begins to refuse. */
  function kill(refusedUntil: number, what: RegExp): void {
    pod.plan(1_000, () => pod.start(300));
    pod.plan(20_000, () => {
      pod.end(300);
      pod.refuse(refusedUntil, what);
    });
  }

  it.each([
    ["the lock could not be read", /^read \./],
    ["no record could be written", /^record .*intent/],
    ["the delete was refused", /^delete/],
  ])("%s", async (_what, call) => {
    kill(25_000, call);
    expect(await pod.watch(60_000)).toEqual([]);
    expect(pod.told).toEqual(["held keep", "stale failed", "stale deleted"]);
  });

  it("reading the lock was denied for a while, so nothing was known of its version", async () => {
    kill(0, /never/);
    const read = pod.backend.readLock.bind(pod.backend);
    pod.backend.readLock = (key) =>
      pod.at >= 20_000 && pod.at < 25_000
        ? Promise.resolve({ kind: "found", version: "", content: { kind: "unread", problem: "the token has expired" } })
        : read(key);
    expect(await pod.watch(60_000)).toEqual([]);
    expect(pod.told).toEqual(["held keep", "stale failed", "stale deleted"]);
  });

  it("a delete met another version, because another run's recovery held the lock for a moment", async () => {
    kill(0, /never/);
    const remove = pod.backend.deleteLock.bind(pod.backend);
    pod.backend.deleteLock = (key, version) => (pod.at < 21_000 ? Promise.resolve({ kind: "changed" }) : remove(key, version));
    expect(await pod.watch(60_000)).toEqual([]);
    expect(pod.told).toEqual(["held keep", "stale changed", "stale deleted"]);
  });

  it("ever more rarely: a right that is missing for a day costs few records, and is told once", async () => {
    const day = 86_400_000;
    kill(day, /^delete/);
    await pod.watch(day);
    expect(pod.refused.slice(0, 4).map((at) => at - 20_000)).toEqual([0, 2_000, 6_000, 14_000]);
    expect(pod.refused.length).toBeGreaterThan(100);
    expect(pod.refused.length).toBeLessThan(160);
    expect(pod.told).toEqual(["held keep", "stale failed", "stale deleted"]);
  });

  it("told to stop, it waits for no pause", async () => {
    kill(99_000, /^delete/);
    expect(await pod.watch(100_000)).toEqual([]);
    expect(pod.refused.at(-1)).toBeLessThan(90_000);
    expect(pod.at).toBeLessThan(100_200);
    expect(pod.stoppings).toEqual([0]);
  });

  it("on the way out too, in short pauses, and it stays no longer than for a process", async () => {
    kill(Infinity, /^delete/);
    expect(await pod.watch(20_000)).toHaveLength(1);
    const [first = 0] = pod.refused;
    expect(pod.refused.slice(0, 5).map((at) => at - first)).toEqual([0, 50, 150, 350, 750]);
    expect(pod.refused.length).toBeLessThan(12);
    expect(pod.at).toBeLessThan(50_000);
    expect(pod.told).toEqual(["held keep", "stale failed"]);
  });

  it("meanwhile it says of no dead process that it runs", async () => {
    kill(60_000, /^delete/);
    pod.plan(22_000, () => pod.start(301));
    pod.plan(30_000, () => pod.end(301));
    expect(await pod.watch(200_000)).toEqual([]);
    expect(pod.told).toEqual(["held keep", "stale failed", "held keep", "stale failed", "stale deleted", "stale deleted"]);
  });

  it("but not where another version of the lock has come meanwhile: that stays", async () => {
    kill(25_000, /^delete/);
    pod.plan(21_000, () => pod.backend.put(Array.from(pod.backend.objects.keys())[0] ?? "", "{}", pod.now));
    expect(await pod.watch(60_000)).toHaveLength(1);
    expect(pod.told).toEqual(["held keep", "stale failed", "stale changed"]);
    expect(pod.backend.calls.filter((call) => call.startsWith("delete"))).toEqual([]);
  });

  it("but not where a person has put the very lock back meanwhile: that stays", async () => {
    kill(25_000, /^delete/);
    pod.plan(21_000, () => {
      for (const [name, bytes] of pod.backend.recordObjects)
        if (name.endsWith(".intent.json")) pod.backend.recordObjects.set(name.replace(".intent.", ".restored."), bytes);
    });
    expect(await pod.watch(60_000)).toHaveLength(1);
    expect(pod.told).toEqual(["held keep", "stale failed", "held keep"]);
  });

  it("and where it is gone then, an earlier try may have removed it", async () => {
    kill(25_000, /^delete/);
    pod.plan(21_000, () => pod.backend.objects.clear());
    await pod.watch(60_000);
    expect(pod.events.flatMap((event) => (event.event === "lock" ? [event.lock.note] : [])).at(-1)).toBe("an earlier try may have removed it");
  });
});

describe("a sidecar that begins ends what a crashed run left half done", () => {
  /** Another pod's sidecar, of the same backend, was killed before it wrote what became of its removal. */
  beforeEach(async () => {
    const other = new PodWorld(pod.backend);
    other.plan(1_000, () => other.start(300));
    other.plan(20_000, () => {
      other.end(300);
      other.refuse(Infinity, /^record .*outcome/);
    });
    await other.watch(30_000);
    pod.backend.before = () => undefined;
  });

  it("its record is completed, once, and that is told", async () => {
    await pod.watch(30_000);
    expect(await pod.readOutcomes()).toEqual(["deleted-unconfirmed"]);
    expect(pod.warnings).toEqual(["gs://state: 1 record of a run that did not end was completed"]);
    expect(pod.told).toEqual([]);
  });

  it("a lock that it had moved aside is removed, and the record says so", async () => {
    const [key = "", version = ""] = await findOpenRemoval(pod.backend);
    const recover: Backend["recover"] = (hasIntent) => Promise.resolve(hasIntent(key, version) ? [{ key, action: "deleted" }] : []);
    Object.assign(pod.backend, { recover });
    await pod.watch(30_000);
    expect(await pod.readOutcomes()).toEqual(["deleted"]);
  });

  it("without --delete nothing is written", async () => {
    await pod.watch(30_000, { remove: false });
    expect(await pod.readOutcomes()).toEqual(["open"]);
  });

  it("a store that is slow to list its records delays neither the look at locks nor a removal", async () => {
    let goOn: () => void = () => undefined;
    const listed = new Promise<void>((resolve) => (goOn = resolve));
    pod.backend.before = async (call) => {
      if (call === "list-records") await listed;
    };
    pod.plan(1_000, () => pod.start(400));
    pod.plan(20_000, () => pod.end(400));
    pod.plan(25_000, () => {
      expect(pod.told).toEqual(["held keep", "stale deleted"]);
      goOn();
    });
    await pod.watch(30_000);
    expect(await pod.readOutcomes()).toEqual(["deleted-unconfirmed", "deleted"]);
  });

  it("where the records cannot be listed that is a warning, and stops nothing", async () => {
    pod.refuse(Infinity, /^list-records/);
    pod.plan(1_000, () => pod.start(400));
    pod.plan(20_000, () => pod.end(400));
    expect(await pod.watch(30_000)).toEqual([]);
    expect(pod.warnings).toEqual(["earlier records were not completed: too many requests"]);
  });
});

describe("P1: a sidecar keeps every other lock", () => {
  it.each<readonly [what: string, happen: () => void]>([
    ["its process still runs when the sidecar alone is told to stop", () => pod.start(300)],
    ["its process ended before the sidecar came", () => pod.lock(300)],
    [
      "it is of a pod of the same hostname, and no process here has its pid",
      () => {
        pod.lock(301);
        pod.start(300, { lock: false });
        pod.plan(20_000, () => pod.end(300));
      },
    ],
    [
      "its process here is no pulumi",
      () => {
        pod.processes.push(aProcess({ pid: 300, name: "pulumi-language" }));
        pod.lock(300);
        pod.plan(20_000, () => pod.end(300));
      },
    ],
    [
      "its process here is a pulumi that takes no lock",
      () => {
        pod.start(300, { words: ["preview"] });
        pod.plan(20_000, () => pod.end(300));
      },
    ],
    [
      "its process here works on another stack",
      () => {
        pod.start(300, { words: ["up", "--stack=acme/shop/stage"] });
        pod.plan(20_000, () => pod.end(300));
      },
    ],
    [
      "its process here started after the lock",
      () => {
        pod.lock(300);
        pod.plan(10_000, () => pod.start(300, { lock: false }));
        pod.plan(20_000, () => pod.end(300));
      },
    ],
    [
      "its process is in a nested namespace, so its pid is another's number here",
      () => {
        pod.processes.push(aProcess({ pid: 300, innerPids: [7], startedAt: pod.now }));
        pod.lock(300);
        pod.plan(20_000, () => pod.end(300));
      },
    ],
    [
      "its host is another",
      () => {
        pod.start(300, { lock: false });
        pod.lock(300, STACK, "other-workspace-0");
        pod.plan(20_000, () => pod.end(300));
      },
    ],
  ])("%s", async (_what, happen) => {
    pod.plan(1_000, happen);
    expect(await pod.watch(30_000)).toHaveLength(1);
    expect(pod.backend.recordObjects.size).toBe(0);
    expect(pod.at).toBeLessThan(60_000);
  });

  it("two locks name one process, so one is another pod's: both stay, also when only one is left", async () => {
    let own = "";
    pod.plan(1_000, () => (own = pod.start(300)));
    pod.plan(1_100, () => pod.lock(300, "organization/elsewhere/prod"));
    pod.plan(9_000, () => pod.start(301, { lock: false }));
    pod.plan(20_000, () => pod.backend.objects.delete(own));
    pod.plan(100_000, () => pod.end(300));
    expect(await pod.watch(110_000)).toHaveLength(1);
    expect(pod.backend.recordObjects.size).toBe(0);
  });

  it("another version of the lock is there when the process is gone", async () => {
    let key = "";
    pod.plan(1_000, () => (key = pod.start(300)));
    pod.plan(20_000, () => {
      pod.end(300);
      pod.backend.put(key, "{}", pod.now);
    });
    expect(await pod.watch(30_000)).toEqual([key]);
    expect(pod.told).toEqual(["held keep", "stale changed"]);
  });
});

it("the store is asked only while some process may have taken a lock, and ever more rarely", async () => {
  pod.plan(1_000, () => pod.start(300, { lock: false }));
  await pod.watch(600_000);
  const lists = pod.backend.calls.filter((call) => call === "list").length;
  expect(lists).toBeGreaterThan(5);
  expect(lists).toBeLessThan(20);
  const idle = new PodWorld();
  await idle.watch(600_000);
  expect(idle.backend.calls, "but for one look at the records, as it begins").toEqual(["list-records"]);
});
