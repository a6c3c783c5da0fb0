// A URL that the Pulumi CLI takes is taken here, and one that it refuses is refused: every parameter of every scheme, valid, wrong and absent, tried on
// both. What differs is listed with its reason, and nothing else may differ.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { afterAll, beforeAll, expect, it } from "vitest";

import { openBackend } from "../../src/backends/open.ts";
import { JanitorError } from "../../src/errors.ts";
import { startAzurite } from "../backends/azurite.ts";
import { POSTGRES_PASSWORD, startPostgres } from "../backends/postgres-server.ts";
import { startFakeGcs } from "./peers/fake-gcs.ts";
import { Pulumi } from "./peers/pulumi.ts";
import { startVersitygw } from "./peers/versitygw.ts";

/** A scheme with a URL that works, and values of each of its parameters. */
interface Scheme {
  readonly base: string;
  readonly env: Readonly<Record<string, string>>;
  readonly parameters: Readonly<Record<string, { readonly valid: readonly string[]; readonly wrong: readonly string[] }>>;
}

const folder = mkdtempSync(join(tmpdir(), "url-parity-"));
const stops: (() => Promise<void>)[] = [];
const schemes = new Map<string, Scheme>();
const BOOLEAN = { valid: ["true", "false", "1"], wrong: ["perhaps"] };

