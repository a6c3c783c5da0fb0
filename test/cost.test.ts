import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { FaultProxy } from "./backends/fault-proxy.ts";
import { runCommand } from "./cli/command.ts";
import { StubApiServer } from "./kubernetes/stub-api-server.ts";

/** Kilobytes of the files that match. */
function sizeOf(folder: string, matches: (name: string) => boolean): number {
  return readdirSync(folder)
    .filter(matches)
    .reduce((sum, name) => sum + statSync(join(folder, name)).size / 1_024, 0);
}

describe("requests of an idle sweep", () => {
  const proxy = new FaultProxy("http://127.0.0.1:1");
  const api = new StubApiServer();
  beforeAll(async () => {
    await proxy.start();
    await api.start();
    proxy.fault = () => ({
      kind: "answer",
      status: 200,
      headers: { "content-type": "application/xml" },
      body: "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
    });
  });
  afterAll(async () => {
    await proxy.stop();
    await api.stop();
  });

  it("one to S3, none to the API server", async () => {
    const { exitCode, stdout } = await runCommand(
      ["sweep", "--backend", `s3://state?endpoint=127.0.0.1:${proxy.port}&disableSSL=true&s3ForcePathStyle=true&region=us-east-1`],
      { env: { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b", KUBECONFIG: api.writeKubeconfig() } },
    );
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringContaining("no locks") });
    expect(proxy.lines).toEqual(["GET /state/"]);
    expect(api.lines).toEqual([]);
  });
});

describe("the size of the bundle", () => {
  it("what answers --version is a few kilobytes", () => {
    expect(sizeOf("dist", (name) => name === "main.js")).toBeLessThan(4);
  });

  it("all of it stays below 6.5 MB, and the largest part below 2 MB", () => {
    expect(sizeOf("dist/chunks", () => true)).toBeLessThan(6_500);
    expect(Math.max(...readdirSync("dist/chunks").map((name) => statSync(join("dist/chunks", name)).size))).toBeLessThan(2_000_000);
  });
});
