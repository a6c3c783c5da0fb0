// What must hold for every input: the promises, and the shape of the rules.
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";

import type { ClusterObservation, Pod } from "../../src/core/cluster.ts";
import type { Judgement } from "../../src/core/judgement.ts";
import { parseLockKey, unescapeKey } from "../../src/core/key.ts";
import { parseLockBody } from "../../src/core/lock.ts";
import { parseOwnerPattern } from "../../src/core/owner.ts";
import { escapeUntrusted } from "../../src/core/text.ts";
import { formatTimestamp, parseTimestamp, SECOND } from "../../src/core/time.ts";
import { cluster, lock, pod, type GeneratedLock } from "./arbitraries.ts";
import { aContainer, aLockWithBody, aNode, judge, NOW, ownerPattern, SETTINGS, verdictOf } from "./builders.ts";

const clusters = fc.array(cluster, { minLength: 1, maxLength: 2 });
const OWNERS = [...SETTINGS.owners, ownerPattern("iac-runner-*"), ownerPattern("node-?")];
const RUNS = { numRuns: 4_000 };
const seen = new Map<string, number>();

function decideOn({ lock: given }: GeneratedLock, observed: readonly ClusterObservation[]): Judgement {
  const judgement = judge(given, { clusters: observed, settings: { owners: OWNERS } });
  seen.set(verdictOf(judgement), (seen.get(verdictOf(judgement)) ?? 0) + 1);
  return judgement;
}

function withPods(observed: ClusterObservation, pods: readonly Pod[]): ClusterObservation {
  return { ...observed, pods: { ...observed.pods, pods, total: observed.pods.total + pods.length - observed.pods.pods.length } };
}

