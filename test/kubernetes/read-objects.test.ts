import { describe, expect, it } from "vitest";

import { parseTimestamp } from "../../src/core/time.ts";
import { readNode, readPod, readStack } from "../../src/kubernetes/read-objects.ts";

const CREATED = "2026-03-01T00:00:00Z";
const created = parseTimestamp(CREATED);
const STARTED = "2026-03-01T00:00:10Z";
const started = parseTimestamp(STARTED);
const metadata = { name: "app-workspace-0", namespace: "iac", uid: "u1", creationTimestamp: CREATED };
const readSpec = (spec: object): ReturnType<typeof readPod> => readPod({ metadata, spec });
const readStatus = (status: object, spec: object = {}): ReturnType<typeof readPod> => readPod({ metadata, spec: { nodeName: "node-1", ...spec }, status });

describe("a pod from the API's JSON", () => {
  it("is reduced to what can prove something", () => {
    expect(
      readPod({
        apiVersion: "v1",
        kind: "Pod",
        metadata: {
          ...metadata,
          deletionTimestamp: "2026-03-10T12:29:00Z",
          labels: { app: "x" },
          managedFields: [{ manager: "kubelet" }],
          ownerReferences: [],
        },
        spec: {
          nodeName: "node-1",
          hostname: "iac-a",
          hostnameOverride: "ci7.corp.example",
          subdomain: "runners",
          setHostnameAsFQDN: true,
          hostNetwork: true,
          runtimeClassName: "kata",
          containers: [{ name: "pulumi", image: "pulumi/pulumi" }],
          futureField: { deep: [1] },
        },
        status: {
          phase: "Running",
          conditions: [{ type: "DisruptionTarget", status: "True", reason: "DeletionByPodGC", message: "x" }],
          containerStatuses: [
            {
              name: "pulumi",
              state: { running: { startedAt: STARTED } },
              lastState: { terminated: { exitCode: 137, reason: "OOMKilled", startedAt: CREATED, finishedAt: STARTED } },
              restartCount: 2,
              containerID: "containerd://c1",
            },
          ],
        },
      }),
    ).toEqual({
      namespace: "iac",
      name: "app-workspace-0",
      uid: "u1",
      createdAt: created,
      deletionAt: parseTimestamp("2026-03-10T12:29:00Z"),
      phase: "Running",
      nodeName: "node-1",
      hostNetwork: true,
      hostname: "iac-a",
      hostnameOverride: "ci7.corp.example",
      subdomain: "runners",
      setHostnameAsFqdn: true,
      runtimeClassName: "kata",
      disruption: "DeletionByPodGC",
      containers: [
        {
          name: "pulumi",
          kind: "main",
          state: { kind: "running", startedAt: started },
          last: { startedAt: created, finishedAt: started },
          restartCount: 2,
          containerId: "containerd://c1",
        },
      ],
    });
  });

  it("may say next to nothing, as a pod that was made a moment ago", () => {
    const bare = {
      namespace: "iac",
      name: "app-workspace-0",
      uid: "u1",
      createdAt: created,
      phase: "Unknown",
      hostNetwork: false,
      setHostnameAsFqdn: false,
      containers: [],
    };
    expect(readSpec({})).toEqual(bare);
    expect(readPod({ metadata, spec: { nodeName: "", containers: null, hostname: null }, status: { conditions: null, containerStatuses: null } })).toEqual(
      bare,
    );
  });

  it.each([
    ["running", { running: { startedAt: STARTED } }, { kind: "running", startedAt: started }],
    ["running, since when is not told", { running: {} }, { kind: "running" }],
    ["running, told as null", { running: { startedAt: null } }, { kind: "running" }],
    ["waiting", { waiting: { reason: "CrashLoopBackOff", message: "back-off" } }, { kind: "waiting", reason: "CrashLoopBackOff" }],
    ["waiting without a reason", { waiting: {} }, { kind: "waiting", reason: "" }],
    [
      "terminated",
      { terminated: { exitCode: 0, startedAt: CREATED, finishedAt: STARTED } },
      { kind: "terminated", run: { startedAt: created, finishedAt: started } },
    ],
    [
      "terminated, lost with its node: no times",
      { terminated: { exitCode: 137, reason: "ContainerStatusUnknown", startedAt: null, finishedAt: null } },
      { kind: "terminated", run: {} },
    ],
    ["nothing", {}, { kind: "unreported" }],
    ["null", null, { kind: "unreported" }],
    [
      "two at once: that it runs is believed",
      { waiting: { reason: "x" }, terminated: {}, running: { startedAt: STARTED } },
      { kind: "running", startedAt: started },
    ],
  ])("a container's state: %s", (_, state, expected) => {
    expect(readStatus({ containerStatuses: [{ name: "pulumi", state }] }).containers).toMatchObject([{ state: expected }]);
  });

  it("C06 an evicted pod has no container status, yet its containers are those of its spec", () => {
    expect(readStatus({ phase: "Failed", reason: "Evicted", containerStatuses: [] }, { containers: [{ name: "runner" }] })).toMatchObject({
      phase: "Failed",
      containers: [{ name: "runner", kind: "main", state: { kind: "unreported" } }],
    });
  });

  it("C07 native sidecars are among the init containers, and debug containers in a list of their own", () => {
    const { containers } = readStatus(
      {
        containerStatuses: [{ name: "pulumi", state: { running: {} } }],
        initContainerStatuses: [
          { name: "fetch", state: { terminated: {} } },
          { name: "mesh", state: { running: {} } },
        ],
        ephemeralContainerStatuses: [{ name: "debug", state: { running: {} } }],
      },
      {
        containers: [{ name: "pulumi" }],
        initContainers: [{ name: "fetch" }, { name: "mesh", restartPolicy: "Always" }],
        ephemeralContainers: [{ name: "debug" }],
      },
    );
    expect(containers.map(({ name, kind, state }) => [name, kind, state.kind])).toEqual([
      ["pulumi", "main", "running"],
      ["fetch", "init", "terminated"],
      ["mesh", "sidecar", "running"],
      ["debug", "ephemeral", "running"],
    ]);
  });

  it.each<[string, object, object, boolean]>([
    ["its pod never restarts one", { restartPolicy: "Never" }, {}, true],
    ["its pod restarts one that fails", { restartPolicy: "OnFailure" }, {}, false],
    ["nothing is said", {}, {}, false],
    ["it has a policy of its own", { restartPolicy: "Never" }, { restartPolicy: "Always" }, false],
    ["it has rules for some exit codes", { restartPolicy: "Never" }, { restartPolicyRules: [{ action: "Restart" }] }, false],
  ])("whether a container has ended for good: %s", (_, spec, container, final) => {
    const read = (state: object): boolean =>
      readPod({
        metadata: { name: "iac-apply-29x4d", namespace: "ci", uid: "u", creationTimestamp: "2026-03-10T10:57:00Z" },
        spec: { ...spec, containers: [{ name: "apply", ...container }] },
        status: { phase: "Running", containerStatuses: [{ name: "apply", state }] },
      }).containers[0]?.final === true;
    expect(read({ terminated: { exitCode: 137 } })).toBe(final);
    expect([read({ waiting: {} }), read({ running: {} })]).toEqual([false, false]);
  });

  it("a debug container that was just added is there before its status is", () => {
    const { containers } = readStatus(
      { containerStatuses: [{ name: "pulumi", state: { running: {} } }] },
      { containers: [{ name: "pulumi" }], ephemeralContainers: [{ name: "debug" }] },
    );
    expect(containers).toMatchObject([{ name: "pulumi" }, { name: "debug", kind: "ephemeral", state: { kind: "unreported" } }]);
  });

  it("a container that only the status knows is not lost", () => {
    expect(
      readStatus({ containerStatuses: [{ name: "late", state: { running: { startedAt: STARTED } } }] }, { containers: [{ name: "pulumi" }] }).containers,
    ).toMatchObject([
      { name: "pulumi", state: { kind: "unreported" } },
      { name: "late", state: { kind: "running" } },
    ]);
  });

  it.each([
    [[{ type: "DisruptionTarget", status: "False", reason: "DeletionByPodGC" }], undefined],
    [[{ type: "Ready", status: "True", reason: "DeletionByPodGC" }], undefined],
    [
      [
        { type: "Ready", status: "False" },
        { type: "DisruptionTarget", status: "True", reason: "TerminationByKubelet" },
      ],
      "TerminationByKubelet",
    ],
  ])("who ended it, from %j: %s", (conditions, disruption) => {
    expect(readStatus({ conditions }).disruption).toBe(disruption);
  });

  it.each([
    ["nothing", undefined],
    ["null", null],
    ["no pod", { kind: "Status", status: "Failure" }],
    ["a pod without a name", { metadata: { creationTimestamp: CREATED }, spec: {} }],
    ["a pod without a creation time", { metadata: { name: "x" }, spec: {} }],
    ["a creation time that is none", { metadata: { ...metadata, creationTimestamp: "yesterday" }, spec: {} }],
    ["metadata only", { metadata }],
    [
      "a start that is no time: it is not read as none",
      { metadata, spec: {}, status: { containerStatuses: [{ name: "a", state: { running: { startedAt: "soon" } } }] } },
    ],
    ["a status of a container without its name", { metadata, spec: {}, status: { containerStatuses: [{ state: {} }] } }],
  ])("is refused, so that its list is not whole: %s", (_, value) => {
    expect(() => readPod(value)).toThrow(Error);
  });
});

