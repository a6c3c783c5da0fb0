import { describe, expect, it } from "vitest";

import type { Pod, Process } from "../src/core/cluster.ts";
import type { SweepReport } from "../src/core/report.ts";
import { HOUR, MINUTE, SECOND } from "../src/core/time.ts";
import type { SweepSettings } from "../src/sweep.ts";
import { onlyLock, RULES, SweepWorld } from "./sweep-world.ts";

const NAME = "iac-runner-a";

/** A world with a pod that has run since long before its lock of pid 7, and with the probe on. */
class ProbeWorld extends SweepWorld {
  readonly key: string;

  constructor({ age = HOUR } = {}) {
    super();
    this.addProbed(NAME);
    this.key = this.addLock(NAME, { age });
    this.setProcesses(NAME, []);
  }

  addProbed(name: string): void {
    const pod = this.addHolder(name);
    this.changePod(name, { containers: pod.containers.map((container) => ({ ...container, containerId: `id-of-${name}` })) });
  }

  changePod(name: string, change: Partial<Pod>): void {
    this.cluster.pods = this.cluster.pods.map((pod) => (pod.name === name ? { ...pod, ...change } : pod));
  }

  /** The pod's process 1, the shell that looks, and those given. */
  setProcesses(name: string, processes: readonly Partial<Process>[]): void {
    const fill = (process: Partial<Process>): Process => ({
      pid: 1,
      name: "tini",
      zombie: false,
      startedAt: this.now - 47n * HOUR,
      innerPids: [],
      ...process,
    });
    const all = [fill({}), fill({ pid: 99, name: "sh", startedAt: this.now }), ...processes.map(fill)];
    this.cluster.processes.set(name, { kind: "looked", containers: [{ container: "pulumi", containerId: `id-of-${name}`, processes: all }] });
  }

  async probe(settings: Partial<SweepSettings> = {}): Promise<SweepReport> {
    return await this.sweep({ rules: { ...RULES, probe: { enabled: true, after: 10n * MINUTE } }, ...settings });
  }

  get probes(): readonly string[] {
    return this.cluster.calls.filter((call) => call.startsWith("probe"));
  }
}

