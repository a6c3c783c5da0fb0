import { existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";

import { GcsStub } from "../backends/gcs-stub.ts";
import { aNodeObject, aPodObject, StubApiServer } from "../kubernetes/stub-api-server.ts";
import { runInProcess, type InProcessResult } from "./in-process.ts";
import { Workspace } from "./snapshot-files.ts";

/** The commands of the table. */
export const COMMAND_NAMES = ["sweep", "watch", "unlock", "check", "restore", "audit list", "audit show", "config print"] as const;
export type CommandName = (typeof COMMAND_NAMES)[number];

/** What the rows are tried in: a folder with a backend, an API server, and Google's storage. */
export class OptionWorld {
  readonly workspace = new Workspace();
  readonly server = new StubApiServer();
  readonly store = new GcsStub();
  #slow: Server | undefined;
  /** The lock that `unlock` is told to remove, or the record that `restore` is told to restore. */
  argument = "";

  async start(): Promise<void> {
    await this.server.start();
    await this.store.start();
    this.server.objects.set("/api/v1/nodes", [aNodeObject("node-1")]);
    this.setPods(aPodObject("coredns"), aPodObject("iac-runner-here"));
    // The watches of the stub stay open and silent.
    this.server.answer = ({ query }) => {
      if (query.get("watch") === "1") return { kind: "lines", lines: [], ending: "stay" };
      return query.get("limit") === "1" ? { kind: "body", body: { kind: "List", metadata: { resourceVersion: "1" }, items: [] } } : undefined;
    };
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await this.store.stop();
    this.#slow?.closeAllConnections();
    this.#slow?.close();
    this.workspace.remove();
  }

  file(name: string): string {
    return join(this.workspace.folder, name);
  }

  addLock(...given: Parameters<Workspace["addLock"]>): string {
    this.argument = this.workspace.addLock(...given);
    return this.argument;
  }

  setPods(...pods: readonly object[]): void {
    for (const path of ["/api/v1/pods", "/api/v1/namespaces/iac/pods"]) this.server.objects.set(path, pods);
  }

  /** A pod of this name that is younger than the locks. */
  addYoungPod(name: string, minutes: number): void {
    const times = { creationTimestamp: this.workspace.ago(minutes) };
    const status = {
      phase: "Running",
      containerStatuses: [{ name: "pulumi", restartCount: 0, state: { running: { startedAt: this.workspace.ago(minutes) } } }],
    };
    this.setPods(aPodObject("coredns"), {
      metadata: { name, namespace: "iac", uid: "young", ...times },
      spec: { nodeName: "node-1", containers: [{ name: "pulumi" }] },
      status,
    });
  }

  /** A stale lock in a bucket of Google's that a Stack names. */
  addDiscoverable(): void {
    this.store.buckets.set("acme-state", new Map());
    const body = { pid: 7, username: "pulumi", hostname: "iac-runner-gone", timestamp: this.workspace.ago(60) };
    this.store.put("acme-state", ".pulumi/locks/organization/shop/prod/1.json", Buffer.from(JSON.stringify(body)));
    this.server.objects.set("/apis/pulumi.com/v1/stacks", [{ metadata: { name: "shop", namespace: "iac" }, spec: { stack: "x", backend: "gs://acme-state" } }]);
  }

  /** A storage of Google's with nothing in it, which takes a second for each answer. */
  async startSlowStore(): Promise<void> {
    const slow = createServer((_, response) => {
      setTimeout(() => response.writeHead(200, { "content-type": "application/json" }).end("{}"), 1_000);
    });
    await new Promise<void>((done) => {
      slow.listen(0, "127.0.0.1", done);
    });
    this.#slow = slow;
  }

  get slowStore(): string {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address.
    const address = this.#slow?.address() as AddressInfo | undefined;
    return `127.0.0.1:${address?.port ?? 0}`;
  }

  get env(): Readonly<Record<string, string>> {
    return { STORAGE_EMULATOR_HOST: `127.0.0.1:${this.store.port}`, GOOGLE_OAUTH_ACCESS_TOKEN: "a-token" };
  }
}

/** What a run showed: its own outputs, and the world that it left. */
export interface Seen extends InProcessResult {
  readonly world: OptionWorld;
}

/** One row: two runs that differ in the option alone, each in a world of its own, and what is to be seen of them. */
export interface Row {
  readonly arrange?: (world: OptionWorld) => void | Promise<void>;
  /** Flags of the command's usual words that both runs are without. */
  readonly omit?: readonly string[];
  /** Words that both runs have beside the usual ones. */
  readonly beside?: (world: OptionWorld) => readonly string[];
  readonly option: (world: OptionWorld) => readonly string[];
  readonly see: (seen: Seen) => unknown;
  readonly without: unknown;
  readonly with: unknown;
  readonly interactive?: boolean;
  readonly env?: (world: OptionWorld) => Readonly<Record<string, string>>;
  /** Milliseconds after which both runs are stopped; `watch` stops by itself at its first line. */
  readonly stopAfter?: number;
}

/** The words that a command has in every row, unless that omits some. */
function usualWords(command: CommandName, world: OptionWorld): readonly (readonly string[])[] {
  const backend = ["--backend", world.workspace.backend];
  if (command === "restore") return [backend];
  if (command === "audit list" || command === "audit show") return [backend, ["--output", "json"]];
  if (command === "config print") return [];
  const cluster = [backend, ["--kubeconfig", world.server.writeKubeconfig()], ["--owner", "iac-runner-*"]];
  if (command === "check") return [...cluster, ["--output", "json"]];
  const rules = [...cluster, ["--confirm-delay", "0s"]];
  if (command === "watch") return [...rules, ["--interval", "1h"]];
  return command === "unlock" ? [...rules, ["--yes"], ["--exclusive"], ["--output", "json"]] : [...rules, ["--output", "json"]];
}

/** A command with its argument and its usual words, but for some flags. */
export function composeWords(command: CommandName, world: OptionWorld, omit: readonly string[] = []): readonly string[] {
  const argument = command === "unlock" || command === "restore" || command === "audit show" ? [world.argument].filter((word) => word !== "") : [];
  const usual = usualWords(command, world).filter(([flag = ""]) => !omit.includes(flag));
  return [...command.split(" "), ...argument, ...usual.flat()];
}

/** Runs a row once, with or without its option. */
export async function runRow(command: CommandName, row: Row, withOption: boolean): Promise<unknown> {
  const world = new OptionWorld();
  await world.start();
  try {
    await row.arrange?.(world);
    const words = [...composeWords(command, world, row.omit), ...(row.beside?.(world) ?? []), ...(withOption ? row.option(world) : [])];
    const result = await runInProcess(words, {
      env: { ...world.env, ...row.env?.(world) },
      ...(row.interactive === undefined ? {} : { interactive: row.interactive }),
      ...(row.stopAfter === undefined ? {} : { stopAfter: row.stopAfter }),
      // A removal is told after it was made, so nothing is cut off.
      ...(command === "watch" && row.stopAfter === undefined ? { stopWhen: (stdout) => stdout.includes("\n") } : {}),
    });
    return row.see({ ...result, world });
  } finally {
    await world.stop();
  }
}

/** The value at a path of a document: undefined where there is none. */
export function readAt(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((at, step) => {
    if (Array.isArray(at)) return at[Number(step)];
    return typeof at === "object" && at !== null ? new Map<string, unknown>(Object.entries(at)).get(String(step)) : undefined;
  }, value);
}

/** The first document of stdout: a report, or an event. */
export function readDocument({ stdout }: Pick<Seen, "stdout">): unknown {
  if (!stdout.startsWith("{")) return undefined;
  return JSON.parse(stdout.startsWith("{\n") ? stdout : (stdout.split("\n")[0] ?? ""));
}

/** A value of the first lock that a report or an event tells of. */
export function readLock(seen: Pick<Seen, "stdout">, ...path: readonly (string | number)[]): unknown {
  const document = readDocument(seen);
  return readAt(readAt(document, "lock") ?? readAt(document, "locks", 0), ...path);
}

/** What was found of the first lock, or with what the command ended where it told of none. */
export function seeVerdict(seen: Seen): unknown {
  const verdict = readLock(seen, "verdict");
  return verdict === undefined ? `exit ${seen.exitCode}` : [verdict, readLock(seen, "reason")].join(" ");
}

/** Whether the lock is still there. */
export function seeThere({ world }: Seen): unknown {
  return existsSync(world.workspace.path(world.argument));
}
