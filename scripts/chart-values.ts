import * as z from "zod";

import { settingsSchema } from "../src/config.ts";

/** Settings that the chart has values of its own for, that a file must not hold, or that make no sense in a pod that nobody attends. */
const NOT_OF_THE_CHART: ReadonlySet<string> = new Set([
  "backends",
  "delete",
  "exclusive",
  "force",
  "interval",
  "listen",
  "locks",
  "namespaces",
  "ownPod",
  "podsFrom",
  "podsTakenAt",
  "probeProcesses",
  "requeueStacks",
  "stackEvents",
  "yes",
]);

const count = z.int().nonnegative();
const optionalCount = z.union([z.int().nonnegative(), z.null()]);
const duration = z.string().regex(/^(\d+(ms|s|m|h|d))+$/);
const namespaces = z.array(z.string().regex(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/));
const texts = z.record(z.string(), z.string());
/** What Kubernetes knows better: its API server checks these. */
const kubernetesObject = z.looseObject({});
const kubernetesObjects = z.array(kubernetesObject);

const backend = settingsSchema.shape.backends.unwrap().element.options[1].extend({
  // Mounted, so that its keys are files of `env`.
  secret: z
    .strictObject({
      name: z.string().min(1),
      /** The key of the Secret that holds a variable. */
      keys: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string().min(1)),
    })
    .optional(),
});

const monitor = z.strictObject({ enabled: z.boolean(), interval: duration, labels: texts }).partial();

const values = z
  .strictObject({
    mode: z.enum(["cronjob", "deployment"]),
    delete: z.boolean(),
    backends: z.array(backend),
    exclusiveDiscovered: z.boolean(),
    settings: kubernetesObject,
    namespaces,
    schedule: z.string().min(1),
    timeZone: z.string(),
    cronjob: z
      .strictObject({
        suspend: z.boolean(),
        startingDeadlineSeconds: count,
        activeDeadlineSeconds: z.int().positive(),
        successfulJobsHistoryLimit: count,
        failedJobsHistoryLimit: count,
        ttlSecondsAfterFinished: optionalCount,
      })
      .partial(),
    deployment: z.strictObject({ interval: duration, port: z.int().min(1).max(65_535) }).partial(),
    image: z
      .strictObject({
        registry: z.string(),
        repository: z.string().min(1),
        tag: z.string(),
        digest: z.string().regex(/^(sha256:[0-9a-f]{64})?$/),
        pullPolicy: z.enum(["Always", "IfNotPresent", "Never"]),
        pullSecrets: z.array(z.strictObject({ name: z.string().min(1) })),
      })
      .partial(),
    nameOverride: z.string(),
    fullnameOverride: z.string(),
    serviceAccount: z.strictObject({ create: z.boolean(), name: z.string(), annotations: texts }).partial(),
    rbac: z.strictObject({ create: z.boolean() }).partial(),
    podLabels: texts,
    podAnnotations: texts,
    extraEnv: kubernetesObjects,
    extraEnvFrom: kubernetesObjects,
    extraVolumes: kubernetesObjects,
    extraVolumeMounts: kubernetesObjects,
    resources: kubernetesObject,
    podSecurityContext: kubernetesObject,
    nodeSelector: texts,
    tolerations: kubernetesObjects,
    affinity: kubernetesObject,
    topologySpreadConstraints: kubernetesObjects,
    priorityClassName: z.string(),
    istio: z.strictObject({ optOut: z.boolean() }).partial(),
    networkPolicy: z.strictObject({ enabled: z.boolean(), egress: kubernetesObjects }).partial(),
    monitoring: z
      .strictObject({
        podMonitor: monitor,
        serviceMonitor: monitor,
        rules: z
          .strictObject({
            enabled: z.boolean(),
            labels: texts,
            alertLabels: texts,
            staleFor: duration,
            heldLongerThanSeconds: count,
            lastSuccessOlderThanSeconds: count,
          })
          .partial(),
        dashboard: z.strictObject({ enabled: z.boolean(), labels: texts, annotations: texts }).partial(),
      })
      .partial(),
    probe: z.strictObject({ enabled: z.boolean(), namespaces, admissionPolicy: z.boolean() }).partial(),
    requeue: z.strictObject({ enabled: z.boolean(), admissionPolicy: z.boolean() }).partial(),
    stackEvents: z.strictObject({ enabled: z.boolean() }).partial(),
    /** Helm gives it to a chart that is a part of another one. */
    global: kubernetesObject,
  })
  .partial();

/** The schema of the chart's values: its own ones, and in `settings` those of the configuration file that a chart may set. */
export function composeValuesSchema(): object {
  const { properties, ...schema } = z.toJSONSchema(values, { io: "input" });
  return { ...schema, properties: { ...properties, settings: composeSettings() } };
}

function composeSettings(): object {
  const { properties = {} } = z.toJSONSchema(settingsSchema, { io: "input" });
  const kept = Object.entries(properties).filter(([name]) => !NOT_OF_THE_CHART.has(name));
  return {
    type: "object",
    properties: {
      ...Object.fromEntries(kept),
      // To vouch for all nodes is a flag only, and the file system is read-only.
      unreachableNodes: { type: "array", items: { type: "string", pattern: "^ignore:.+$" } },
      outputs: { type: "array", items: { type: "string", enum: ["table", "json", "markdown"] } },
    },
    additionalProperties: false,
  };
}
