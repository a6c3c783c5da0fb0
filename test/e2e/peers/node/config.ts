import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { findPeer } from "../build-peers.ts";

/** The node's address on the bridge of its pods: they reach it there, and so does the API server. */
export const NODE_ADDRESS = "10.88.0.1";
/** Where the API server listens; init.sh starts it there. */
export const API_PORT = 16_443;
/** The folder of every cgroup hierarchy that the node and its pods live in. */
export const NODE_CGROUP = "pulumi-lock-janitor-field";

/** Writes what the components read at their start. */
export function writeNodeConfig(folder: string): void {
  const write = (name: string, content: string | object): void =>
    writeFileSync(join(folder, name), typeof content === "string" ? content : `${JSON.stringify(content, undefined, 2)}\n`);
  for (const name of ["log", "certs"]) mkdirSync(join(folder, name));
  const keys = generateKeyPairSync("rsa", {
    modulusLength: 2_048,
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  write("sa.key", keys.privateKey);
  write("sa.pub", keys.publicKey);
  write("tokens.csv", "token-of-admin,admin,admin,system:masters\ntoken-of-node,system:node:n1,n1,system:nodes\n");
  write("admin.kubeconfig", kubeconfig(folder, "token-of-admin"));
  write("node.kubeconfig", kubeconfig(folder, "token-of-node"));
  write("network.conflist", NETWORK);
  write("kubelet.yaml", KUBELET);
  write("proxy.yaml", {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "nftables",
    clusterCIDR: "10.88.0.0/16",
    clientConnection: { kubeconfig: join(folder, "admin.kubeconfig") },
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
    metricsBindAddress: "127.0.0.1:20249",
  });
  write("containerd.toml", containerdConfig());
}

function kubeconfig(folder: string, token: string): object {
  return {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "field",
    clusters: [{ name: "field", cluster: { server: `https://${NODE_ADDRESS}:${API_PORT}`, "certificate-authority": join(folder, "certs/apiserver.crt") } }],
    users: [{ name: "user", user: { token } }],
    contexts: [{ name: "field", context: { cluster: "field", user: "user" } }],
  };
}

const NETWORK = {
  cniVersion: "1.0.0",
  name: "pods",
  plugins: [
    {
      type: "bridge",
      bridge: "cni0",
      isGateway: true,
      ipMasq: false,
      hairpinMode: true,
      ipam: { type: "host-local", ranges: [[{ subnet: "10.88.0.0/16" }]], routes: [{ dst: "0.0.0.0/0" }] },
    },
  ],
};

const KUBELET = {
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  failCgroupV1: false,
  cgroupDriver: "cgroupfs",
  cgroupRoot: `/${NODE_CGROUP}`,
  enforceNodeAllocatable: [],
  containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock",
  authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
  authorization: { mode: "AlwaysAllow" },
  failSwapOn: false,
  oomScoreAdj: 0,
  makeIPTablesUtilChains: false,
  resolvConf: "",
  clusterDomain: "cluster.local",
  imageGCHighThresholdPercent: 100,
  // The machine's own shortage of anything is not what is tested.
  evictionHard: { "memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%", "imagefs.inodesFree": "0%" },
  nodeStatusUpdateFrequency: "4s",
  maxPods: 250,
  crashLoopBackOff: { maxContainerRestartPeriod: "1s" },
};

function containerdConfig(): string {
  return `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs", "io.containerd.nri.v1.nri", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "localhost/pause:1"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "/etc/cni/net.d"
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = "${findPeer("runc")}"
        SystemdCgroup = false
`;
}
