import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import * as z from "zod";

import { sweepReport, type SweepReport } from "../../src/core/report.ts";
import { findPeer } from "../e2e/peers/build-peers.ts";
import { waitFor } from "../e2e/peers/child.ts";
import { STACK_KIND } from "../e2e/peers/workloads.ts";
import { Backends, SCHEMES, type Reach, type Scheme } from "./backends.ts";
import { readGivenSettings } from "./given-settings.ts";
import { GivenSite, markOf, namespaceOf } from "./given-site.ts";
import { JANITOR_IMAGE, PULUMI_IMAGE, writeJanitorImage, writePulumiImage } from "./images.ts";
import { runJanitorPod } from "./janitor-pod.ts";
import { OwnSite } from "./own-site.ts";
import { Shapes, type Manifest, type Shape } from "./shapes.ts";
import type { Cutter, Site } from "./site.ts";
import { Truth, type Updating } from "./truth.ts";

const podSpec = z.looseObject({
  spec: z.looseObject({ containers: z.array(z.looseObject({ name: z.string(), env: z.unknown(), volumeMounts: z.unknown().optional() })) }),
});

/** What the janitor is told in every sweep: no grace for young locks, so that only proof keeps a live one. */
const SWEEP = ["sweep", "--exclusive", "--owner", "field-*=pulumi", "--min-age", "0s", "--max-deletions", "1000", "--output", "json"];

/** A pod that exists. */
export interface Placed {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

/** Real nodes, real backends, and the pods on them that run the real Pulumi. */
export class Field {
  readonly site: Site;
  readonly backends: Backends;
  /** In words, why not, where no node can be cut off. */
  cutter: Cutter | string = "not prepared";
  #truth = new Truth([]);

  private constructor(site: Site, backends: Backends) {
    this.site = site;
    this.backends = backends;
  }

