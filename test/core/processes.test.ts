import { describe, expect, it } from "vitest";

import type { ContainerProcesses, Pod, Process } from "../../src/core/cluster.ts";
import { judgeProcesses } from "../../src/core/processes.ts";
import { SECOND } from "../../src/core/time.ts";
import { aContainer, aLook, aPod, aProcess, at, running, terminated, waiting } from "./builders.ts";

const owner = { username: "pulumi", hostname: "app-workspace-0", pid: 300, timestamp: "2026-03-10T10:00:00.5Z", lockedAt: at("2026-03-10T10:00:00.5Z") };
const pulumi = aContainer(running("2026-03-01T00:00:10Z"), { containerId: "c1" });
const alone = aPod({ containers: [pulumi] });
const EARLIER = at("2026-03-10T09:59:58Z");
const LATER = at("2026-03-10T11:00:00Z");

function look(processes: readonly Partial<Process>[], pod: Pod = alone): string {
  return judgeProcesses(pod, aLook(processes), owner, 5n * SECOND).kind;
}

describe("the process that wrote a lock", () => {
  it.each<[string, readonly Partial<Process>[]]>([
    ["no process has its number", [{ pid: 299 }, { pid: 301, name: "bash", startedAt: LATER }]],
    ["it is a zombie without a live thread: it holds nothing", [{ pid: 300, name: "pulumi", zombie: true, startedAt: EARLIER }]],
    ["a zombie that is called pulumi, under another number", [{ pid: 400, name: "pulumi", zombie: true, startedAt: EARLIER }]],
    ["its number is another program's, which started later", [{ pid: 300, name: "git", startedAt: LATER }]],
    ["a later run of pulumi, under another number", [{ pid: 400, name: "pulumi", startedAt: LATER }]],
    ["an older process, called neither pulumi nor by its number", [{ pid: 12, name: "agent", startedAt: EARLIER }]],
    ["its language host hangs on without it", [{ pid: 310, name: "pulumi-language", startedAt: EARLIER }]],
    [
      "its provider and its analyzer do",
      [
        { pid: 311, name: "pulumi-resource", startedAt: EARLIER },
        { pid: 312, name: "pulumi-analyzer", startedAt: EARLIER },
      ],
    ],
    ["operator v1 is there, as long as its container", [{ pid: 2, name: "pulumi-kubernet", startedAt: EARLIER }]],
    ["its number in a nested namespace was a zombie's", [{ pid: 4_000, zombie: true, innerPids: [300] }]],
  ])("is gone: %s", (_, processes) => {
    expect(look(processes)).toBe("gone");
  });

  it.each<[string, readonly Partial<Process>[]]>([
    ["there it is", [{ pid: 300, name: "pulumi", startedAt: EARLIER }]],
    ["by another name, as old as the lock", [{ pid: 300, name: "automation", startedAt: EARLIER }]],
    ["by another name, younger by less than the skew", [{ pid: 300, name: "automation", startedAt: at("2026-03-10T10:00:05Z") }]],
    ["1.5 called pulumi, and seemingly younger than its lock: the clock was stepped", [{ pid: 300, name: "pulumi", startedAt: LATER }]],
    ["1.5 likewise a language host", [{ pid: 300, name: "pulumi-language", startedAt: LATER }]],
    ["its number is a language host's, as old as the lock", [{ pid: 300, name: "pulumi-language", startedAt: EARLIER }]],
    ["something else of that beginning, as old as the lock", [{ pid: 17, name: "pulumi-wrapper", startedAt: EARLIER }]],
    ["1.6 another pulumi as old as the lock", [{ pid: 17, name: "pulumi", startedAt: EARLIER }]],
    ["1.6 another pulumi, younger by less than the skew", [{ pid: 17, name: "pulumi", startedAt: at("2026-03-10T10:00:04Z") }]],
    ["1.6 its number in a nested namespace, whatever it is called and whenever it started", [{ pid: 4_000, name: "x", startedAt: LATER, innerPids: [300] }]],
    ["1.6 its number two namespaces down", [{ pid: 4_000, name: "x", startedAt: LATER, innerPids: [20, 300] }]],
    [
      "a zombie beside it proves nothing",
      [
        { pid: 300, name: "pulumi", zombie: true, startedAt: EARLIER },
        { pid: 301, name: "pulumi", startedAt: EARLIER },
      ],
    ],
  ])("may live: %s", (_, processes) => {
    expect(look(processes)).toBe("may-live");
  });

  it("may live in the second container, where the number means another process", () => {
    const pod = aPod({ containers: [pulumi, aContainer(running("2026-03-01T00:00:10Z"), { name: "dind", containerId: "c2" })] });
    const seen = (processes: readonly Process[]): ContainerProcesses => ({ container: "dind", containerId: "c2", processes });
    const both = (processes: readonly Process[]): string => {
      const first = aLook();
      const containers = first.kind === "looked" ? [...first.containers, seen(processes)] : [];
      return judgeProcesses(pod, { kind: "looked", containers }, owner, 5n * SECOND).kind;
    };
    expect(both([aProcess()])).toBe("gone");
    expect(both([aProcess(), aProcess({ pid: 300, name: "pulumi", startedAt: EARLIER })])).toBe("may-live");
    expect(both([aProcess(), aProcess({ pid: 9, name: "pulumi", startedAt: EARLIER, innerPids: [300] })])).toBe("may-live");
  });

  it.each<[string, Pod]>([
    ["a second container runs and was not seen", aPod({ containers: [pulumi, aContainer(running(), { name: "dind", containerId: "c2" })] })],
    [
      "1.4 an ephemeral container runs and was not seen",
      aPod({ containers: [pulumi, aContainer(running(), { name: "debug", kind: "ephemeral", containerId: "c2" })] }),
    ],
    ["an init container runs and was not seen", aPod({ containers: [pulumi, aContainer(running(), { name: "fetch", kind: "init", containerId: "c2" })] })],
    ["the container was made anew since", aPod({ containers: [{ ...pulumi, containerId: "c2" }] })],
    ["the container has no id", aPod({ containers: [aContainer(running())] })],
  ])("is not known: %s", (_, pod) => {
    expect(look([], pod)).toBe("unknown");
  });

  it("needs no look into a container that does not run", () => {
    const others = [aContainer(terminated("2026-03-01T00:00:09Z"), { name: "fetch", kind: "init" }), aContainer(waiting, { name: "exporter" })];
    expect(look([], aPod({ containers: [pulumi, ...others] }))).toBe("gone");
  });

  it("is not known where nothing could be seen, and the message says why", () => {
    const finding = judgeProcesses(alone, { kind: "could-not-look", problem: "the image has no shell" }, owner, 5n * SECOND);
    expect(finding).toEqual({ kind: "unknown", message: "its processes could not be seen: the image has no shell" });
    expect(judgeProcesses(alone, { kind: "looked", containers: [] }, owner, 5n * SECOND).kind).toBe("unknown");
    expect(judgeProcesses(aPod({ containers: [] }), { kind: "looked", containers: [] }, owner, 5n * SECOND).kind).toBe("unknown");
  });
});
