import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

const CACHE = resolve(".cache/peers");
const HERE = resolve("test/e2e/peers");
const STRIP = "-s -w";

/** A program that the end-to-end tests run, built from Go modules. */
interface Peer {
  readonly name: string;
  /** The folder with its go.mod and go.sum; absent for a program that `go install` builds by its version. */
  readonly folder?: string;
  readonly target: string;
  readonly flags: string;
  readonly tags?: string;
}

const CONTAINERD = "github.com/containerd/containerd/v2";
const CONTAINERD_VERSION = "v2.4.2";
const CONTAINERD_FLAGS = `${STRIP} -X ${CONTAINERD}/version.Version=${CONTAINERD_VERSION}`;

const PEERS: readonly Peer[] = [
  {
    name: "kube",
    folder: join(HERE, "kube"),
    target: ".",
    flags: `${STRIP} -X k8s.io/component-base/version.gitVersion=v1.37.2 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37`,
  },
  {
    name: "pulumi",
    folder: join(HERE, "pulumi"),
    target: "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
    flags: `${STRIP} -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v3.276.0`,
  },
  { name: "versitygw", target: "github.com/versity/versitygw/cmd/versitygw@v1.8.0", flags: STRIP },
  { name: "fake-gcs-server", target: "github.com/fsouza/fake-gcs-server@v1.56.1", flags: STRIP },
  { name: "pulumi-language-yaml", target: "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml@v1.25.0", flags: STRIP },
  { name: "helm", target: "helm.sh/helm/v4/cmd/helm@v4.3.2", flags: STRIP },
  { name: "promtool", target: "github.com/prometheus/prometheus/cmd/promtool@v0.316.0", flags: STRIP },
];

/** What a node with real pods needs beside these. */
const NODE_PEERS: readonly Peer[] = [
  ...["containerd", "containerd-shim-runc-v2", "ctr"].map((name) => ({
    name,
    target: `${CONTAINERD}/cmd/${name}@${CONTAINERD_VERSION}`,
    flags: CONTAINERD_FLAGS,
  })),
  { name: "runc", target: "github.com/opencontainers/runc@v1.4.4", flags: STRIP, tags: "seccomp" },
];

/** The path of a built peer. Throws when it is not built: the global set-up of the tests builds all of them. */
export function findPeer(name: string): string {
  const peer = [...PEERS, ...NODE_PEERS].find((candidate) => candidate.name === name);
  const path = peer === undefined ? undefined : join(folderOf(peer), name);
  if (path === undefined || !existsSync(path)) throw new Error(`the peer ${name} is not built`);
  return path;
}

/** Builds what is missing into .cache/peers: minutes the first time, nothing after. Without Go the tests fail; they are never left out. */
export function buildPeers(): void {
  buildMissing(PEERS);
}

/** Builds what a node needs, and what runs in its pods. */
export function buildNodePeers(): void {
  buildMissing([...PEERS, ...NODE_PEERS]);
}

function buildMissing(peers: readonly Peer[]): void {
  if (spawnSync("go", ["version"]).status !== 0)
    throw new Error("the end-to-end tests need Go (https://go.dev/dl/): the real Kubernetes and the real Pulumi CLI are built with it");
  for (const peer of peers) {
    if (existsSync(join(folderOf(peer), peer.name))) continue;
    const began = Date.now();
    process.stdout.write(`building ${peer.name} …\n`);
    build(peer);
    process.stdout.write(`built ${peer.name} in ${Math.round((Date.now() - began) / 1_000)} s\n`);
  }
}

function build(peer: Peer): void {
  const { name, folder, target, flags, tags } = peer;
  mkdirSync(CACHE, { recursive: true });
  const draft = mkdtempSync(join(CACHE, "draft-"));
  const common = ["-trimpath", "-buildvcs=false", "-ldflags", flags, ...(tags === undefined ? [] : ["-tags", tags])];
  const words = folder === undefined ? ["install", ...common, target] : ["build", ...common, "-o", join(draft, name), target];
  const { status } = spawnSync("go", words, {
    cwd: folder ?? draft,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, GOBIN: draft, GOFLAGS: "" },
  });
  if (status !== 0) {
    rmSync(draft, { recursive: true, force: true });
    throw new Error(`go could not build ${name}`);
  }
  renameSync(draft, folderOf(peer));
}

/** The folder of one build of a peer: everything that it is made from is in its name. */
function folderOf({ name, folder, target, flags, tags = "" }: Peer): string {
  const hash = createHash("sha256").update(target).update(flags).update(tags);
  const sources = folder === undefined ? [] : readdirSync(folder).toSorted();
  for (const file of sources) hash.update(file).update(readFileSync(join(folder ?? "", file)));
  return join(CACHE, `${name}-${hash.digest("hex").slice(0, 12)}`);
}
