// Two real API servers as two clusters on one bucket, with the same Stacks and the same names: blue and green. No fact in a lock says which of them wrote it.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { CreateBucketCommand, GetObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { auditRecord } from "../../src/core/record.ts";
import { sweepReport, type SweepReport } from "../../src/core/report.ts";
import { runCommand, type CommandResult } from "../cli/command.ts";
import { findFreePort, waitFor } from "./peers/child.ts";
import { ControlPlane, type User } from "./peers/control-plane.ts";
import { startVersitygw } from "./peers/versitygw.ts";
import { Workloads } from "./peers/workloads.ts";

const KEY = ".pulumi/locks/organization/demo/dev/0b9f3f1e-4a44-4a3e-9d2a-9c1d5b7a2e61.json";
const BUCKET = "state";

const blue = new ControlPlane();
const green = new ControlPlane();
const inBlue = new Workloads(blue);
const inGreen = new Workloads(green);
const folder = mkdtempSync(join(tmpdir(), "two-clusters-"));
let store: Awaited<ReturnType<typeof startVersitygw>>;
let client: S3Client;

beforeAll(async () => {
  [store] = await Promise.all([startVersitygw(), blue.start(), green.start()]);
  const { port, accessKeyId, secretAccessKey } = store;
  client = new S3Client({ endpoint: `http://127.0.0.1:${port}`, region: "us-east-1", forcePathStyle: true, credentials: { accessKeyId, secretAccessKey } });
  await client.send(new CreateBucketCommand({ Bucket: BUCKET }));
  for (const workloads of [inBlue, inGreen]) {
    await workloads.prepare();
    await workloads.addStack("app", "organization/demo/dev");
    // A cluster that shows no pod at all proves nothing.
    await workloads.addBarePod("bystander");
  }
});
afterAll(async () => {
  client.destroy();
  await Promise.all([blue.stop(), green.stop(), store.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

/** A kubeconfig with a context for each cluster. */
function writeKubeconfig(users: { readonly blue?: User; readonly green?: User }, greenServer?: string): string {
  interface Kubeconfig {
    readonly clusters: readonly { readonly cluster: { readonly server: string } }[];
    readonly users: readonly { readonly user: object }[];
  }
  const parts = [["blue", blue, users.blue] as const, ["green", green, users.green] as const].flatMap(([name, plane, user]) => {
    if (user === undefined) return [];
    const read: Kubeconfig = JSON.parse(readFileSync(plane.writeKubeconfig(user), "utf8"));
    const cluster = { ...read.clusters[0]?.cluster, ...(name === "green" && greenServer !== undefined ? { server: greenServer } : {}) };
    return [{ name, cluster, user: read.users[0]?.user }];
  });
  const file = join(folder, `kubeconfig-${Object.values(users).join("-")}`);
  writeFileSync(
    file,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": parts[0]?.name,
      clusters: parts.map(({ name, cluster }) => ({ name, cluster })),
      users: parts.map(({ name, user }) => ({ name, user })),
      contexts: parts.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
    }),
  );
  return file;
}

async function sweep(kubeconfig: string, ...words: readonly string[]): Promise<CommandResult> {
  const { port, accessKeyId, secretAccessKey } = store;
  const url = `s3://${BUCKET}?endpoint=127.0.0.1:${port}&disableSSL=true&s3ForcePathStyle=true&region=us-east-1`;
  const rules = ["--min-age", "0s", "--settle", "0s", "--clock-skew", "2s", "--confirm-delay", "0s"];
  return await runCommand(["sweep", "--backend", url, "--kubeconfig", kubeconfig, "--output", "json", ...rules, ...words], {
    env: { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey },
  });
}

function readReport({ stdout, stderr }: CommandResult): SweepReport {
  if (stdout === "") throw new Error(stderr);
  return sweepReport.parse(JSON.parse(stdout));
}

function verdictOf(report: SweepReport): string {
  const [lock] = report.locks;
  return `${lock?.verdict ?? "none"}: ${lock?.reason ?? ""}, ${lock?.action ?? ""}`;
}

async function putLock(hostname: string): Promise<void> {
  const body = JSON.stringify({ pid: 300, username: "pulumi", hostname, timestamp: new Date().toISOString() });
  await client.send(new PutObjectCommand({ Bucket: BUCKET, Key: KEY, Body: body }));
}

async function listKeys(prefix: string): Promise<readonly string[]> {
  const { Contents: objects = [] } = await client.send(new ListObjectsV2Command({ Bucket: BUCKET, Prefix: prefix }));
  return objects.map(({ Key: key = "" }) => key);
}

async function uidOfCluster(plane: ControlPlane): Promise<string> {
  const namespace = await plane.get("/api/v1/namespaces/kube-system");
  return /"uid":"([^"]+)"/.exec(JSON.stringify(namespace))?.[1] ?? "";
}

const BOTH = ["--context", "blue", "--context", "green"] as const;
const REMOVE = ["--delete", "--exclusive"] as const;

