import { watchEvent, type WatchEvent } from "../../../src/core/watch-event.ts";
import { runCommand } from "../../cli/command.ts";
import { findFreePort, waitFor } from "./child.ts";

/** What a watch says of itself while it runs. */
export interface Status {
  readonly ready: string;
  readonly healthy: string;
  readonly metrics: string;
}

/** A `watch` as a process, with its status at a port. */
export class RunningWatch {
  readonly #port: number;
  readonly #stop = new AbortController();
  readonly #running: ReturnType<typeof runCommand>;
  #over = false;

  private constructor(port: number, words: readonly string[], env: Readonly<Record<string, string>>) {
    this.#port = port;
    this.#running = runCommand(["watch", "--listen", `127.0.0.1:${port}`, ...words], { env, stop: { when: this.#stop.signal, signal: "SIGTERM" } }).finally(
      () => (this.#over = true),
    );
  }

  static async start(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<RunningWatch> {
    const watch = new RunningWatch(await findFreePort(), words, env);
    await watch.waitUntil("the first sweep", ({ metrics }) => !metrics.includes("sweep_duration_seconds_count 0"));
    return watch;
  }

  async readStatus(): Promise<Status> {
    const read = async (path: string): Promise<string> => {
      try {
        return (await (await fetch(`http://127.0.0.1:${this.#port}/${path}`)).text()).trim();
      } catch (error) {
        if (!this.#over) return "";
        throw new Error(`the watch has ended: ${(await this.#running).stderr}`, { cause: error });
      }
    };
    return { ready: await read("readyz"), healthy: await read("healthz"), metrics: await read("metrics") };
  }

  /** A metric's value, labels included in its name; 0 for one that is not there. */
  async readMetric(name: string): Promise<number> {
    const { metrics } = await this.readStatus();
    const line = metrics.split("\n").find((each) => each.startsWith(`pulumi_lock_janitor_${name} `));
    return line === undefined ? 0 : Number(line.split(" ").at(-1));
  }

  async waitUntil(what: string, isSo: (status: Status) => boolean, within = 60_000): Promise<Status> {
    return await waitFor(
      what,
      async () => {
        const status = await this.readStatus();
        return status.metrics !== "" && isSo(status) ? status : undefined;
      },
      { every: 100, within },
    );
  }

  /** Ends it as Kubernetes does, and gives everything that it told. */
  async stop(): Promise<{ readonly exitCode: number | undefined; readonly events: readonly WatchEvent[]; readonly stderr: string }> {
    this.#stop.abort();
    const { exitCode, stdout, stderr } = await this.#running;
    const lines = stdout.split("\n").filter((line) => line !== "");
    return { exitCode, stderr, events: lines.map((line) => watchEvent.parse(JSON.parse(line))) };
  }
}
