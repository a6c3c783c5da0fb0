import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

import { findPeer } from "../build-peers.ts";
import { startChild, stopChild, waitFor } from "../child.ts";
import { makeCgroups, NODE_PROCESSES, removeCgroups } from "./cgroups.ts";
import { API_PORT, NODE_ADDRESS, writeNodeConfig } from "./config.ts";
import { addBase, writeImage } from "./oci-image.ts";

const PREFIX = "field-node-";
const HERE = resolve("test/e2e/peers/node");

/** What a command inside the node gave. */
export interface InsideResult {
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

export interface InsideOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/**
 * A real Kubernetes node with its control plane, in mount, network, PID, UTS and IPC namespaces of its own: containerd, runc, kubelet. It ends with the
 * process that started it, however that ends; the next start removes the folders that a killed one left.
 */
export class Node {
  readonly folder: string;
  readonly #outer: ChildProcess;
  readonly #relays: ChildProcess[] = [];

  private constructor(folder: string, outer: ChildProcess) {
    this.folder = folder;
    this.#outer = outer;
  }

  /** Starts a node; it is Ready then. */
  static async start(): Promise<Node> {
    if (process.getuid?.() !== 0) throw new Error("the test's own node needs root: it makes namespaces, mounts and cgroups");
    await removeLeftovers();
    const folder = mkdtempSync(join(findDisk(), PREFIX));
    writeFileSync(join(folder, "owner"), describeProcess(process.pid) ?? "");
    writeNodeConfig(folder);
    const pause = join(folder, "pause");
    addBase(pause);
    writeImage(join(folder, "pause.tar"), "localhost/pause:1", pause, { Entrypoint: ["/bin/sleep"], Cmd: ["2147483647"] });
    makeCgroups();
    const namespaces = ["--mount", "--net", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"];
    // The kernel ends the outer process with the test's, and process 1 of the namespaces with the outer one.
    const words = ["--pdeathsig", "KILL", "sh", "-c", 'echo $$ > "$0" && exec "$@"', join(NODE_PROCESSES, "cgroup.procs"), "unshare", ...namespaces];
    const outer = spawn("setpriv", [...words, "bash", join(HERE, "init.sh")], {
      env: { ...process.env, NODE_FOLDER: folder, PATH: programPath() },
      stdio: ["ignore", "ignore", "inherit"],
      detached: true,
    });
    const node = new Node(folder, outer);
    try {
      await waitFor("the node", () => node.#isReady(), { every: 200 });
    } catch (error) {
      await node.stop();
      throw error;
    }
    return node;
  }

  get kubeconfig(): string {
    return join(this.folder, "admin.kubeconfig");
  }

  /** Runs a command inside the node, as on a machine of its own. */
  async run(words: readonly string[], { env = {}, input = "" }: InsideOptions = {}): Promise<InsideResult> {
    return await collectResult(
      spawn("nsenter", this.#enter(words), { env: { PATH: programPath(), HOME: this.folder, KUBECONFIG: this.kubeconfig, ...env } }),
      input,
    );
  }

  /** Takes an image into the node: pods name it with `imagePullPolicy: Never`. */
  async importImage(file: string): Promise<void> {
    const { exitCode, stderr } = await this.run(["ctr", "-n", "k8s.io", "images", "import", "--local", file]);
    if (exitCode !== 0) throw new Error(`ctr could not import ${file}: ${stderr}`);
  }

  /** Cuts the node off from its control plane: the kubelet stands still and its connections are gone; its containers run on. */
  async cutOff(): Promise<void> {
    await this.#signalKubelet("STOP");
    await this.run(["ss", "--kill", "--tcp", "dst", NODE_ADDRESS, "dport", "=", String(API_PORT)]);
  }

  /** Joins the node to its control plane again. */
  async joinAgain(): Promise<void> {
    await this.#signalKubelet("CONT");
  }

  /** Makes ports of the machine's loopback reachable at the node's address; for pods too. Each port is passed on through a socket file. */
  async relay(ports: ReadonlyMap<number, string>): Promise<void> {
    const pairs = [...ports].flatMap(([port, file]) => [String(port), file]);
    const words = this.#enter([process.execPath, join(HERE, "relay.ts"), NODE_ADDRESS, ...pairs]);
    const log = join(this.folder, "log/relay.log");
    this.#relays.push(startChild("nsenter", words, log));
    for (const port of ports.keys())
      await waitFor(`port ${port} in the node`, () => Promise.resolve(readFileSync(log, "utf8").includes(`${port} listens`) || undefined));
  }

  /** Ends everything that runs in the node, and removes all that was made for it. */
  async stop(): Promise<void> {
    for (const relay of this.#relays) await stopChild(relay);
    await removeCgroups();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #signalKubelet(signal: "STOP" | "CONT"): Promise<void> {
    await this.run(["kill", `-${signal}`, readFileSync(join(this.folder, "kubelet.pid"), "utf8").trim()]);
  }

  /** Process 1 of the node's namespaces, as the machine numbers it. */
  get firstProcess(): number {
    const [init] = readChildren(this.#outer.pid ?? 0);
    if (init === undefined) throw new Error(`the node has ended: see ${join(this.folder, "log")}`);
    return init;
  }

  #enter(words: readonly string[]): readonly string[] {
    return ["-t", String(this.firstProcess), "-m", "-n", "-p", "-u", "-i", `--wdns=${process.cwd()}`, ...words];
  }

  async #isReady(): Promise<true | undefined> {
    if (this.#outer.exitCode !== null || this.#outer.signalCode !== null) throw new Error("the node has ended while it was starting");
    if (readChildren(this.#outer.pid ?? 0).length === 0 || !existsSync(join(this.folder, "kubelet.pid"))) return undefined;
    const ready = await this.run(["kube", "kubectl", "get", "node", "n1", "-o", 'jsonpath={.status.conditions[?(@.type=="Ready")].status}']);
    if (ready.stdout !== "True") return undefined;
    const account = await this.run(["kube", "kubectl", "get", "serviceaccount", "default"]);
    return account.exitCode === 0 ? true : undefined;
  }
}

/** Gives a child its input, and waits for its end. */
export async function collectResult(child: ChildProcessWithoutNullStreams, input: string): Promise<InsideResult> {
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.stdin.on("error", () => undefined).end(input);
  return await new Promise((done, fail) => {
    child.once("error", fail);
    child.once("close", (code) => done({ exitCode: code ?? undefined, stdout, stderr }));
  });
}

/** Removes what an earlier node left whose process was killed. Two nodes at a time would share their cgroups. */
async function removeLeftovers(): Promise<void> {
  for (const base of DISKS) {
    const folders = existsSync(base) ? readdirSync(base).filter((name) => name.startsWith(PREFIX)) : [];
    for (const folder of folders.map((name) => join(base, name))) {
      const owner = existsSync(join(folder, "owner")) ? readFileSync(join(folder, "owner"), "utf8") : "";
      if (owner !== "" && describeProcess(Number(owner.split(" ")[0])) === owner) throw new Error(`another node runs in ${folder}: one at a time`);
      await removeCgroups();
      rmSync(folder, { recursive: true, force: true });
    }
  }
  await removeCgroups();
}

/** A process by its number and the time of its start, so that another one of the same number is not taken for it. */
function describeProcess(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return `${pid} ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? ""}`;
  } catch {
    return undefined;
  }
}

function readChildren(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

const DISKS = [tmpdir(), resolve(".cache")];
const OVERLAY = 0x79_4c_76_30;
const TMPFS = 0x01_02_19_94;

/** Where containerd can keep its layers: not on an overlay and not in memory, and not below the folders that the node lays its own over. */
function findDisk(): string {
  const found = DISKS.find(
    (folder) => existsSync(folder) && ![OVERLAY, TMPFS].includes(statfsSync(folder).type) && !/^\/(var|etc)\//.test(`${resolve(folder)}/`),
  );
  if (found === undefined) throw new Error(`none of ${DISKS.join(", ")} lies on a disk: set TMPDIR to a folder that does`);
  return found;
}

function programPath(): string {
  const programs = ["kube", "containerd", "containerd-shim-runc-v2", "ctr", "runc"].map((name) => dirname(findPeer(name)));
  return [...programs, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"].join(":");
}
