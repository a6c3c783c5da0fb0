import { putLocks, startBucket, writeIdleKubeconfig } from "./bucket.ts";
import { compareMemory, compareTime } from "./compare.ts";
import { interleave, janitor, pick } from "./measure.ts";
import type { Row } from "./row.ts";
import { findS5cmd } from "./s5cmd.ts";

const WORK = "10,000 locks on versitygw";

/** Every lock read and judged, against a program that reads as fast as anything does. */
export const TEN_THOUSAND_LOCKS: Row = {
  name: "ten-thousand-locks",
  run: async () => {
    const s5cmd = findS5cmd();
    const bucket = await startBucket();
    const kubeconfig = writeIdleKubeconfig();
    try {
      await putLocks(bucket, 10_000);
      const ours = janitor(WORK, ["sweep", "--backend", bucket.url(), "--output", "json"], [/"foreign": 10000,/], {
        ...bucket.env,
        KUBECONFIG: kubeconfig.file,
      });
      const locks = "s3://state/.pulumi/locks/*";
      const theirs =
        s5cmd === undefined
          ? []
          : [{ name: "s5cmd", words: [s5cmd, "--endpoint-url", `http://127.0.0.1:${bucket.port}`, "cat", locks] as const, env: bucket.env }];
      const series = await interleave([ours, ...theirs], 3);
      const time =
        theirs.length === 0 ? [] : [compareTime({ work: WORK, against: "`s5cmd cat` of the same keys" }, pick(series, WORK), pick(series, "s5cmd"), 1)];
      return { series, comparisons: [...time, compareMemory(WORK, pick(series, WORK), 150)] };
    } finally {
      kubeconfig.remove();
      await bucket.stop();
    }
  },
};
