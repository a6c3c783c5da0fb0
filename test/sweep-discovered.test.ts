import { describe, expect, it } from "vitest";

import type { StackResource } from "../src/core/cluster.ts";
import type { Discovery } from "../src/discover-backends.ts";
import { discoverBackends } from "../src/discover-backends.ts";
import { JanitorError } from "../src/errors.ts";
import { openBackendAuditLog } from "../src/output/backend-audit-log.ts";
import { aStack } from "./core/builders.ts";
import { MemoryBackend } from "./memory-backend.ts";
import { SweepWorld } from "./sweep-world.ts";

const KEY = ".pulumi/locks/organization/shop/prod/lock-of-iac-runner-gone-7.json";

function blockedBy(url: string, name = "shop"): StackResource {
  const lastUpdateMessage = `the stack is currently locked by 1 lock(s).\n  ${url}: created by pulumi@iac-runner-gone (pid 7) at 2026-03-10T11:00:00Z`;
  return aStack({ name, lastUpdateState: "failed", lastUpdateMessage });
}

/** What the cluster of a world gives when nothing but its own backend is configured. */
async function discoveryOf(world: SweepWorld): Promise<Discovery> {
  return await discoverBackends(
    [world.cluster],
    { allow: [], configured: [{ url: "gs://state", identity: world.backend.identity }], environment: {} },
    new AbortController().signal,
  );
}

describe("blocked Stacks in the report", () => {
  it("are those whose lock is there, with its verdict", async () => {
    const world = new SweepWorld();
    world.addLock("iac-runner-gone");
    world.cluster.stacks = [blockedBy(`gs://state/${KEY}`), blockedBy("gs://state/.pulumi/locks/organization/shop/prod/released.json", "released")];
    const report = await world.sweep({ delete: false });
    expect(report.stacks).toEqual([
      {
        cluster: "test",
        namespace: "iac",
        name: "shop",
        stack: "organization/shop/prod",
        blockedBy: [{ key: KEY, backend: world.backend.identity, verdict: "stale", reason: "pod-not-found" }],
      },
    ]);
  });

  it("are no longer blocked by a lock that this sweep removed", async () => {
    const world = new SweepWorld();
    world.addLock("iac-runner-gone");
    world.cluster.stacks = [blockedBy(`gs://state/${KEY}`)];
    const report = await world.sweep();
    expect([report.summary.removed, report.stacks]).toEqual([1, []]);
  });

  it("are not told where no cluster was asked", async () => {
    const world = new SweepWorld();
    world.cluster.stacks = [blockedBy(`gs://state/${KEY}`)];
    expect(await world.sweep()).not.toHaveProperty("stacks");
  });

  it("with --discover are told also without any lock, when their lock's backend is not of this run", async () => {
    const world = new SweepWorld();
    world.cluster.stacks = [blockedBy(`gs://elsewhere/${KEY}`), blockedBy(`gs://state/${KEY}`, "released")];
    const report = await world.sweep({}, { discovery: await discoveryOf(world) });
    expect(report.stacks).toMatchObject([{ name: "shop", blockedBy: [{ key: KEY, message: "its backend is not one that this sweep could look into" }] }]);
    expect(report.exitCode).toBe(0);
  });

  it("are told by the latest look at the cluster", async () => {
    const world = new SweepWorld();
    world.addLock("iac-runner-gone");
    const discovery = await discoveryOf(world);
    world.cluster.stacks = [blockedBy(`gs://state/${KEY}`)];
    expect((await world.sweep({ delete: false }, { discovery })).stacks).toHaveLength(1);
  });
});

describe("discovered backends in the report", () => {
  it("are marked, and swept as others are", async () => {
    const world = new SweepWorld();
    const discovered = new MemoryBackend("acme-discovered");
    const key = world.addLock("iac-runner-gone");
    discovered.objects.set(key, world.backend.objects.get(key) ?? { bytes: new Uint8Array(), version: "", storedAt: 0n });
    const report = await world.sweep(
      {},
      {
        discovery: await discoveryOf(world),
        backends: [
          { kind: "open", backend: world.backend, audit: world.audit },
          { kind: "open", backend: discovered, audit: openBackendAuditLog(discovered.records), discovered: true },
        ],
      },
    );
    expect(report.backends.map(({ name, discovered: marked }) => [name, marked])).toEqual([
      ["gs://state", undefined],
      ["gs://acme-discovered", true],
    ]);
    expect([report.summary.removed, discovered.objects.size, discovered.recordObjects.size]).toEqual([2, 0, 2]);
  });

  it("P5: one that cannot be opened is an error of the run, and the others are swept", async () => {
    const world = new SweepWorld();
    world.addLock("iac-runner-gone");
    const error = new JanitorError("backend-url-invalid", "the storage account is not known");
    const report = await world.sweep(
      {},
      {
        backends: [
          { kind: "open", backend: world.backend, audit: world.audit },
          { kind: "failed", name: "azblob://acme-x", error, discovered: true },
        ],
      },
    );
    expect([report.exitCode, report.summary.removed]).toEqual([1, 1]);
    expect(report.backends[1]).toMatchObject({ discovered: true, error: { code: "backend-url-invalid" } });
  });

  it("P5: Stacks that cannot be listed are an error of the run, also where no lock needs the cluster", async () => {
    const world = new SweepWorld();
    world.cluster.stacksProblem = "403";
    const report = await world.sweep({}, { discovery: await discoveryOf(world) });
    expect(report.clusters).toEqual([{ name: "test", pods: 0, complete: false, error: "its Stacks are not known: 403" }]);
    expect(report.exitCode).toBe(1);
  });

  it("P5: likewise where the cluster was asked for its pods too", async () => {
    const world = new SweepWorld();
    world.addLock("iac-runner-gone");
    world.cluster.stacksProblem = "403";
    const report = await world.sweep({ delete: false }, { discovery: await discoveryOf(world) });
    expect(report.clusters).toEqual([{ name: "test", uid: "uid-of-test", pods: 1, complete: true, error: "its Stacks are not known: 403" }]);
    expect(report.exitCode).toBe(1);
  });

  it("what was not admitted is a note, what was too much a refusal", async () => {
    const world = new SweepWorld();
    const report = await world.sweep({}, { discovery: { stackLists: [], backends: [], notes: ["a note"], refusals: ["too many"] } });
    expect([report.warnings, report.refusals, report.exitCode]).toEqual([["a note"], ["too many"], 4]);
  });
});