describe.each<readonly [what: string, start: (workloads: Workloads) => Promise<string>, end: (workloads: Workloads, pod: string) => Promise<void>]>([
  ["operator v2's workspace", (workloads) => workloads.addWorkspace("app"), (workloads) => workloads.removeWorkspace("app")],
  [
    "operator v1's own pod",
    (workloads) => workloads.addOperator("pulumi-kubernetes-operator"),
    (workloads) => workloads.removeOperator("pulumi-kubernetes-operator"),
  ],
])("the lock of %s in the blue cluster", (_what, start, end) => {
  let pod = "";
  beforeAll(async () => {
    pod = await start(inBlue);
    await putLock(pod);
  });

  it("P1: the green cluster alone takes it for stale, and is refused the removal without a person's word", async () => {
    const greenOnly = writeKubeconfig({ green: "admin" });
    const dry = await sweep(greenOnly);
    expect(verdictOf(readReport(dry))).toBe("stale: pod-not-found, would-delete");
    expect(dry.stderr).toContain("--exclusive");
    expect((await sweep(greenOnly, "--delete")).exitCode).toBe(2);
    expect(await listKeys(KEY)).toEqual([KEY]);
  });

  it("P1: with both clusters it is held, also when told to remove", async () => {
    expect(verdictOf(readReport(await sweep(writeKubeconfig({ blue: "admin", green: "admin" }), ...BOTH, ...REMOVE)))).toBe("held: container-running, keep");
  });

  it("P5: a cluster that denies its pods, or cannot be reached, leaves the lock undetermined: exit 1", async () => {
    await end(inBlue, pod);
    for (const kubeconfig of [
      writeKubeconfig({ blue: "admin", green: "nobody" }),
      writeKubeconfig({ blue: "admin", green: "reader" }, `https://127.0.0.1:${await findFreePort()}`),
    ]) {
      const result = await sweep(kubeconfig, ...BOTH, ...REMOVE, "--require-stack", "no", "--request-timeout", "2s");
      const report = readReport(result);
      expect(verdictOf(report)).toBe("undetermined: list-incomplete, keep");
      expect(result.exitCode).toBe(1);
      expect(report.clusters.map(({ name, complete }) => [name, complete])).toEqual([
        ["blue", true],
        ["green", false],
      ]);
    }
  });

  it("a node of the blue cluster that is silent stands in the way, though the green one is sound", async () => {
    await inBlue.setNodeReady("node-1", "Unknown", 2);
    const report = readReport(await sweep(writeKubeconfig({ blue: "admin", green: "admin" }), ...BOTH, ...REMOVE));
    expect(verdictOf(report)).toBe("undetermined: node-unreachable, keep");
    expect(report.locks[0]?.message).toContain('"node-1"');
    await inBlue.setNodeReady("node-1", "True", 24 * 60);
  });

  it("gone from both it is removed, and the record names both clusters", async () => {
    const report = readReport(await sweep(writeKubeconfig({ blue: "admin", green: "admin" }), ...BOTH, ...REMOVE));
    expect(verdictOf(report)).toBe("stale: pod-not-found, deleted");
    expect(await listKeys(KEY)).toEqual([]);
    const intent = (await listKeys(".pulumi-lock-janitor/audit/")).find(
      (key) => key.includes(report.locks[0]?.record ?? "none") && key.endsWith(".intent.json"),
    );
    const { Body: body } = await client.send(new GetObjectCommand({ Bucket: BUCKET, Key: intent }));
    const record = auditRecord.parse(JSON.parse((await body?.transformToString()) ?? ""));
    expect(record.clusters).toEqual([
      { name: "blue", uid: await uidOfCluster(blue) },
      { name: "green", uid: await uidOfCluster(green) },
    ]);
    expect(record.overrides).toContainEqual({ option: "--exclusive", value: "" });
  });
});

describe("a pod of the same name in the green cluster", () => {
  beforeEach(async () => {
    const pod = await inBlue.addWorkspace("app");
    await putLock(pod);
    // Times of pods are whole seconds.
    const writtenAt = Date.now();
    await waitFor("a later second", () => Promise.resolve(Date.now() - writtenAt > 4_000 ? true : undefined));
    await inGreen.addWorkspace("app");
  });

  it("P1: makes the lock look like a forerunner's to the green cluster alone; with both it is held", async () => {
    const greenOnly = writeKubeconfig({ green: "admin" });
    expect(verdictOf(readReport(await sweep(greenOnly)))).toBe("stale: pod-recreated, would-delete");
    expect((await sweep(greenOnly, "--delete")).exitCode).toBe(2);
    expect(verdictOf(readReport(await sweep(writeKubeconfig({ blue: "admin", green: "admin" }), ...BOTH, ...REMOVE)))).toBe("held: container-running, keep");
    expect(await listKeys(KEY)).toEqual([KEY]);
  });
});

it("on a laptop whose kubeconfig has several contexts, a removal wants to be told which", async () => {
  const { exitCode, stderr } = await sweep(writeKubeconfig({ blue: "admin", green: "admin" }), ...REMOVE);
  expect({ exitCode, says: stderr.includes("--context") }).toEqual({ exitCode: 2, says: true });
});