beforeAll(async () => {
  const azurite = await startAzurite();
  await azurite.createContainer("state");
  const s3 = await startVersitygw();
  const client = new S3Client({
    endpoint: `http://127.0.0.1:${s3.port}`,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId: s3.accessKeyId, secretAccessKey: s3.secretAccessKey },
  });
  await client.send(new CreateBucketCommand({ Bucket: "state" }));
  const gcs = await startFakeGcs("state");
  const postgres = await startPostgres();
  await postgres.query("postgres", "CREATE DATABASE db");
  stops.push(azurite.stop, s3.stop, gcs.stop, postgres.stop);
  const state = join(folder, "state");
  mkdirSync(state);
  const key = join(folder, "key");
  writeFileSync(key, "a key");
  const { AZURE_STORAGE_DOMAIN: domain = "", ...azureEnv } = azurite.env();
  schemes.set("azblob", {
    base: "azblob://state",
    env: { ...azureEnv, AZURE_STORAGE_DOMAIN: domain },
    parameters: {
      storage_account: { valid: ["devstoreaccount1"], wrong: ["Not An Account"] },
      domain: { valid: [domain], wrong: ["evil/path"] },
      protocol: { valid: ["http"], wrong: ["ftp"] },
      cdn: BOOLEAN,
      localemu: BOOLEAN,
    },
  });
  schemes.set("s3", {
    base: `s3://state?endpoint=http://127.0.0.1:${s3.port}&use_path_style=true&region=us-east-1`,
    env: { AWS_ACCESS_KEY_ID: s3.accessKeyId, AWS_SECRET_ACCESS_KEY: s3.secretAccessKey },
    parameters: {
      region: { valid: ["us-east-1"], wrong: [] },
      endpoint: { valid: [`http://127.0.0.1:${s3.port}`], wrong: ["ftp://x"] },
      profile: { valid: [], wrong: ["no-such-profile"] },
      role: { valid: [], wrong: ["admin"] },
      anonymous: { valid: ["false"], wrong: ["perhaps"] },
      dualstack: { valid: ["false"], wrong: ["perhaps"] },
      fips: { valid: ["false"], wrong: ["perhaps"] },
      accelerate: { valid: ["false"], wrong: ["perhaps"] },
      use_path_style: { valid: ["true"], wrong: ["perhaps"] },
      s3ForcePathStyle: { valid: ["true"], wrong: ["perhaps"] },
      disable_https: { valid: ["true"], wrong: ["perhaps"] },
      disableSSL: { valid: ["true"], wrong: ["perhaps"] },
      hostname_immutable: BOOLEAN,
      rate_limiter_capacity: { valid: ["100"], wrong: ["fast"] },
      request_checksum_calculation: { valid: ["when_required", "when_supported"], wrong: ["never"] },
      response_checksum_validation: { valid: ["when_required", "when_supported"], wrong: ["never"] },
      ssetype: { valid: ["AES256"], wrong: ["rot13"] },
      kmskeyid: { valid: ["key"], wrong: [] },
      awssdk: { valid: ["v2"], wrong: [] },
    },
  });
  schemes.set("gs", {
    base: "gs://state",
    env: { STORAGE_EMULATOR_HOST: `127.0.0.1:${gcs.port}`, GOOGLE_OAUTH_ACCESS_TOKEN: "token" },
    parameters: {
      anonymous: BOOLEAN,
      access_id: { valid: ["-", "me"], wrong: [] },
      private_key_path: { valid: [key, ""], wrong: ["/nonexistent/key"] },
      universe_domain: { valid: ["googleapis.com"], wrong: [] },
    },
  });
  schemes.set("file", {
    base: `file://${state}`,
    env: {},
    parameters: {
      create_dir: { valid: ["true", "false", "1"], wrong: ["perhaps"] },
      no_tmp_dir: { valid: ["true", "false"], wrong: ["perhaps"] },
      metadata: { valid: ["skip", ""], wrong: ["perhaps"] },
      base_url: { valid: [], wrong: ["https://x"] },
      secret_key_path: { valid: [], wrong: [key] },
      dir_file_mode: { valid: ["448"], wrong: ["rwx"] },
    },
  });
  schemes.set("postgres", {
    base: `postgres://postgres:${POSTGRES_PASSWORD}@127.0.0.1:${postgres.port}/db?sslmode=disable`,
    env: {},
    parameters: {
      table: { valid: ["iac_state"], wrong: ["1x"] },
      sslmode: { valid: ["disable"], wrong: ["perhaps"] },
      application_name: { valid: ["x"], wrong: [] },
      connect_timeout: { valid: ["5"], wrong: ["soon"] },
      search_path: { valid: ["public"], wrong: [] },
    },
  });
});
afterAll(async () => {
  for (const stop of stops) await stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A URL with one parameter more, or another value of one that it has. */
function withParameter(base: string, name: string, value: string): string {
  const [place = "", query = ""] = base.split("?");
  const parameters = new URLSearchParams(query);
  parameters.set(name, value);
  return `${place}?${parameters.toString()}`;
}

/** The CLI opens the backend before it lists anything. */
async function takenByPulumi(url: string, env: Readonly<Record<string, string>>): Promise<boolean> {
  const pulumi = new Pulumi(url, env);
  const { ok } = await pulumi.listStacks();
  pulumi.remove();
  return ok;
}

async function takenByJanitor(url: string, env: Readonly<Record<string, string>>): Promise<boolean> {
  try {
    const backend = await openBackend({ url, env, requestTimeout: 10_000, now: () => Date.now() });
    const pages = [];
    for await (const page of backend.listLocks(new AbortController().signal)) pages.push(page);
    await backend.close();
    return true;
  } catch (error) {
    if (error instanceof JanitorError) return false;
    throw error;
  }
}

/** Where the janitor does otherwise than the CLI, and why. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  's3 profile wrong "no-such-profile"': "keys in the environment come before a profile here, so one that is not there does not matter",
};

it("every parameter × {valid, wrong, absent}: what Pulumi takes is taken, what it refuses is refused", async () => {
  const differences: string[] = [];
  let tried = 0;
  for (const [scheme, { base, env, parameters }] of schemes) {
    const urls = [
      `${scheme} absent`,
      ...Object.entries(parameters).flatMap(([name, { valid, wrong }]) => [
        ...valid.map((value) => [name, "valid", value] as const),
        ...wrong.map((value) => [name, "wrong", value] as const),
      ]),
      [`nope`, "wrong", "1"] as const,
    ].map((entry) =>
      typeof entry === "string"
        ? { label: entry, url: base }
        : { label: `${scheme} ${entry[0]} ${entry[1]} ${JSON.stringify(entry[2])}`, url: withParameter(base, entry[0], entry[2]) },
    );
    for (const { label, url } of urls) {
      tried += 1;
      const [pulumi, janitor] = [await takenByPulumi(url, env), await takenByJanitor(url, env)];
      const shown = label.replaceAll(folder, "FOLDER").replace(/127\.0\.0\.1:\d+/g, "HOST");
      if (pulumi !== janitor && EXCEPTIONS[shown] === undefined)
        differences.push(`${shown}: Pulumi ${pulumi ? "takes" : "refuses"} it, the janitor ${janitor ? "takes" : "refuses"} it`);
    }
  }
  process.stdout.write(`${tried} URLs tried on the Pulumi CLI and on the janitor; ${Object.keys(EXCEPTIONS).length} known differences\n`);
  expect(differences).toEqual([]);
}, 600_000);
