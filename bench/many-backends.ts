import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startBucket, writeIdleKubeconfig } from "./bucket.ts";
import { compareMemory, compareTime } from "./compare.ts";
import { interleave, janitor, pick } from "./measure.ts";
import type { Row } from "./row.ts";

const [ONE, MANY] = ["one backend in a sweep", "200 backends in one sweep"];

/** What an installation for a whole company does. */
export const MANY_BACKENDS: Row = {
  name: "many-backends",
  run: async () => {
    const bucket = await startBucket();
    const kubeconfig = writeIdleKubeconfig();
    const folder = mkdtempSync(join(tmpdir(), "bench-"));
    const env = { ...bucket.env, KUBECONFIG: kubeconfig.file };
    const write = (count: number): string => {
      const file = join(folder, `${count}.yaml`);
      writeFileSync(file, `backends:\n${Array.from({ length: count }, (_, index) => `  - url: ${JSON.stringify(bucket.url(`/team-${index}`))}\n`).join("")}`);
      return file;
    };
    try {
      const commands = (
        [
          [ONE, 1],
          [MANY, 200],
        ] as const
      ).map(([name, count]) => janitor(name, ["sweep", "--config", write(count)], [new RegExp(`/team-${count - 1} `), /no locks. Nothing to remove/], env));
      const series = await interleave(commands, 7);
      const [one, many] = [pick(series, ONE), pick(series, MANY)];
      return { series, comparisons: [compareTime({ work: MANY, against: ONE }, many, one, 10), compareMemory(MANY, many, 200)] };
    } finally {
      rmSync(folder, { recursive: true });
      kubeconfig.remove();
      await bucket.stop();
    }
  },
};
