import { execFileSync } from "node:child_process";
import { join } from "node:path";

import { putLocks, startBucket, writeIdleKubeconfig } from "./bucket.ts";
import { compareMemory } from "./compare.ts";
import { interleave, janitor, minimum, pick, type Command, type Series } from "./measure.ts";
import type { Comparison, Row } from "./row.ts";

const [SMALL, LARGE] = [1_000, 100_000];

/** Whether a lock costs the same where there are many. */
export const HUNDRED_THOUSAND_LOCKS: Row = {
  name: "hundred-thousand-locks",
  run: async () => {
    const bucket = await startBucket();
    const kubeconfig = writeIdleKubeconfig();
    const sweep = (kind: "file" | "S3", what: string, count: number): Command =>
      janitor(
        `${what} (${kind})`,
        ["sweep", "--backend", kind === "S3" ? bucket.url() : `file://${bucket.data}`, "--output", "json"],
        [new RegExp(`"foreign": ${count},`)],
        {
          ...bucket.env,
          KUBECONFIG: kubeconfig.file,
        },
      );
    const both = (what: string, count: number): readonly Command[] => [sweep("file", what, count), sweep("S3", what, count)];
    try {
      const series = [...(await interleave(both("no lock", 0), 3))];
      await putLocks(bucket, SMALL);
      series.push(...(await interleave(both("1,000 locks", SMALL), 3)));
      // Ninety-nine copies of what the server has written, its extended attributes with them: to put them one by one takes minutes.
      const locks = join(bucket.data, ".pulumi/locks");
      execFileSync("sh", ["-c", 'for each in $(seq 1 99); do cp -r --preserve=xattr "$1/organization" "$1/organization-$each"; done', "sh", locks]);
      series.push(...(await interleave(both("100,000 locks", LARGE), 1)));
      const comparisons = (["file", "S3"] as const).flatMap((kind): readonly Comparison[] => {
        const large = pick(series, `100,000 locks (${kind})`);
        const perLock = (one: Series, count: number): number => (minimum(one) - minimum(pick(series, `no lock (${kind})`))) / count;
        const value = perLock(large, LARGE) / perLock(pick(series, `1,000 locks (${kind})`), SMALL);
        return [
          { work: `a lock of 100,000 (${kind})`, against: "a lock of 1,000, both without the start", aim: "≤ 1.2 ×", value, unit: "×", met: value <= 1.2 },
          compareMemory(large.name, large, 250),
        ];
      });
      return { series, comparisons };
    } finally {
      kubeconfig.remove();
      await bucket.stop();
    }
  },
};
