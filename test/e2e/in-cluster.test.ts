// The janitor as it finds itself in a pod: its service account's files, its own pod as the canary. No container is needed for that, only the files at
// their place, in a mount namespace of their own.
import { spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { sweepReport, type SweepReport } from "../../src/core/report.ts";
import { ControlPlane } from "./peers/control-plane.ts";
import { Workloads } from "./peers/workloads.ts";

const plane = new ControlPlane();
const workloads = new Workloads(plane);
const folder = mkdtempSync(join(tmpdir(), "in-cluster-"));
const account = join(folder, "serviceaccount");
const state = join(folder, "state");

beforeAll(async () => {
  await plane.start();
  await workloads.prepare();
  await workloads.addBarePod("janitor-1");
  mkdirSync(account);
  copyFileSync(join(plane.folder, "certs/apiserver.crt"), join(account, "ca.crt"));
  writeFileSync(join(account, "token"), "token-of-admin");
  writeFileSync(join(account, "namespace"), "iac");
  const lock = join(state, ".pulumi/locks/organization/demo/dev/1.json");
  mkdirSync(join(lock, ".."), { recursive: true });
  const hourAgo = new Date(Date.now() - 3_600_000);
  writeFileSync(lock, JSON.stringify({ pid: 7, username: "pulumi", hostname: "iac-runner-gone", timestamp: hourAgo.toISOString() }));
  utimesSync(lock, hourAgo, hourAgo);
});
afterAll(async () => {
  await plane.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Sweeps with the service account's files where a pod has them. */
async function sweepAsPod(env: Readonly<Record<string, string>>): Promise<SweepReport> {
  const { hostname, port } = new URL(plane.server);
  const script =
    'mount -t tmpfs tmpfs /run && mkdir -p /var/run/secrets/kubernetes.io/serviceaccount && mount --bind "$0" /var/run/secrets/kubernetes.io/serviceaccount && exec "$@"';
  const words = [
    process.execPath,
    resolve("dist/main.js"),
    "sweep",
    "--backend",
    `file://${state}`,
    "--owner",
    "iac-runner-*",
    "--confirm-delay",
    "0s",
    "--output",
    "json",
  ];
  const child = spawn("unshare", ["--mount", "--propagation", "private", "sh", "-c", script, account, ...words], {
    env: { PATH: process.env["PATH"] ?? "", HOME: folder, KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  await new Promise((done) => {
    child.once("close", done);
  });
  return sweepReport.parse(JSON.parse(output));
}

describe("in a cluster", () => {
  it.each([
    ["its own pod is in the list", { POD_NAME: "janitor-1" }, "stale: pod-not-found", true],
    ["its own pod is told by the hostname", { HOSTNAME: "janitor-1" }, "stale: pod-not-found", true],
    ["nothing tells which pod is its own", {}, "undetermined: list-incomplete", false],
    ["its own pod is not in the list", { POD_NAME: "janitor-2" }, "undetermined: list-incomplete", false],
    ["its own pod is said to be elsewhere", { POD_NAME: "janitor-1", POD_NAMESPACE: "other" }, "undetermined: list-incomplete", false],
  ])("%s: %s", async (_, env, expected, complete) => {
    const report = await sweepAsPod(env);
    expect(report.locks.map(({ verdict, reason }) => `${verdict}: ${reason}`)).toEqual([expected]);
    expect(report.clusters).toMatchObject([{ name: "in-cluster", complete }]);
  });
});