describe("a node from the API's JSON", () => {
  const node = (status: object, more: object = {}): ReturnType<typeof readNode> =>
    readNode({ metadata: { name: "node-1", creationTimestamp: CREATED }, ...more, status });
  const ready = (status: string): object => ({
    conditions: [
      { type: "MemoryPressure", status: "False" },
      { type: "Ready", status, lastTransitionTime: STARTED },
    ],
  });

  it.each([
    ["True", "True"],
    ["False", "False"],
    ["Unknown", "Unknown"],
    ["", "Unknown"],
    ["true", "Unknown"],
  ])("Ready %j is %s", (status, expected) => {
    expect(node(ready(status))).toEqual({
      name: "node-1",
      createdAt: created,
      hostnames: ["node-1"],
      ready: expected,
      readySince: started,
      outOfService: false,
    });
  });

  it.each([
    ["no condition", {}],
    ["null", { conditions: null }],
    ["other conditions", { conditions: [{ type: "DiskPressure", status: "True" }] }],
  ])("that says nothing of Ready is not Ready: %s", (_, status) => {
    expect(node(status)).toMatchObject({ ready: "Unknown" });
    expect(node(status)).not.toHaveProperty("readySince");
  });

  it("has all the names that a process on it may have, each once", () => {
    const status = {
      addresses: [
        { type: "InternalIP", address: "10.0.0.7" },
        { type: "Hostname", address: "node-1" },
        { type: "InternalDNS", address: "ip-10-0-0-7.internal" },
      ],
    };
    expect(
      readNode({ metadata: { name: "node-1", creationTimestamp: CREATED, labels: { "kubernetes.io/hostname": "box", other: "x" } }, status }).hostnames,
    ).toEqual(["node-1", "box", "10.0.0.7", "ip-10-0-0-7.internal"]);
  });

  it.each([
    [[{ key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoExecute" }], true],
    [[{ key: "node.kubernetes.io/unreachable", effect: "NoExecute" }], false],
    [[{ key: "node.kubernetes.io/unschedulable" }], false],
    [null, false],
  ])("with the taints %j is off by a person's word: %s", (taints, off) => {
    expect(node({}, { spec: { taints } }).outOfService).toBe(off);
  });

  it.each([undefined, null, {}, { metadata: { name: "n" } }, { metadata: { name: "n", creationTimestamp: "x" } }])("%j is refused", (value) => {
    expect(() => readNode(value)).toThrow(Error);
  });
});

describe("a Stack or Workspace from the API's JSON", () => {
  it.each([
    [
      "a Stack",
      { kind: "Stack", spec: { stack: "organization/shop/prod", backend: "azblob://state" } },
      { kind: "Stack", stacks: ["organization/shop/prod"], backend: "azblob://state" },
    ],
    ["an item of a list, without a kind", { spec: { stack: "dev" } }, { kind: "Stack", stacks: ["dev"] }],
    ["a Workspace", { kind: "Workspace", spec: { stacks: [{ name: "dev", create: true }, { name: "prod" }] } }, { kind: "Workspace", stacks: ["dev", "prod"] }],
    ["one without a stack of its own: it is in Pulumi.yaml", { kind: "Stack", spec: { projectRepo: "x" } }, { kind: "Stack", stacks: [] }],
    ["an empty backend is none", { kind: "Stack", spec: { stack: "dev", backend: "" } }, { kind: "Stack", stacks: ["dev"] }],
    ["without a spec", { kind: "Stack" }, { kind: "Stack", stacks: [] }],
    [
      "whose latest update failed",
      { kind: "Stack", status: { lastUpdate: { state: "failed", message: "locked", generation: 1 } } },
      { kind: "Stack", stacks: [], lastUpdateState: "failed", lastUpdateMessage: "locked" },
    ],
    [
      "with a long message, of which the beginning is kept",
      { kind: "Stack", status: { lastUpdate: { state: "failed", message: "a".repeat(1_000_000) } } },
      { kind: "Stack", stacks: [], lastUpdateState: "failed", lastUpdateMessage: "a".repeat(16 * 1_024) },
    ],
    ["with a status of another shape", { kind: "Stack", status: { lastUpdate: { state: 7 } } }, { kind: "Stack", stacks: [] }],
    ["with no status yet", { kind: "Stack", status: null }, { kind: "Stack", stacks: [] }],
  ])("%s", (_, value, expected) => {
    expect(readStack({ metadata: { name: "app", namespace: "iac", creationTimestamp: "whenever" }, ...value })).toEqual({
      namespace: "iac",
      name: "app",
      ...expected,
    });
  });

  it.each([undefined, null, {}, { metadata: {} }, { metadata: { name: "a" }, spec: { stack: 7 } }])("%j is refused", (value) => {
    expect(() => readStack(value)).toThrow(Error);
  });
});
