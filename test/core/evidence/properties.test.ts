// How a judgement may change when what is known changes: less knowledge, or more pods, never makes a lock stale.
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";

import { meansBackend, splitBackendUrl } from "../../../src/core/backend-url.ts";
import type { ClusterObservation, Node, Pod, Process, ProcessObservation } from "../../../src/core/cluster.ts";
import { decideHeld } from "../../../src/core/decide.ts";
import { parseStackReference } from "../../../src/core/key.ts";
import { matchOwners, parseOwnerPattern } from "../../../src/core/owner.ts";
import { MINUTE, parseTimestamp, SECOND, truncateToSecond } from "../../../src/core/time.ts";
import { cluster, lock, pod, type GeneratedLock } from "../arbitraries.ts";
import { aLock, at, judge, NOW, ownerPattern, SETTINGS, verdictOf, type CaseWords } from "../builders.ts";

const RUNS = { numRuns: 3_000 };
const OWNERS = [...SETTINGS.owners, ownerPattern("iac-runner-*")];
const SKEW = SETTINGS.clockSkew;
const seen = new Map<string, number>();

const anyProcess: fc.Arbitrary<Process> = fc.record({
  pid: fc.constantFrom(1, 7, 99),
  name: fc.constantFrom("tini", "pulumi", "git"),
  zombie: fc.constantFrom(false, false, true),
  startedAt: fc.constantFrom(NOW - 1_000_000n * SECOND, NOW - 60n * SECOND),
  innerPids: fc.constantFrom<readonly number[]>([], [], [], [7]),
});
const look: fc.Arbitrary<ProcessObservation | undefined> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: fc.constant({ kind: "could-not-look" as const, problem: "no shell" }) },
  {
    weight: 3,
    arbitrary: fc
      .array(anyProcess, { maxLength: 2 })
      .map((processes) => ({ kind: "looked" as const, containers: [{ container: "pulumi", containerId: "c1", processes }] })),
  },
);
const probedPod: fc.Arbitrary<Pod> = fc.tuple(pod, look, fc.constantFrom(true, true, false)).map(([given, processes, seen]): Pod => {
  // What was never scheduled has no processes to look at.
  if (processes === undefined || given.nodeName === undefined) return given;
  const containers = seen ? given.containers.slice(0, 1).map((each) => ({ ...each, name: "pulumi", containerId: "c1" })) : given.containers;
  return { ...given, containers, processes };
});
/** Clusters as they mostly are: whole and accounted for, so that the candidates decide. */
const observed: fc.Arbitrary<ClusterObservation> = fc
  .tuple(cluster, fc.array(probedPod, { maxLength: 2 }), fc.constantFrom(true, true, false))
  .map(([given, pods, live]) => withPods(live ? { ...given, source: { kind: "live" } } : given, [...given.pods.pods.slice(0, 1), ...pods]));
const clusters = fc.uniqueArray(observed, { minLength: 1, maxLength: 2, selector: ({ name }) => name });
const oldLock = lock.filter(({ lockedAt, lock: { storedAt } }) => lockedAt < NOW - 50n * SECOND && (storedAt === undefined || storedAt < NOW - 50n * SECOND));

function withPods(given: ClusterObservation, pods: readonly Pod[]): ClusterObservation {
  return { ...given, pods: { ...given.pods, pods, total: given.pods.total - given.pods.pods.length + pods.length } };
}

function verdict({ lock: given }: GeneratedLock, of: readonly ClusterObservation[], words: CaseWords = {}): string {
  const judgement = judge(given, { ...words, clusters: of, settings: { owners: OWNERS, requireStack: "no", ...words.settings } });
  seen.set(verdictOf(judgement), (seen.get(verdictOf(judgement)) ?? 0) + 1);
  return judgement.verdict;
}

/** That the second judgement is no more of a removal than the first. */
function expectNoMore(before: string, after: string): void {
  if (before !== "stale") expect(after).not.toBe("stale");
  if (before === "held") expect(after).toBe("held");
}

function changeNodes(given: ClusterObservation, change: (node: Node) => Node): ClusterObservation {
  return given.nodes.kind === "listed" ? { ...given, nodes: { kind: "listed", nodes: given.nodes.nodes.map(change) } } : given;
}

