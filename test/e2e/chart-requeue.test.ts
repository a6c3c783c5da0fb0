// What the chart allows after a removal, on a real API server: one annotation and an Event, and nothing else.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { Agent, request } from "undici";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";

import { RECONCILIATION_REQUEST } from "../../src/core/after-unlock.ts";
import { checkReport } from "../../src/core/check-report.ts";
import { sweepReport, type ReportedLock } from "../../src/core/report.ts";
import { runCommand } from "../cli/command.ts";
import { waitFor } from "./peers/child.ts";
import { ControlPlane } from "./peers/control-plane.ts";
import { CHART, render, runHelm } from "./peers/helm.ts";
import { Workloads } from "./peers/workloads.ts";

const plane = new ControlPlane();
const workloads = new Workloads(plane);
const folder = mkdtempSync(join(tmpdir(), "chart-requeue-"));
const state = join(folder, "state");
const config = join(folder, "config.yaml");
const kubeconfig = join(folder, "kubeconfig");
const STACKS = "/apis/pulumi.com/v1/namespaces/iac/stacks";
const ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/ops.janitor";

const VALUES = {
  fullnameOverride: "janitor",
  delete: true,
  backends: [{ url: `file://${state}`, exclusive: true }],
  settings: { owners: ["iac-runner-*"], confirmDelay: "0s", checkPending: true },
  requeue: { enabled: true },
  stackEvents: { enabled: true },
};

const rules = z.array(
  z.object({ apiGroups: z.array(z.string()), resources: z.array(z.string()), verbs: z.array(z.string()), resourceNames: z.array(z.string()).optional() }),
);
const stackObject = z.object({ metadata: z.looseObject({ uid: z.string(), annotations: z.record(z.string(), z.string()).optional() }) });

let agent: Agent;
let token = "";
let whole: z.infer<typeof rules> = [];

