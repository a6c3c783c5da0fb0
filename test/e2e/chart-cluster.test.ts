// The chart on a real API server: every manifest is admitted, an upgrade goes through, and the rights are enough and no more.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";

import { Agent, request } from "undici";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import * as z from "zod";

import { checkReport, type CheckReport } from "../../src/core/check-report.ts";
import { sweepReport, type SweepReport } from "../../src/core/report.ts";
import { runCommand } from "../cli/command.ts";
import { VALUES, type ValuesName } from "./chart-values.ts";
import { waitFor } from "./peers/child.ts";
import { ControlPlane } from "./peers/control-plane.ts";
import { CHART, parseManifests, render, runHelm, type Manifest } from "./peers/helm.ts";
import { Workloads } from "./peers/workloads.ts";

const plane = new ControlPlane();
const workloads = new Workloads(plane);
const folder = mkdtempSync(join(tmpdir(), "chart-cluster-"));
const state = join(folder, "state");

const WORKSPACES = { group: "auto.pulumi.com", version: "v1alpha1", kind: "Workspace", plural: "workspaces" };
const MONITORS = ["PodMonitor", "ServiceMonitor", "PrometheusRule"].map((kind) => ({
  group: "monitoring.coreos.com",
  version: "v1",
  kind,
  plural: `${kind.toLowerCase()}s`,
}));

beforeAll(async () => {
  await plane.start();
  await workloads.prepare();
  for (const namespace of ["ops", "builds", "old"])
    await plane.create("/api/v1/namespaces", { metadata: { name: namespace, labels: { "pod-security.kubernetes.io/enforce": "restricted" } } });
  for (const kind of [WORKSPACES, ...MONITORS]) await addKind(kind);
  await plane.create("/apis/scheduling.k8s.io/v1/priorityclasses", { metadata: { name: VALUES.hardened.priorityClassName }, value: -1 });
});
afterAll(async () => {
  await plane.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** A kind that takes every object. */
async function addKind({ group, version, kind, plural }: typeof WORKSPACES): Promise<void> {
  await plane.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [{ name: version, served: true, storage: true, schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } } }],
    },
  });
  await waitFor(`the kind ${kind}`, async () => ((await plane.get(`/apis/${group}/${version}/${plural}`)) === undefined ? undefined : true));
}