describe("the verdict", () => {
  it("P5: is one verdict with one reason and a sentence, whatever the bytes", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 300 }),
          fc.json().map((text) => new TextEncoder().encode(text)),
        ),
        clusters,
        (bytes, observed) => {
          expect(() => parseLockBody(bytes)).not.toThrow();
          const judgement = judge(aLockWithBody(bytes), { clusters: observed });
          expect(judgement.message).not.toBe("");
        },
      ),
      RUNS,
    );
  });

  it("does not depend on the order of pods, containers, nodes, Stacks or clusters", () => {
    const reverse = (observed: ClusterObservation): ClusterObservation => ({
      ...withPods(observed, observed.pods.pods.map((each) => ({ ...each, containers: each.containers.toReversed() })).toReversed()),
      nodes: observed.nodes.kind === "listed" ? { kind: "listed", nodes: observed.nodes.nodes.toReversed() } : observed.nodes,
    });
    const distinct = fc.uniqueArray(cluster, { minLength: 1, maxLength: 2, selector: ({ name }) => name });
    fc.assert(
      fc.property(lock, distinct, (given, observed) => {
        // Several nodes of one name do not occur; the first would be taken.
        fc.pre(observed.every(({ nodes }) => nodes.kind === "unlisted" || new Set(nodes.nodes.map(({ name }) => name)).size === nodes.nodes.length));
        expect(verdictOf(decideOn(given, observed.map(reverse).toReversed()))).toBe(verdictOf(decideOn(given, observed)));
      }),
      RUNS,
    );
  });

  it("P1: adding a pod never turns a lock that is held or undetermined into a stale one", () => {
    fc.assert(
      fc.property(lock, clusters, pod, (given, observed, extra) => {
        const [first, ...others] = observed;
        if (first === undefined) return;
        const before = decideOn(given, observed);
        const after = decideOn(given, [withPods(first, [...first.pods.pods, extra]), ...others]);
        if (before.verdict === "held") expect(after.verdict).toBe("held");
        // A cluster that showed no pod at all is no longer empty with one.
        if (before.verdict !== "undetermined" || before.reason === "empty-cluster" || after.verdict !== "stale") return;
        // A node stands in the way of an absence only: with a pod that was there to write the lock, and whose containers are gone, nothing is absent.
        const onlyNodes = before.reason === "node-unreachable" || before.reason === "nodes-not-listed";
        expect(onlyNodes ? ["container-restarted", "pod-ended"] : []).toContain(after.reason);
      }),
      RUNS,
    );
  });

  it("P1: a running container that started before the lock holds it, in any company", () => {
    fc.assert(
      fc.property(lock, clusters, pod, fc.integer({ min: 1, max: 100_000 }), (given, observed, other, seconds) => {
        const startedAt = given.lockedAt - BigInt(seconds) * SECOND;
        const { hostname: _, ...rest } = other;
        const holder: Pod = {
          ...rest,
          name: given.hostname,
          hostNetwork: false,
          phase: "Running",
          createdAt: startedAt - 10n * SECOND,
          containers: [...other.containers, aContainer({ kind: "running", startedAt })],
        };
        const [first, ...others] = observed;
        if (first === undefined) return;
        expect(decideOn(given, [withPods(first, [...first.pods.pods, holder]), ...others]).verdict).not.toBe("stale");
      }),
      RUNS,
    );
  });

  it("P1: an incomplete list of any cluster never leads to stale", () => {
    fc.assert(
      fc.property(lock, clusters, (given, observed) => {
        const broken = observed.map((each): ClusterObservation => ({
          ...each,
          pods: { kind: "incomplete", problem: "410", pods: each.pods.pods, total: each.pods.total },
        }));
        expect(decideOn(given, [...observed, ...broken.slice(0, 1)]).verdict).not.toBe("stale");
      }),
      RUNS,
    );
  });

  it("P1: nothing younger than --min-age by either clock, and nothing from the future, is stale", () => {
    fc.assert(
      fc.property(lock, clusters, (given, observed) => {
        const judgement = decideOn(given, observed);
        const storedAt = given.lock.storedAt ?? given.lockedAt;
        if (judgement.verdict === "stale") expect([NOW - given.lockedAt >= SETTINGS.minAge, NOW - storedAt >= SETTINGS.minAge]).toEqual([true, true]);
      }),
      RUNS,
    );
  });

  it("P1: a host that matches no pattern is never stale", () => {
    fc.assert(
      fc.property(lock, clusters, (given, observed) => {
        const judgement = decideOn(given, observed);
        if (given.hostname === "laptop.local") expect(judgement.verdict).not.toBe("stale");
      }),
      RUNS,
    );
  });

  it("P1: with an older node that is not Ready, no absence and no successor is believed", () => {
    const silent = aNode({ name: "node-9", ready: "Unknown", createdAt: NOW - 10_000_000n * SECOND });
    fc.assert(
      fc.property(lock, clusters, (given, observed) => {
        const doubted = observed.map((each): ClusterObservation => ({
          ...each,
          nodes: { kind: "listed", nodes: [...(each.nodes.kind === "listed" ? each.nodes.nodes : []), silent] },
        }));
        expect(["stale: pod-not-found", "stale: pod-recreated"]).not.toContain(verdictOf(decideOn(given, doubted)));
      }),
      RUNS,
    );
  });

  it("P1: without nodes nothing is stale", () => {
    fc.assert(
      fc.property(lock, clusters, (given, observed) => {
        const blind = observed.map((each): ClusterObservation => ({ ...each, nodes: { kind: "unlisted", problem: "403" } }));
        const judgement = decideOn(given, blind);
        // A pod that was never bound to a node needs no node's word, but its absence elsewhere does.
        expect(judgement.verdict).not.toBe("stale");
      }),
      RUNS,
    );
  });

  it("P1: more time alone never turns held into stale", () => {
    fc.assert(
      fc.property(lock, clusters, fc.integer({ min: 0, max: 10_000_000 }), (given, observed, seconds) => {
        const live = observed.map((each): ClusterObservation => ({ ...each, source: { kind: "live" } }));
        if (decideOn(given, live).verdict !== "held") return;
        const later = judge(given.lock, { clusters: live, settings: { owners: OWNERS }, now: NOW + BigInt(seconds) * SECOND });
        expect(later.verdict).toBe("held");
      }),
      RUNS,
    );
  });

  afterAll(() => {
    const counted = Array.from(seen).toSorted((a, b) => b[1] - a[1]);
    process.stdout.write(`${counted.map(([name, count]) => `${name} ${count}`).join(", ")}\n`);
    // Not vacuous: each of these must have been reached often enough to mean something.
    for (const name of [
      "held: container-running",
      "held: pod-terminating",
      "stale: pod-not-found",
      "stale: pod-ended",
      "stale: pod-recreated",
      "stale: container-restarted",
      "foreign: no-pattern",
      "foreign: no-stack",
      "foreign: node-name",
      "too-young: min-age",
      "undetermined: clock-contradiction",
      "undetermined: list-incomplete",
      "undetermined: node-unreachable",
      "undetermined: node-not-ready",
      "undetermined: nodes-not-listed",
      "undetermined: snapshot-older",
    ]) {
      expect(seen.get(name) ?? 0, name).toBeGreaterThan(20);
    }
  });
});

