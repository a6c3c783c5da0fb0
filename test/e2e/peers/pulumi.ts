import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { findPeer } from "./build-peers.ts";
import { waitFor } from "./child.ts";

/** The real Pulumi CLI with one project, on one backend. */
export class Pulumi {
  readonly #folder = mkdtempSync(join(tmpdir(), "pulumi-"));
  readonly #env: Readonly<Record<string, string>>;

  constructor(backendUrl: string, env: Readonly<Record<string, string>>) {
    const [project, programs] = [join(this.#folder, "project"), join(this.#folder, "bin")];
    for (const folder of [project, programs]) mkdirSync(folder);
    writeFileSync(join(project, "Pulumi.yaml"), "name: demo\nruntime: yaml\noutputs:\n  greeting: hello\n");
    symlinkSync(findPeer("pulumi-language-yaml"), join(programs, "pulumi-language-yaml"));
    this.#env = {
      PATH: `${programs}:${process.env["PATH"] ?? ""}`,
      HOME: this.#folder,
      PULUMI_HOME: join(this.#folder, "home"),
      PULUMI_BACKEND_URL: backendUrl,
      PULUMI_CONFIG_PASSPHRASE: "test",
      PULUMI_SKIP_UPDATE_CHECK: "true",
      ...env,
    };
  }

  /** Makes a stack. */
  async init(stack: string): Promise<void> {
    const { ok, output } = await this.#run(["stack", "init", stack]);
    if (!ok) throw new Error(`pulumi stack init ${stack}: ${output}`);
  }

  /** Opens the backend and lists its stacks. */
  async listStacks(): Promise<PulumiResult> {
    return await this.#run(["stack", "ls", "--all"]);
  }

  /** Runs an update to its end. */
  async up(stack: string): Promise<PulumiResult> {
    return await this.#run(["up", "--yes", "--skip-preview", "--stack", stack]);
  }

  /** A stack's state as the CLI itself reads it. */
  async exportState(stack: string): Promise<PulumiResult> {
    return await this.#run(["stack", "export", "--stack", stack]);
  }

  /**
   * Runs an update under the hostname of a pod, and kills it and all its children as soon as its lock is there.
   * An update may end, and give its lock back, before the kill reaches it: then another one is run.
   */
  async killDuringUpdate(stack: string, hostname: string, lockIsThere: () => Promise<boolean>): Promise<void> {
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      await this.#killOneUpdate(stack, hostname, lockIsThere);
      if (await lockIsThere()) return;
    }
    throw new Error(`five updates of ${stack} ended before they could be killed with their lock in place`);
  }

  async #killOneUpdate(stack: string, hostname: string, lockIsThere: () => Promise<boolean>): Promise<void> {
    const words = [
      "--uts",
      "sh",
      "-c",
      'hostname "$0"; exec "$@"',
      hostname,
      findPeer("pulumi"),
      "up",
      "--yes",
      "--skip-preview",
      "--non-interactive",
      "--stack",
      stack,
    ];
    const child = spawn("unshare", words, { cwd: join(this.#folder, "project"), env: this.#env, stdio: "ignore", detached: true });
    try {
      await waitFor(`the lock of ${stack}`, async () => (child.exitCode !== null || (await lockIsThere()) ? true : undefined), { every: 2 });
    } finally {
      await killGroup(child);
    }
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Never blocks this process: the store may be reached through a proxy that lives in it. */
  async #run(words: readonly string[]): Promise<PulumiResult> {
    const child = spawn(findPeer("pulumi"), [...words, "--non-interactive"], {
      cwd: join(this.#folder, "project"),
      env: this.#env,
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 60_000,
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text: string) => (output += text));
    return await new Promise((done, fail) => {
      child.once("error", fail);
      child.once("close", (code) => done({ ok: code === 0, output }));
    });
  }
}

/** How a run of the CLI ended. */
export interface PulumiResult {
  readonly ok: boolean;
  readonly output: string;
}

async function killGroup(child: ChildProcess): Promise<void> {
  const { pid } = child;
  if (pid === undefined || child.exitCode !== null) return;
  const ended = new Promise<void>((done) => {
    child.once("exit", () => done());
  });
  process.kill(-pid, "SIGKILL");
  await ended;
}
