import { describe, expect, it } from "vitest";

import { check } from "../src/check.ts";
import type { CheckItem } from "../src/core/check-report.ts";
import { BUILTIN_OWNERS } from "../src/core/owner.ts";
import type { MemoryCluster } from "./memory-cluster.ts";
import { SweepWorld } from "./sweep-world.ts";

async function checkProbe(cluster: MemoryCluster, probe = true): Promise<{ readonly items: readonly Partial<CheckItem>[]; readonly exitCode: number }> {
  const { items, exitCode } = await check({ backends: [], clusters: [cluster], owners: BUILTIN_OWNERS, probe, signal: new AbortController().signal });
  const ofProbe = items.filter(({ name }) => name === "exec in pods" || name === "process-gone");
  return { items: ofProbe.map(({ name, status, message }) => ({ name, status, message })), exitCode };
}

/** A world with two pods of the operator in two namespaces, and one that is nobody's. */
function aWorld(): MemoryCluster {
  const world = new SweepWorld();
  for (const name of ["app-workspace-0", "shop-workspace-0", "coredns-x"]) world.addHolder(name);
  world.cluster.pods = world.cluster.pods.map((pod) => ({ ...pod, namespace: pod.name === "coredns-x" ? "kube-system" : `ns-${pod.name.slice(0, 3)}` }));
  return world.cluster;
}

describe("check --probe-processes", () => {
  it("asks for each namespace with a pod that matches a pattern, and for no other", async () => {
    const cluster = aWorld();
    cluster.missingExecVerbs.set("ns-app", []);
    cluster.missingExecVerbs.set("ns-sho", []);
    expect(await checkProbe(cluster)).toEqual({
      exitCode: 0,
      items: [
        { name: "exec in pods", status: "ok", message: 'namespace "ns-app"' },
        { name: "exec in pods", status: "ok", message: 'namespace "ns-sho"' },
        { name: "process-gone", status: "ok", message: "available where the containers have a shell" },
      ],
    });
  });

  it("names the verbs that are missing, and fails", async () => {
    const cluster = aWorld();
    cluster.missingExecVerbs.set("ns-app", ["create"]);
    cluster.missingExecVerbs.set("ns-sho", ["get", "create"]);
    const { exitCode, items } = await checkProbe(cluster);
    expect(exitCode).toBe(1);
    expect(items.map(({ status, message }) => `${status}: ${message}`)).toEqual([
      'denied: namespace "ns-app": not allowed are the verbs create on pods/exec',
      'denied: namespace "ns-sho": not allowed are the verbs get and create on pods/exec',
      "denied: needs the right to run a command in every pod in question",
    ]);
  });

  it("does not guess where the API server does not tell, or no pod lives", async () => {
    const cluster = aWorld();
    expect(await checkProbe(cluster)).toMatchObject({
      exitCode: 0,
      items: [{ status: "unknown" }, { status: "unknown" }, { name: "process-gone", status: "unknown" }],
    });
    cluster.pods = [];
    expect((await checkProbe(cluster)).items).toMatchObject([{ name: "process-gone", status: "unknown" }]);
  });

  it("says nothing of it without the option", async () => {
    expect((await checkProbe(aWorld(), false)).items).toEqual([]);
  });
});
