// The story that the project comes from: the real Pulumi CLI is killed in the middle of an update, its pod goes away in a real cluster, the next update
// fails on the lock, the janitor removes it, and the update goes through.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { sweepReport, type SweepReport } from "../../src/core/report.ts";
import { startAzurite, type Azurite } from "../backends/azurite.ts";
import { FaultProxy } from "../backends/fault-proxy.ts";
import { runCommand } from "../cli/command.ts";
import { ControlPlane } from "./peers/control-plane.ts";
import { Pulumi } from "./peers/pulumi.ts";
import { Workloads } from "./peers/workloads.ts";

/** What happens to the pod after its pulumi was killed, and what the janitor must make of the lock. */
interface Fate {
  readonly stack: string;
  readonly expected: string;
  /** Makes the pod; gives its name, which is the hostname of its processes. */
  readonly start: () => Promise<string>;
  readonly end: (pod: string) => Promise<void>;
}

const plane = new ControlPlane();
const workloads = new Workloads(plane);
let azurite: Azurite;
let proxy: FaultProxy;
const folder = mkdtempSync(join(tmpdir(), "first-unlock-"));

function fatesOf(prefix: string): readonly Fate[] {
  const workspace =
    (stack: string): (() => Promise<string>) =>
    async () => {
      await workloads.addStack(`${prefix}-${stack}`, `organization/demo/${stack}`);
      return await workloads.addWorkspace(`${prefix}-${stack}`);
    };
  return [
    { stack: "gone", expected: "stale: pod-not-found", start: workspace("gone"), end: () => workloads.removeWorkspace(`${prefix}-gone`) },
    {
      stack: "recreated",
      expected: "stale: pod-recreated",
      start: workspace("recreated"),
      end: async (pod) => {
        const uid = await workloads.uidOf(pod);
        await workloads.finish(pod);
        await workloads.waitForPod(pod, uid);
        await workloads.setRunning(pod, "pulumi");
      },
    },
    { stack: "restarted", expected: "stale: container-restarted", start: workspace("restarted"), end: (pod) => workloads.setRestarted(pod, "pulumi") },
    { stack: "alive", expected: "held: container-running", start: workspace("alive"), end: () => Promise.resolve() },
    { stack: "terminating", expected: "held: pod-terminating", start: workspace("terminating"), end: (pod) => workloads.terminate(pod) },
    {
      stack: "ended",
      expected: "stale: pod-ended",
      start: () => workloads.addBarePod(`iac-runner-${prefix}`),
      end: (pod) => workloads.setFailed(pod, "pulumi"),
    },
    {
      stack: "operator",
      expected: "stale: pod-not-found",
      start: async () => {
        await workloads.addStack(`${prefix}-any-name`, "organization/demo/operator");
        return await workloads.addOperator(`${prefix}-pulumi-kubernetes-operator`);
      },
      end: (pod) => workloads.finish(pod),
    },
  ];
}

interface Backend {
  readonly url: string;
  readonly env: Readonly<Record<string, string>>;
  /** The keys of the locks that are there, by Pulumi's own folder of a stack. */
  readonly listLocks: (stack: string) => Promise<readonly string[]>;
}

const stops: (() => Promise<void>)[] = [];
beforeAll(async () => {
  stops.push(() => plane.stop());
  await plane.start();
  await workloads.prepare();
  azurite = await startAzurite();
  stops.push(azurite.stop);
  proxy = new FaultProxy(`http://127.0.0.1:${azurite.port}`);
  await proxy.start();
  stops.push(() => proxy.stop());
});
afterAll(async () => {
  for (const stop of stops.toReversed()) await stop();
  rmSync(folder, { recursive: true, force: true });
});

