import type { StackEvent } from "../src/core/after-unlock.ts";
import type { ClusterObservation, Node, Pod, ProcessObservation, StackList, StackResource } from "../src/core/cluster.ts";
import { mayHaveHostname } from "../src/core/hostname.ts";
import type { ClusterSource, StackRight, Telling } from "../src/kubernetes/cluster-source.ts";

/** A cluster in memory that notes every look at it, and can be told to do something before one. */
export class MemoryCluster implements ClusterSource {
  readonly kind = "live";
  readonly name: string;
  pods: Pod[] = [];
  nodes: Node[] = [];
  stacks: StackResource[] = [];
  /** Why the Stacks cannot be listed, if so. */
  stacksProblem: string | undefined;
  /** Why the list of pods is cut short, if it is. */
  problem: string | undefined;
  /** What a look at the processes of a pod gives, by the pod's name. */
  readonly processes = new Map<string, ProcessObservation>();
  /** The verbs on pods/exec that are not allowed, by namespace. */
  readonly missingExecVerbs = new Map<string, readonly string[]>();
  /** What Stacks were told: the annotation's value by `namespace/name`, and Events. */
  readonly requeued = new Map<string, string>();
  readonly events: (StackEvent & { readonly stack: string })[] = [];
  /** Why nothing can be told to a Stack, if so; and where a right to tell is missing. */
  tellingProblem: string | undefined;
  readonly missingRights = new Map<StackRight, readonly string[]>();
  readonly calls: string[] = [];
  follow?: NonNullable<ClusterSource["follow"]>;
  reviewFollowing?: NonNullable<ClusterSource["reviewFollowing"]>;
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
      stacks: this.#stackList(),
    };
  }

  async findNamesakes(hostname: string): Promise<readonly Pod[]> {
    await this.#note(`namesakes ${hostname}`);
    return this.pods.filter(({ name }) => name === hostname);
  }

  async probe({ name }: Pod): Promise<ProcessObservation> {
    await this.#note(`probe ${name}`);
    return this.processes.get(name) ?? { kind: "could-not-look", problem: 'container "pulumi": it has no shell (sh) to look with' };
  }

  findMissingExecVerbs(namespace: string): Promise<readonly string[] | undefined> {
    return Promise.resolve(this.missingExecVerbs.get(namespace));
  }

  async requeueStack({ namespace, name }: StackResource, value: string): Promise<Telling> {
    await this.#note(`requeue ${namespace}/${name}`);
    this.requeued.set(`${namespace}/${name}`, value);
    return this.#telling();
  }

  async writeEvent({ namespace, name }: StackResource, event: StackEvent): Promise<Telling> {
    await this.#note(`event ${namespace}/${name}`);
    this.events.push({ ...event, stack: `${namespace}/${name}` });
    return this.#telling();
  }

  findMissingRight(right: StackRight): Promise<readonly string[] | undefined> {
    return Promise.resolve(this.missingRights.get(right));
  }

  #telling(): Telling {
    return this.tellingProblem === undefined ? { kind: "told" } : { kind: "failed", problem: this.tellingProblem };
  }

  async listStacks(): Promise<StackList> {
    await this.#note("stacks");
    return this.#stackList();
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

  #stackList(): StackList {
    return this.stacksProblem === undefined ? { kind: "listed", stacks: this.stacks } : { kind: "unlisted", problem: this.stacksProblem };
  }

  async #note(call: string): Promise<void> {
    await this.before(call);
    this.calls.push(call);
  }
}