describe("the probe of a sweep", () => {
  it("a process that is gone from a pod that lives on: stale, and removed after a second look", async () => {
    const world = new ProbeWorld();
    const report = await world.probe();
    expect(onlyLock(report)).toMatchObject({
      verdict: "stale",
      reason: "process-gone",
      action: "deleted",
      evidence: {
        candidates: [
          { finding: "gone", probe: { looked: true, containers: [{ container: "pulumi", containerId: `id-of-${NAME}`, processes: 2 }], suspects: [] } },
        ],
      },
    });
    expect(world.probes).toEqual([`probe ${NAME}`, `probe ${NAME}`]);
    expect(world.backend.objects.has(world.key)).toBe(false);
    const [record] = await world.readRecords();
    expect(record?.intent.evidence.candidates[0]?.probe?.looked).toBe(true);
  });

  it("P4: a dry run looks as the real run does, and removes nothing", async () => {
    const world = new ProbeWorld();
    expect(onlyLock(await world.probe({ delete: false }))).toMatchObject({ reason: "process-gone", action: "would-delete" });
    expect(world.probes).toHaveLength(2);
    expect(world.backend.objects.has(world.key)).toBe(true);
  });

  it("a zombie holds nothing, and is told in the evidence", async () => {
    const world = new ProbeWorld();
    world.setProcesses(NAME, [{ pid: 7, name: "pulumi", zombie: true, startedAt: world.now - HOUR }]);
    const lock = onlyLock(await world.probe());
    expect(lock).toMatchObject({ reason: "process-gone", action: "deleted" });
    expect(lock.evidence.candidates[0]?.probe?.suspects).toEqual([
      { container: "pulumi", pid: 7, name: "pulumi", zombie: true, startedAt: "2026-03-10T11:00:00Z", innerPids: [] },
    ]);
  });

  it.each<[string, Partial<Process>]>([
    ["it is there", { pid: 7, name: "pulumi", startedAt: -HOUR }],
    ["its number is there, as old as the lock", { pid: 7, name: "automation", startedAt: -HOUR }],
    ["1.5 its number is pulumi's, and seems younger", { pid: 7, name: "pulumi", startedAt: 0n }],
    ["1.6 a pulumi of its age has another number", { pid: 50, name: "pulumi", startedAt: -HOUR }],
    ["1.6 its number is that of a process in a nested namespace", { pid: 50, name: "x", startedAt: 0n, innerPids: [7] }],
  ])("P1: held, and one look is enough: %s", async (_, { startedAt = 0n, ...process }) => {
    const world = new ProbeWorld();
    world.setProcesses(NAME, [{ ...process, startedAt: world.now + startedAt }]);
    expect(onlyLock(await world.probe())).toMatchObject({ verdict: "held", reason: "container-running", action: "keep" });
    expect(world.probes).toEqual([`probe ${NAME}`]);
    // Found by its name, so the whole list was not needed.
    expect(world.cluster.calls).not.toContain("observe");
  });

  it("P1: what could not be looked at is held, and the reason is shown", async () => {
    const world = new ProbeWorld();
    world.cluster.processes.delete(NAME);
    const lock = onlyLock(await world.probe());
    expect(lock).toMatchObject({ verdict: "held", action: "keep", evidence: { candidates: [{ probe: { looked: false } }] } });
    expect(lock.message).toContain('its processes could not be seen: container "pulumi": it has no shell');
  });

  it("P1: a look at another container than the one that is there later counts for nothing", async () => {
    const world = new ProbeWorld();
    world.cluster.before = (call) => {
      if (call === "observe")
        world.changePod(NAME, {
          containers: [{ name: "pulumi", kind: "main", containerId: "another", state: { kind: "running", startedAt: world.now - 2n * HOUR } }],
        });
    };
    expect(onlyLock(await world.probe())).toMatchObject({ verdict: "held", message: expect.stringContaining("were not seen") });
  });

  it("P1: nothing is gone while its node is not Ready", async () => {
    const world = new ProbeWorld();
    world.cluster.nodes = world.cluster.nodes.map((node) => ({ ...node, ready: "Unknown" }));
    expect(onlyLock(await world.probe())).toMatchObject({ verdict: "undetermined", reason: "node-not-ready", action: "keep" });
  });

  it("P1: a process that is there at the second look keeps the lock", async () => {
    const world = new ProbeWorld();
    world.whileWaiting = () => world.setProcesses(NAME, [{ pid: 7, name: "pulumi", startedAt: world.now - HOUR }]);
    expect(onlyLock(await world.probe())).toMatchObject({ verdict: "held", action: "keep" });
    expect(world.backend.objects.has(world.key)).toBe(true);
  });

  it("P1: a second look that cannot look keeps the lock", async () => {
    const world = new ProbeWorld();
    world.whileWaiting = () => world.cluster.processes.delete(NAME);
    expect(onlyLock(await world.probe())).toMatchObject({ verdict: "held", action: "keep" });
  });

  it("P1: a container beside it that does not run by a status older than the lock is not believed", async () => {
    const world = new ProbeWorld({ age: 30n * SECOND });
    world.changePod(NAME, {
      containers: [...(world.cluster.pods[0]?.containers ?? []), { name: "second", kind: "main", state: { kind: "waiting", reason: "CrashLoopBackOff" } }],
    });
    const rules = { ...RULES, minAge: 0n, probe: { enabled: true, after: 0n } };
    expect(onlyLock(await world.probe({ rules }))).toMatchObject({ verdict: "undetermined", reason: "status-older" });
    world.now += MINUTE;
    expect(onlyLock(await world.probe({ rules }))).toMatchObject({ reason: "process-gone" });
  });
});