describe("text and keys", () => {
  const hostile = fc.string({ unit: "binary", maxLength: 60 });
  const DANGEROUS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;

  it("P7: no character that acts on a terminal survives escaping, and printable text is left as it is", () => {
    fc.assert(
      fc.property(hostile, (text) => {
        expect(escapeUntrusted(text)).not.toMatch(DANGEROUS);
        if (/^[\x20-\x7e]*$/.test(text)) expect(escapeUntrusted(text)).toBe(text);
      }),
      RUNS,
    );
  });

  it("P7: no message holds one either, whatever the lock says", () => {
    fc.assert(
      fc.property(hostile, hostile, hostile, clusters, (hostname, username, key, observed) => {
        const given = aLockWithBody(JSON.stringify({ pid: 7, username, hostname, timestamp: "2026-03-10T10:00:00Z" }), { key: `.pulumi/locks/${key}.json` });
        const judgement = judge(given, { clusters: observed, settings: { owners: [{ glob: "*", profile: "explicit" }] } });
        expect(judgement.message).not.toMatch(DANGEROUS);
        for (const { note } of judgement.evidence.rules) expect(note).not.toMatch(DANGEROUS);
      }),
      RUNS,
    );
  });

  it("no key throws, and its parts are parts of it", () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const { stack, id } = parseLockKey(`.pulumi/locks/${text}`);
        expect(unescapeKey(text)).toContain(stack);
        expect(unescapeKey(text)).toContain(id);
      }),
      RUNS,
    );
  });

  it("a timestamp that is read is written again as the same time", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -62_135_596_800_000_000_000n, max: 253_402_300_799_999_999_999n }), (instant) => {
        expect(parseTimestamp(formatTimestamp(instant))).toBe(instant);
      }),
      RUNS,
    );
  });

  it("an owner pattern that is taken matches neither localhost nor any container id", () => {
    const glob = fc.string({ unit: fc.constantFrom("a", "f", "0", "9", "z", "-", ".", "*", "?", "*"), maxLength: 16 });
    const containerId = fc.string({ unit: fc.constantFrom(...Array.from("0123456789abcdef")), minLength: 12, maxLength: 12 });
    fc.assert(
      fc.property(glob, containerId, (text, id) => {
        const parsed = parseOwnerPattern(text);
        if (parsed.kind === "refused") return;
        for (const hostname of ["localhost", id]) {
          expect(
            judge(aLockWithBody(JSON.stringify({ pid: 7, hostname, timestamp: "2026-03-10T10:00:00Z" })), { settings: { owners: [parsed.pattern] } }).verdict,
          ).toBe("foreign");
        }
      }),
      RUNS,
    );
  });
});
