// The chart's alerts, by Prometheus' own promtool, and whether what they and the dashboard ask for is what the janitor serves.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";

import { runCommand } from "../cli/command.ts";
import { Workspace } from "../cli/snapshot-files.ts";
import { aNodeObject, aPodObject, StubApiServer } from "../kubernetes/stub-api-server.ts";
import { VALUES } from "./chart-values.ts";
import { findPeer } from "./peers/build-peers.ts";
import { findFreePort, waitFor } from "./peers/child.ts";
import { CHART, findManifest, render } from "./peers/helm.ts";

const folder = mkdtempSync(join(tmpdir(), "chart-alerts-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const prometheusRule = z.object({
  spec: z.looseObject({ groups: z.array(z.looseObject({ rules: z.array(z.looseObject({ alert: z.string(), expr: z.string() })) })) }),
});

function readRules(values: object): z.infer<typeof prometheusRule>["spec"] {
  return prometheusRule.parse(findManifest(render(values), "PrometheusRule")).spec;
}

function promtool(...words: readonly string[]): { readonly exitCode: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync(findPeer("promtool"), [...words], { encoding: "utf8", cwd: folder });
  return { exitCode: status, text: stdout + stderr };
}

const rules = readRules(VALUES.monitored);

/** A series of the janitor of this release, a sample a minute, in promtool's notation. */
function series(name: string, values: string, labels = ""): object {
  return { series: `pulumi_lock_janitor_${name}{namespace="ops"${labels === "" ? "" : `, ${labels}`}}`, values };
}

/** When the tests begin, in seconds: at 0, where promtool begins, a gauge that is 0 would be a success just now. */
const START = 1_772_000_000;
const BEGIN = new Date(START * 1_000).toISOString();

const ALIVE = series("build_info", "1x600", 'version="1"');
const WELL = series("last_success_timestamp_seconds", `${START}+60x600`);

describe("the alerts", () => {
  it("are rules to promtool, lint included", () => {
    writeFileSync(join(folder, "rules.yaml"), JSON.stringify(rules));
    expect(promtool("check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")).toMatchObject({ exitCode: 0 });
  });

  it.each<readonly [what: string, input: readonly object[], minutes: number, fires: readonly string[]]>([
    [
      "all is well",
      [ALIVE, WELL, series("locks", "0x600", 'backend="a", verdict="stale"'), series("refusals_total", "0x600", 'kind="max-deletions"')],
      120,
      [],
    ],
    ["a stale lock was removed in time", [ALIVE, WELL, series("locks", "0x10 1x10 0x600", 'backend="a", verdict="stale"')], 40, []],
    ["a stale lock stays", [ALIVE, WELL, series("locks", "0x10 1x600", 'backend="a", verdict="stale"')], 30, ["PulumiStaleLockStays"]],
    ["locks that are held or foreign stay", [ALIVE, WELL, series("locks", "3x600", 'backend="a", verdict="held"')], 120, []],
    ["a lock is held for an hour", [ALIVE, WELL, series("oldest_held_lock_age_seconds", "0+60x60 0x600", 'backend="a"')], 58, []],
    ["a lock is held for long", [ALIVE, WELL, series("oldest_held_lock_age_seconds", "0+60x600", 'backend="a"')], 130, ["PulumiLockHeldLong"]],
    ["no sweep ever succeeds", [ALIVE, series("last_success_timestamp_seconds", "0x600")], 60, ["PulumiLockJanitorFailing"]],
    ["sweeps stop to succeed", [ALIVE, series("last_success_timestamp_seconds", `${START}+60x60 ${START + 3_600}x600`)], 120, ["PulumiLockJanitorFailing"]],
    ["it is started anew, and its first sweep takes eight minutes", [ALIVE, series("last_success_timestamp_seconds", `0x8 ${START + 540}+60x600`)], 9, []],
    ["it is started anew, and its first sweep does not end well", [ALIVE, series("last_success_timestamp_seconds", "0x60")], 11, ["PulumiLockJanitorFailing"]],
    ["it is gone", [series("build_info", "1x20 stale", 'version="1"')], 40, ["PulumiLockJanitorAbsent"]],
    [
      "it was never there, and one of another namespace is",
      [{ series: 'pulumi_lock_janitor_build_info{namespace="other"}', values: "1x600" }],
      40,
      ["PulumiLockJanitorAbsent"],
    ],
    [
      "the valve closes for the first time",
      [ALIVE, WELL, series("refusals_total", "0x10 1x600", 'kind="max-deletions"')],
      12,
      ["PulumiLockJanitorValveClosed"],
    ],
    ["the valve closed two hours ago", [ALIVE, WELL, series("refusals_total", "0x10 1x600", 'kind="max-deletions"')], 130, []],
    ["a removal fails", [ALIVE, WELL, series("removal_failures_total", "0x10 1x600", 'backend="a"')], 12, ["PulumiLockRemovalFailed"]],
  ])("%s", (what, input, minutes, fires) => {
    const names = rules.groups.flatMap((group) => group.rules.map(({ alert }) => alert));
    const query = `count by (alertname) (ALERTS{alertstate="firing"})`;
    const test = {
      name: what,
      start_timestamp: BEGIN,
      interval: "1m",
      input_series: input,
      promql_expr_test: [
        {
          expr: query,
          eval_time: `${minutes}m`,
          exp_samples: names.filter((name) => fires.includes(name)).map((name) => ({ labels: `{alertname="${name}"}`, value: 1 })),
        },
      ],
    };
    expect(names).toEqual(expect.arrayContaining([...fires]));
    writeFileSync(join(folder, "rules.yaml"), JSON.stringify(rules));
    writeFileSync(join(folder, "test.yaml"), JSON.stringify({ rule_files: ["rules.yaml"], evaluation_interval: "1m", tests: [test] }));
    const { exitCode, text } = promtool("test", "rules", "test.yaml");
    expect(exitCode, text).toBe(0);
  });

  it("say what a person reads: the backend, the mode, the labels of the values", () => {
    const alert = {
      exp_labels: { backend: "s3://state", severity: "warning", team: "platform" },
      exp_annotations: {
        summary: "A stale lock of s3://state is still there.",
        description:
          "2 locks in s3://state have an owner that is provably gone, and block their stacks. The janitor runs without `delete: true`, so it only reports them.",
      },
    };
    const test = {
      start_timestamp: BEGIN,
      interval: "1m",
      input_series: [ALIVE, WELL, series("locks", "2x60", 'backend="s3://state", verdict="stale"')],
      alert_rule_test: [{ eval_time: "30m", alertname: "PulumiStaleLockStays", exp_alerts: [alert] }],
    };
    writeFileSync(join(folder, "rules.yaml"), JSON.stringify(rules));
    writeFileSync(join(folder, "test.yaml"), JSON.stringify({ rule_files: ["rules.yaml"], evaluation_interval: "1m", tests: [test] }));
    const { exitCode, text } = promtool("test", "rules", "test.yaml");
    expect(exitCode, text).toBe(0);
  });
});

