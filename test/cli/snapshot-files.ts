import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const MINUTE = 60_000;

/** A folder with a `file://` backend and a snapshot of a cluster, for runs of the command. Times are given in minutes before now. */
export class Workspace {
  readonly folder = mkdtempSync(join(tmpdir(), "lock-janitor-"));
  readonly backend = `file://${join(this.folder, "state")}`;
  readonly snapshot = join(this.folder, "pods.json");
  readonly #now = Date.now();
  readonly #items: object[] = [];

  constructor() {
    mkdirSync(join(this.folder, "state"), { recursive: true });
    this.addItem({
      kind: "Node",
      metadata: { name: "node-1", creationTimestamp: this.ago(50_000) },
      status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: this.ago(49_999), lastHeartbeatTime: this.ago(1) }] },
    });
    // A cluster always has some pod; one with none at all proves nothing.
    this.addPod("coredns-5d78c9869d-x2b4q", { container: "coredns" });
  }

  /** RFC 3339 in whole seconds. */
  ago(minutes: number): string {
    return `${new Date(this.#now - minutes * MINUTE).toISOString().slice(0, 19)}Z`;
  }

  path(...parts: readonly string[]): string {
    return join(this.folder, "state", ...parts);
  }

  addLock(hostname: string, { minutes = 60, stack = "organization/shop/prod", id = `lock-of-${hostname.slice(0, 40)}`, body = "" } = {}): string {
    const key = `.pulumi/locks/${stack}/${id}.json`;
    mkdirSync(dirname(this.path(key)), { recursive: true });
    writeFileSync(
      this.path(key),
      body === "" ? JSON.stringify({ pid: 7, username: "pulumi", hostname, timestamp: this.ago(minutes).replace("Z", ".123456789Z") }) : body,
    );
    writeFileSync(this.path(`${key}.attrs`), "{}");
    this.setAge(key, minutes);
    return key;
  }

  /** Sets the store's time of an object. */
  setAge(key: string, minutes: number): void {
    const writtenAt = this.#now / 1_000 - minutes * 60;
    utimesSync(this.path(key), writtenAt, writtenAt);
  }

  addPod(name: string, { container = "pulumi", createdMinutesAgo = 6_000, startedMinutesAgo = 5_999, restartCount = 0 } = {}): void {
    this.addItem({
      kind: "Pod",
      metadata: { namespace: "iac", name, uid: `uid-of-${name}`, creationTimestamp: this.ago(createdMinutesAgo) },
      spec: { nodeName: "node-1", containers: [{ name: container }] },
      status: { phase: "Running", containerStatuses: [{ name: container, restartCount, state: { running: { startedAt: this.ago(startedMinutesAgo) } } }] },
    });
  }

  /** `message`: what its latest update failed with. */
  addStack(name: string, stack: string, { backend, message }: { readonly backend?: string; readonly message?: string } = {}): void {
    this.addItem({
      apiVersion: "pulumi.com/v1",
      kind: "Stack",
      metadata: { namespace: "iac", name },
      spec: { stack, backend },
      ...(message === undefined ? {} : { status: { lastUpdate: { state: "failed", message } } }),
    });
  }

  /** Settings for `--config`, as `config.yaml` of the folder. */
  addConfig(settings: object): void {
    writeFileSync(join(this.folder, "config.yaml"), JSON.stringify(settings));
  }

  addItem(item: object): void {
    this.#items.push(item);
    writeFileSync(this.snapshot, JSON.stringify({ apiVersion: "v1", kind: "List", items: this.#items }));
  }

  /** The words of a sweep over this folder. */
  sweepWords(...more: readonly string[]): readonly string[] {
    return this.sweepWordsOn(this.backend, ...more);
  }

  /** The words of a sweep over another store. */
  sweepWordsOn(url: string, ...more: readonly string[]): readonly string[] {
    return [
      "sweep",
      "--backend",
      url,
      "--pods-from",
      this.snapshot,
      "--pods-taken-at",
      new Date(this.#now).toISOString(),
      "--owner",
      "iac-runner-*",
      "--confirm-delay",
      "0s",
      ...more,
    ];
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
