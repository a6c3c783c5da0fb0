import { describe, expect, it } from "vitest";

import type { SweepReport } from "../src/core/report.ts";
import { formatTimestamp, HOUR, MINUTE, SECOND, type EpochNanoseconds, type Nanoseconds } from "../src/core/time.ts";
import type { WatchEvent } from "../src/core/watch-event.ts";
import { JanitorError } from "../src/errors.ts";
import type { ClusterSign } from "../src/kubernetes/cluster-source.ts";
import { watch } from "../src/watch.ts";
import { RULES, SweepWorld } from "./sweep-world.ts";

/** A world in which things happen at set times after the beginning of a watch; its clock moves only while the watch sleeps. */
class WatchedWorld extends SweepWorld {
  readonly events: WatchEvent[] = [];
  /** Whether changes come, as it was told. */
  readonly following: string[] = [];
  readonly sweeps: { readonly at: number; readonly whole: boolean; readonly report: SweepReport }[] = [];
  readonly #startedAt: EpochNanoseconds = this.now;
  readonly #plan: { readonly at: EpochNanoseconds; readonly happen: () => void }[] = [];
  sign: (sign: ClusterSign) => void = () => undefined;
  /** What ends the sweeps that begin from now on. */
  deadline: AbortSignal = new AbortController().signal;
  /** By how much the janitor's clock is ahead. */
  clockAhead: Nanoseconds = 0n;

  at(after: Nanoseconds, happen: () => void): void {
    this.#plan.push({ at: this.#startedAt + after, happen });
  }

