import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import pLimit from "p-limit";

import { stopChild } from "../test/e2e/peers/child.ts";
import { ControlPlane } from "../test/e2e/peers/control-plane.ts";
import { aLockBody } from "./bucket.ts";
import { compareMemory, compareSpeed, compareTime } from "./compare.ts";
import { interleave, janitor, pick, type Command } from "./measure.ts";
import { aPod, CANDIDATES } from "./pod-objects.ts";
import type { Measured, Row } from "./row.ts";
import { describeTool, findTool } from "./tools.ts";

/** Where the pods are, and how curl gets at them. */
interface Cluster {
  readonly kubeconfig: string;
  readonly curl: readonly string[];
}

/** Twenty locks that only a whole list of the pods decides, on a real API server. */
export const PODS_REAL: Row = {
  name: "pods-20000",
  run: async () => {
    const plane = new ControlPlane();
    await plane.start({ asInField: true });
    try {
      await plane.create("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name: "node-1" } });
      await plane.create("/api/v1/namespaces/default/serviceaccounts", { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "bench" } });
      const limit = pLimit(48);
      await limit.map(
        Array.from({ length: 20_000 }, (_, index) => index),
        (index) => plane.create("/api/v1/namespaces/default/pods", aPod(index, 20_000)),
      );
      const curl = ["--silent", "--insecure", "--header", "Authorization: Bearer token-of-admin", `${plane.server}/api/v1/pods`];
      const kubeconfig = plane.writeKubeconfig("admin");
      const kubectl = findTool("kubectl");
      const measured = await measure("20,000 pods, real API server", 20_000, { kubeconfig, curl }, 3);
      if (kubectl === undefined) return measured;
      const [theirs] = await interleave([{ name: "kubectl", words: [kubectl, "--kubeconfig", kubeconfig, "get", "pods", "-A", "-o", "json"] }], 1);
      const ours = measured.series[0];
      if (theirs === undefined || ours === undefined) return measured;
      const told = {
        work: ours.name,
        against: "`kubectl get pods -A -o json`",
        note: `${describeTool(kubectl, ["version", "--client"])}, ${Math.round(theirs.megabytes)} MB`,
      };
      return { series: [...measured.series, theirs], comparisons: [...measured.comparisons, compareSpeed(told, ours, theirs, 1)] };
    } finally {
      await plane.stop();
    }
  },
};

/** The same with more pods than a real API server takes within the bench's time: a stub writes them, page by page. */
export const PODS_STUB: Row = {
  name: "pods-100000",
  run: async () => {
    const folder = mkdtempSync(join(tmpdir(), "bench-"));
    const server = spawn(process.execPath, [resolve("bench/pod-server.ts"), "100000"], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      const port = await new Promise<string>((done) => {
        server.stdout.setEncoding("utf8").once("data", (text: string) => done(text.trim()));
      });
      const place = `http://127.0.0.1:${port}`;
      const kubeconfig = join(folder, "kubeconfig");
      writeFileSync(
        kubeconfig,
        `apiVersion: v1\nkind: Config\ncurrent-context: stub\nclusters: [{ name: stub, cluster: { server: "${place}", insecure-skip-tls-verify: true } }]\nusers: [{ name: stub, user: { token: none } }]\ncontexts: [{ name: stub, context: { cluster: stub, user: stub } }]\n`,
      );
      return await measure("100,000 pods, stub", 100_000, { kubeconfig, curl: ["--silent", `${place}/api/v1/pods`] }, 3);
    } finally {
      await stopChild(server);
      rmSync(folder, { recursive: true });
    }
  },
};

async function measure(work: string, count: number, { kubeconfig, curl }: Cluster, rounds: number): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), "bench-"));
  try {
    const locks = join(folder, ".pulumi/locks/organization/shop/prod");
    mkdirSync(locks, { recursive: true });
    for (const hostname of CANDIDATES) writeFileSync(join(locks, `${hostname}.json`), aLockBody(hostname));
    const program = findTool("curl");
    const ours = janitor(
      work,
      ["sweep", "--backend", `file://${folder}`, "--owner", "iac-runner-?????", "--fail-on", "none", "--min-age", "0ms", "--output", "json"],
      [new RegExp(`"pods": ${count},\\s+"complete": true`), /"(held|undetermined)": 20,/],
      { KUBECONFIG: kubeconfig },
    );
    const theirs: Command[] = program === undefined ? [] : [{ name: "curl", words: [program, ...curl] }];
    const series = await interleave([ours, ...theirs], rounds);
    const time = program === undefined ? [] : [compareTime({ work, against: "`curl` of the same list" }, pick(series, work), pick(series, "curl"), 1.5)];
    return { series, comparisons: [...time, compareMemory(work, pick(series, work), 200)] };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