describe("no needless look", () => {
  it("into pods of locks that are younger than --probe-after, by either clock", async () => {
    const world = new ProbeWorld({ age: 9n * MINUTE });
    expect(onlyLock(await world.probe())).toMatchObject({ verdict: "held" });
    expect(world.probes).toEqual([]);
    const copied = new ProbeWorld();
    copied.backend.put(copied.key, JSON.stringify({ pid: 7, username: "p", hostname: NAME, timestamp: "2026-03-10T11:00:00Z" }), copied.now - MINUTE);
    expect(onlyLock(await copied.probe())).toMatchObject({ verdict: "held" });
    expect(copied.probes).toEqual([]);
  });

  it("into pods that are Terminating, or that another pod outweighs", async () => {
    const world = new ProbeWorld();
    world.changePod(NAME, { deletionAt: world.now + MINUTE });
    expect(onlyLock(await world.probe())).toMatchObject({ verdict: "held", reason: "pod-terminating" });
    expect(world.probes).toEqual([]);
  });

  it("twice into one pod, however many locks it has", async () => {
    const world = new ProbeWorld();
    for (const pid of [8, 9, 10]) world.addLock(NAME, { pid });
    world.setProcesses(NAME, [{ pid: 8, name: "pulumi", startedAt: world.now - HOUR }]);
    const report = await world.probe({ delete: false });
    expect(report.summary).toMatchObject({ held: 4, stale: 0 });
    expect(world.probes).toEqual([`probe ${NAME}`]);
  });

  it("without the option; then the sentence says what it would settle", async () => {
    const world = new ProbeWorld();
    const off = { ...RULES, probe: { enabled: false, after: 10n * MINUTE } };
    expect(onlyLock(await world.sweep({ rules: off })).message).toContain("--probe-processes");
    expect(world.probes).toEqual([]);
    const young = new ProbeWorld({ age: 9n * MINUTE });
    expect(onlyLock(await young.sweep({ rules: off })).message).not.toContain("--probe-processes");
  });

  it("at more than a few pods at a time", async () => {
    const world = new ProbeWorld();
    let now = 0;
    let most = 0;
    for (let index = 0; index < 30; index += 1) {
      world.addProbed(`iac-runner-${index}`);
      world.addLock(`iac-runner-${index}`);
    }
    world.cluster.before = async (call) => {
      if (!call.startsWith("probe")) return;
      now += 1;
      most = Math.max(most, now);
      await new Promise((done) => {
        setTimeout(done, 2);
      });
      now -= 1;
    };
    await world.probe({ delete: false });
    expect(world.probes.length).toBeGreaterThanOrEqual(31);
    expect(most).toBeLessThanOrEqual(8);
  });
});

describe("a pod that is found by its hostname only", () => {
  it("is looked at, too, and what it says decides", async () => {
    const world = new ProbeWorld();
    world.cluster.pods = world.cluster.pods.map((pod) => ({ ...pod, name: "other", hostname: NAME }));
    const looked = world.cluster.processes.get(NAME);
    world.cluster.processes.clear();
    if (looked !== undefined) world.cluster.processes.set("other", looked);
    expect(onlyLock(await world.probe())).toMatchObject({ reason: "process-gone", action: "deleted" });
    expect(world.probes).toEqual(["probe other", "probe other"]);
  });
});

it("a look by name does not tell that a pod beside the holder was made later: the whole list does, and then the holder is looked at", async () => {
  const world = new ProbeWorld();
  const [holder] = world.cluster.pods;
  if (holder === undefined) throw new Error("the world has a pod");
  const later = { ...holder, namespace: "ci", uid: "uid-of-a-later-one", createdAt: world.now - MINUTE, containers: [] };
  world.cluster.pods = [...world.cluster.pods, later];
  expect(onlyLock(await world.probe())).toMatchObject({ reason: expect.stringMatching(/pod-recreated|process-gone/), action: "deleted" });
  expect(world.probes.length).toBeGreaterThan(1);
});
