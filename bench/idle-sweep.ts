import { startBucket, writeIdleKubeconfig } from "./bucket.ts";
import { compareSpeed, compareTime } from "./compare.ts";
import { BARE_NODE, interleave, janitor, pick, type Command } from "./measure.ts";
import type { Row } from "./row.ts";
import { describeTool, findTool } from "./tools.ts";

const IDLE = "sweep of an empty bucket";

/** What a CronJob does nearly every time: one request, and no lock. */
export const IDLE_SWEEP: Row = {
  name: "idle-sweep",
  run: async () => {
    const bucket = await startBucket();
    const kubeconfig = writeIdleKubeconfig();
    const aws = findTool("aws");
    try {
      const commands: Command[] = [
        BARE_NODE,
        janitor(IDLE, ["sweep", "--backend", bucket.url()], [/no locks. Nothing to remove/], { ...bucket.env, KUBECONFIG: kubeconfig.file }),
      ];
      if (aws !== undefined)
        commands.push({ name: "aws", words: [aws, "s3", "ls", "s3://state", "--endpoint-url", `http://127.0.0.1:${bucket.port}`], env: bucket.env });
      const series = await interleave(commands, 15);
      const [bare, idle] = [pick(series, BARE_NODE.name), pick(series, IDLE)];
      const speed =
        aws === undefined
          ? compareSpeed({ work: IDLE, against: "`aws s3 ls`, as 20 × bare `node -e ''`", note: "aws is not installed here" }, idle, bare, 5, 20)
          : compareSpeed({ work: IDLE, against: "`aws s3 ls`", note: describeTool(aws, ["--version"]) }, idle, pick(series, "aws"), 5);
      return { series, comparisons: [compareTime({ work: IDLE, against: "bare `node -e ''`" }, idle, bare, 4), speed] };
    } finally {
      kubeconfig.remove();
      await bucket.stop();
    }
  },
};
