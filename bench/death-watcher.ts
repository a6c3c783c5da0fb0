import { markOf } from "../test/field/given-site.ts";
import { JANITOR_IMAGE } from "../test/field/images.ts";
import { mountsOf, volumesOf, type Manifest } from "../test/field/shapes.ts";
import type { Lane } from "./death-lane.ts";

const NAME = "watcher";

/** What every watch needs once: its rights. */
export function watcherRights(): readonly Manifest[] {
  const group = "rbac.authorization.k8s.io";
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: NAME, namespace: "field" } },
    {
      apiVersion: `${group}/v1`,
      kind: "ClusterRole",
      metadata: { name: NAME, labels: markOf() },
      rules: [
        { apiGroups: [""], resources: ["pods", "nodes"], verbs: ["get", "list", "watch"] },
        { apiGroups: [""], resources: ["namespaces"], verbs: ["get"] },
        { apiGroups: ["pulumi.com"], resources: ["stacks"], verbs: ["get", "list", "watch"] },
        { apiGroups: ["auto.pulumi.com"], resources: ["workspaces"], verbs: ["get", "list"] },
      ],
    },
    {
      apiVersion: `${group}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: NAME, labels: markOf() },
      roleRef: { apiGroup: group, kind: "ClusterRole", name: NAME },
      subjects: [{ kind: "ServiceAccount", name: NAME, namespace: "field" }],
    },
  ];
}

/** The Deployment that watches one lane, with every duration at its default. */
export function watcherOf({ number, url, field }: Lane): Manifest {
  const labels = { watcher: String(number) };
  const { folder } = field.backends;
  const container = {
    name: "janitor",
    image: JANITOR_IMAGE,
    imagePullPolicy: "Never",
    args: ["watch", "--delete", "--exclusive", "--no-builtin-owners", "--owner", `bench-${number}-*=pulumi`, "--backend", url, "--max-deletions", "1000"],
    env: [
      { name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
      { name: "POD_NAMESPACE", valueFrom: { fieldRef: { fieldPath: "metadata.namespace" } } },
    ],
    securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
    volumeMounts: mountsOf(folder),
  };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: `${NAME}-${number}`, namespace: "field" },
    spec: {
      strategy: { type: "Recreate" },
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: NAME,
          securityContext: { runAsUser: 1_000, runAsGroup: 1_000, seccompProfile: { type: "RuntimeDefault" } },
          containers: [container],
          volumes: volumesOf(folder),
        },
      },
    },
  };
}