  /** Watches for so long; gives what was told, as short lines. */
  async watch(duration: Nanoseconds, { maxDeletions = 50, interval = 5n * MINUTE, settle = 30n * SECOND } = {}): Promise<readonly string[]> {
    this.at(duration, () => this.stop.abort());
    this.cluster.follow = async (onSign) => {
      this.sign = onSign;
      await Promise.resolve();
    };
    await watch(
      {
        interval: Number(interval / 1_000_000n),
        sweep: { delete: true, rules: { ...RULES, settle }, confirmDelay: 3_000, maxDeletions, failOn: [], overrides: [], warnHeldAfter: 100n * HOUR },
      },
      {
        clusters: [this.cluster],
        openBackends: () => Promise.resolve({ backends: [{ kind: "open", backend: this.backend, audit: this.audit }] }),
        now: () => this.now + this.clockAhead,
        sleep: (milliseconds, signal) => this.#pass(BigInt(milliseconds) * 1_000_000n, signal),
        newRunId: () => `run-${this.sweeps.length + 1}`,
        newDeadline: () => this.deadline,
        janitor: { version: "0.0.0-test", hostname: "test" },
        stop: this.stop.signal,
        onEvent: (event) => this.events.push(event),
        onFollow: ({ what, trouble }) => this.following.push(`${what}: ${trouble?.problem ?? "followed"}`),
        onSweep: (report, whole) => this.sweeps.push({ at: this.#seconds(), whole, report }),
      },
    );
    return this.events.map((event) => {
      switch (event.event) {
        case "lock":
          return `lock ${event.lock.verdict} ${event.lock.reason} ${event.lock.action}`;
        case "released":
          return "released";
        case "problem":
        case "solved":
          return `${event.event} ${event.source}`;
      }
    });
  }

  /** When sweeps ended, in seconds after the beginning. */
  get times(): readonly number[] {
    return this.sweeps.map(({ at }) => at);
  }

  #seconds(): number {
    return Math.round(Number((this.now - this.#startedAt) / SECOND));
  }

  async #pass(length: Nanoseconds, signal: AbortSignal): Promise<void> {
    const until = this.now + length;
    for (;;) {
      const [next] = this.#plan.filter(({ at }) => at <= until).toSorted((a, b) => (a.at < b.at ? -1 : 1));
      if (next === undefined) break;
      this.#plan.splice(this.#plan.indexOf(next), 1);
      if (next.at > this.now) this.now = next.at;
      next.happen();
      await Promise.resolve();
      if (signal.aborted) throw new DOMException("aborted", "AbortError");
    }
    this.now = until;
  }
}

describe("when a watch looks", () => {
  it("at its interval, and tells a lock once", async () => {
    const world = new WatchedWorld();
    world.addHolder("iac-runner-a", world.now - HOUR * 100n);
    world.addLock("iac-runner-a");
    const told = await world.watch(16n * MINUTE);
    expect(world.times).toEqual([0, 300, 600, 900]);
    expect(told).toEqual(["lock held container-running keep"]);
  });

  it("at once when a pod of an owner's hostname stops, and removes what it left", async () => {
    const world = new WatchedWorld();
    world.addHolder("iac-runner-a");
    const key = world.addLock("iac-runner-a");
    world.at(100n * SECOND, () => {
      world.cluster.pods = [];
      world.sign({ kind: "pod", hostname: "iac-runner-a" });
    });
    const told = await world.watch(200n * SECOND);
    expect(told).toEqual(["lock held container-running keep", "lock stale pod-not-found deleted"]);
    expect(world.backend.objects.has(key)).toBe(false);
    // The second look takes three seconds.
    expect(world.times).toEqual([0, 103]);
  });

  it("not for a pod that matches no owner pattern", async () => {
    const world = new WatchedWorld();
    world.at(100n * SECOND, () => world.sign({ kind: "pod", hostname: "nginx-5d78c9869d-x2b4q" }));
    await world.watch(200n * SECOND);
    expect(world.times).toEqual([0]);
  });

  it("once for a thousand pods that churn within two seconds", async () => {
    const world = new WatchedWorld();
    for (let number = 0; number < 1_000; number += 1)
      world.at(100n * SECOND + BigInt(number) * 1_000_000n, () => world.sign({ kind: "pod", hostname: `iac-runner-${number}` }));
    await world.watch(200n * SECOND);
    expect(world.times).toEqual([0, 100, 102]);
  });

  it("when changes may have been missed", async () => {
    const world = new WatchedWorld();
    world.at(100n * SECOND, () => world.sign({ kind: "lost", problem: "410" }));
    await world.watch(200n * SECOND);
    expect(world.times).toEqual([0, 100]);
  });

  it("ever more rarely where changes are missed again and again, until the interval is often enough", async () => {
    const world = new WatchedWorld();
    for (let second = 60n; second < 1_800n; second += 5n) world.at(second * SECOND, () => world.sign({ kind: "lost", problem: "410" }));
    await world.watch(HOUR);
    expect(world.times.slice(0, 7)).toEqual([0, 60, 70, 90, 130, 210, 370]);
    const gaps = world.times.slice(7).map((time, index) => time - (world.times[index + 6] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(290);
  });

  it("not because changes do not come, which is told when it begins, when the reason changes and when it is over", async () => {
    const world = new WatchedWorld();
    const refused = (what: string, problem: string): ClusterSign => ({ kind: "unfollowed", what, problem, denied: false });
    for (let second = 10n; second < 200n; second += 1n) world.at(second * SECOND, () => world.sign(refused("pods", "no answer")));
    for (const [second, sign] of [
      [20n, refused("stacks", "no watch on Stacks")],
      [150n, { kind: "followed", what: "stacks" }],
      [200n, refused("pods", "429")],
      [210n, { kind: "followed", what: "pods" }],
      [220n, { kind: "followed", what: "pods" }],
    ] as const)
      world.at(second * SECOND, () => world.sign(sign));
    await world.watch(290n * SECOND);
    expect(world.times).toEqual([0]);
    expect(world.following).toEqual(["pods: no answer", "stacks: no watch on Stacks", "stacks: followed", "pods: 429", "pods: followed"]);
  });

  it("within two intervals although its clock was set back", async () => {
    const world = new WatchedWorld();
    world.at(100n * SECOND, () => (world.clockAhead = -HOUR));
    await world.watch(16n * MINUTE);
    expect(world.times).toEqual([0, 600, 900]);
  });

  it("when a young lock comes of age, by the later of its times", async () => {
    const world = new WatchedWorld();
    const key = world.addLock("iac-runner-a", { age: 10n * SECOND });
    const body = world.backend.objects.get(key)?.bytes ?? new Uint8Array();
    world.backend.put(key, body, world.now - 2n * SECOND);
    const told = await world.watch(200n * SECOND);
    expect(world.times).toEqual([0, 61]);
    expect(told).toEqual(["lock too-young min-age keep", "lock stale pod-not-found deleted"]);
  });

  it("soon after a failure, and tells that it is over", async () => {
    const world = new WatchedWorld();
    let broken = true;
    world.backend.before = (call) => {
      if (broken && call === "list") throw new JanitorError("backend-unreachable", "nobody answered");
    };
    world.at(40n * SECOND, () => (broken = false));
    const told = await world.watch(100n * SECOND);
    expect(world.times).toEqual([0, 30, 60]);
    expect(told).toEqual(["problem gs://state", "solved gs://state"]);
  });

  it("soon after a sweep whose time ran out, and tells that the next one had time", async () => {
    const world = new WatchedWorld();
    world.deadline = AbortSignal.abort();
    world.at(20n * SECOND, () => (world.deadline = new AbortController().signal));
    const told = await world.watch(100n * SECOND);
    expect(world.times).toEqual([0, 30]);
    expect(told).toEqual(["problem timeout", "solved timeout"]);
  });
});

describe("when something stays as it is", () => {
  it("a backend that is refused for good is asked ever more rarely, down to the interval", async () => {
    const world = new WatchedWorld();
    world.backend.before = () => {
      throw new JanitorError("backend-denied", "no");
    };
    await world.watch(30n * MINUTE);
    expect(world.times).toEqual([0, 30, 60, 120, 240, 480, 780, 1_080, 1_380, 1_680]);
  });

  it("a pod that takes long to settle, because --settle is long, is not looked at every few seconds", async () => {
    const world = new WatchedWorld();
    world.addLock("iac-runner-a");
    world.addHolder("iac-runner-a", world.now - SECOND);
    const told = await world.watch(12n * MINUTE, { settle: 10n * MINUTE });
    expect(world.times).toEqual([0, 60, 120, 180, 240, 300, 360, 420, 480, 540, 603]);
    expect(told).toEqual(["lock undetermined not-settled keep", "lock stale pod-recreated deleted"]);
  });
});

describe("a Stack that failed on a lock", () => {
  const message = (url: string, key: string): string =>
    `the stack is currently locked by 1 lock(s).\n  ${url}/${key}: created by pulumi@iac-runner-a (pid 7) at ${formatTimestamp(0n)}`;

  it("has that very lock judged at once, and no other one read", async () => {
    const world = new WatchedWorld();
    let key = "";
    world.at(100n * SECOND, () => {
      key = world.addLock("iac-runner-a");
      world.addLock("iac-runner-b");
      world.backend.calls.length = 0;
      world.sign({ kind: "stack", message: message("gs://state", key) });
    });
    world.at(104n * SECOND, () => world.stop.abort());
    const told = await world.watch(200n * SECOND);
    expect(told).toEqual(["lock stale pod-not-found deleted"]);
    expect(world.backend.calls.filter((call) => call.startsWith("read .pulumi"))).toEqual([`read ${key}`, `read ${key}`]);
    expect(world.sweeps.map(({ whole }) => whole)).toEqual([true, false]);
  });

  it.each([
    ["another backend", message("gs://other", ".pulumi/locks/dev/1.json")],
    ["no lock", "update failed"],
  ])("whose message names %s has nothing looked at", async (_what, text) => {
    const world = new WatchedWorld();
    world.at(100n * SECOND, () => world.sign({ kind: "stack", message: text }));
    await world.watch(200n * SECOND);
    expect(world.times).toEqual([0]);
  });

  it("does not make the other locks look released", async () => {
    const world = new WatchedWorld();
    world.addHolder("iac-runner-b", world.now - HOUR * 100n);
    world.addLock("iac-runner-b");
    world.at(100n * SECOND, () => world.sign({ kind: "stack", message: message("gs://state", ".pulumi/locks/dev/gone.json") }));
    expect(await world.watch(200n * SECOND)).toEqual(["lock held container-running keep"]);
  });
});

describe("what a watch tells and does", () => {
  it("a lock that its owner released", async () => {
    const world = new WatchedWorld();
    world.addHolder("iac-runner-a", world.now - HOUR * 100n);
    const key = world.addLock("iac-runner-a");
    world.at(100n * SECOND, () => world.backend.objects.delete(key));
    expect(await world.watch(6n * MINUTE)).toEqual(["lock held container-running keep", "released"]);
  });

  it("a lock that a person put back is left alone for good", async () => {
    const world = new WatchedWorld();
    const key = world.addLock("iac-runner-a");
    const { bytes } = world.backend.objects.get(key) ?? { bytes: new Uint8Array() };
    world.at(100n * SECOND, () => {
      world.backend.put(key, bytes, world.now);
      for (const [name, record] of world.backend.recordObjects) {
        if (!name.endsWith(".outcome.json")) continue;
        const outcome: object = JSON.parse(new TextDecoder().decode(record));
        const restored = JSON.stringify({ ...outcome, restoredAt: formatTimestamp(world.now) });
        world.backend.recordObjects.set(name.replace(".outcome.", ".restored."), new TextEncoder().encode(restored));
      }
    });
    const told = await world.watch(20n * MINUTE);
    expect(told).toEqual(["lock stale pod-not-found deleted", "lock held restored keep"]);
    expect(world.backend.objects.has(key)).toBe(true);
  });

  it("the valve counts the removals of ten minutes, and no longer", async () => {
    const world = new WatchedWorld();
    for (const name of ["a", "b"]) world.addLock(`iac-runner-${name}`);
    world.at(290n * SECOND, () => void ["c", "d"].map((name) => world.addLock(`iac-runner-${name}`)));
    const told = await world.watch(16n * MINUTE, { maxDeletions: 3 });
    expect(told.filter((line) => line.startsWith("lock"))).toEqual([
      ...Array.from({ length: 2 }, () => "lock stale pod-not-found deleted"),
      ...Array.from({ length: 2 }, () => "lock stale pod-not-found keep"),
      ...Array.from({ length: 2 }, () => "lock stale pod-not-found deleted"),
    ]);
    expect(told.filter((line) => !line.startsWith("lock"))).toEqual(["problem refusal", "solved refusal"]);
  });

  it("a signal ends it between two sweeps, and in the middle of one", async () => {
    const world = new WatchedWorld();
    world.addLock("iac-runner-a");
    world.cluster.before = () => world.stop.abort();
    await world.watch(HOUR);
    expect(world.sweeps).toHaveLength(1);
    expect(world.backend.objects.size).toBe(1);
  });

  it("a signal before the second look: that it kept a lock from being removed is no news", async () => {
    const world = new WatchedWorld();
    world.addLock("iac-runner-a");
    let looks = 0;
    world.cluster.before = (call) => {
      if (call === "observe" && ++looks === 2) world.stop.abort();
    };
    expect(await world.watch(HOUR)).toEqual([]);
    expect(world.sweeps[0]?.report.locks.map(({ action, note }) => [action, note])).toEqual([["keep", "stopped before its turn"]]);
  });
});
