import { describe, expect, it } from "vitest";

import { BUILTIN_OWNERS, matchOwners, parseOwnerPattern } from "../../src/core/owner.ts";

describe("the built-in patterns", () => {
  it.each([
    ["pulumi-kubernetes-operator-6b8d5f7c9d-q4x7n", "operator-v1"],
    ["pulumi-kubernetes-operator-4d81c3fa-6b8d5f7c9d-q4x7n", "operator-v1"],
    ["acme-pulumi-kubernetes-operator-6b8d5f7c9d-q4x7n", "operator-v1"],
    ["network-dev-workspace-0", "operator-v2"],
    ["workspace-0", undefined],
    ["network-dev-workspace-1", undefined],
    ["network-dev-workspace-0.local", undefined],
    ["iac-runner-x9k2p", undefined],
    ["localhost", undefined],
  ])("%s is of %s", (hostname, profile) => {
    expect(matchOwners(hostname, BUILTIN_OWNERS).map((pattern) => pattern.profile)).toEqual(profile === undefined ? [] : [profile]);
  });
});

describe("an --owner value", () => {
  it.each([
    ["iac-runner-*", { glob: "iac-runner-*", profile: "explicit" }],
    ["iac-runner-?????=pulumi", { glob: "iac-runner-?????", container: "pulumi", profile: "explicit" }],
    ["runner-*-project-*-concurrent-*-????????=build", { glob: "runner-*-project-*-concurrent-*-????????", container: "build", profile: "explicit" }],
    ["ci7.corp.example", { glob: "ci7.corp.example", profile: "explicit" }],
  ])("%s is taken", (text, pattern) => {
    expect(parseOwnerPattern(text)).toEqual({ kind: "pattern", pattern });
  });

  it.each([
    ["*", /container/],
    ["**", /container/],
    ["?*", /container/],
    ["????????????", /container/],
    ["a*", /container/],
    ["1?c69fa22edb", /container/],
    ["local*", /localhost/],
    ["*host", /localhost/],
    ["localhost", /localhost/],
    ["*-*", /which is no pod/],
    ["*.internal", /ip-10-0-42-235/],
    ["*.local", /laptop/],
    ["fv-az*", /fv-az/],
    ["runner-*", /concurrent/],
    ["runner-*-project-*-concurrent-*", /concurrent/],
    ["runner-t1-project-4711-concurrent-?", /docker executor/],
    ["ip-10-8-*", /EC2/],
    ["!app-*", /letters, digits/],
    ["{a,b}-*", /letters, digits/],
    ["app-[a-z]", /letters, digits/],
    ["a/b-x*", /letters, digits/],
    ["", /empty/],
    ["app-*=", /no container/],
    ["app-*=UPPER", /no container/],
  ])("%j is refused", (text, problem) => {
    expect(parseOwnerPattern(text)).toEqual({ kind: "refused", problem: expect.stringMatching(problem) });
  });

  it.each([
    ["iac-runner-*", "iac-runner-a", true],
    ["iac-runner-*", "iac-runner-", false],
    ["iac-runner-*", "iac-runner-a ", false],
    ["iac-runner-*", "iac-runner_a", false],
    ["iac-runner-*", `iac-runner-${"a".repeat(60)}`, false],
    ["iac-runner-*", "iac-runner-a.b.c", true],
    ["iac-runner-*", "xiac-runner-a", false],
    ["iac-runner-?", "iac-runner-ab", false],
    ["iac.runner", "iacxrunner", false],
    ["x-*", "X-1", false],
    ["x-*", ".x-1", false],
  ])("%s against %s: %s", (glob, hostname, matches) => {
    expect(matchOwners(hostname, [{ glob, profile: "explicit" }]).length > 0).toBe(matches);
  });
});
