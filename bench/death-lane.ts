import { chmodSync, cpSync, existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { findPeer } from "../test/e2e/peers/build-peers.ts";
import { waitFor } from "../test/e2e/peers/child.ts";
import type { Field } from "../test/field/field.ts";
import { SIDECAR, Shapes } from "../test/field/shapes.ts";
import { findProcesses, isRunning, type MachineProcess } from "./death-processes.ts";

const PATIENCE = 240_000;

/** An update of the real Pulumi that has its lock and waits. */
export interface Update extends MachineProcess {
  readonly pod: string;
  readonly lockFile: string;
  readonly lockedAt: number;
}

/** What was measured of one death; `seconds` is missing where the lock was left. */
export interface Measured {
  readonly seconds?: number;
  readonly lockAge: number;
}

/** A backend of its own, with the pods that write to it: trials of different lanes go on side by side and do not meet. */
export class Lane {
  readonly number: number;
  readonly folder: string;
  readonly shapes: Shapes;
  readonly field: Field;

  constructor(field: Field, number: number) {
    const { folder } = field.backends;
    if (folder === undefined) throw new Error("the trials want the node of the test's own, which shares a folder with its pods");
    this.field = field;
    this.number = number;
    this.folder = join(folder, `lane-${number}`);
    mkdirSync(this.folder);
    chmodSync(this.folder, 0o777);
    this.shapes = new Shapes({ PULUMI_BACKEND_URL: this.url, PULUMI_CONFIG_PASSPHRASE: "test", PULUMI_SKIP_UPDATE_CHECK: "true" }, folder);
  }

  get url(): string {
    return `file://${this.folder}`;
  }

  /** Takes the stacks of the first lane, which Pulumi has made there, as its own. */
  copyStacks(first: Lane): void {
    cpSync(join(first.folder, ".pulumi"), join(this.folder, ".pulumi"), { recursive: true });
    this.open();
  }

  /** Lets the pods' user write to what root has made. */
  open(): void {
    for (const file of [".pulumi", ...globSync(".pulumi/**", { cwd: this.folder })]) chmodSync(join(this.folder, file), 0o777);
  }

  /** Has the agent of a pod begin an update; waits until it has its lock. */
  async begin(pod: string, stack: string): Promise<Update> {
    const agent = await waitFor(`the agent of ${pod}`, () => Promise.resolve(this.#findAgent(pod)), { every: 250, within: PATIENCE });
    this.order(agent, `update ${stack}`);
    const folder = join(this.folder, ".pulumi/locks/organization/demo", stack);
    return await waitFor(
      `the lock of ${pod}`,
      () => {
        // gocloud writes beside it first, under another name.
        const name = existsSync(folder) ? readdirSync(folder).find((file) => file.endsWith(".json")) : undefined;
        const [process] = name === undefined ? [] : findProcesses("pulumi", [`FIELD_STACK=${stack}`, `HOSTNAME=${pod}`]);
        return Promise.resolve(
          name === undefined || process === undefined ? undefined : { ...process, pod, lockFile: join(folder, name), lockedAt: Date.now() },
        );
      },
      { every: 250, within: PATIENCE },
    );
  }

  /** Waits until the pod's sidecar has said that it knows the lock. */
  async waitForSidecar({ pod, lockFile }: Update): Promise<void> {
    const id = basename(lockFile, ".json");
    const pattern = `upper/var/log/pods/field_${pod}_*/${SIDECAR}/*.log`;
    await waitFor(
      `the sidecar of ${pod} to know its lock`,
      () => {
        const logs = globSync(pattern, { cwd: this.field.site.folder }).map((file) => readFileSync(join(this.field.site.folder, file), "utf8"));
        return Promise.resolve(logs.some((log) => log.split("\n").some((line) => line.includes(id) && line.includes('"verdict":"held"'))) ? true : undefined);
      },
      { every: 200, within: PATIENCE },
    );
  }

  /** Writes to the pipe of a pod's agent, from outside of its container. */
  order(agent: MachineProcess, order: string): void {
    writeFileSync(`/proc/${agent.pid}/root/tmp/orders`, `${order}\n`);
  }

  /** Process 1 of a pod's container. */
  findAgent(pod: string): MachineProcess {
    const agent = this.#findAgent(pod);
    if (agent === undefined) throw new Error(`the agent of ${pod} is gone`);
    return agent;
  }

  /** Ends what an update that was killed has left in its pod. */
  tidy({ pod }: Update): void {
    for (const { pid } of findProcesses("pulumi-language", [`HOSTNAME=${pod}`])) process.kill(pid, "SIGKILL");
    this.order(this.findAgent(pod), "reap");
  }

  /** Ends an update by what it is given, and waits until its lock is gone: from the one moment to the other. Both are looked at a hundred times a second. */
  async measure(update: Update, end: () => Promise<void>, within: number): Promise<Measured> {
    const ending = end();
    const until = async (check: () => boolean, limit: number): Promise<number | undefined> => {
      const from = performance.now();
      while (!check()) {
        if (performance.now() - from > limit) return undefined;
        await sleep(10);
      }
      return performance.now();
    };
    const diedAt = await until(() => !isRunning(update), PATIENCE);
    const lockAge = (Date.now() - update.lockedAt) / 1_000;
    if (!existsSync(update.lockFile)) throw new Error(`${update.pod}: the lock was gone as soon as its process`);
    const goneAt = await until(() => !existsSync(update.lockFile), within);
    await ending;
    if (diedAt === undefined) throw new Error(`${update.pod}: its update did not end`);
    if (goneAt !== undefined) return { seconds: (goneAt - diedAt) / 1_000, lockAge };
    rmSync(update.lockFile);
    return { lockAge };
  }

  async kubectl(...words: readonly string[]): Promise<void> {
    await this.field.kubectl(...words);
  }

  #findAgent(pod: string): MachineProcess | undefined {
    const ready = findProcesses("sh", [`HOSTNAME=${pod}`, `PULUMI_BACKEND_URL=${this.url}`]).filter(({ pid }) => existsSync(`/proc/${pid}/root/tmp/orders`));
    return ready.toSorted((a, b) => Number(a.ticks) - Number(b.ticks))[0];
  }
}

/** Has Pulumi make stacks in a lane's backend. */
export async function makeStacks(lane: Lane, names: readonly string[]): Promise<void> {
  const project = join(lane.field.site.folder, "bench-project");
  mkdirSync(project);
  writeFileSync(join(project, "Pulumi.yaml"), "name: demo\nruntime: yaml\n");
  for (const name of names) {
    const env = { PULUMI_BACKEND_URL: lane.url, PULUMI_HOME: join(project, "home"), PULUMI_CONFIG_PASSPHRASE: "test", PULUMI_SKIP_UPDATE_CHECK: "true" };
    const { exitCode, stderr } = await lane.field.site.run([findPeer("pulumi"), "--cwd", project, "stack", "init", name, "--non-interactive"], { env });
    if (exitCode !== 0) throw new Error(`stack init ${name}: ${stderr}`);
  }
  lane.open();
}