describe("P1: knowing less never makes a lock stale", () => {
  it("a list of pods that is not whole", () => {
    fc.assert(
      fc.property(oldLock, clusters, (given, of) => {
        const broken = of.map((each): ClusterObservation => ({ ...each, pods: { ...each.pods, kind: "incomplete", problem: "410" } }));
        expectNoMore(verdict(given, of), verdict(given, broken));
        expect(verdict(given, broken)).not.toBe("stale");
      }),
      RUNS,
    );
  });

  it("a node that is no longer Ready, or again but for a moment", () => {
    fc.assert(
      fc.property(oldLock, clusters, fc.constantFrom<Partial<Node>>({ ready: "False" }, { ready: "Unknown" }, { readySince: NOW }), (given, of, change) => {
        // A node that was made a moment ago has joined, and not come back; one that is not Ready would only have fallen silent later.
        const isWell = (node: Node): boolean => node.createdAt < NOW - 10n * MINUTE && node.ready === "True";
        const changed = of.map((each) => changeNodes(each, (node) => (isWell(node) ? { ...node, ...change } : node)));
        expectNoMore(verdict(given, of), verdict(given, changed));
      }),
      RUNS,
    );
  });

  it("nodes that cannot be listed", () => {
    fc.assert(
      fc.property(oldLock, clusters, (given, of) => {
        const blind = of.map((each): ClusterObservation => ({ ...each, nodes: { kind: "unlisted", problem: "403" } }));
        expect(verdict(given, blind)).not.toBe("stale");
      }),
      RUNS,
    );
  });

  it("no cluster", () => {
    fc.assert(
      fc.property(oldLock, (given) => {
        expect(verdict(given, [])).not.toBe("stale");
      }),
      RUNS,
    );
  });

  it("processes that could not be seen", () => {
    fc.assert(
      fc.property(oldLock, clusters, (given, of) => {
        const unseen = of.map((each) =>
          withPods(
            each,
            each.pods.pods.map((one) => ({ ...one, processes: { kind: "could-not-look", problem: "no shell" } })),
          ),
        );
        expectNoMore(verdict(given, of), verdict(given, unseen));
      }),
      RUNS,
    );
  });
});

describe("P1: more of anything never makes a held lock stale, nor any lock that a cluster keeps", () => {
  it("another cluster", () => {
    fc.assert(
      fc.property(oldLock, clusters, observed, (given, of, more) => {
        const settings = { owners: OWNERS, requireStack: "no" as const };
        const before = judge(given.lock, { clusters: of, settings });
        const after = verdict(given, [...of, { ...more, name: "more" }]);
        // A node stands in the way of absence only; and a host that is a node's name there is not known to be a pod.
        const onlyAbsence = before.reason === "node-unreachable" || before.reason === "nodes-not-listed";
        if (before.verdict !== "stale" && !onlyAbsence) expect(after).not.toBe("stale");
        if (before.verdict === "held") expect(["held", "foreign", "undetermined"]).toContain(after);
      }),
      RUNS,
    );
  });

  it("more caution in min-age or settle", () => {
    fc.assert(
      fc.property(oldLock, clusters, fc.constantFrom(2n, 10n, 1_000n), (given, of, times) => {
        const before = verdict(given, of);
        const settled = verdict(given, of, { settings: { settle: SETTINGS.settle * times } });
        expectNoMore(before, settled);
        const older = verdict(given, of, { settings: { minAge: SETTINGS.minAge * times } });
        if (before !== "stale") expect(older).not.toBe("stale");
      }),
      RUNS,
    );
  });

  it("a person's word for silent nodes lets absence count, and never a pod that is here", () => {
    fc.assert(
      fc.property(oldLock, clusters, (given, of) => {
        const before = verdict(given, of);
        const after = verdict(given, of, { settings: { ignoredNodes: { all: true, names: [] } } });
        if (before === "held" || before === "foreign") expect(after).toBe(before);
      }),
      RUNS,
    );
  });
});

