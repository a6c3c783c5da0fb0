// Shows the main job on real lock files in a temporary folder, through the built command: no cluster, no cloud account.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const now = Date.now();
const ago = (minutes: number): string => `${new Date(now - minutes * 60_000).toISOString().slice(0, 19)}Z`;
const folder = mkdtempSync(join(tmpdir(), "pulumi-lock-janitor-demo-"));

/** A lock as Pulumi writes it: nanoseconds, and the attributes that gocloud keeps beside each object. */
function writeLock(stack: string, id: string, minutes: number, body: string): void {
  const path = join(folder, "state/.pulumi/locks", stack, `${id}.json`);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, body);
  writeFileSync(`${path}.attrs`, "{}");
  const writtenAt = now / 1_000 - minutes * 60;
  utimesSync(path, writtenAt, writtenAt);
}

function addLock(stack: string, id: string, minutes: number, hostname: string, pid: number, username = "pulumi"): void {
  writeLock(stack, id, minutes, JSON.stringify({ pid, username, hostname, timestamp: ago(minutes).replace("Z", ".482915027Z") }));
}

addLock("organization/network/dev", "0b9f3f1e-4a44-4a3e-9d2a-9c1d5b7a2e61", 178, "network-dev-workspace-0", 211);
addLock(
  "organization/dns/prod",
  "6f0e2a4c-91d7-4c0b-8a55-2d1b7c9e4f10",
  870,
  "pulumi-kubernetes-operator-6b8d5f7c9d-q4x7n",
  28841,
  "pulumi-kubernetes-operator",
);
addLock("organization/billing/prod", "5ce1d2c0-2f6d-4d8e-8a77-3f1a2b9c4d5e", 25, "billing-prod-workspace-0", 300);
addLock("organization/cdn/stage", "77fe9a10-3c1f-4f0e-bb60-9d7c35d1e2aa", 12, "cdn-stage-workspace-0", 41);
addLock("organization/shop/prod", "2b77c4d1-8e2f-4b8e-a1a5-6f2b0c9d8e7f", 1_420, "Mirrens-MacBook-Pro.local", 901, "m.okafor");
addLock("organization/shop/dev", "9d0c1b2a-1a2b-4c3d-8e4f-5a6b7c8d9e0f", 0, "shop-dev-workspace-0", 19);
writeLock("organization/data/dev", "83aa189c-2f4e-4b1d-9a00-1c2d3e4f5a6b", 300, '{"pid":61,"username":"pulumi","hostn');

const running = (startedAt: string): object => ({ running: { startedAt } });
const pod = (name: string, createdAt: string, status: object, extra: object = {}): object => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { namespace: "iac", name, uid: `uid-of-${name}`, creationTimestamp: createdAt, ...extra },
  spec: { nodeName: "node-1", containers: [{ name: "pulumi" }] },
  status: { phase: "Running", containerStatuses: [{ name: "pulumi", ...status }] },
});
const stack = (name: string, spec: object): object => ({ apiVersion: "pulumi.com/v1", kind: "Stack", metadata: { namespace: "iac", name }, spec });
const snapshot = {
  apiVersion: "v1",
  kind: "List",
  items: [
    // Its container was killed for its memory and restarted in place, after the lock.
    pod("network-dev-workspace-0", ago(20_000), {
      restartCount: 1,
      state: running(ago(139)),
      lastState: { terminated: { reason: "OOMKilled", exitCode: 137, startedAt: ago(19_999), finishedAt: ago(140) } },
    }),
    // It has been running since before the lock.
    pod("billing-prod-workspace-0", ago(600), { restartCount: 0, state: running(ago(599)) }),
    // Terminating: pulumi may be finishing its step.
    pod("cdn-stage-workspace-0", ago(600), { restartCount: 0, state: running(ago(599)) }, { deletionTimestamp: ago(-9) }),
    pod("shop-dev-workspace-0", ago(600), { restartCount: 0, state: running(ago(599)) }),
    {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "node-1", creationTimestamp: ago(50_000) },
      status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: ago(49_999) }], addresses: [{ type: "Hostname", address: "node-1" }] },
    },
    ...["network/dev", "billing/prod", "cdn/stage", "shop/dev"].map((path) => stack(path.replace("/", "-"), { stack: `organization/${path}` })),
    stack("dns", { stack: "organization/dns/prod" }),
  ],
};
const podsFile = join(folder, "pods.json");
writeFileSync(podsFile, JSON.stringify(snapshot));

/** Runs the built command as a person would, and shows its command line and its output. */
function run(title: string, words: readonly string[], expected: number): void {
  const shown = words.map((word) => word.replaceAll(folder, "$DEMO")).join(" ");
  process.stdout.write(`\n── ${title}\n$ pulumi-lock-janitor ${shown}\n\n`);
  const { status } = spawnSync(process.execPath, ["dist/main.js", ...words], { stdio: ["ignore", "inherit", "inherit"] });
  if (status !== expected) throw new Error(`the command ended with ${status ?? "a signal"}, not ${expected}`);
}

try {
  const backend = `file://${join(folder, "state")}`;
  const where = ["--backend", backend, "--pods-from", podsFile, "--pods-taken-at", new Date(now).toISOString(), "--confirm-delay", "1s", "--quiet"];
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