describe("every metric that is asked for is served, with the labels that are asked for", () => {
  const served = new Map<string, Set<string>>();
  const workspace = new Workspace();
  const server = new StubApiServer();

  beforeAll(async () => {
    await server.start();
    server.objects.set("/api/v1/nodes", [aNodeObject("node-1")]);
    server.objects.set("/api/v1/pods", [aPodObject("iac-runner-here")]);
    workspace.addLock("iac-runner-gone");
    const port = await findFreePort();
    const stop = new AbortController();
    const words = ["watch", "--backend", workspace.backend, "--backend", `${workspace.backend}/none`, "--kubeconfig", server.writeKubeconfig(), "--owner"];
    const more = ["iac-runner-*", "--confirm-delay", "0s", "--delete", "--exclusive", "--listen", `127.0.0.1:${port}`];
    const running = runCommand([...words, ...more], { stop: { when: stop.signal, signal: "SIGTERM" } });
    const text = await waitFor("a removal in /metrics", async () => {
      const response = await fetch(`http://127.0.0.1:${port}/metrics`).catch(() => undefined);
      const metrics = (await response?.text()) ?? "";
      return metrics.includes("removals_total{") ? metrics : undefined;
    });
    stop.abort();
    await running;
    for (const [, name = "", labels = ""] of text.matchAll(/^(pulumi_lock_janitor_\w+)(?:\{(.*)\})? /gm)) {
      const known = served.get(name) ?? new Set();
      for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) known.add(label);
      served.set(name, known);
    }
  });
  afterAll(async () => {
    await server.stop();
    workspace.remove();
  });

  const asked: readonly (readonly [where: string, expressions: readonly string[]])[] = [
    ["alerts", rules.groups.flatMap((group) => group.rules.map(({ expr }) => expr))],
    [
      "dashboard",
      z
        .object({ panels: z.array(z.object({ targets: z.array(z.object({ expr: z.string() })) })) })
        .parse(JSON.parse(readFileSync(join(CHART, "files/dashboard.json"), "utf8")))
        .panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ],
  ];

  it.each(asked.flatMap(([where, expressions]) => expressions.map((expression) => [where, expression] as const)))("%s: %s", (_where, expression) => {
    const names = Array.from(expression.matchAll(/pulumi_lock_janitor_\w+/g), ([name]) => name);
    expect(names.length).toBeGreaterThan(0);
    const labels = Array.from(expression.matchAll(/by \(([^)]*)\)|(\w+)=/g), ([, grouped = "", matched = ""]) => [...grouped.split(", "), matched]).flat();
    // The namespace is the scraper's word.
    const wanted = new Set(labels.filter((label) => label !== "" && label !== "namespace"));
    expect({ missing: names.filter((name) => !served.has(name)) }).toEqual({ missing: [] });
    for (const name of names) expect(Array.from(wanted).filter((label) => served.get(name)?.has(label) !== true)).toEqual([]);
  });

  it("each dashboard query is PromQL", () => {
    for (const [, expressions] of asked) {
      for (const expression of expressions) {
        const { exitCode, text } = promtool("promql", "format", "--experimental", expression.replaceAll("$__rate_interval", "5m"));
        expect(exitCode, `${expression}: ${text}`).toBe(0);
      }
    }
  });
});
