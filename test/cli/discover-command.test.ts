import { createServer, type Server } from "node:net";
import type { AddressInfo } from "node:net";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { checkReport } from "../../src/core/check-report.ts";
import { sweepReport, type SweepReport } from "../../src/core/report.ts";
import { runCommand, type CommandResult } from "./command.ts";
import { Workspace } from "./snapshot-files.ts";

let workspace: Workspace;
let server: Server;
let connections = 0;
beforeEach(async () => {
  workspace = new Workspace();
  connections = 0;
  server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((done) => {
    server.listen(0, "127.0.0.1", done);
  });
});
afterEach(async () => {
  workspace.remove();
  await new Promise((done) => {
    server.close(done);
  });
});

/** A server of S3 that nobody may be led to: the connections to it are counted. */
function env(): Readonly<Record<string, string>> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address.
  const { port } = server.address() as AddressInfo;
  return { AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${port}`, AWS_REGION: "us-east-1", AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "secret" };
}

async function sweep(...words: readonly string[]): Promise<CommandResult> {
  return await runCommand(workspace.sweepWords(...words), { env: env() });
}

async function sweepToJson(...words: readonly string[]): Promise<SweepReport> {
  const { stdout, stderr } = await sweep("--output", "json", ...words);
  if (stdout === "") throw new Error(`no report: ${stderr}`);
  return sweepReport.parse(JSON.parse(stdout));
}

describe("sweep --discover", () => {
  it("without an allow-list opens nothing more, and says what is not swept and which Stack is blocked", async () => {
    const key = workspace.addLock("iac-runner-gone");
    workspace.addStack("shop", "organization/shop/prod", {
      message: `locked by 1 lock(s).\n  ${workspace.backend}/${key}: created by …`,
      backend: workspace.backend,
    });
    workspace.addStack("other", "dev", { backend: "s3://acme-state" });
    const report = await sweepToJson("--discover");
    expect(report.stacks).toMatchObject([{ name: "shop", blockedBy: [{ key, verdict: "stale" }] }]);
    expect(report.warnings).toEqual(['the backend s3://acme-state of Stack "iac/other" is not swept: no --discover-allow admits it']);
    expect([report.backends.length, connections]).toEqual([1, 0]);
  });

  it("opens what is admitted, with the environment's credentials, and its failure is one of the run", async () => {
    workspace.addStack("other", "dev", { backend: "s3://acme-state/team?awssdk=v2" });
    const report = await sweepToJson("--discover", "--discover-allow", "s3://acme-*/**");
    expect(report.backends[1]).toMatchObject({ identity: { scheme: "s3", bucket: "acme-state", prefix: "team/" }, discovered: true });
    expect([report.exitCode, connections > 0]).toEqual([1, true]);
  });

  it("wants no --backend where globs admit some", async () => {
    workspace.addStack("other", "dev", { backend: "s3://elsewhere" });
    const words = ["sweep", "--pods-from", workspace.snapshot, "--discover"];
    expect(await runCommand(words)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("no backend was given") });
    const { exitCode, stdout } = await runCommand([...words, "--discover-allow", "s3://acme-*"]);
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: expect.stringMatching(/^Dry run of no backend\n[^]*s3:\/\/elsewhere of Stack "iac\/other" is not swept/),
    });
  });

  it("fails where the Stacks are not known", async () => {
    const report = await sweepToJson("--discover");
    expect(report.exitCode).toBe(1);
    expect(report.clusters).toMatchObject([{ error: expect.stringContaining("the file holds no Stacks") }]);
  });

  it("a tenant's URL that this environment cannot open does not end the run", async () => {
    workspace.addLock("iac-runner-gone");
    workspace.addStack("other", "dev", { backend: "azblob://acme-state" });
    const report = await sweepToJson("--discover", "--discover-allow", "azblob://acme-*", "--delete", "--exclusive");
    expect(report.backends[1]).toMatchObject({ discovered: true, error: { message: expect.stringContaining("storage account is not known") } });
    expect([report.exitCode, report.summary.removed]).toEqual([1, 1]);
  });

  it("--delete wants --exclusive for what will be discovered, before anything is opened", async () => {
    workspace.addStack("other", "dev", { backend: "s3://acme-state" });
    const config = ["--config", `${workspace.folder}/config.yaml`];
    workspace.addConfig({ backends: [{ url: workspace.backend, exclusive: true }] });
    const words = ["sweep", "--pods-from", workspace.snapshot, "--pods-taken-at", new Date().toISOString(), ...config, "--delete"];
    const refused = await runCommand([...words, "--discover", "--discover-allow", "s3://acme-*"], { env: env() });
    expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("--delete with --discover-allow wants --exclusive") });
    expect(connections).toBe(0);
  });

  it("--discover-allow alone is wrong usage", async () => {
    expect(await sweep("--discover-allow", "s3://acme-*")).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("--discover-allow goes with --discover"),
    });
  });
});

it("check --discover tells what would be added and what would not", async () => {
  workspace.addStack("a", "dev", { backend: "s3://acme-state" });
  workspace.addStack("b", "dev", { backend: "s3://acme-state?endpoint=evil.example" });
  const words = [
    "check",
    "--backend",
    workspace.backend,
    "--pods-from",
    workspace.snapshot,
    "--discover",
    "--discover-allow",
    "s3://acme-*",
    "--output",
    "json",
  ];
  const { stdout } = await runCommand(words, { env: env() });
  const items = checkReport.parse(JSON.parse(stdout)).items.filter(({ area }) => area === "discovery");
  expect(items).toMatchObject([
    { name: "added", status: "ok", message: 's3://acme-state of Stack "iac/a"' },
    { name: "not added", status: "unknown", message: expect.stringContaining("its parameter endpoint would say") },
  ]);
});
