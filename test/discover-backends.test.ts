import { describe, expect, it } from "vitest";

import type { StackResource } from "../src/core/cluster.ts";
import type { DiscoveryRules } from "../src/core/discover.ts";
import { discoverBackends, type Discovery } from "../src/discover-backends.ts";
import { aStack } from "./core/builders.ts";
import { MemoryCluster } from "./memory-cluster.ts";

const never = new AbortController().signal;

/** Stacks, one for each backend, called a, b, c… in the order given. */
function stacksOf(...backends: readonly (string | undefined)[]): StackResource[] {
  return backends.map((backend, index) => aStack({ name: String.fromCodePoint(97 + index), ...(backend === undefined ? {} : { backend }) }));
}

async function discover(stacks: StackResource[], rules: Partial<DiscoveryRules> = {}): Promise<Discovery> {
  const cluster = new MemoryCluster();
  cluster.stacks = stacks;
  return await discoverBackends([cluster], { allow: ["s3://acme-*/**"], configured: [], environment: {}, ...rules }, never);
}

describe("the backends of Stacks", () => {
  it("are each found once, however many Stacks spell them in however many ways, in a stable order", async () => {
    const { backends, notes } = await discover(
      stacksOf("s3://acme-b/team/?awssdk=v2", undefined, "s3://acme-a", "s3://acme-b/team", "s3://acme-b/team?region=eu-west-1"),
    );
    expect(backends).toEqual([
      { url: "s3://acme-a", stacks: ['"iac/c"'] },
      { url: "s3://acme-b/team", stacks: ['"iac/a"', '"iac/d"', '"iac/e"'] },
    ]);
    expect(notes).toEqual([]);
  });

  it("are found in every cluster", async () => {
    const [blue, green] = [new MemoryCluster("blue"), new MemoryCluster("green")];
    blue.stacks = stacksOf("s3://acme-a");
    green.stacks = stacksOf("s3://acme-b");
    const { backends } = await discoverBackends([blue, green], { allow: ["s3://acme-*"], configured: [], environment: {} }, never);
    expect(backends.map(({ url }) => url)).toEqual(["s3://acme-a", "s3://acme-b"]);
  });

  it("that are not admitted are told, with their Stacks and the reason, and without anything that the Stack adds", async () => {
    const { backends, notes } = await discover(
      stacksOf("s3://acme-a?endpoint=https://evil.example", "s3://other", "s3://other", "postgres://u:secret@evil.example/db"),
    );
    expect(backends).toEqual([]);
    expect(notes).toEqual([
      'the backend postgres://… of Stack "iac/d" is not swept: a database is never taken from a Stack',
      'the backend s3://acme-a of Stack "iac/a" is not swept: its parameter endpoint would say where or as whom it is opened, and none is taken from a Stack',
      'the backend s3://other of Stacks "iac/b" and "iac/c" is not swept: no --discover-allow admits it',
    ]);
  });

  it("that are configured are neither added nor told about", async () => {
    const { backends, notes } = await discover(stacksOf("s3://acme-a", "s3://acme-a?region=x"), {
      configured: [{ url: "s3://acme-a", identity: { scheme: "s3", bucket: "acme-a", prefix: "" } }],
    });
    expect({ backends, notes }).toEqual({ backends: [], notes: [] });
  });

  it("are 200 at most: the others are refused", async () => {
    const stacks = Array.from({ length: 205 }, (_, index) => aStack({ name: `s${index}`, backend: `s3://acme-${index}` }));
    const { backends, refusals } = await discover(stacks);
    expect(backends).toHaveLength(200);
    expect(refusals).toEqual([expect.stringMatching(/^5 backends of Stacks were not swept: no more than 200 are discovered/)]);
  });

  it("P7: what thousands of hostile Stacks say fills no screen and acts on no terminal", async () => {
    const stacks = Array.from({ length: 3_000 }, (_, index) =>
      aStack({ name: `\u001b[2J${index}`, namespace: "\u202e", backend: `s3://evil-${index}?x=\u001b[2J` }),
    );
    const { notes } = await discover(stacks);
    expect(notes).toHaveLength(21);
    expect(notes.at(-1)).toBe("2980 other backends of Stacks are not swept either");
    // oxlint-disable-next-line eslint/no-control-regex -- that is what must not be there.
    expect(notes.join("\n")).not.toMatch(/[\u001b\u202e]/);
  });
});

describe("Stacks that cannot be listed", () => {
  it("are an error of their cluster, and do not hide those of another", async () => {
    const [blue, green] = [new MemoryCluster("blue"), new MemoryCluster("green")];
    blue.stacksProblem = 'the verb "list" on stacks.pulumi.com is not allowed (403)';
    green.stacks = stacksOf("s3://acme-b");
    const { stackLists, backends } = await discoverBackends([blue, green], { allow: ["s3://acme-*"], configured: [], environment: {} }, never);
    expect(stackLists.map(({ cluster, list }) => `${cluster} ${list.kind}`)).toEqual(["blue unlisted", "green listed"]);
    expect(backends).toHaveLength(1);
  });

  it("because the request throws are such an error too", async () => {
    const cluster = new MemoryCluster();
    cluster.before = () => {
      throw new Error("boom");
    };
    const { stackLists } = await discoverBackends([cluster], { allow: [], configured: [], environment: {} }, never);
    expect(stackLists).toEqual([{ cluster: "test", list: { kind: "unlisted", problem: "boom" } }]);
  });

  it("because there are none at all are told about", async () => {
    expect((await discover([])).notes).toEqual(['cluster "test" has no Stack, so none names a backend']);
  });

  it("because the run was stopped are no error", async () => {
    const { stackLists, notes } = await discoverBackends([new MemoryCluster()], { allow: [], configured: [], environment: {} }, AbortSignal.abort());
    expect({ stackLists, notes }).toEqual({ stackLists: [], notes: ["the run was stopped before the Stacks were known"] });
  });
});