describe("P1: what every stale verdict rests on", () => {
  it("no running container of a candidate may have been there when the lock was written, unless its processes were seen", () => {
    fc.assert(
      fc.property(oldLock, clusters, (given, of) => {
        if (verdict(given, of) !== "stale" || given.hostname !== "iac-runner-a") return;
        const candidates = of.flatMap(({ pods }) => pods.pods).filter((one) => !one.hostNetwork && (one.hostname ?? one.name) === given.hostname);
        for (const one of candidates.filter(({ processes }) => processes === undefined)) {
          for (const { state, last } of one.containers) {
            if (state.kind !== "running") continue;
            const { startedAt = 0n } = state;
            const second = truncateToSecond(given.lockedAt);
            const strong =
              one.runtimeClassName === undefined &&
              last?.startedAt !== undefined &&
              last.finishedAt !== undefined &&
              last.startedAt <= second &&
              last.finishedAt > second &&
              last.finishedAt <= startedAt;
            // A successor's containers are all later than the lock by the API server's clock; the kubelet's may be a little behind.
            const successor = one.createdAt > given.lockedAt + SKEW && (state.startedAt === undefined || startedAt >= given.lockedAt);
            expect(startedAt > given.lockedAt + SKEW || strong || successor).toBe(true);
          }
        }
      }),
      { numRuns: 12_000 },
    );
  });

  it("every candidate's node is Ready, unless its pod has ended there or was never scheduled", () => {
    fc.assert(
      fc.property(oldLock, clusters, (given, of) => {
        if (verdict(given, of) !== "stale") return;
        for (const { pods, nodes } of of) {
          expect(pods.kind).toBe("complete");
          expect(pods.total).toBeGreaterThan(0);
          for (const one of pods.pods.filter((each) => !each.hostNetwork && (each.hostname ?? each.name) === given.hostname)) {
            if (one.nodeName === undefined) continue;
            const node = nodes.kind === "listed" ? nodes.nodes.find(({ name }) => name === one.nodeName) : undefined;
            expect(node?.ready === "True" || (node === undefined && ["Succeeded", "Failed"].includes(one.phase))).toBe(true);
          }
        }
      }),
      RUNS,
    );
  });

  it("a look by name that says held is never contradicted by the whole list", () => {
    fc.assert(
      fc.property(oldLock, clusters, (given, of) => {
        const settings = { ...SETTINGS, owners: OWNERS, requireStack: "no" as const };
        const backend = { scheme: "file", path: "/state", prefix: "" } as const;
        const looked = of.map((each): ClusterObservation => ({ ...each, nodes: { kind: "unlisted", problem: "only looked up" } }));
        const early = decideHeld(given.lock, { backend, now: NOW, clusters: looked, settings, restored: new Set() });
        if (early === undefined) return;
        expect(early.verdict).toBe("held");
        expect(verdict(given, of)).not.toBe("stale");
      }),
      RUNS,
    );
  });

  afterAll(() => {
    // Not vacuous: the candidates had to decide often, and each way.
    for (const name of [
      "stale: pod-not-found",
      "stale: pod-ended",
      "stale: pod-recreated",
      "stale: container-restarted",
      "stale: process-gone",
      "held: container-running",
      "held: pod-terminating",
      "held: status-missing",
      "undetermined: node-not-ready",
      "undetermined: node-unreachable",
      "undetermined: node-deleted",
      "undetermined: not-settled",
      "undetermined: clock-contradiction",
      "undetermined: no-cluster",
    ]) {
      expect(seen.get(name) ?? 0, name).toBeGreaterThan(50);
    }
  });
});

describe("P5: no input stops the janitor", () => {
  const anything = fc.oneof(
    fc.string({ unit: "binary", maxLength: 80 }),
    fc.webUrl(),
    fc.string({ unit: fc.constantFrom("a", "z", "*", "?", ".", "/", ":", "-", "=", "@", "%", "0"), maxLength: 20 }),
  );
  it("no text makes a parser throw", () => {
    const identity = { scheme: "s3", bucket: "b", prefix: "" } as const;
    fc.assert(
      fc.property(anything, anything, (text, hostname) => {
        const parsed = parseOwnerPattern(text);
        if (parsed.kind === "pattern") expect(() => matchOwners(hostname, [parsed.pattern])).not.toThrow();
        expect(() => [parseTimestamp(text), splitBackendUrl(text), parseStackReference(text), meansBackend(`s3://${text}`, identity)]).not.toThrow();
      }),
      RUNS,
    );
  });

  it("P7: no name of a pod, a namespace, a node or a cluster acts on a terminal", () => {
    const hostile = fc.string({ unit: "binary", minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(hostile, hostile, observed, oldLock, (one, two, given, generated) => {
        const pods = given.pods.pods.map((each): Pod => ({ ...each, hostname: generated.hostname, name: one, namespace: two, hostNetwork: false }));
        const named = { ...changeNodes(withPods(given, pods), (node) => ({ ...node, name: `${node.name}${one}` })), name: two };
        const { message, evidence } = judge(generated.lock, { clusters: [named], settings: { owners: OWNERS, requireStack: "no" } });
        const shown = [message, ...evidence.rules.map(({ note }) => note), ...evidence.candidates.map((each) => each.message)].join("");
        expect(shown).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u);
      }),
      RUNS,
    );
  });

  it("a lock's time from the first to the last that can be written is judged", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("0001-01-01T00:00:01Z", "1969-12-31T23:59:59.999999999Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"),
        (timestamp) => {
          const { verdict: found } = judge(aLock({ timestamp }));
          expect(found).toBe(at(timestamp) > NOW ? "undetermined" : "stale");
        },
      ),
    );
  });
});
