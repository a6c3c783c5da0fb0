import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { isIP, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { systemCode } from "../../src/errors.ts";
import { findPeer } from "../e2e/peers/build-peers.ts";
import { waitFor } from "../e2e/peers/child.ts";
import { collectResult, type InsideOptions, type InsideResult } from "../e2e/peers/node/node.ts";
import { findKubelet, cutKubelet } from "./cut-kubelet.ts";
import type { GivenSettings } from "./given-settings.ts";
import { PULUMI_IMAGE } from "./images.ts";
import { passOn } from "./own-site.ts";
import { runCommand } from "./run-command.ts";
import type { Manifest } from "./shapes.ts";
import type { Cutter, Machine, Site } from "./site.ts";

/** Where image archives are written for a person to load. */
const ARCHIVES = resolve(".cache/field-images");
/** What the test makes in a cluster that is not its own, and removes again. */
const NAMESPACES = ["field", "other", "janitor", "field-nodes"];
const MARK = "field-test.pulumi-lock-janitor";

/** A cluster that is there already: its nodes are entered by a command, or through a privileged pod on each. */
export class GivenSite implements Site {
  readonly isOwn = false;
  readonly folder = mkdtempSync(join(tmpdir(), "field-given-"));
  readonly hostAddress: string;
  readonly #settings: GivenSettings;
  readonly #relays: Server[] = [];

  private constructor(settings: GivenSettings) {
    this.#settings = settings;
    this.hostAddress = settings.hostAddress;
  }

  static async start(settings: GivenSettings): Promise<GivenSite> {
    const site = new GivenSite(settings);
    try {
      const words = [findPeer("kube"), "kubectl", "config", "view", "--minify", "--flatten", "--raw"];
      writeFileSync(site.#kubeconfig, await runCommand(words, { ...process.env, KUBECONFIG: settings.kubeconfig }), { mode: 0o600 });
      await site.#refuseUsedCluster();
      await site.#clean();
      return site;
    } catch (error) {
      rmSync(site.folder, { recursive: true, force: true });
      throw error;
    }
  }

  async run([command = "", ...words]: readonly string[], { env = {}, input = "" }: InsideOptions = {}): Promise<InsideResult> {
    const own = { PATH: process.env["PATH"], HOME: this.folder, KUBECONFIG: this.#kubeconfig };
    return await collectResult(spawn(command, words, { env: { ...own, ...env } }), input);
  }

  async loadImages(images: readonly { readonly name: string; readonly file: string }[]): Promise<void> {
    const { loadImage } = this.#settings;
    if (loadImage !== undefined) {
      for (const { file } of images) await runCommand(["sh", "-c", loadImage.replaceAll("{}", `'${file}'`)]);
      return;
    }
    const missing = [];
    for (const { name, file } of images) if (!(await this.#isLoaded(name))) missing.push(file);
    if (missing.length === 0) return;
    mkdirSync(ARCHIVES, { recursive: true });
    for (const file of missing) await runCommand(["cp", file, ARCHIVES]);
    const ways = ["kind load image-archive {}", "k3d image import {}", "ctr --namespace k8s.io images import --local {}"];
    throw new Error(
      `the nodes lack images: load the archives in ${ARCHIVES}, or set FIELD_LOAD_IMAGE to the command for one archive: ${ways.map((way) => `'${way}'`).join(", ")}`,
    );
  }

  async relay(ports: readonly number[]): Promise<void> {
    // A name (host.docker.internal) leads to the loopback by itself, and so does an address that is none of this machine's. The list of the machine's
    // interfaces does not tell: a bridge without a pod is not in it.
    if (isIP(this.hostAddress) === 0) return;
    try {
      for (const port of ports) this.#relays.push(await passOn(port, { port, host: this.hostAddress }));
    } catch (error) {
      if (systemCode(error) !== "EADDRNOTAVAIL") throw error;
    }
  }

  async openMachines(): Promise<readonly Machine[]> {
    const nodes = (await this.#kubectl(["get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"])).split(" ");
    const { nodeCommand } = this.#settings;
    if (nodeCommand !== undefined) {
      return nodes.map((node) => ({
        node,
        sh: async (script) => await runCommand([...nodeCommand.replaceAll("{node}", node).split(" "), "sh", "-c", script]),
      }));
    }
    const probes = nodes.map((node, index) => probeOf(node, `probe-${index}`));
    await this.#apply(namespaceOf("field-nodes"), ...probes);
    for (const { metadata } of probes) await this.#waitForPod("field-nodes", metadata.name);
    return probes.map(({ metadata, spec }) => ({
      node: spec.nodeName,
      sh: async (script) => await this.#kubectl(["exec", "-n", "field-nodes", metadata.name, "--", "sh", "-c", script]),
    }));
  }

  async findCutter(machines: readonly Machine[]): Promise<Cutter | string> {
    const [machine, ...others] = machines;
    if (this.#settings.nodeCommand === undefined) return "a kubelet that stands still runs no probe: FIELD_NODE_COMMAND must enter the node";
    if (machine === undefined || others.length > 0) return "only a cluster of one node is cut off";
    const kubelet = await findKubelet(machine);
    return typeof kubelet === "string" ? kubelet : cutKubelet(machine, kubelet.pid);
  }

  async stop(): Promise<void> {
    for (const relay of this.#relays) relay.close();
    await this.#clean();
    rmSync(this.folder, { recursive: true, force: true });
  }

  get #kubeconfig(): string {
    return join(this.folder, "kubeconfig");
  }

  /** The test's Stacks and roles must not meet those of anybody. */
  async #refuseUsedCluster(): Promise<void> {
    for (const [kind, names] of [
      ["namespace", NAMESPACES],
      ["crd", ["stacks.pulumi.com"]],
    ] as const) {
      for (const name of names) {
        const found = await this.#kubectl(["get", kind, name, "--ignore-not-found", "-o", "jsonpath={.metadata.name} {.metadata.labels}"]);
        if (found.startsWith(name) && !found.includes(MARK))
          throw new Error(`the cluster has a ${kind} ${name} already: the field test wants an empty cluster`);
      }
    }
  }

  async #clean(): Promise<void> {
    for (const kind of ["namespace", "crd", "clusterrole", "clusterrolebinding"])
      await this.#kubectl(["delete", kind, "-l", MARK, "--ignore-not-found", "--wait=false"]);
    await waitFor(
      "the end of the test's namespaces",
      async () => {
        // Nothing of the test's needs its grace any more, and a controller may make a pod again as long as it is there itself.
        for (const name of NAMESPACES) await this.#run(["delete", "pods", "--all", "-n", name, "--force", "--grace-period=0", "--wait=false"]);
        return (await this.#kubectl(["get", "namespaces", "-l", MARK, "-o", "name"])) === "" ? true : undefined;
      },
      { every: 1_000, within: 180_000 },
    );
  }

  async #isLoaded(image: string): Promise<boolean> {
    const nodes = (await this.#kubectl(["get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"])).split(" ");
    await this.#apply(namespaceOf("field-nodes"));
    for (const node of nodes) {
      const pod = {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "image", namespace: "field-nodes" },
        spec: { ...onNode(node), containers: [{ name: "image", image, imagePullPolicy: "Never", command: ["/bin/sleep", "1000000"] }] },
      };
      await this.#apply(pod);
      const path = "jsonpath={.status.containerStatuses[0].state.waiting.reason}{.status.phase}";
      const seen = await waitFor(
        `a pod with ${image} on ${node}`,
        async () => {
          const state = await this.#kubectl(["get", "pod", "-n", "field-nodes", "image", "-o", path]);
          return state.includes("ErrImageNeverPull") || state === "Running" ? state : undefined;
        },
        { every: 500 },
      );
      await this.#kubectl(["delete", "pod", "-n", "field-nodes", "image", "--force", "--grace-period=0"]);
      if (seen !== "Running") return false;
    }
    return true;
  }

  async #waitForPod(namespace: string, name: string): Promise<void> {
    await this.#kubectl(["wait", "--for=condition=Ready", "--timeout=60s", "-n", namespace, `pod/${name}`]);
  }

  async #apply(...items: readonly object[]): Promise<void> {
    await this.#kubectl(["apply", "-f", "-"], JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  }

  async #kubectl(words: readonly string[], input = ""): Promise<string> {
    const { exitCode, stdout, stderr } = await this.#run(words, input);
    if (exitCode !== 0) throw new Error(`kubectl ${words.join(" ")}: ${stderr}${stdout}`);
    return stdout;
  }

  async #run(words: readonly string[], input = ""): Promise<InsideResult> {
    return await this.run([findPeer("kube"), "kubectl", ...words], { input });
  }
}

/** The labels of everything that the test makes outside of its namespaces. */
export function markOf(): Readonly<Record<string, string>> {
  return { [MARK]: "yes" };
}

/** A namespace of the test's. */
export function namespaceOf(name: string): Manifest {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels: markOf() } };
}

function onNode(nodeName: string): { readonly nodeName: string; readonly tolerations: readonly object[]; readonly terminationGracePeriodSeconds: number } {
  return { nodeName, tolerations: [{ operator: "Exists" }], terminationGracePeriodSeconds: 0 };
}

/** A pod that sees and signals every process of its node. */
function probeOf(node: string, name: string) {
  const container = {
    name: "probe",
    image: PULUMI_IMAGE,
    imagePullPolicy: "Never",
    command: ["/bin/sleep", "1000000"],
    securityContext: { privileged: true, runAsUser: 0 },
  };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "field-nodes" },
    spec: { ...onNode(node), hostPID: true, containers: [container] },
  };
}
