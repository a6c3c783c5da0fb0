import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { sweepReport, type SweepReport } from "../../src/core/report.ts";
import { runCommand, type CommandResult } from "../cli/command.ts";
import { StubApiServer } from "../kubernetes/stub-api-server.ts";
import type { Access } from "./peers/stores.ts";

/** The time at which every field case is told. */
const TOLD_AT = Date.parse("2026-03-10T12:00:00Z");

const TIME = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)/g;

/** Moves every time in a text so that what was told at noon is told now; fractions and offsets stay as they are. */
function moveTimes(text: string, now: number): string {
  const shift = Math.floor((now - TOLD_AT) / 1_000) * 1_000;
  return text.replaceAll(TIME, (_, local: string, fraction: string | undefined, offset: string) => {
    const moved = new Date(Date.parse(`${local}Z`) + shift).toISOString().slice(0, 19);
    return `${moved}${fraction ?? ""}${offset}`;
  });
}

/** What Pulumi writes into a lock. */
export interface LockBody {
  readonly pid: number;
  readonly username: string;
  readonly hostname: string;
  readonly timestamp: string;
}

/** A pod as the cases tell of it: metadata and status side by side. What is left out is of a pod that has been running for long. */
export interface ToldPod {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly spec?: object;
  readonly phase?: string;
  readonly reason?: string;
  readonly conditions?: readonly object[];
  readonly containerStatuses?: readonly { readonly name: string; readonly restartCount?: number; readonly state: object; readonly lastState?: object }[];
}

/** A node as the cases tell of it; Ready since long ago where nothing else is said. */
export interface ToldNode {
  readonly name: string;
  readonly ready?: "True" | "False" | "Unknown";
  readonly since?: string;
}

/** An operator's Stack; `message` is what its latest update failed with. */
export interface ToldStack {
  readonly name: string;
  readonly stack: string;
  readonly backend?: string;
  readonly message?: string;
}

function podObject({
  name,
  namespace = "iac",
  uid = `uid-of-${name}`,
  creationTimestamp = "2026-03-01T00:00:00Z",
  deletionTimestamp,
  deletionGracePeriodSeconds,
  spec = {},
  phase = "Running",
  containerStatuses = [{ name: "pulumi", restartCount: 0, state: { running: { startedAt: "2026-03-01T00:00:10Z" } } }],
  ...status
}: ToldPod): object {
  const containers = containerStatuses.length === 0 ? [{ name: "pulumi" }] : containerStatuses.map((container) => ({ name: container.name }));
  return {
    metadata: { name, namespace, uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds },
    spec: { nodeName: "node-1", containers, ...spec },
    status: { phase, containerStatuses, ...status },
  };
}

function nodeObject({ name, ready = "True", since = "2026-01-01T00:01:00Z" }: ToldNode): object {
  return {
    metadata: { name, creationTimestamp: "2026-01-01T00:00:00Z" },
    status: { conditions: [{ type: "Ready", status: ready, lastTransitionTime: since, lastHeartbeatTime: new Date().toISOString() }] },
  };
}

function stackObject({ name, stack, backend, message }: ToldStack): object {
  return {
    apiVersion: "pulumi.com/v1",
    kind: "Stack",
    metadata: { name, namespace: "iac" },
    spec: { stack, backend },
    ...(message === undefined ? {} : { status: { lastUpdate: { state: "failed", message } } }),
  };
}

/** What a sweep of a case gave. */
export interface CaseOutcome {
  readonly exitCode: number | undefined;
  readonly report: SweepReport;
  /** "verdict: reason, action" of each lock, in the order of their keys. */
  readonly verdicts: readonly string[];
  /** All that was printed. */
  readonly output: string;
}

/** The words of a removal, as the cases ask for it. */
export const REMOVE = ["--delete", "--exclusive", "--yes", "--confirm-delay", "0s"] as const;

/** One case told anew, now: a cluster behind a stub of its API server, and a folder of locks. */
export class CaseWorld {
  readonly api = new StubApiServer();
  readonly folder = mkdtempSync(join(tmpdir(), "field-case-"));
  readonly backend = `file://${join(this.folder, "state")}`;
  readonly #now = Date.now();
  readonly #objects = new Map<string, object[]>();

  async start(): Promise<void> {
    mkdirSync(join(this.folder, "state"));
    await this.api.start();
    // A cluster that shows no pod at all proves nothing.
    this.addPods({ name: "coredns-5d78c9869d-x2b4q", namespace: "kube-system", containerStatuses: [] });
  }

  /** A text or an object of a case, with its times moved. */
  tell(text: string): string {
    return moveTimes(text, this.#now);
  }

  path(key: string): string {
    return join(this.folder, "state", key);
  }

  /** Puts a lock, with the store's time of its own; gives its key. */
  addLock(body: LockBody, { key = keyOf(body.hostname), storedAt = body.timestamp }: { readonly key?: string; readonly storedAt?: string } = {}): string {
    return this.addBody(key, JSON.stringify(body), storedAt);
  }

  addBody(key: string, body: string, storedAt: string): string {
    mkdirSync(dirname(this.path(key)), { recursive: true });
    writeFileSync(this.path(key), this.tell(body));
    const time = new Date(this.tell(storedAt));
    utimesSync(this.path(key), time, time);
    return key;
  }

  addPods(...pods: readonly ToldPod[]): void {
    this.#add("/api/v1/pods", pods.map(podObject));
  }

  addNodes(...nodes: readonly ToldNode[]): void {
    this.#add("/api/v1/nodes", nodes.map(nodeObject));
  }

  addStacks(...stacks: readonly ToldStack[]): void {
    this.#add("/apis/pulumi.com/v1/stacks", stacks.map(stackObject));
  }

  /** The locks and what lies beside them. */
  get keys(): readonly string[] {
    return readdirSync(join(this.folder, "state"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(join(this.folder, "state").length + 1))
      .filter((key) => key.startsWith(".pulumi/"))
      .toSorted();
  }

  /** Sweeps the folder for a report. */
  async sweep(...words: readonly string[]): Promise<CaseOutcome> {
    return await this.sweepStore({ url: this.backend, env: {} }, ...words);
  }

  /** Sweeps another backend for a report. Throws where there is none. */
  async sweepStore(store: Access, ...words: readonly string[]): Promise<CaseOutcome> {
    const { exitCode, stdout, stderr } = await this.run(store, "--output", "json", ...words);
    if (stdout === "") throw new Error(`no report, exit code ${exitCode ?? "none"}: ${stderr}`);
    const report = sweepReport.parse(JSON.parse(stdout));
    const verdicts = report.locks.map(({ verdict, reason, action }) => `${verdict}: ${reason}, ${action}`);
    return { exitCode, report, verdicts, output: `${stdout}${stderr}` };
  }

  /** Runs a sweep of a backend, whatever comes of it. */
  async run({ url, env }: Access, ...words: readonly string[]): Promise<CommandResult> {
    return await runCommand(["sweep", "--backend", url, "--kubeconfig", this.api.writeKubeconfig(), ...words], { env });
  }

  async stop(): Promise<void> {
    await this.api.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #add(path: string, objects: readonly object[]): void {
    const moved: object[] = JSON.parse(this.tell(JSON.stringify(objects)));
    this.#objects.set(path, [...(this.#objects.get(path) ?? []), ...moved]);
    this.api.objects.set(path, this.#objects.get(path) ?? []);
  }
}

/** The key of a lock whose case does not say any. */
export function keyOf(hostname: string): string {
  return `.pulumi/locks/organization/shop/prod/lock-of-${hostname}.json`;
}