  /** On a node of its own, or in the cluster that the environment names. */
  static async start(): Promise<Field> {
    const given = readGivenSettings();
    const site = given === undefined ? await OwnSite.start() : await GivenSite.start(given);
    const backends = new Backends();
    const field = new Field(site, backends);
    try {
      await backends.start(site);
      await field.#prepare();
      return field;
    } catch (error) {
      await field.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    await this.site.stop();
    await this.backends.stop();
  }

  /** What really runs. */
  get truth(): Truth {
    return this.#truth;
  }

  /** The shapes of pods that reach the backends. */
  get shapes(): Shapes {
    return new Shapes({ ...this.backends.pods.env, PULUMI_CONFIG_PASSPHRASE: "test", PULUMI_SKIP_UPDATE_CHECK: "true" }, this.backends.folder);
  }

  async kubectl(...words: readonly string[]): Promise<string> {
    return await this.#kubectl(words);
  }

  /** The log of a container until it ends, and what is known of it where it cannot be followed so far. */
  async followLog(...words: readonly string[]): Promise<string> {
    return (await this.site.run([findPeer("kube"), "kubectl", ...words, "--follow"])).stdout;
  }

  async apply(...objects: readonly Manifest[]): Promise<void> {
    await this.#kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
  }

  /** Applies a shape, and waits until its pod runs. */
  async place(shape: Shape): Promise<Placed> {
    await this.apply(...shape.objects);
    return await this.findRunning(shape);
  }

  /** The pod of a shape, once its containers run; `otherThan`: the UID of its forerunner. */
  async findRunning({ namespace, pod, container }: Shape, otherThan = ""): Promise<Placed> {
    const select = "name" in pod ? [`--field-selector=metadata.name=${pod.name}`] : ["-l", pod.label];
    const started = `{.status.containerStatuses[?(@.name=="${container}")].state.running.startedAt}`;
    const columns = `{range .items[*]}{.metadata.name} {.metadata.uid} ${started}{"\\n"}{end}`;
    const name = await waitFor(
      `a running pod in ${namespace} (${select.join(" ")})`,
      async () =>
        (await this.kubectl("get", "pods", "-n", namespace, ...select, "-o", `jsonpath=${columns}`))
          .split("\n")
          .map((line) => line.split(" "))
          .find(([, uid = "", started = ""]) => started !== "" && uid !== otherThan)?.[0],
      { every: 500 },
    );
    return { namespace, pod: name, container };
  }

  async uidOf({ namespace, pod }: Placed): Promise<string> {
    return await this.kubectl("get", "pod", "-n", namespace, pod, "--ignore-not-found", "-o", "jsonpath={.metadata.uid}");
  }

  async exec({ namespace, pod, container }: Placed, script: string): Promise<string> {
    return await this.kubectl("exec", "-n", namespace, pod, "-c", container, "--", "sh", "-c", script);
  }

  /** Process 1 of a container. */
  async findFirstProcess({ namespace, pod, container }: Placed): Promise<Pick<Updating, "machine" | "pid">> {
    const path = `jsonpath=${["containerStatuses", "initContainerStatuses"].map((kind) => `{.status.${kind}[?(@.name=="${container}")].containerID}`).join("")}`;
    const id = (await this.kubectl("get", "pod", "-n", namespace, pod, "-o", path)).replace("containerd://", "");
    return await this.#truth.findFirstProcess(id);
  }

  /** Adds a container to a pod that runs, with the environment and the folders of the pod's own. */
  async addEphemeralContainer({ namespace, pod, container }: Placed, name: string, image: string): Promise<void> {
    const found = podSpec.parse(JSON.parse(await this.kubectl("get", "pod", "-n", namespace, pod, "-o", "json")));
    const { env, volumeMounts } = found.spec.containers.find((own) => own.name === container) ?? {};
    const ephemeralContainers = [{ name, image, imagePullPolicy: "Never", env, volumeMounts }];
    const path = `/api/v1/namespaces/${namespace}/pods/${pod}/ephemeralcontainers`;
    await this.#kubectl(["replace", "--raw", path, "-f", "-"], JSON.stringify({ ...found, spec: { ...found.spec, ephemeralContainers } }));
    await waitFor(
      `container ${name} of ${pod}`,
      async () =>
        (await this.kubectl("get", "pod", "-n", namespace, pod, "-o", "jsonpath={.status.ephemeralContainerStatuses[*].state.running}")) === ""
          ? undefined
          : true,
      { every: 500 },
    );
  }

  /** Tells the agent of a pod what to do. */
  async order(placed: Placed, order: string): Promise<void> {
    await this.exec(placed, `until [ -p /tmp/orders ]; do sleep 0.1; done; echo '${order}' > /tmp/orders`);
  }

  /** Has the agent of a pod update a stack; gives the process once it has its lock and waits in the middle of the update. */
  async beginUpdate(placed: Placed, scheme: Scheme, stack: string, order: "update" | "nested" = "update"): Promise<Updating> {
    await this.exec(placed, `mkdir -p /tmp/projects/${stack} && printf 'name: demo\\nruntime: yaml\\n' > /tmp/projects/${stack}/Pulumi.yaml`);
    const url = this.backends.pods.url(scheme);
    await this.exec(
      placed,
      `cd /tmp/projects/${stack} && export HOME=/tmp PULUMI_HOME=/tmp/home-${stack} && { pulumi login '${url}' && pulumi stack init ${stack} --non-interactive; } > init.log 2>&1 || { cat init.log; exit 1; }`,
    );
    await this.order(placed, `${order} ${stack}`);
    try {
      return await this.waitForWriter(scheme, stack);
    } catch (error) {
      throw new Error(await this.exec(placed, `cat /tmp/projects/${stack}/log; ps`), { cause: error });
    }
  }

  /** Waits for the one process that the stack's lock names. */
  async waitForWriter(scheme: Scheme, stack: string): Promise<Updating> {
    return await waitFor(
      `the lock of ${stack}`,
      async () => {
        const owners = await this.backends.readOwners(scheme, stack);
        return (await this.#truth.readUpdating()).find((process) => process.stack === stack && owners.some(({ pid }) => pid === process.innerPid));
      },
      { every: 200 },
    );
  }

  /** One sweep by the built command, run on the node beside the pods. */
  async sweep(...words: readonly string[]): Promise<SweepReport> {
    const { commands } = this.backends;
    const { stdout, stderr } = await this.site.run([process.execPath, resolve("dist/main.js"), ...sweepWords(commands), ...words], { env: commands.env });
    if (!stdout.startsWith("{")) throw new Error(`${stderr}${stdout}`);
    return sweepReport.parse(JSON.parse(stdout));
  }

  /** One sweep by the janitor's own image as a pod, with its service account. */
  async sweepAsPod(...words: readonly string[]): Promise<SweepReport> {
    const output = await runJanitorPod(this, [...sweepWords(this.backends.pods), ...words]);
    return sweepReport.parse(JSON.parse(output));
  }

  /** What a person does with a lock that the janitor cannot prove stale. */
  async unlock(scheme: Scheme, id: string): Promise<void> {
    const words = ["unlock", id, "--yes", "--force", "--exclusive", "--backend", this.backends.commands.url(scheme), "--owner", "field-*=pulumi"];
    const { exitCode, stderr } = await this.site.run([process.execPath, resolve("dist/main.js"), ...words], { env: this.backends.commands.env });
    if (exitCode !== 0) throw new Error(`unlock ${id}: ${stderr}`);
  }

  /** An update of a stack from the node itself, with a program that waits for nothing. */
  async up(scheme: Scheme, stack: string): Promise<{ readonly ok: boolean; readonly output: string }> {
    const folder = join(this.site.folder, "projects", stack);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "Pulumi.yaml"), "name: demo\nruntime: yaml\noutputs:\n  greeting: hello\n");
    const programs = ["pulumi", "pulumi-language-yaml"].map((name) => join(findPeer(name), ".."));
    const { exitCode, stdout, stderr } = await this.site.run(
      [findPeer("pulumi"), "--cwd", folder, "up", "--yes", "--skip-preview", "--non-interactive", "--stack", stack],
      {
        env: {
          ...this.backends.commands.env,
          PATH: [...programs, process.env["PATH"] ?? ""].join(":"),
          PULUMI_HOME: join(this.site.folder, "pulumi-home"),
          PULUMI_BACKEND_URL: this.backends.commands.url(scheme),
          PULUMI_CONFIG_PASSPHRASE: "test",
          PULUMI_SKIP_UPDATE_CHECK: "true",
        },
      },
    );
    return { ok: exitCode === 0, output: `${stdout}${stderr}` };
  }