beforeAll(async () => {
  await plane.start();
  await workloads.prepare();
  await workloads.addBarePod("another");
  await workloads.addStack("shop", "organization/shop/prod", { backend: `file://${state}` });
  await plane.create("/api/v1/namespaces", { metadata: { name: "ops" } });
  mkdirSync(state);
  const { exitCode, stderr } = runHelm(["install", "janitor", CHART, "--namespace", "ops", "--values", "-"], VALUES, plane.writeKubeconfig("admin"));
  if (exitCode !== 0) throw new Error(stderr);
  const { data } = z.object({ data: z.object({ "config.yaml": z.string() }) }).parse(render(VALUES).find(({ kind }) => kind === "ConfigMap"));
  writeFileSync(config, data["config.yaml"]);
  const review = await plane.create("/api/v1/namespaces/ops/serviceaccounts/janitor/token", { spec: { expirationSeconds: 3_600 } });
  token = z.object({ status: z.object({ token: z.string() }) }).parse(review).status.token;
  writeFileSync(kubeconfig, readFileSync(plane.writeKubeconfig("admin"), "utf8").replace("token-of-admin", token));
  agent = new Agent({ connect: { ca: readFileSync(join(plane.folder, "certs/apiserver.crt"), "utf8") } });
  whole = z.object({ rules }).parse(await plane.get(ROLE)).rules;
  await send("PATCH", `${STACKS}/shop`, { metadata: { labels: { team: "iac" }, annotations: { theirs: "kept" } } }, "token-of-admin");
  // A policy takes effect a moment after it is there.
  await waitFor("the policy", async () =>
    (await send("PATCH", `${STACKS}/shop`, { metadata: { labels: { early: "x" } } })).status === 422 ? true : undefined,
  );
});
afterAll(async () => {
  await agent.destroy();
  await plane.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Sends a change, as the janitor's service account unless another token is given. */
async function send(method: "PATCH" | "POST" | "DELETE", path: string, body: object, by = token): Promise<{ readonly status: number; readonly text: string }> {
  const { statusCode, body: answer } = await request(`${plane.server}${path}`, {
    method,
    dispatcher: agent,
    headers: { authorization: `Bearer ${by}`, "content-type": method === "PATCH" ? "application/merge-patch+json" : "application/json" },
    body: JSON.stringify(body),
  });
  return { status: statusCode, text: await answer.text() };
}

async function readStack(): Promise<z.infer<typeof stackObject>["metadata"]> {
  return stackObject.parse(await plane.get(`${STACKS}/shop`)).metadata;
}

/** Puts a lock of a runner that is gone, and sweeps as the chart's pod would; gives what is reported of the lock. */
async function sweepLock(): Promise<{ readonly lock: ReportedLock | undefined; readonly exitCode: number; readonly warnings: readonly string[] }> {
  const path = join(state, ".pulumi/locks/organization/shop/prod/1.json");
  const checkpoint = join(state, ".pulumi/stacks/shop/prod.json");
  const hourAgo = new Date(Date.now() - 3_600_000);
  for (const file of [path, checkpoint]) mkdirSync(dirname(file), { recursive: true });
  writeFileSync(path, JSON.stringify({ pid: 7, username: "pulumi", hostname: "iac-runner-gone", timestamp: hourAgo.toISOString() }));
  utimesSync(path, hourAgo, hourAgo);
  writeFileSync(checkpoint, JSON.stringify({ version: 3, checkpoint: { latest: { resources: [] } } }));
  const { stdout, stderr } = await runCommand(["sweep", "--config", config, "--kubeconfig", kubeconfig, "--output", "json"]);
  if (stdout === "") throw new Error(stderr);
  const { locks, exitCode, warnings } = sweepReport.parse(JSON.parse(stdout));
  return { lock: locks[0], exitCode, warnings };
}

async function denials(): Promise<readonly string[]> {
  const { stdout, stderr } = await runCommand(["check", "--config", config, "--kubeconfig", kubeconfig, "--output", "json"]);
  if (stdout === "") throw new Error(stderr);
  return checkReport.parse(JSON.parse(stdout)).items.flatMap(({ status, name, message }) => (status === "denied" ? [`${name}: ${message}`] : []));
}

async function setRules(changed: z.infer<typeof rules>): Promise<void> {
  await plane.patch(ROLE, { rules: changed });
}

describe("with the chart's rights", () => {
  it("a removal sets the annotation, leaves the rest of the Stack as it is, and writes an Event that is found by the Stack", async () => {
    const { annotations: _, ...before } = await readStack();
    expect(await denials()).toEqual([]);
    const { lock, exitCode, warnings } = await sweepLock();
    expect({ exitCode, warnings }).toEqual({ exitCode: 0, warnings: [] });
    expect(lock).toMatchObject({
      action: "deleted",
      pendingOperations: { kind: "none" },
      afterUnlock: { stacks: [{ name: "shop", requeued: true, event: true }] },
    });
    const { annotations, ...after } = await readStack();
    expect(annotations).toEqual({ theirs: "kept", [RECONCILIATION_REQUEST]: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) });
    const { managedFields: _fields, resourceVersion: _version, ...rest } = after;
    expect(before).toMatchObject(rest);
    // What `kubectl describe` asks for (k8s.io/kubectl/pkg/describe).
    const selector = `involvedObject.name=shop,involvedObject.namespace=iac,involvedObject.kind=Stack,involvedObject.uid=${before.uid}`;
    const events = await plane.get(`/api/v1/namespaces/iac/events?${new URLSearchParams({ fieldSelector: selector }).toString()}`);
    const message = 'Removed the lock "1" of "organization/shop/prod", whose owner "pulumi@iac-runner-gone" (pid 7) is gone (pod-not-found).';
    expect(events).toMatchObject({ items: [{ type: "Normal", reason: "LockRemoved", message, source: { component: "pulumi-lock-janitor" } }] });
  });

  it("another removal sets another value", async () => {
    const before = (await readStack()).annotations?.[RECONCILIATION_REQUEST];
    await sweepLock();
    expect((await readStack()).annotations?.[RECONCILIATION_REQUEST]).not.toBe(before);
  });
});

describe("a verb less", () => {
  beforeEach(async () => {
    await setRules(whole);
    await waitFor("all rights", async () => ((await denials()).length === 0 ? true : undefined));
    return async () => await setRules(whole);
  });

  it.each<readonly [verb: string, resource: string, item: string, told: object]>([
    ["patch", "stacks", "requeue Stacks", { requeued: false, event: true, problem: 'the verb "patch" on stacks.pulumi.com is not allowed (403)' }],
    ["create", "events", "write Events", { requeued: true, event: false, problem: 'the verb "create" on events is not allowed (403)' }],
  ])("%s on %s: check says it, and a removal is made all the same", async (verb, resource, item, told) => {
    await setRules(whole.filter(({ verbs, resources }) => !(verbs.includes(verb) && resources.includes(resource))));
    await waitFor("the right to be gone", async () => ((await denials()).some((denial) => denial.startsWith(item)) ? true : undefined));
    expect(await denials()).toEqual([expect.stringMatching(new RegExp(`^${item}: the verb "${verb}" on ${resource}\\S* is not allowed in every namespace$`))]);
    const { lock, exitCode, warnings } = await sweepLock();
    expect(lock).toMatchObject({ action: "deleted", afterUnlock: { stacks: [told] } });
    expect({ exitCode, warnings: warnings.length }).toEqual({ exitCode: 0, warnings: 1 });
  });

  it("these two are all that the options add", () => {
    const without = render({ ...VALUES, requeue: { enabled: false }, stackEvents: { enabled: false } });
    const before = z.object({ rules }).parse(without.find(({ kind }) => kind === "ClusterRole")).rules;
    expect(whole.filter((rule) => !before.some((known) => JSON.stringify(known) === JSON.stringify(rule)))).toEqual([
      { apiGroups: ["pulumi.com"], resources: ["stacks"], verbs: ["patch"] },
      { apiGroups: [""], resources: ["events"], verbs: ["create"] },
    ]);
  });
});

describe("the admission policy of requeue", () => {
  const annotated = (value: unknown, more: object = {}): object => ({ metadata: { annotations: { [RECONCILIATION_REQUEST]: value }, ...more } });
  const TIME = "2026-03-10T12:00:00.123456789Z";

  it("admits the annotation, where there were none and where there are others", async () => {
    await workloads.addStack("bare", "organization/bare/prod");
    for (const name of ["bare", "shop"]) {
      const { status, text } = await send("PATCH", `${STACKS}/${name}`, annotated(TIME));
      expect(status, text).toBe(200);
    }
    expect((await readStack()).annotations).toEqual({ theirs: "kept", [RECONCILIATION_REQUEST]: TIME });
  });

  it.each<readonly [what: string, patch: object, says: string]>([
    ["another annotation", { metadata: { annotations: { other: "x" } } }, "the annotation pulumi.com/reconciliation-request, and no other"],
    [
      "the annotation and another",
      { metadata: { annotations: { [RECONCILIATION_REQUEST]: TIME, other: "x" } } },
      "the annotation pulumi.com/reconciliation-request, and no other",
    ],
    [
      "a change of another annotation",
      { metadata: { annotations: { [RECONCILIATION_REQUEST]: TIME, theirs: "changed" } } },
      "the annotation pulumi.com/reconciliation-request, and no other",
    ],
    [
      "the end of another annotation",
      { metadata: { annotations: { [RECONCILIATION_REQUEST]: TIME, theirs: null } } },
      "the annotation pulumi.com/reconciliation-request, and no other",
    ],
    ["the end of all annotations", { metadata: { annotations: null } }, "the annotation pulumi.com/reconciliation-request, and no other"],
    ["the end of the annotation", annotated(null), "is set to a time"],
    ["a value that is no time", annotated("rm -rf /"), "is set to a time"],
    ["a value that is long", annotated("1".repeat(100)), "is set to a time"],
    ["a label", annotated(TIME, { labels: { a: "b" } }), "annotations of a Stack, and nothing else"],
    ["the end of the labels", annotated(TIME, { labels: null }), "annotations of a Stack, and nothing else"],
    ["a finalizer", annotated(TIME, { finalizers: ["a.b/c"] }), "annotations of a Stack, and nothing else"],
    ["an owner", annotated(TIME, { ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "a", uid: "b" }] }), "annotations of a Stack, and nothing else"],
    ["the spec", { ...annotated(TIME), spec: { stack: "organization/other/prod" } }, "annotations of a Stack, and nothing else"],
    ["a new field of the spec", { ...annotated(TIME), spec: { destroyOnFinalize: true } }, "annotations of a Stack, and nothing else"],
    ["the end of the spec", { ...annotated(TIME), spec: null }, "annotations of a Stack, and nothing else"],
    ["the status", { ...annotated(TIME), status: { lastUpdate: { state: "succeeded" } } }, "annotations of a Stack, and nothing else"],
  ])("refuses %s", async (_what, patch, says) => {
    const before = await plane.get(`${STACKS}/shop`);
    const { status, text } = await send("PATCH", `${STACKS}/shop`, patch);
    expect(status, text).toBe(422);
    expect(text).toContain(says);
    expect(await plane.get(`${STACKS}/shop`)).toEqual(before);
  });

  it("refuses to make or remove a Stack, should another role allow it", async () => {
    await plane.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", {
      metadata: { name: "more" },
      rules: [{ apiGroups: ["pulumi.com"], resources: ["stacks"], verbs: ["*"] }],
    });
    await plane.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
      metadata: { name: "more" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "more" },
      subjects: [{ kind: "ServiceAccount", name: "janitor", namespace: "ops" }],
    });
    const made = { apiVersion: "pulumi.com/v1", kind: "Stack", metadata: { name: "made" }, spec: {} };
    await waitFor("the role", async () => ((await send("POST", STACKS, made)).status === 403 ? undefined : true));
    for (const answer of [await send("POST", STACKS, made), await send("DELETE", `${STACKS}/shop`, {})]) {
      expect(answer.status, answer.text).toBe(422);
      expect(answer.text).toContain("neither make nor remove one");
    }
  });

  it("is about nobody else", async () => {
    expect(await send("PATCH", `${STACKS}/shop`, { metadata: { labels: { team: "other" } } }, "token-of-admin")).toMatchObject({ status: 200 });
  });
});
