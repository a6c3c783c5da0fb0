// Shows the main job on real lock files in a temporary folder, through the built command: no cluster, no cloud account.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, utimesSync } from "node:fs";
import { join } from "node:path";

import { makeDemoFolder } from "./demo-folder.ts";

const { folder, backend, now, where } = makeDemoFolder();

/** Runs the built command as a person would, and shows its command line and its output. */
function run(title: string, words: readonly string[], expected: number): void {
  const shown = words.map((word) => word.replaceAll(folder, "$DEMO")).join(" ");
  process.stdout.write(`\n── ${title}\n$ pulumi-lock-janitor ${shown}\n\n`);
  const { status } = spawnSync(process.execPath, ["dist/main.js", ...words], { stdio: ["ignore", "inherit", "inherit"] });
  if (status !== expected) throw new Error(`the command ended with ${status ?? "a signal"}, not ${expected}`);
}

try {
  process.stdout.write(`Seven Pulumi locks in ${backend}, and what kubectl says of the cluster.\n`);
  run(
    "A dry run: who made each lock, and is that process gone? Nothing is written. (Exit code 3: the unreadable lock wants a person.)",
    ["sweep", ...where],
    3,
  );
  run("The real run removes the two whose owner is provably gone.", ["sweep", ...where, "--delete", "--exclusive"], 3);
  const audit = join(folder, "state/.pulumi-lock-janitor/audit");
  process.stdout.write(`\n── Each removal has its record, written before it, with the whole lock and the evidence:\n\n${readdirSync(audit).join("\n")}\n`);
  const record =
    readdirSync(audit)
      .find((name) => name.endsWith(".intent.json") && readFileSync(join(audit, name), "utf8").includes("network-dev-workspace-0"))
      ?.replace(".intent.json", "") ?? "";
  run("From the record the lock can be put back.", ["restore", record, "--backend", backend], 0);
  const restored = join(folder, "state/.pulumi/locks/organization/network/dev/0b9f3f1e-4a44-4a3e-9d2a-9c1d5b7a2e61.json");
  utimesSync(restored, now / 1_000 - 3_600, now / 1_000 - 3_600);
  run("An hour later: what a person put back, no sweep removes again.", ["sweep", ...where, "--delete", "--exclusive"], 3);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
