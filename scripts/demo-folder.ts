import { mkdirSync, mkdtempSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** A temporary folder with a backend and what kubectl says of its cluster. */
export interface DemoFolder {
  readonly folder: string;
  readonly backend: string;
  /** The time for which it is made, in milliseconds. */
  readonly now: number;
  /** The words that name backend and cluster. */
  readonly where: readonly string[];
}

/** Makes seven locks as Pulumi writes them, and the cluster in which their owners live, or do not. */
export function makeDemoFolder(): DemoFolder {
  const now = Math.floor(Date.now() / 1_000) * 1_000;
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
    writeLock(stack, id, minutes, JSON.stringify({ pid, username, hostname, timestamp: ago(minutes + 1 / 60).replace("Z", ".482915027Z") }));
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
  addLock("organization/shop/dev", "9d0c1b2a-1a2b-4c3d-8e4f-5a6b7c8d9e0f", 1 / 30, "shop-dev-workspace-0", 19);
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
        status: {
          conditions: [{ type: "Ready", status: "True", lastTransitionTime: ago(49_999), lastHeartbeatTime: ago(1) }],
          addresses: [{ type: "Hostname", address: "node-1" }],
        },
      },
      ...["network/dev", "billing/prod", "cdn/stage", "shop/dev"].map((path) => stack(path.replace("/", "-"), { stack: `organization/${path}` })),
      stack("dns", { stack: "organization/dns/prod" }),
    ],
  };
  const podsFile = join(folder, "pods.json");
  writeFileSync(podsFile, JSON.stringify(snapshot));
  const backend = `file://${join(folder, "state")}`;
  const where = ["--backend", backend, "--pods-from", podsFile, "--pods-taken-at", new Date(now).toISOString(), "--confirm-delay", "1s", "--quiet"];
  return { folder, backend, now, where };
}
