import { waitFor } from "../e2e/peers/child.ts";
import type { Field } from "./field.ts";
import { markOf } from "./given-site.ts";
import { JANITOR_IMAGE } from "./images.ts";
import { mountsOf, volumesOf } from "./shapes.ts";

const NAME = "janitor";
const ROLE = "field-janitor";
let runs = 0;

/** Runs the janitor once as a pod of its own: service account, in-cluster configuration, no root, a root file system that cannot be written. */
export async function runJanitorPod(field: Field, words: readonly string[]): Promise<string> {
  runs += 1;
  const name = `${NAME}-${runs}`;
  const { folder, pods } = field.backends;
  const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: NAME, namespace: "field" } };
  const role = {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: ROLE, labels: markOf() },
    rules: [
      { apiGroups: [""], resources: ["pods", "nodes"], verbs: ["get", "list"] },
      { apiGroups: [""], resources: ["namespaces"], verbs: ["get"] },
      { apiGroups: [""], resources: ["pods/exec"], verbs: ["get", "create"] },
      { apiGroups: ["pulumi.com"], resources: ["stacks"], verbs: ["get", "list"] },
      { apiGroups: ["auto.pulumi.com"], resources: ["workspaces"], verbs: ["get", "list"] },
    ],
  };
  const binding = {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: ROLE, labels: markOf() },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: ROLE },
    subjects: [{ kind: "ServiceAccount", name: NAME, namespace: "field" }],
  };
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "field" },
    spec: {
      serviceAccountName: NAME,
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 1,
      // The user that owns the shared folder, as in any cluster where pods share one; the image's own has no root either.
      securityContext: { runAsNonRoot: true, runAsUser: 1_000, runAsGroup: 1_000, seccompProfile: { type: "RuntimeDefault" } },
      containers: [
        {
          name: NAME,
          image: JANITOR_IMAGE,
          imagePullPolicy: "Never",
          args: words,
          env: [
            ...Object.entries(pods.env).map(([name, value]) => ({ name, value })),
            { name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
            { name: "POD_NAMESPACE", valueFrom: { fieldRef: { fieldPath: "metadata.namespace" } } },
          ],
          securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
          volumeMounts: mountsOf(folder),
        },
      ],
      volumes: volumesOf(folder),
    },
  };
  await field.apply(account, role, binding, pod);
  await waitFor(
    `the end of ${name}`,
    async () => {
      const phase = await field.kubectl("get", "pod", "-n", "field", name, "-o", "jsonpath={.status.phase}");
      return phase === "Succeeded" || phase === "Failed" ? true : undefined;
    },
    { every: 300 },
  );
  const output = await field.kubectl("logs", "-n", "field", name);
  const start = output.indexOf("{\n");
  if (start === -1) throw new Error(`the janitor's pod said: ${output}`);
  return output.slice(start);
}
