import { existsSync, writeFileSync } from "node:fs";

import { anAnswer, answerWith } from "../kubernetes/exec-answers.ts";
import { aNodeObject, aPodObject } from "../kubernetes/stub-api-server.ts";
import { readLock, seeThere, seeVerdict, type OptionWorld, type Row } from "./option-rows.ts";

const addStale = (world: OptionWorld): void => void world.addLock("iac-runner-gone");
const addHeld = (world: OptionWorld): void => void world.addLock("iac-runner-here");
const STALE = "stale pod-not-found";
const STALE_WORD = "pod-not-found";

/** A server that takes every request and never answers. */
function silence(world: OptionWorld): void {
  addStale(world);
  world.server.answer = ({ path, query }) => (path === "/api/v1/pods" && query.get("watch") !== "1" ? { kind: "hang" } : undefined);
}

function addProbed(world: OptionWorld): void {
  addHeld(world);
  world.setPods(aPodObject("coredns"), {
    metadata: { name: "iac-runner-here", namespace: "iac", uid: "uid-1", creationTimestamp: "2026-03-01T00:00:00Z" },
    spec: { nodeName: "node-1", containers: [{ name: "pulumi" }] },
    status: {
      phase: "Running",
      containerStatuses: [{ name: "pulumi", containerID: "containerd://1", restartCount: 0, state: { running: { startedAt: "2026-03-01T00:00:10Z" } } }],
    },
  });
  world.server.exec = answerWith(anAnswer());
}

/** A kubeconfig with a second context. */
export function writeTwoContexts(world: OptionWorld): void {
  const server = `http://127.0.0.1:${world.server.port}`;
  writeFileSync(
    world.file("two"),
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "first",
      clusters: [{ name: "c", cluster: { server, "insecure-skip-tls-verify": true } }],
      users: [{ name: "u", user: { token: "x" } }],
      contexts: ["first", "second"].map((name) => ({ name, context: { cluster: "c", user: "u" } })),
    }),
  );
}

/** What `sweep`, `watch` and `unlock` share. */
export const RULE_ROWS: Readonly<Record<string, Row>> = {
  "--config": {
    arrange: (world) => {
      addStale(world);
      world.workspace.addConfig({ backends: [world.workspace.backend] });
    },
    omit: ["--backend"],
    option: (world) => ["--config", world.file("config.yaml")],
    see: seeVerdict,
    without: "exit 2",
    with: STALE,
  },
  "--backend": {
    arrange: addStale,
    omit: ["--backend"],
    option: (world) => ["--backend", world.workspace.backend],
    see: seeVerdict,
    without: "exit 2",
    with: STALE,
  },
  "--audit-log": {
    arrange: addStale,
    option: (world) => ["--audit-log", world.file("audit.ndjson")],
    see: ({ world }) => [existsSync(world.workspace.path(".pulumi-lock-janitor/audit")), existsSync(world.file("audit.ndjson"))],
    without: [true, false],
    with: [false, true],
  },
  "--request-timeout": {
    arrange: silence,
    stopAfter: 6_000,
    option: () => ["--request-timeout", "50ms"],
    see: ({ beforeStop }) => beforeStop.includes("list-incomplete"),
    without: false,
    with: true,
  },
  "--owner": { arrange: addStale, omit: ["--owner"], option: () => ["--owner", "iac-runner-*"], see: seeVerdict, without: "foreign no-pattern", with: STALE },
  "--no-builtin-owners": {
    arrange: (world) => void world.addLock("shop-workspace-0"),
    beside: () => ["--require-stack", "no"],
    option: () => ["--no-builtin-owners"],
    see: seeVerdict,
    without: STALE,
    with: "foreign no-pattern",
  },
  "--require-stack": { arrange: addStale, option: () => ["--require-stack", "yes"], see: seeVerdict, without: STALE, with: "foreign no-stack" },
  "--min-age": { arrange: addStale, option: () => ["--min-age", "2h"], see: seeVerdict, without: STALE, with: "too-young min-age" },
  "--settle": {
    arrange: (world) => {
      addHeld(world);
      world.addYoungPod("iac-runner-here", 30);
    },
    option: () => ["--settle", "2h"],
    see: seeVerdict,
    without: "stale pod-recreated",
    with: "undetermined not-settled",
  },
  "--clock-skew": {
    arrange: (world) => {
      addHeld(world);
      world.addYoungPod("iac-runner-here", 30);
    },
    option: () => ["--clock-skew", "40m"],
    see: seeVerdict,
    without: "stale pod-recreated",
    with: "held container-running",
  },
  "--confirm-delay": {
    arrange: addStale,
    omit: ["--confirm-delay"],
    beside: () => ["--confirm-delay", "0s"],
    stopAfter: 4_000,
    option: () => ["--confirm-delay", "1h"],
    see: ({ beforeStop }) => beforeStop.includes(STALE_WORD),
    without: true,
    with: false,
  },
  "--probe-processes": {
    arrange: addProbed,
    option: () => ["--probe-processes"],
    see: seeVerdict,
    without: "held container-running",
    with: "stale process-gone",
  },
  "--probe-after": {
    arrange: addProbed,
    beside: () => ["--probe-processes"],
    option: () => ["--probe-after", "2h"],
    see: seeVerdict,
    without: "stale process-gone",
    with: "held container-running",
  },
  "--unreachable-nodes": {
    arrange: (world) => {
      addStale(world);
      world.server.objects.set("/api/v1/nodes", [
        aNodeObject("node-1"),
        { metadata: { name: "node-2", creationTimestamp: "2026-01-01T00:00:00Z" }, status: { conditions: [{ type: "Ready", status: "Unknown" }] } },
      ]);
    },
    option: () => ["--unreachable-nodes", "ignore:node-2"],
    see: seeVerdict,
    without: "undetermined node-unreachable",
    with: STALE,
  },
  "--kubeconfig": {
    arrange: addStale,
    omit: ["--kubeconfig"],
    option: (world) => ["--kubeconfig", world.server.writeKubeconfig()],
    see: seeVerdict,
    without: "exit 2",
    with: STALE,
  },
  "--context": {
    arrange: (world) => {
      addStale(world);
      writeTwoContexts(world);
    },
    omit: ["--kubeconfig"],
    beside: (world) => ["--kubeconfig", world.file("two")],
    option: () => ["--context", "second"],
    see: (seen) => readLock(seen, "evidence", "clusters", 0, "name") ?? "none",
    without: "first",
    with: "second",
  },
  "--namespace": {
    arrange: addStale,
    option: () => ["--namespace", "iac"],
    see: ({ world }) => ["/api/v1/pods", "/api/v1/namespaces/iac/pods"].map((asked) => world.server.calls.some(({ path }) => path === asked)),
    without: [true, false],
    with: [false, true],
  },
  "--exclusive": {
    arrange: addStale,
    omit: ["--exclusive"],
    option: () => ["--exclusive"],
    see: seeThere,
    without: true,
    with: false,
  },
  "--timeout": {
    arrange: silence,
    stopAfter: 8_000,
    option: () => ["--timeout", "300ms"],
    see: ({ beforeStop }) => beforeStop !== "",
    without: false,
    with: true,
  },
};