  async #prepare(): Promise<void> {
    const images = [
      { name: PULUMI_IMAGE, file: join(this.site.folder, "pulumi.tar"), write: writePulumiImage },
      { name: JANITOR_IMAGE, file: join(this.site.folder, "janitor.tar"), write: writeJanitorImage },
    ];
    for (const { file, write } of images) write(file);
    await this.site.loadImages(images);
    for (const { file } of images) rmSync(file);
    const machines = await this.site.openMachines();
    this.#truth = new Truth(machines);
    this.cutter = await this.site.findCutter(machines);
    await this.apply({ ...STACK_KIND, metadata: { ...STACK_KIND.metadata, labels: markOf() } }, ...["field", "other"].map(namespaceOf));
    await this.kubectl("wait", "--for=condition=Established", "crd/stacks.pulumi.com");
  }

  async #kubectl(words: readonly string[], input = ""): Promise<string> {
    const { exitCode, stdout, stderr } = await this.site.run([findPeer("kube"), "kubectl", ...words], { input });
    if (exitCode !== 0) throw new Error(`kubectl ${words.join(" ")}: ${stderr}${stdout}`);
    return stdout;
  }
}

function sweepWords(reach: Reach): readonly string[] {
  return [...SWEEP, ...SCHEMES.flatMap((scheme) => ["--backend", reach.url(scheme)])];
}
