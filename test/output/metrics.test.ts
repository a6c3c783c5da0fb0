import { afterEach, describe, expect, it } from "vitest";

import { HOUR } from "../../src/core/time.ts";
import { openMetrics, type Metrics } from "../../src/output/metrics.ts";
import { serveStatus, type StatusServer } from "../../src/output/serve-status.ts";
import { SweepWorld } from "../sweep-world.ts";

/** The samples of a metric, as "labels value". */
async function samplesOf(metrics: Metrics, name: string): Promise<readonly string[]> {
  const { text } = await metrics.render();
  return text
    .split("\n")
    .filter((line) => line.startsWith(`pulumi_lock_janitor_${name}`))
    .map((line) => line.replace(`pulumi_lock_janitor_${name}`, "").trim());
}

async function aWorld(): Promise<SweepWorld> {
  const world = new SweepWorld();
  world.addLock("iac-runner-gone");
  world.addHolder("iac-runner-here", world.now - 100n * HOUR);
  world.addLock("iac-runner-here", { age: 3n * HOUR });
  world.addLock("iac-runner-here", { age: HOUR, pid: 8 });
  return await Promise.resolve(world);
}

describe("the metrics of a sweep of every lock", () => {
  it("count locks by verdict, the oldest held one and what was removed", async () => {
    const metrics = openMetrics("1.2.3");
    metrics.observe(await (await aWorld()).sweep(), true);
    expect(await samplesOf(metrics, "locks{")).toEqual(
      expect.arrayContaining([
        'backend="gs://state",verdict="held"} 2',
        'backend="gs://state",verdict="stale"} 0',
        'backend="gs://state",verdict="foreign"} 0',
      ]),
    );
    expect(await samplesOf(metrics, "oldest_held_lock_age_seconds")).toEqual(['{backend="gs://state"} 10803']);
    expect(await samplesOf(metrics, "removals_total")).toEqual(['{backend="gs://state",reason="pod-not-found"} 1']);
    expect(await samplesOf(metrics, "build_info")).toEqual(['{version="1.2.3"} 1']);
    expect(await samplesOf(metrics, "sweep_duration_seconds_count")).toEqual(["1"]);
  });

  it("of a dry run show the stale lock that stays", async () => {
    const metrics = openMetrics("1.2.3");
    metrics.observe(await (await aWorld()).sweep({ delete: false }), true);
    expect(await samplesOf(metrics, "locks{")).toContain('backend="gs://state",verdict="stale"} 1');
    expect(await samplesOf(metrics, "removals_total")).toEqual([]);
  });

  it("say when a sweep last went well, and count what could not be read", async () => {
    const metrics = openMetrics("1.2.3");
    const world = await aWorld();
    metrics.observe(await world.sweep({ delete: false }), true);
    const before = await samplesOf(metrics, "last_success_timestamp_seconds");
    world.now += HOUR;
    world.cluster.problem = "403";
    metrics.observe(await world.sweep(), true);
    expect(await samplesOf(metrics, "last_success_timestamp_seconds")).toEqual(before);
    expect(await samplesOf(metrics, "errors_total")).toEqual(['{kind="cluster",source="test"} 1']);
  });

  it("a sweep whose time ran out did not go well, though nothing told of an error", async () => {
    const metrics = openMetrics("1.2.3");
    metrics.observe(await (await aWorld()).sweepPastDeadline(), true);
    expect(await samplesOf(metrics, "last_success_timestamp_seconds")).toEqual(["0"]);
  });

  it("what has not happened yet is there as 0, so that its first time is an increase", async () => {
    const metrics = openMetrics("1.2.3");
    expect(await samplesOf(metrics, "refusals_total")).toEqual(['{kind="max-deletions"} 0']);
    metrics.observe(await (await aWorld()).sweep(), true);
    expect(await samplesOf(metrics, "removal_failures_total")).toEqual(['{backend="gs://state"} 0']);
  });

  it("a closed valve is counted, and a sweep of some locks leaves the gauges alone", async () => {
    const metrics = openMetrics("1.2.3");
    const world = await aWorld();
    metrics.observe(await world.sweep({ maxDeletions: 0 }), true);
    expect(await samplesOf(metrics, "refusals_total")).toEqual(['{kind="max-deletions"} 1']);
    metrics.observe(await world.sweep({ delete: false, selection: { projects: [], stacks: ["none"], locks: [] } }), false);
    expect(await samplesOf(metrics, "locks{")).toContain('backend="gs://state",verdict="held"} 2');
  });
});

it("whether changes come is a gauge, and each time they stop an error", async () => {
  const metrics = openMetrics("1.2.3");
  const pods = { cluster: "prod", what: "pods" };
  metrics.follow(pods);
  metrics.follow({ ...pods, trouble: { problem: "no answer", denied: false } });
  metrics.follow({ ...pods, what: "stacks", trouble: { problem: "403", denied: true } });
  expect(await samplesOf(metrics, "following")).toEqual(['{cluster="prod",resource="pods"} 0', '{cluster="prod",resource="stacks"} 0']);
  metrics.follow(pods);
  expect(await samplesOf(metrics, "following")).toContain('{cluster="prod",resource="pods"} 1');
  expect(await samplesOf(metrics, "errors_total")).toEqual(['{kind="watch",source="prod"} 2']);
});

describe("the status server", () => {
  let server: StatusServer | undefined;
  afterEach(async () => await server?.stop());

  it.each([
    ["/metrics", "GET", true, 200, "pulumi_lock_janitor_build_info"],
    ["/healthz", "GET", true, 200, "ok"],
    ["/readyz", "GET", false, 503, "no sweep has ended yet"],
    ["/", "GET", true, 404, "/metrics"],
    ["/metrics", "POST", true, 405, "GET"],
  ])("%s %s (ready: %s): %i", async (path, method, ok, status, says) => {
    const ready = (): { ok: boolean; message: string } => ({ ok, message: ok ? "ok" : "no sweep has ended yet" });
    server = await serveStatus({ host: "127.0.0.1", port: 0 }, { metrics: openMetrics("1.2.3"), healthy: () => ({ ok: true, message: "ok" }), ready });
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { method });
    expect({ status: response.status, says: (await response.text()).includes(says) }).toEqual({ status, says: true });
  });

  it("a port that is taken is an error of usage", async () => {
    const parts = { metrics: openMetrics("1.2.3"), healthy: () => ({ ok: true, message: "" }), ready: () => ({ ok: true, message: "" }) };
    server = await serveStatus({ host: "127.0.0.1", port: 0 }, parts);
    await expect(serveStatus({ host: "127.0.0.1", port: server.port }, parts)).rejects.toMatchObject({ code: "usage" });
  });
});
