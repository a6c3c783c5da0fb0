import { describe, expect, it } from "vitest";

import { check } from "../src/check.ts";
import { BUILTIN_OWNERS } from "../src/core/owner.ts";
import type { ClusterSource } from "../src/kubernetes/cluster-source.ts";
import { StubApiServer } from "./kubernetes/stub-api-server.ts";
import { SweepWorld } from "./sweep-world.ts";

const { signal } = new AbortController();

describe("what check says of the rights that only watch needs", () => {
  const say = async (review?: NonNullable<ClusterSource["reviewFollowing"]>): Promise<readonly string[]> => {
    const { cluster } = new SweepWorld();
    if (review !== undefined) cluster.reviewFollowing = review;
    const { items, exitCode } = await check({ backends: [], clusters: [cluster], owners: BUILTIN_OWNERS, signal });
    expect(exitCode).toBe(0);
    return items.filter(({ name }) => name.startsWith("watch ")).map(({ name, status, message }) => `${name}: ${status}: ${message}`);
  };

  it.each([
    [true, "ok: allowed"],
    [false, 'unknown: the verb "watch" is not allowed; the command watch then finds changes when its interval ends'],
    [undefined, "unknown: the API server does not tell"],
  ])("%s: %s, and no failure", async (allowed, expected) => {
    expect(await say(() => Promise.resolve([{ what: "pods", allowed }]))).toEqual([`watch pods: ${expected}`]);
  });

  it("nothing of a file, which nobody follows", async () => {
    expect(await say()).toEqual([]);
  });
});

it("each kind of object is asked for, in each namespace that is configured", async () => {
  const server = new StubApiServer();
  await server.start();
  server.answer = ({ path }) => (path.endsWith("/selfsubjectaccessreviews") ? { kind: "status", status: 201, body: { status: { allowed: true } } } : undefined);
  const everywhere = server.open();
  expect(await everywhere.reviewFollowing?.(signal)).toEqual([
    { what: "pods", allowed: true },
    { what: "stacks.pulumi.com", allowed: true },
  ]);
  const some = server.open({ namespaces: ["a", "b"] });
  const names = (await some.reviewFollowing?.(signal))?.map(({ what }) => what);
  expect(names).toEqual(["pods in namespace a", "pods in namespace b", "stacks.pulumi.com in namespace a", "stacks.pulumi.com in namespace b"]);
  await everywhere.close();
  await some.close();
  await server.stop();
});
