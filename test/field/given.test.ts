// The field test in a cluster that is there already: one process has a node, and the field test is run from another one that knows its kubeconfig, and
// no more of it than a person knows of a cluster of kind's or k3d's. A handful of scenarios is enough to see that it can.
import { spawn } from "node:child_process";

import { afterAll, beforeAll, expect, it } from "vitest";

import { findPeer } from "../e2e/peers/build-peers.ts";
import { NODE_ADDRESS } from "../e2e/peers/node/config.ts";
import { collectResult, Node, type InsideResult } from "../e2e/peers/node/node.ts";

const SOME = ["force-deleted", "pid-reused", "container-killed", "stopped", "twin-of-the-living"];

let node: Node;
beforeAll(async () => {
  node = await Node.start();
});
afterAll(async () => await node.stop());

/** Runs the field test in the network of the node, where its API server can be reached, and in nothing else of it. */
async function runFieldTest(env: Readonly<Record<string, string>>): Promise<InsideResult> {
  const words = ["-t", String(node.firstProcess), "-n", "npx", "vitest", "run", "--config", "vitest.field.config.ts", "test/field/field.test.ts"];
  const { PATH, HOME } = process.env;
  const given = { FIELD_KUBECONFIG: node.kubeconfig, FIELD_HOST_ADDRESS: NODE_ADDRESS };
  return await collectResult(spawn("nsenter", words, { env: { PATH, HOME, NO_COLOR: "1", ...given, ...env } }), "");
}

it("some of the scenarios, seen through a privileged pod; what needs the node itself is said to be left out", async () => {
  const ctr = `nsenter -t ${node.firstProcess} -a ${findPeer("ctr")} -n k8s.io images import --local {}`;
  const { exitCode, stdout, stderr } = await runFieldTest({ FIELD_LOAD_IMAGE: ctr, FIELD_SCENARIOS: SOME.join(",") });
  expect(exitCode, `${stdout}${stderr}`).toBe(0);
  expect(stdout).toContain("not run: needs the node: cut-short, cut-off, cut-and-back: a kubelet that stands still runs no probe");
  expect(stdout).toContain("docs/field-test.md is not compared");
  expect(stdout).toMatch(/Tests\s+22 passed/);
}, 400_000);

it("leaves nothing behind in the cluster", async () => {
  const { stdout } = await node.run(["kube", "kubectl", "get", "namespaces,crds,clusterroles", "-o", "name"]);
  expect(stdout.split("\n").filter((name) => /field|other|janitor|pulumi/.test(name))).toEqual([]);
});
