/** Values that a person might give the chart, by what they are for. */
export const VALUES = {
  least: { backends: [{ url: "azblob://state" }] },
  aks: {
    delete: true,
    backends: [{ url: "azblob://state", exclusive: true, env: { AZURE_STORAGE_ACCOUNT: "acme" } }],
    serviceAccount: { annotations: { "azure.workload.identity/client-id": "11111111-2222-3333-4444-555555555555" } },
    podLabels: { "azure.workload.identity/use": "true" },
    schedule: "0 * * * *",
    timeZone: "Europe/Berlin",
    cronjob: { ttlSecondsAfterFinished: 3_600 },
  },
  eks: {
    mode: "deployment",
    backends: [{ url: "s3://state?region=eu-central-1" }],
    serviceAccount: { annotations: { "eks.amazonaws.com/role-arn": "arn:aws:iam::111122223333:role/janitor" } },
  },
  gke: {
    backends: [{ url: "gs://state" }],
    serviceAccount: { annotations: { "iam.gke.io/gcp-service-account": "janitor@acme.iam.gserviceaccount.com" } },
  },
  secrets: {
    backends: [
      { url: "s3://one", secret: { name: "one", keys: { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "key" } } },
      {
        url: "postgres://janitor@db/state",
        env: { PGSSLMODE: "require", PGUSER: { variable: "DB_USER" } },
        secret: { name: "two", keys: { PGPASSWORD: "password" } },
      },
    ],
    extraEnv: [{ name: "NODE_EXTRA_CA_CERTS", value: "/ca/ca.crt" }],
    extraEnvFrom: [{ secretRef: { name: "more" } }],
    extraVolumes: [{ name: "ca", configMap: { name: "ca" } }],
    extraVolumeMounts: [{ name: "ca", mountPath: "/ca", readOnly: true }],
  },
  discovery: {
    delete: true,
    exclusiveDiscovered: true,
    settings: { discover: true, discoverAllow: ["s3://acme-*/**"], owners: ["iac-runner-?????=pulumi"], minAge: "5m", unreachableNodes: ["ignore:node-7"] },
  },
  namespaced: { mode: "deployment", backends: [{ url: "gs://state" }], namespaces: ["iac", "builds"] },
  probe: { backends: [{ url: "gs://state" }], probe: { enabled: true, namespaces: ["iac", "builds"] } },
  requeue: {
    delete: true,
    backends: [{ url: "gs://state", exclusive: true }],
    settings: { checkPending: true },
    requeue: { enabled: true },
    stackEvents: { enabled: true },
  },
  monitored: {
    mode: "deployment",
    backends: [{ url: "gs://state" }],
    deployment: { interval: "2m", port: 9_000 },
    monitoring: {
      podMonitor: { enabled: true, labels: { release: "prometheus" } },
      serviceMonitor: { enabled: true, interval: "30s" },
      rules: { enabled: true, alertLabels: { team: "platform" } },
      dashboard: { enabled: true },
    },
  },
  hardened: {
    backends: [{ url: "gs://state" }],
    image: { registry: "registry.example/", repository: "ops/janitor", digest: `sha256:${"0".repeat(64)}`, pullSecrets: [{ name: "pull" }] },
    networkPolicy: { enabled: true },
    istio: { optOut: true },
    podSecurityContext: { fsGroup: 2_000 },
    priorityClassName: "low",
    nodeSelector: { pool: "ops" },
    tolerations: [{ operator: "Exists" }],
    affinity: { nodeAffinity: {} },
    topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" }],
    resources: { limits: { memory: "256Mi" } },
  },
} as const;

export type ValuesName = keyof typeof VALUES;
