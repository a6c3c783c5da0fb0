// The chart as Helm renders it, without a cluster.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import * as z from "zod";

import packageJson from "../../package.json" with { type: "json" };
import { readSettings } from "../../src/config.ts";
import { VALUES, type ValuesName } from "./chart-values.ts";
import { CHART, findManifest, render, renderText, runHelm } from "./peers/helm.ts";

const folder = mkdtempSync(join(tmpdir(), "chart-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const NAMES: readonly ValuesName[] = ["least", "aks", "eks", "gke", "secrets", "discovery", "namespaced", "probe", "requeue", "monitored", "hardened"];

/** The configuration file that the chart renders. */
function configOf(values: object): string {
  const { data } = { data: {}, ...findManifest(render(values), "ConfigMap", "janitor-pulumi-lock-janitor") };
  return "config.yaml" in data ? String(data["config.yaml"]) : "";
}

describe("values that are good", () => {
  it.each(NAMES)("%s: lint has nothing to say", (name) => {
    const { exitCode, stdout } = runHelm(["lint", CHART, "--strict", "--values", "-"], VALUES[name]);
    expect(exitCode, stdout).toBe(0);
  });

  it("lint of the defaults", () => {
    expect(runHelm(["lint", CHART, "--strict"]).exitCode).toBe(0);
  });

  it.each(NAMES)("%s: the manifests are those of the snapshot", async (name) => {
    await expect(renderText(VALUES[name])).toMatchFileSnapshot(`snapshots/chart-${name}.yaml`);
  });

  it.each<readonly [ValuesName, readonly string[], readonly string[]]>([
    ["least", ["CronJob", "Pod"], ["Deployment", "Role", "NetworkPolicy", "ValidatingAdmissionPolicy", "Service"]],
    ["eks", ["Deployment", "Pod"], ["CronJob", "Role", "Service"]],
    ["namespaced", ["Deployment", "Role", "RoleBinding", "ClusterRole"], ["CronJob"]],
    ["probe", ["CronJob", "Role", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"], ["Deployment"]],
    ["requeue", ["CronJob", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"], ["Deployment", "Role"]],
    ["monitored", ["Deployment", "Service", "ServiceMonitor", "PodMonitor", "PrometheusRule"], ["CronJob"]],
    ["hardened", ["NetworkPolicy"], ["Service"]],
  ])("%s has %j and not %j", (name, present, absent) => {
    const kinds = new Set(render(VALUES[name]).map(({ kind }) => kind));
    expect({ missing: present.filter((kind) => !kinds.has(kind)), unwanted: absent.filter((kind) => kinds.has(kind)) }).toEqual({ missing: [], unwanted: [] });
  });

  it.each<readonly [ValuesName, readonly string[]]>([
    [
      "least",
      ["concurrencyPolicy: Forbid", "restartPolicy: Never", "backoffLimit: 0", "readOnlyRootFilesystem: true", "delete: false", "fieldPath: metadata.name"],
    ],
    [
      "aks",
      [
        "azure.workload.identity/client-id",
        'azure.workload.identity/use: "true"',
        'timeZone: "Europe/Berlin"',
        "delete: true",
        "ttlSecondsAfterFinished: 3600",
      ],
    ],
    ["eks", ["eks.amazonaws.com/role-arn", "type: Recreate", "path: /healthz", "path: /readyz", "- :9464"]],
    ["gke", ["iam.gke.io/gcp-service-account"]],
    ["secrets", ["file: /etc/pulumi-lock-janitor/backend-1/PGPASSWORD", "secretName: two", "variable: DB_USER", "NODE_EXTRA_CA_CERTS"]],
    ["discovery", ["- --exclusive", "discover: true", "- s3://acme-*/**"]],
    ["namespaced", ["namespace: builds"]],
    ["requeue", ["requeueStacks: true", "stackEvents: true", "checkPending: true", "system:serviceaccount:ops:janitor-pulumi-lock-janitor"]],
    ["monitored", ["release: prometheus", "team: platform", "interval: 2m", "- :9000", 'grafana_dashboard: "1"']],
    ["hardened", [`image: "registry.example/ops/janitor@sha256:${"0".repeat(64)}"`, "fsGroup: 2000", 'sidecar.istio.io/inject: "false"']],
  ])("%s says %j", (name, says) => {
    const text = renderText(VALUES[name]);
    expect(says.filter((part) => !text.includes(part))).toEqual([]);
  });

  it.each(NAMES)("%s: the janitor reads the configuration file", (name) => {
    const file = join(folder, "config.yaml");
    const text = configOf(VALUES[name]);
    writeFileSync(file, text);
    expect(readSettings({}, {}, file)).toMatchObject({ delete: "delete" in VALUES[name], failOn: ["none"] });
    expect(text).not.toContain("exclusiveDiscovered");
  });

  it("those of the README are good", () => {
    const [, helm = ""] = readFileSync("README.md", "utf8").split("\n## Helm\n");
    const blocks = Array.from((helm.split("\n## ")[0] ?? "").matchAll(/```yaml\n([^]*?)```/g), ([, text = ""]) => z.looseObject({}).parse(parse(text)));
    expect(blocks.map((values) => render(values).find(({ kind }) => kind === "CronJob" || kind === "Deployment")?.kind)).toEqual(["CronJob", "Deployment"]);
  });

  it("a change of the configuration makes new pods", () => {
    const checksum = (values: object): unknown => /checksum\/config: (\w+)/.exec(renderText(values))?.[1];
    expect(checksum(VALUES.eks)).not.toBe(checksum({ ...VALUES.eks, settings: { minAge: "2m" } }));
    expect(checksum(VALUES.eks)).toBe(checksum({ ...VALUES.eks, podAnnotations: { a: "b" } }));
  });

  it("no Secret is made or read, and no rule is for everything", () => {
    for (const name of NAMES) {
      const manifests = render(VALUES[name]);
      expect(manifests.map(({ kind }) => kind)).not.toContain("Secret");
      for (const manifest of manifests.filter(({ kind }) => kind.endsWith("Role"))) expect(JSON.stringify(manifest)).not.toMatch(/secrets|"\*"/);
    }
  });

  it("without requeue and Events nothing of the cluster may be changed; with them a Stack, and an Event made", () => {
    const writing = (name: ValuesName): readonly string[] =>
      render(VALUES[name])
        .filter(({ kind }) => kind.endsWith("Role"))
        .flatMap((manifest) => Array.from(JSON.stringify(manifest).matchAll(/"(?:create|update|patch|delete|deletecollection)"/g), ([verb]) => verb));
    expect(NAMES.filter((name) => name !== "probe" && name !== "requeue").flatMap(writing)).toEqual([]);
    expect(writing("requeue")).toEqual(['"patch"', '"create"']);
    const part = (values: object): readonly unknown[] => [renderText(values).includes("patch"), renderText(values).includes("events")];
    expect(part({ ...VALUES.least, requeue: { enabled: true } })).toEqual([true, false]);
    expect(part({ ...VALUES.least, stackEvents: { enabled: true } })).toEqual([false, true]);
  });

  it("two releases of one name in two namespaces share nothing that has no namespace", () => {
    const namesIn = (namespace: string): readonly string[] =>
      Array.from(
        runHelm(["template", "janitor", CHART, "--namespace", namespace, "--values", "-"], VALUES.probe).stdout.matchAll(
          /kind: (?:ClusterRole|ClusterRoleBinding|ValidatingAdmissionPolicy)\nmetadata:\n  name: (\S+)/g,
        ),
        ([, name = ""]) => name,
      );
    expect(namesIn("a").filter((name) => namesIn("b").includes(name))).toEqual([]);
    expect(namesIn("a")).toHaveLength(3);
  });

  it("as a part of another chart, with that one's globals", () => {
    const parent = join(folder, "parent");
    mkdirSync(join(parent, "charts"), { recursive: true });
    writeFileSync(join(parent, "Chart.yaml"), "apiVersion: v2\nname: parent\nversion: 1.0.0\n");
    cpSync(CHART, join(parent, "charts/pulumi-lock-janitor"), { recursive: true });
    const { exitCode, stderr } = runHelm(["template", "x", parent, "--values", "-"], { global: { team: "x" }, "pulumi-lock-janitor": VALUES.least });
    expect(exitCode, stderr).toBe(0);
  });
});

describe("values that are refused, with a sentence that says why", () => {
  it.each<readonly [what: string, values: object, says: string]>([
    ["no backend", {}, "give at least one backend"],
    ["a typo at the root", { ...VALUES.least, shedule: "x" }, "'shedule' not allowed"],
    ["a typo in a backend", { backends: [{ url: "gs://a", exlusive: true }] }, "'exlusive' not allowed"],
    ["a typo in the settings", { ...VALUES.least, settings: { minage: "5m" } }, "'minage' not allowed"],
    ["a duration without a unit", { ...VALUES.least, settings: { minAge: "5" } }, "/settings/minAge"],
    ["delete among the settings", { ...VALUES.least, settings: { delete: true } }, "'delete' not allowed"],
    ["force", { ...VALUES.least, settings: { force: true } }, "'force' not allowed"],
    ["every node vouched for in a file", { ...VALUES.least, settings: { unreachableNodes: ["ignore"] } }, "/settings/unreachableNodes/0"],
    ["a report to a file", { ...VALUES.least, settings: { outputs: ["json=/x"] } }, "/settings/outputs/0"],
    ["a mode that is none", { ...VALUES.least, mode: "job" }, "/mode"],
    ["a digest that is none", { ...VALUES.least, image: { digest: "sha256:1" } }, "/image/digest"],
    ["a password in the place of a Secret", { backends: [{ url: "gs://a", secret: { name: "a", value: "x" } }] }, "'value' not allowed"],
    ["delete without the word", { ...VALUES.least, delete: true }, "azblob://state: your word that every pod"],
    ["delete of discovered ones without the word", { ...VALUES.discovery, exclusiveDiscovered: false }, "wants `exclusiveDiscovered: true`"],
    ["alerts of a CronJob", { ...VALUES.least, monitoring: { rules: { enabled: true } } }, "monitoring.rules wants `mode: deployment`"],
    ["a probe of nowhere", { ...VALUES.least, probe: { enabled: true } }, "probe.enabled wants probe.namespaces"],
  ])("%s", (_what, values, says) => {
    expect(() => renderText(values)).toThrow(says);
  });

  it("P7: a password in a URL is not repeated", () => {
    expect(() => renderText({ delete: true, backends: [{ url: "postgres://janitor:hunter2@db/state" }] })).toThrow("postgres://…@db/state");
    expect(() => renderText({ delete: true, backends: [{ url: "postgres://janitor:hunter2@db/state" }] })).not.toThrow("hunter2");
  });
});

describe("what Helm tells the person", () => {
  const notesOf = (values: object): string =>
    runHelm(["install", "janitor", CHART, "--namespace", "ops", "--dry-run=client", "--values", "-"], values).stdout.split("NOTES:")[1] ?? "";

  it.each<readonly [ValuesName, readonly string[]]>([
    [
      "least",
      [
        "removes NOTHING",
        "delete: true",
        "exclusive: true",
        "kubectl create job --namespace ops --from=cronjob/janitor-pulumi-lock-janitor",
        "helm test janitor",
      ],
    ],
    ["aks", ["REMOVES locks", '"0 * * * *" (Europe/Berlin)']],
    ["requeue", ["REMOVES locks", "has the operator try the lock's Stack again."]],
    ["eks", ["removes NOTHING", "kubectl logs --namespace ops deployment/janitor-pulumi-lock-janitor"]],
  ])("%s: %j", (name, says) => {
    const notes = notesOf(VALUES[name]);
    expect(says.filter((part) => !notes.includes(part))).toEqual([]);
  });

  it("the chart is of this version of the janitor", () => {
    expect(parse(readFileSync(join(CHART, "Chart.yaml"), "utf8"))).toMatchObject({ appVersion: packageJson.version });
  });
});
