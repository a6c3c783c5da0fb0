import { dirname, resolve } from "node:path";

import { ControlPlane } from "../test/e2e/peers/control-plane.ts";
import { aLockBody, lockKey, startBucket } from "./bucket.ts";
import { compareSpeed } from "./compare.ts";
import { interleave, janitor, pick } from "./measure.ts";
import type { Row } from "./row.ts";
import { describeTool, findTool } from "./tools.ts";

const WORK = "sweep of 10 locks, real API server";

/** Five locks of pods that are there and five of pods that are gone. The pause before the second look is taken out, the look itself is not. */
export const TEN_LOCKS: Row = {
  name: "ten-locks",
  run: async () => {
    const bucket = await startBucket();
    const plane = new ControlPlane();
    await plane.start({ asInField: true });
    try {
      for (const name of ["default", "bench"]) await ignoreExisting(plane.create("/api/v1/namespaces", { metadata: { name } }));
      const now = (): string => new Date().toISOString();
      await plane.create("/api/v1/nodes", { metadata: { name: "node-1" } });
      await plane.patch("/api/v1/nodes/node-1/status", { status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: now() }] } });
      for (let index = 0; index < 10; index += 1) {
        const hostname = `iac-runner-0000${index}`;
        if (index < 5) {
          const spec = { nodeName: "node-1", containers: [{ name: "pulumi", image: "pulumi" }] };
          await plane.create("/api/v1/namespaces/bench/pods", { metadata: { name: hostname }, spec });
          const running = { name: "pulumi", image: "pulumi", imageID: "", ready: true, restartCount: 0, state: { running: { startedAt: now() } } };
          await plane.patch(`/api/v1/namespaces/bench/pods/${hostname}/status`, { status: { phase: "Running", containerStatuses: [running] } });
        }
        // Younger than the pod that holds it.
        await bucket.put(lockKey(index), aLockBody(hostname, 0));
      }
      const kubeconfig = plane.writeKubeconfig("admin");
      const words = ["sweep", "--backend", bucket.url(), "--owner", "iac-runner-?????", "--confirm-delay", "0ms", "--min-age", "0ms"];
      const [aws, kubectl, jq] = [findTool("aws"), findTool("kubectl"), findTool("jq")];
      const ours = janitor(WORK, words, [/10 locks: 5 stale, 5 held/], { ...bucket.env, KUBECONFIG: kubeconfig });
      if (aws === undefined || kubectl === undefined || jq === undefined) {
        process.stderr.write("ten-locks: aws, kubectl or jq is not installed, so there is nothing to compare with\n");
        return { series: await interleave([ours], 9), comparisons: [] };
      }
      const path = [dirname(aws), dirname(kubectl), dirname(jq), process.env["PATH"] ?? ""].join(":");
      const words2 = ["sh", resolve("bench/by-hand.sh"), `http://127.0.0.1:${bucket.port}`, kubeconfig] as const;
      const series = await interleave(
        [ours, { name: "by-hand.sh", words: words2, proof: [/held .*iac-runner-00004/, /stale .*iac-runner-00009/], env: { ...bucket.env, PATH: path } }],
        9,
      );
      const note = [describeTool(aws, ["--version"]), `kubectl ${describeTool(kubectl, ["version", "--client"])}`, describeTool(jq, ["--version"])].join("; ");
      return { series, comparisons: [compareSpeed({ work: WORK, against: "`bench/by-hand.sh`", note }, pick(series, WORK), pick(series, "by-hand.sh"), 10)] };
    } finally {
      await plane.stop();
      await bucket.stop();
    }
  },
};

async function ignoreExisting(made: Promise<unknown>): Promise<void> {
  try {
    await made;
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes("409")) throw error;
  }
}