const WITHOUT_NAMESPACE: ReadonlySet<string> = new Set(["ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]);

/** Where objects of a manifest's kind are created. */
function pathOf({ apiVersion, kind, metadata }: Manifest): string {
  const plural = kind.endsWith("y") ? `${kind.slice(0, -1)}ies` : `${kind}s`;
  const place = WITHOUT_NAMESPACE.has(kind) ? "" : `/namespaces/${metadata.namespace ?? "default"}`;
  return `${apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`}${place}/${plural.toLowerCase()}`;
}

const podTemplate = z.looseObject({ spec: z.looseObject({}) });
const workload = z.object({
  spec: z.object({ template: podTemplate.optional(), jobTemplate: z.object({ spec: z.object({ template: podTemplate }) }).optional() }),
});

describe("a server-side dry run", () => {
  const NAMES: readonly ValuesName[] = ["least", "aks", "eks", "gke", "secrets", "discovery", "namespaced", "probe", "requeue", "monitored", "hardened"];

  it.each(NAMES)("%s: every manifest is admitted, and has no field that the API server does not know", async (name) => {
    for (const manifest of render(VALUES[name]))
      await expect(plane.create(`${pathOf(manifest)}?dryRun=All&fieldValidation=Strict`, manifest)).resolves.toMatchObject({ kind: manifest.kind });
  });

  it.each<ValuesName>(["least", "eks", "secrets"])("%s: its pods are admitted where pod security is restricted", async (name) => {
    for (const manifest of render(VALUES[name]).filter(({ kind }) => kind === "CronJob" || kind === "Deployment")) {
      const { spec } = workload.parse(manifest);
      const template = spec.template ?? spec.jobTemplate?.spec.template;
      const pod = { metadata: { name: "as-rendered" }, spec: template?.spec };
      await expect(plane.create("/api/v1/namespaces/ops/pods?dryRun=All&fieldValidation=Strict", pod)).resolves.toMatchObject({ kind: "Pod" });
    }
  });

  it("restricted is enforced here: a pod without these fields is refused", async () => {
    const pod = { metadata: { name: "loose" }, spec: { containers: [{ name: "a", image: "a" }] } };
    await expect(plane.create("/api/v1/namespaces/ops/pods?dryRun=All", pod)).rejects.toThrow("PodSecurity");
  });
});

describe("install and upgrade", () => {
  const helm = (words: readonly string[], values: object): string => {
    const { exitCode, stdout, stderr } = runHelm(words, values, plane.writeKubeconfig("admin"));
    if (exitCode !== 0) throw new Error(stderr);
    return stdout;
  };

  it("from the version before, with other values: what is no longer there goes, what is new comes", async () => {
    const older = join(folder, "older");
    cpSync(CHART, older, { recursive: true });
    helm(["package", older, "--version", "0.0.9", "--app-version", "0.0.9", "--destination", folder], {});
    const words = ["--namespace", "old", "--values", "-"];
    helm(["install", "janitor", join(folder, "pulumi-lock-janitor-0.0.9.tgz"), ...words], { ...VALUES.probe, schedule: "0 * * * *" });
    const cronjob = "/apis/batch/v1/namespaces/old/cronjobs/janitor-pulumi-lock-janitor";
    expect(JSON.stringify(await plane.get(cronjob))).toContain('"schedule":"0 * * * *"');
    helm(["upgrade", "janitor", CHART, ...words], VALUES.least);
    expect(JSON.stringify(await plane.get(cronjob))).toContain("pulumi-lock-janitor-0.1.0");
    expect(await plane.get("/apis/rbac.authorization.k8s.io/v1/namespaces/iac/roles/old.janitor-pulumi-lock-janitor.probe")).toBeUndefined();
    helm(["upgrade", "janitor", CHART, ...words], VALUES.namespaced);
    expect(await plane.get(cronjob)).toBeUndefined();
    expect(await plane.get("/apis/apps/v1/namespaces/old/deployments/janitor-pulumi-lock-janitor")).toBeDefined();
    // What cannot be changed in a Deployment stays the same.
    helm(["upgrade", "janitor", CHART, ...words], { ...VALUES.namespaced, settings: { minAge: "3m" }, istio: { optOut: true } });
    helm(["uninstall", "janitor", "--namespace", "old"], {});
    expect(await plane.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/old.janitor-pulumi-lock-janitor")).toBeUndefined();
  });
});

const rule = z.object({
  apiGroups: z.array(z.string()),
  resources: z.array(z.string()),
  verbs: z.array(z.string()),
  resourceNames: z.array(z.string()).optional(),
});
type Rule = z.infer<typeof rule>;
const role = z.looseObject({ rules: z.array(rule) });

/** The janitor as the chart installs it: its configuration file, and a kubeconfig with its service account's token. */
class Installed {
  readonly #release: string;
  readonly #values: object;
  readonly config: string;
  readonly kubeconfig: string;
  rules: readonly Rule[] = [];

  constructor(release: string, more: object = {}) {
    this.#release = release;
    this.#values = {
      fullnameOverride: release,
      mode: "deployment",
      backends: [{ url: `file://${state}`, exclusive: true }],
      settings: { owners: ["iac-runner-*"], confirmDelay: "0s" },
      ...more,
    };
    this.config = join(folder, `${release}.yaml`);
    this.kubeconfig = join(folder, `kubeconfig-of-${release}`);
  }

  async install(): Promise<void> {
    const more = { probe: { enabled: true, namespaces: ["iac"] } };
    const words = ["install", this.#release, CHART, "--namespace", "ops", "--values", "-"];
    const { exitCode, stderr } = runHelm(words, { ...this.#values, ...more }, plane.writeKubeconfig("admin"));
    if (exitCode !== 0) throw new Error(stderr);
    const { data } = z.object({ data: z.object({ "config.yaml": z.string() }) }).parse(render(this.#values).find(({ kind }) => kind === "ConfigMap"));
    writeFileSync(this.config, data["config.yaml"]);
    const review = await plane.create(`/api/v1/namespaces/ops/serviceaccounts/${this.#release}/token`, { spec: { expirationSeconds: 3_600 } });
    const { status } = z.object({ status: z.object({ token: z.string() }) }).parse(review);
    const kubeconfig = readFileSync(plane.writeKubeconfig("admin"), "utf8").replace("token-of-admin", status.token);
    writeFileSync(this.kubeconfig, kubeconfig);
    this.rules = role.parse(await plane.get(this.#rolePath)).rules;
  }

  get #rolePath(): string {
    return `/apis/rbac.authorization.k8s.io/v1/clusterroles/ops.${this.#release}`;
  }

  /** Gives the role all verbs but one. */
  async allowAllBut(verb: string, resource: string): Promise<void> {
    await this.#setRules(
      this.rules.map((each) => (each.resources.includes(resource) ? { ...each, verbs: each.verbs.filter((other) => other !== verb) } : each)),
    );
  }

  async allowAll(): Promise<void> {
    await this.#setRules(this.rules);
  }

  async #setRules(rules: readonly Rule[]): Promise<void> {
    await plane.patch(this.#rolePath, { rules: rules.filter(({ verbs }) => verbs.length > 0) });
  }

  async sweep(): Promise<SweepReport> {
    const { stdout, stderr } = await runCommand(["sweep", "--config", this.config, "--kubeconfig", this.kubeconfig, "--output", "json"]);
    if (stdout === "") throw new Error(stderr);
    return sweepReport.parse(JSON.parse(stdout));
  }

  async check(): Promise<CheckReport> {
    const { stdout, stderr } = await runCommand(["check", "--config", this.config, "--kubeconfig", this.kubeconfig, "--output", "json"]);
    if (stdout === "") throw new Error(stderr);
    return checkReport.parse(JSON.parse(stdout));
  }

  get token(): string {
    return /"token":"([^"]+)"/.exec(readFileSync(this.kubeconfig, "utf8"))?.[1] ?? "";
  }
}

const installed = new Installed("janitor");

describe("the rights that the chart gives", () => {
  const addLock = (hostname: string, stack: string): void => {
    const path = join(state, ".pulumi/locks/organization/demo", stack, "1.json");
    const hourAgo = new Date(Date.now() - 3_600_000);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify({ pid: 7, username: "pulumi", hostname, timestamp: hourAgo.toISOString() }));
    utimesSync(path, hourAgo, hourAgo);
  };

  /** What a sweep says of each lock, by the lock's stack; and whether the report names the cluster. */
  const describeSweep = async (as = installed): Promise<Readonly<Record<string, string>>> => {
    const { locks, clusters } = await as.sweep();
    const named = clusters[0]?.uid === undefined ? "unnamed" : "named";
    return { ...Object.fromEntries(locks.map(({ key, verdict, reason }) => [key.split("/")[4] ?? "", `${verdict}: ${reason}`])), cluster: named };
  };

  const WHOLE = { runner: "stale: pod-not-found", stack: "stale: pod-not-found", workspace: "stale: pod-not-found", cluster: "named" };

  beforeAll(async () => {
    addLock("iac-runner-gone", "runner");
    addLock("mine-workspace-0", "stack");
    addLock("ours-workspace-0", "workspace");
    await workloads.addStack("mine", "organization/demo/stack");
    const workspace = { apiVersion: "auto.pulumi.com/v1alpha1", kind: "Workspace", metadata: { name: "ours" } };
    await plane.create("/apis/auto.pulumi.com/v1alpha1/namespaces/iac/workspaces", {
      ...workspace,
      spec: { stacks: [{ name: "organization/demo/workspace" }] },
    });
    await workloads.addBarePod("another");
    await installed.install();
  });
  // What a role allows is known everywhere a moment after it was changed.
  beforeEach(async () => {
    await installed.allowAll();
    await waitFor("all rights to be there", async () => (isDeepStrictEqual(await describeSweep(), WHOLE) ? true : undefined), { every: 200 });
  });

  it("are enough: everything is judged, and check misses nothing", async () => {
    expect(await describeSweep()).toEqual(WHOLE);
    const { exitCode, items } = await installed.check();
    expect({ exitCode, denied: items.filter(({ status }) => status === "denied") }).toEqual({ exitCode: 0, denied: [] });
  });

  it("are enough in namespaces of one's choice, too", async () => {
    const spaced = new Installed("spaced", { namespaces: ["iac"] });
    await spaced.install();
    expect(await describeSweep(spaced)).toEqual(WHOLE);
    expect((await spaced.check()).items.filter(({ status }) => status === "denied")).toEqual([]);
    expect(spaced.rules.flatMap(({ resources }) => resources)).toEqual(["nodes", "namespaces"]);
  });

  it("with all of them watch has nothing to complain of", async () => {
    expect(await watchFor(6_000)).not.toContain("not allowed");
  });

  it.each<readonly [verb: string, resource: string, changed: Readonly<Record<string, string>>, item: string, says: string]>([
    [
      "list",
      "pods",
      { runner: "undetermined: list-incomplete", stack: "undetermined: list-incomplete", workspace: "undetermined: list-incomplete" },
      "list pods",
      'the verb "list" on pods is not allowed',
    ],
    [
      "list",
      "nodes",
      { runner: "undetermined: nodes-not-listed", stack: "undetermined: nodes-not-listed", workspace: "undetermined: nodes-not-listed" },
      "list nodes",
      'the verb "list" on nodes is not allowed',
    ],
    [
      "list",
      "stacks",
      { stack: "undetermined: stacks-not-listed", workspace: "undetermined: stacks-not-listed" },
      "list Stacks",
      'the verb "list" on stacks.pulumi.com is not allowed',
    ],
    ["list", "workspaces", { workspace: "foreign: no-stack" }, "list Workspaces", 'the verb "list" on workspaces.auto.pulumi.com is not allowed'],
    ["get", "namespaces", { cluster: "unnamed" }, "identity", "the namespace kube-system may not be read (verb get)"],
  ])("without %s on %s: that is what breaks, and check says it", async (verb, resource, changed, name, says) => {
    await installed.allowAllBut(verb, resource);
    await waitFor("the right to be gone", async () => {
      const { items } = await installed.check();
      return items.some((item) => item.name === name && item.status !== "ok") ? true : undefined;
    });
    const { items } = await installed.check();
    expect(items.find((item) => item.name === name)?.message).toContain(says);
    expect(await describeSweep()).toEqual({ ...WHOLE, ...changed });
  });

  it.each([
    ["pods", 'the verb "watch" on pods is not allowed'],
    ["stacks", 'the verb "watch" on stacks.pulumi.com is not allowed'],
  ])("without watch on %s: watch says so", async (resource, says) => {
    await installed.allowAllBut("watch", resource);
    expect(await watchFor(6_000)).toContain(says);
  });

  it("these are all the verbs that there are", () => {
    const verbs = installed.rules.flatMap((each) => each.resources.flatMap((resource) => each.verbs.map((verb) => `${verb} ${resource}`)));
    expect(verbs.toSorted()).toEqual(["get namespaces", "list nodes", "list pods", "list stacks", "list workspaces", "watch pods", "watch stacks"]);
    expect(installed.rules.find(({ resources }) => resources.includes("namespaces"))?.resourceNames).toEqual(["kube-system"]);
  });

  /** What `watch` says on stderr until it is stopped. */
  async function watchFor(milliseconds: number): Promise<string> {
    const when = AbortSignal.timeout(milliseconds);
    const words = ["watch", "--config", installed.config, "--kubeconfig", installed.kubeconfig];
    return (await runCommand(words, { stop: { when, signal: "SIGTERM" } })).stderr.replaceAll("\\", "");
  }
});

describe("the admission policy of the probe", () => {
  const command = z.array(z.string()).parse(JSON.parse(readFileSync(join(CHART, "files/probe-command.json"), "utf8")));
  let agent: Agent;
  beforeAll(async () => {
    agent = new Agent({ connect: { ca: readFileSync(join(plane.folder, "certs/apiserver.crt"), "utf8") } });
    // A policy takes effect a moment after it is there.
    await waitFor("the policy", async () => ((await exec(["id"])).text.includes("denied request") ? true : undefined));
  });
  afterAll(async () => await agent.destroy());

  interface ExecOptions {
    readonly token?: string;
    readonly method?: "POST" | "GET";
    readonly namespace?: string;
    readonly more?: Readonly<Record<string, string>>;
    readonly sub?: "exec" | "attach" | "portforward";
  }

  /** Asks for a command in a pod. There is no kubelet: what is admitted fails later. */
  async function exec(
    words: readonly string[],
    { token = installed.token, method = "POST", namespace = "iac", more = {}, sub = "exec" }: ExecOptions = {},
  ): Promise<{ readonly status: number; readonly text: string }> {
    const query = new URLSearchParams({ container: "pulumi", stdout: "true", stderr: "true", ...more });
    for (const word of words) query.append("command", word);
    const { statusCode, body } = await request(`${plane.server}/api/v1/namespaces/${namespace}/pods/another/${sub}?${query.toString()}`, {
      method,
      dispatcher: agent,
      headers: { authorization: `Bearer ${token}` },
    });
    return { status: statusCode, text: await body.text() };
  }

  it.each(["POST", "GET"] as const)("admits the very command (%s)", async (method) => {
    const { text } = await exec(command, { method });
    expect(text).not.toMatch(/denied request|forbidden/);
  });

  it.each<readonly [what: string, words: readonly string[], more: Readonly<Record<string, string>>, says: string]>([
    ["another command", ["id"], {}, "and no other"],
    ["no command", [], {}, "and no other"],
    ["the command and a word more", [...command, "x"], {}, "and no other"],
    ["the command with a change at its end", [...command.slice(0, -1), `${command.at(-1) ?? ""}; id`], {}, "and no other"],
    ["a part of it", command.slice(0, 2), {}, "and no other"],
    ["an input", command, { stdin: "true" }, "neither an input nor a terminal"],
    ["a terminal", command, { tty: "true" }, "neither an input nor a terminal"],
  ])("refuses %s", async (_what, words, more, says) => {
    for (const method of ["POST", "GET"] as const) {
      const { status, text } = await exec(words, { method, more });
      expect(status).toBe(422);
      expect(text).toContain(says);
    }
  });

  it("is about nobody else", async () => {
    expect((await exec(["id"], { token: "token-of-admin" })).text).not.toContain("denied request");
  });

  it("and the Role is for exec alone, in the listed namespaces alone", async () => {
    expect(await exec(command, { namespace: "builds" })).toMatchObject({ status: 403 });
    expect(await exec([], { sub: "attach" })).toMatchObject({ status: 403 });
    expect(await exec([], { sub: "portforward" })).toMatchObject({ status: 403 });
  });

  it("its two verbs are all that the Role has", () => {
    const [found, ...others] = parseManifests(JSON.stringify(render(VALUES.probe).find(({ kind }) => kind === "Role")));
    expect(others).toEqual([]);
    expect(role.parse(found).rules).toEqual([{ apiGroups: [""], resources: ["pods/exec"], verbs: ["get", "create"] }]);
  });
});
