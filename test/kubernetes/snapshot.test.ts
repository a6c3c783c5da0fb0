import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import type { ClusterObservation } from "../../src/core/cluster.ts";
import { parseTimestamp } from "../../src/core/time.ts";
import { openSnapshot } from "../../src/kubernetes/snapshot.ts";
import { aNodeObject, aPodObject } from "./stub-api-server.ts";

let folder = "";
let path = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "snapshot-"));
  path = join(folder, "pods.json");
});
afterEach(() => rmSync(folder, { recursive: true }));

async function observe(content: unknown, takenAt?: bigint): Promise<ClusterObservation> {
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return await (
    await openSnapshot({ path, ...(takenAt === undefined ? {} : { takenAt }) })
  ).observe(new Set(["app-workspace-0"]), new AbortController().signal);
}

const pod = { kind: "Pod", ...aPodObject("app-workspace-0") };
const node = { kind: "Node", ...aNodeObject("node-1") };
const stack = { kind: "Stack", metadata: { name: "app", namespace: "iac" }, spec: { stack: "dev" } };

describe("a file of kubectl's", () => {
  it("with pods, nodes and Stacks is a whole cluster", async () => {
    expect(await observe({ kind: "List", items: [pod, node, stack, { kind: "Pod", ...aPodObject("other") }] })).toMatchObject({
      name: "pods.json",
      pods: { kind: "complete", total: 2, pods: [{ name: "app-workspace-0" }] },
      nodes: { kind: "listed" },
      stacks: { kind: "listed", stacks: [{ name: "app" }] },
    });
  });

  it("with pods only says what it lacks, and the command that writes it", async () => {
    const { nodes, stacks } = await observe({ kind: "List", items: [pod] });
    expect(nodes).toMatchObject({ kind: "unlisted", problem: expect.stringContaining("kubectl get pods,stacks.pulumi.com,nodes -A -o json") });
    expect(stacks.kind).toBe("unlisted");
    expect(await (await openSnapshot({ path })).listStacks(new AbortController().signal)).toEqual(stacks);
  });

  it("may be a PodList, whose items have no kind", async () => {
    expect((await observe({ kind: "PodList", items: [aPodObject("app-workspace-0")] })).pods).toMatchObject({ total: 1 });
  });

  it("is as old as the user says, or else not older than the latest time in its pods: nodes are listed after them", async () => {
    const items = [
      { ...pod, status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-03-10T11:57:00Z" }] } },
      { kind: "Node", ...aNodeObject("node-1"), status: { conditions: [{ type: "Ready", status: "True", lastHeartbeatTime: "2026-03-10T11:58:00Z" }] } },
    ];
    const stated = parseTimestamp("2026-03-10T12:00:00Z") ?? 0n;
    expect((await observe({ kind: "List", items }, stated)).source).toEqual({ kind: "snapshot", takenAt: stated, stated: true });
    expect((await observe({ kind: "List", items })).source).toEqual({ kind: "snapshot", takenAt: parseTimestamp("2026-03-10T11:57:00Z"), stated: false });
  });

  it("that was written before kubectl is said to have begun is an old one", async () => {
    writeFileSync(path, JSON.stringify({ kind: "List", items: [pod] }));
    const soon = BigInt(Date.now() + 60_000) * 1_000_000n;
    await expect(openSnapshot({ path, takenAt: soon })).rejects.toMatchObject({
      code: "snapshot-invalid",
      message: expect.stringContaining("before kubectl is said to have begun"),
    });
  });

  it("the end of a grace period is no time of the past", async () => {
    const terminating = {
      ...pod,
      metadata: { name: "a", namespace: "b", creationTimestamp: "2026-03-01T00:00:00Z", deletionTimestamp: "2030-01-01T00:00:00Z" },
    };
    expect((await observe({ kind: "List", items: [terminating] })).source).toMatchObject({ takenAt: parseTimestamp("2026-03-01T00:00:10Z") });
  });

  it.each<[string, unknown]>([
    ["cut off", '{"kind":"List","items":['],
    ["empty", ""],
    ["a table", "NAME READY\nx 1/1"],
    ["one object", pod],
    ["an array", [pod]],
    ["one page of a longer list", { kind: "PodList", metadata: { continue: "more" }, items: [aPodObject("a")] }],
    ["the last page of which more is said to remain", { kind: "PodList", metadata: { remainingItemCount: 7 }, items: [aPodObject("a")] }],
    ["a list of lists", { kind: "List", items: [{ kind: "PodList", items: [aPodObject("app-workspace-0")] }, pod] }],
    ["a list with something of no kind", { kind: "List", items: [aPodObject("app-workspace-0"), pod] }],
    ["a list with something that is no pod", { kind: "List", items: [{ kind: "Pod", metadata: {} }] }],
    ["a pod with a time that is none", { kind: "List", items: [{ ...pod, metadata: { name: "a", creationTimestamp: "yesterday" } }] }],
  ])("that is %s is refused, with the command to use", async (_, content) => {
    await expect(observe(content)).rejects.toMatchObject({
      code: "snapshot-invalid",
      message: expect.stringContaining("pods.json"),
      hint: expect.stringContaining("kubectl get"),
    });
  });

  it("that is not there is refused", async () => {
    await expect(openSnapshot({ path: join(folder, "none.json") })).rejects.toMatchObject({ code: "snapshot-invalid" });
  });
});
