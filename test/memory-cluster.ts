import type { ClusterObservation, Node, Pod, StackResource } from "../src/core/cluster.ts";
import { mayHaveHostname } from "../src/core/hostname.ts";
import type { ClusterSource } from "../src/kubernetes/cluster-source.ts";

/** A cluster in memory that notes every look at it, and can be told to do something before one. */
export class MemoryCluster implements ClusterSource {
  readonly kind = "live";
  readonly name: string;
  pods: Pod[] = [];
  nodes: Node[] = [];
  stacks: StackResource[] = [];
  /** Why the list of pods is cut short, if it is. */
  problem: string | undefined;
  readonly calls: string[] = [];
  follow?: NonNullable<ClusterSource["follow"]>;
  before: (call: string) => void | Promise<void> = () => undefined;

  constructor(name = "test") {
    this.name = name;
  }

  async observe(hostnames: ReadonlySet<string>): Promise<ClusterObservation> {
    await this.#note("observe");
    const pods = this.pods.filter((pod) => Array.from(hostnames).some((hostname) => mayHaveHostname(pod, hostname, this.nodes)));
    // Every real cluster has pods of its own beside the ones in question.
    const list = { pods, total: this.pods.length + 1 };
    return {
      name: this.name,
      uid: `uid-of-${this.name}`,
      source: { kind: "live" },
      pods: this.problem === undefined ? { kind: "complete", ...list } : { kind: "incomplete", problem: this.problem, ...list },
      nodes: { kind: "listed", nodes: this.nodes },
      stacks: { kind: "listed", stacks: this.stacks },
    };
  }

  async findNamesakes(hostname: string): Promise<readonly Pod[]> {
    await this.#note(`namesakes ${hostname}`);
    return this.pods.filter(({ name }) => name === hostname);
  }

  whoAmI(): Promise<string | undefined> {
    return Promise.resolve(undefined);
  }

  listHostnames(): Promise<readonly string[]> {
    return Promise.resolve(this.pods.map(({ name }) => name));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #note(call: string): Promise<void> {
    await this.before(call);
    this.calls.push(call);
  }
}
