import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { mayHaveHostname } from "../../src/core/hostname.ts";
import { matchHostnames } from "../../src/kubernetes/match-hostnames.ts";
import { readNode, readPod } from "../../src/kubernetes/read-objects.ts";
import { aNodeObject, aPodObject } from "./stub-api-server.ts";

const label = fc.constantFrom("a", "A", "b", "a-", "node-1", "x".repeat(70), "10");
const hostname = fc.array(label, { minLength: 0, maxLength: 4 }).map((labels) => labels.join("."));
const pod = fc
  .record({
    name: hostname.filter((name) => name !== ""),
    spec: fc.record(
      { hostNetwork: fc.boolean(), hostname, hostnameOverride: hostname, nodeName: fc.constantFrom("node-1", "node-2", "a.b", "") },
      { requiredKeys: [] },
    ),
  })
  .map(({ name, spec }) => readPod(aPodObject(name, "iac", spec)));
const nodes = fc.subarray(["node-1", "node-2", "a.b"]).map((names) => names.map((name) => readNode(aNodeObject(name))));

describe("many hostnames at once", () => {
  it("are the same as each of them alone", () => {
    fc.assert(
      fc.property(fc.array(hostname, { maxLength: 5 }), fc.array(pod, { minLength: 1, maxLength: 5 }), nodes, (hostnames, pods, known) => {
        const mayMatch = matchHostnames(new Set(hostnames), known);
        expect(pods.map(mayMatch)).toEqual(pods.map((each) => hostnames.some((wanted) => mayHaveHostname(each, wanted, known))));
      }),
      { numRuns: 2_000 },
    );
  });
});