async function openBackend(scheme: "file" | "azblob"): Promise<Backend> {
  if (scheme === "file") {
    const root = join(folder, "state");
    mkdirSync(root);
    const locks = (stack: string): string => join(root, ".pulumi/locks/organization/demo", stack);
    return {
      url: `file://${root}`,
      env: {},
      listLocks: (stack) => Promise.resolve(existsSync(locks(stack)) ? readdirSync(locks(stack)).filter((name) => name.endsWith(".json")) : []),
    };
  }
  const container = await azurite.createContainer("state");
  return {
    url: "azblob://state/team/a",
    env: azurite.env(proxy.port),
    listLocks: async (stack) => {
      const names: string[] = [];
      for await (const { name } of container.listBlobsFlat({ prefix: `team/a/.pulumi/locks/organization/demo/${stack}/` })) names.push(name);
      return names;
    },
  };
}

describe.each(["file", "azblob"] as const)("the first unlock on %s", (scheme) => {
  const fates = fatesOf(scheme);
  let backend: Backend;
  let pulumi: Pulumi;

  const sweep = async (...words: readonly string[]): Promise<SweepReport> => {
    const { stdout, stderr } = await runCommand(
      [
        "sweep",
        "--backend",
        backend.url,
        "--owner",
        "iac-runner-*=pulumi",
        "--kubeconfig",
        plane.writeKubeconfig("admin"),
        "--min-age",
        "0s",
        "--output",
        "json",
        ...words,
      ],
      { env: backend.env },
    );
    if (stdout === "") throw new Error(stderr);
    return sweepReport.parse(JSON.parse(stdout));
  };
  const verdicts = (report: SweepReport): Readonly<Record<string, string>> =>
    Object.fromEntries(report.locks.map(({ stack, verdict, reason }) => [stack.replace("organization/demo/", ""), `${verdict}: ${reason}`]));
  const expected = Object.fromEntries(fates.map((fate) => [fate.stack, fate.expected]));

  beforeAll(async () => {
    backend = await openBackend(scheme);
    pulumi = new Pulumi(backend.url, backend.env);
    const pods = new Map<Fate, string>();
    for (const fate of fates) {
      await pulumi.init(fate.stack);
      const pod = await fate.start();
      pods.set(fate, pod);
      await pulumi.killDuringUpdate(fate.stack, pod, async () => (await backend.listLocks(fate.stack)).length > 0);
    }
    // Beyond the clock skew, so that what starts now is later than the locks.
    await sleep(7_000);
    for (const [fate, pod] of pods) await fate.end(pod);
    // A finding from a status counts for locks older than a minute, and a successor must have settled.
    await sleep(60_000);
  });
  afterAll(() => pulumi.remove());

  it("before: the next update fails on the lock", async () => {
    const { ok, output } = await pulumi.up("gone");
    expect(ok).toBe(false);
    expect(output).toContain("the stack is currently locked by 1 lock(s)");
  });

  it("P4: a dry run judges every lock rightly, and sends no write", async () => {
    proxy.requests.length = 0;
    const report = await sweep();
    expect(verdicts(report)).toEqual(expected);
    expect(report.summary.wouldRemove).toBe(5);
    expect(new Set(proxy.requests.map(({ method }) => method))).toEqual(new Set(scheme === "file" ? [] : ["GET"]));
  });

  it("the real run removes the stale ones and leaves the others", async () => {
    const report = await sweep("--delete", "--exclusive");
    expect(verdicts(report)).toEqual(expected);
    const left = await Promise.all(fates.map(async ({ stack }) => [stack, (await backend.listLocks(stack)).length]));
    expect(Object.fromEntries(left)).toEqual(Object.fromEntries(fates.map((fate) => [fate.stack, fate.expected.startsWith("stale") ? 0 : 1])));
  });

  it("after: pulumi up goes through where the lock was stale, and is still locked where it was held", async () => {
    for (const fate of fates) {
      const { ok, output } = await pulumi.up(fate.stack);
      expect({ stack: fate.stack, ok, locked: output.includes("currently locked") }).toEqual({
        stack: fate.stack,
        ok: fate.expected.startsWith("stale"),
        locked: !fate.expected.startsWith("stale"),
      });
    }
  });
});
