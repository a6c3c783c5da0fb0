// The chart at home: installed by Helm on a real node, in a namespace that enforces the restricted pod security standard. The lock is Pulumi's own.
import { afterAll, beforeAll, expect, it } from "vitest";

import { findPeer } from "../e2e/peers/build-peers.ts";
import { waitFor } from "../e2e/peers/child.ts";
import { CHART } from "../e2e/peers/helm.ts";
import { Field } from "./field.ts";
import { markOf } from "./given-site.ts";
import { JANITOR_IMAGE } from "./images.ts";
import { deleteByForce } from "./scenario.ts";

const NAMESPACE = "janitor";
const STACK = "by-the-chart";
const JOBS_OF = ["get", "jobs", "-n", NAMESPACE, "-o", 'jsonpath={range .items[*]}{.metadata.name} {.status.succeeded}{"\\n"}{end}'];

let field: Field;
beforeAll(async () => {
  field = await Field.start();
  const labels = { ...markOf(), "pod-security.kubernetes.io/enforce": "restricted" };
  await field.apply(
    { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE, labels } },
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "state", namespace: NAMESPACE },
      stringData: { key: field.backends.pods.env["AWS_SECRET_ACCESS_KEY"] ?? "" },
    },
  );
  const placed = await field.place(field.shapes.bare("field-by-the-chart"));
  const writer = await field.beginUpdate(placed, "s3", STACK);
  await deleteByForce({ field, shape: field.shapes.bare("field-by-the-chart"), placed, writers: [writer] });
});
afterAll(async () => await field.stop());

/** Runs Helm on the node. */
async function helm(words: readonly string[], values: object = {}): Promise<string> {
  const result = await field.site.run([findPeer("helm"), ...words, "--namespace", NAMESPACE], { input: JSON.stringify(values) });
  if (result.exitCode !== 0) throw new Error(`helm ${words.join(" ")}: ${result.stderr}${result.stdout}`);
  return result.stdout;
}

/** What a user would write: who may be judged, where the state is, and the key in a Secret. */
function valuesWith(more: object): object {
  const [repository, tag] = JANITOR_IMAGE.split(":");
  return {
    image: { repository, tag, pullPolicy: "Never" },
    schedule: "* * * * *",
    backends: [
      {
        url: field.backends.pods.url("s3"),
        exclusive: true,
        env: { AWS_ACCESS_KEY_ID: field.backends.pods.env["AWS_ACCESS_KEY_ID"] },
        secret: { name: "state", keys: { AWS_SECRET_ACCESS_KEY: "key" } },
      },
    ],
    settings: { owners: ["field-*=pulumi"], minAge: "0s" },
    ...more,
  };
}

async function isLocked(): Promise<boolean> {
  return (await field.backends.readOwners("s3", STACK)).length > 0;
}

/** Waits for a Job that the CronJob made by itself and that ended well; gives its log. */
async function waitForJob(other: readonly string[]): Promise<{ readonly name: string; readonly log: string }> {
  const name = await waitFor(
    "a Job of the CronJob",
    async () =>
      (await field.kubectl(...JOBS_OF))
        .split("\n")
        .map((line) => line.split(" "))
        .find(([job = "", succeeded]) => job !== "" && !other.includes(job) && succeeded === "1")?.[0],
    { every: 500, within: 150_000 },
  );
  return { name, log: await field.kubectl("logs", "-n", NAMESPACE, `job/${name}`) };
}

it("by default the CronJob fires by itself, tells what it would remove, and removes nothing; then it removes; helm test passes", async () => {
  const notes = await helm(["install", "janitor", CHART, "--values", "-"], valuesWith({}));
  expect(notes).toContain("The janitor removes NOTHING: it is a dry run");
  const dry = await waitForJob([]);
  expect(dry.log).toContain("Dry run of s3://state");
  expect(dry.log).toContain("pod-not-found");
  expect(await isLocked()).toBe(true);

  const tested = await helm(["test", "janitor", "--logs"]);
  expect(tested).toMatch(/Phase:\s+Succeeded/);

  const upgraded = await helm(["upgrade", "janitor", CHART, "--values", "-"], valuesWith({ delete: true }));
  expect(upgraded).toContain("The janitor REMOVES locks");
  await waitFor("the lock to be removed", async () => ((await isLocked()) ? undefined : true), { every: 500, within: 150_000 });
  expect((await field.up("s3", STACK)).ok).toBe(true);
  await helm(["uninstall", "janitor"]);
}, 400_000);
