/** The hostnames of the candidate locks: no pod is called so, and the last twenty of all give them to their processes, so that only a whole list tells. */
export const CANDIDATES: readonly string[] = Array.from({ length: 20 }, (_, index) => `iac-runner-${String(index).padStart(5, "0")}`);

/** A pod as a Deployment's are in the field, of some 5 KB of JSON with what the API server keeps of its managers. `of`: how many there are in all. */
export function aPod(index: number, of: number): object {
  const name = `web-${String(index).padStart(6, "0")}-7d4b9c6f5d-x2k9p`;
  const hostname = CANDIDATES[CANDIDATES.length - (of - index)];
  const image = `registry.example/shop/web@sha256:${"0123456789abcdef".repeat(4)}`;
  const env = Array.from({ length: 12 }, (_, at) => ({ name: `SETTING_NUMBER_${at}`, value: `a value of the usual length ${at}` }));
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      generateName: "web-7d4b9c6f5d-",
      namespace: "default",
      labels: { app: "web", "pod-template-hash": "7d4b9c6f5d", "app.kubernetes.io/managed-by": "Helm", team: "shop" },
      annotations: { "prometheus.io/scrape": "true", "prometheus.io/port": "8080", "checksum/config": "0123456789abcdef".repeat(4) },
    },
    spec: {
      ...(hostname === undefined ? {} : { hostname }),
      nodeName: "node-1",
      containers: [
        {
          name: "web",
          image,
          env,
          ports: [{ name: "http", containerPort: 8_080, protocol: "TCP" }],
          resources: { limits: { cpu: "1", memory: "512Mi" }, requests: { cpu: "100m", memory: "256Mi" } },
          livenessProbe: {
            httpGet: { path: "/healthz", port: 8_080, scheme: "HTTP" },
            timeoutSeconds: 1,
            periodSeconds: 10,
            successThreshold: 1,
            failureThreshold: 3,
          },
          readinessProbe: {
            httpGet: { path: "/readyz", port: 8_080, scheme: "HTTP" },
            timeoutSeconds: 1,
            periodSeconds: 10,
            successThreshold: 1,
            failureThreshold: 3,
          },
          volumeMounts: [{ name: "config", readOnly: true, mountPath: "/etc/web" }],
        },
        { name: "proxy", image, env, resources: { limits: { cpu: "500m", memory: "128Mi" }, requests: { cpu: "50m", memory: "64Mi" } } },
      ],
      volumes: [{ name: "config", configMap: { name: "web" } }],
      terminationGracePeriodSeconds: 30,
    },
  };
}

/** The same pod as the API server gives it: with what it and a kubelet add. */
export function aListedPod(index: number, of: number): object {
  const pod = aPod(index, of);
  const fields = Object.fromEntries(Array.from({ length: 24 }, (_, at) => [`f:settingOfTheObject${at}`, { ".": {}, "f:name": {}, "f:value": {} }]));
  const at = "2026-03-01T00:00:00Z";
  const running = (name: string): object => ({
    name,
    state: { running: { startedAt: at } },
    lastState: {},
    ready: true,
    restartCount: 0,
    containerID: `containerd://${"0".repeat(64)}`,
  });
  return {
    ...pod,
    metadata: {
      ...("metadata" in pod && typeof pod.metadata === "object" ? pod.metadata : {}),
      uid: `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`,
      resourceVersion: String(100_000 + index),
      creationTimestamp: at,
      managedFields: [{ manager: "kube-controller-manager", operation: "Update", apiVersion: "v1", time: at, fieldsType: "FieldsV1", fieldsV1: fields }],
    },
    status: {
      phase: "Running",
      conditions: ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"].map((type) => ({
        type,
        status: "True",
        lastProbeTime: null,
        lastTransitionTime: at,
      })),
      podIP: "10.0.0.1",
      containerStatuses: [running("web"), running("proxy")],
      qosClass: "Burstable",
    },
  };
}
