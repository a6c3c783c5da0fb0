import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { MAX_PROBE_BYTES, parseProbe, type ProbeAnswer } from "../../src/core/process-probe.ts";
import { SECOND } from "../../src/core/time.ts";
import { at } from "./builders.ts";

const BOOT = at("2026-03-01T00:00:00Z");
const ENCODER = new TextEncoder();

interface Words {
  readonly pid: number;
  readonly name?: string;
  readonly state?: string;
  readonly inner?: readonly number[];
  readonly ticks?: number;
  /** All and live threads, as the script counts them. */
  readonly tasks?: string;
}

function block({ pid, name = "sleep", state = "S", inner = [], ticks = 100, tasks = "1 0" }: Words): readonly string[] {
  const stat = [state, 0, ...Array.from({ length: 17 }, () => 1), ticks, ...Array.from({ length: 30 }, () => 0)];
  return [
    `process ${pid}`,
    `Name:\t${name}`,
    `State:\t${state} (whatever)`,
    `NSpid:\t${[pid, ...inner].join("\t")}`,
    `stat ${stat.join(" ")}`,
    ...(state === "Z" ? [`tasks ${tasks}`] : []),
  ];
}

const SHELL = 42;
const MOUNT = "mount proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0";

function answer(processes: readonly Words[], { shell = SHELL, self = SHELL, mounts = [MOUNT], btime = String(BOOT / SECOND) } = {}): string {
  const all = [{ pid: 1, name: "tini" }, ...processes, { pid: SHELL, name: "sh", ticks: 500_000 }];
  return [
    `lock-janitor-probe-begin ${shell}`,
    `self ${self}`,
    `btime ${btime}`,
    ...mounts,
    `pids ${all.map(({ pid }) => pid).join(" ")}`,
    ...all.flatMap(block),
    `lock-janitor-probe-end ${shell}`,
    "",
  ].join("\n");
}

function parse(text: string, containerStartedAt?: bigint): ProbeAnswer {
  return parseProbe(ENCODER.encode(text), containerStartedAt);
}

function problemOf(text: string): string {
  const parsed = parse(text);
  return parsed.kind === "looked" ? "it was believed" : parsed.problem;
}

function find(parsed: ProbeAnswer, pid: number): object | undefined {
  return parsed.kind === "looked" ? parsed.processes.find((process) => process.pid === pid) : undefined;
}

describe("what a container's shell answers", () => {
  it("is every process, with its name, its start and its inner numbers", () => {
    const parsed = parse(answer([{ pid: 300, name: "pulumi", ticks: 4_250, inner: [17, 7] }]));
    expect(parsed).toMatchObject({ kind: "looked", processes: [{ pid: 1 }, { pid: 300 }, { pid: SHELL }] });
    expect(find(parsed, 300)).toEqual({ pid: 300, name: "pulumi", zombie: false, innerPids: [17, 7], startedAt: BOOT + (4_250n * SECOND) / 100n });
  });

  it("leaves out a process that vanished while they were read", () => {
    const text = answer([{ pid: 300 }]).replace(/process 300\n(?:.*\n){4}/, "process 300\nvanished\n");
    expect(parse(text)).toMatchObject({ kind: "looked", processes: [{ pid: 1 }, { pid: SHELL }] });
  });

  it.each<[string, Words, boolean]>([
    ["a zombie alone", { pid: 300, state: "Z" }, true],
    ["a zombie whose threads are all dead", { pid: 300, state: "Z", tasks: "3 0" }, true],
    ["a zombie with a thread that lives", { pid: 300, state: "Z", tasks: "3 1" }, false],
    ["a zombie whose threads could not be seen", { pid: 300, state: "Z", tasks: "0 0" }, false],
    ["a stopped process lives", { pid: 300, state: "T" }, false],
    ["a process that waits for a disk lives", { pid: 300, state: "D" }, false],
    ["one that is traced lives", { pid: 300, state: "t" }, false],
    ["whatever else a state may be lives", { pid: 300, state: "X" }, false],
  ])("%s", (_, words, zombie) => {
    expect(find(parse(answer([words])), 300)).toMatchObject({ zombie });
  });

  it("a process that died between its two files is no zombie yet", () => {
    expect(find(parse(answer([{ pid: 300, state: "Z" }]).replace("State:\tZ", "State:\tR")), 300)).toMatchObject({ zombie: false });
  });

  it("1.5 a clock that was set forward after the lock does not make a process younger than its container says", () => {
    // Process 1 began one second after boot, the container at noon, and pulumi 40 s later; btime is ten minutes late.
    const noon = at("2026-03-10T12:00:00Z");
    const parsed = parse(answer([{ pid: 300, ticks: 4_100 }], { btime: String(noon / SECOND + 599n) }), noon);
    expect(find(parsed, 300)).toMatchObject({ startedAt: noon + 40n * SECOND });
  });

  it("the earlier of two times is believed, so a shared process 1 that is older does no harm", () => {
    expect(find(parse(answer([{ pid: 300, ticks: 4_100 }]), at("2026-03-10T12:00:00Z")), 300)).toMatchObject({ startedAt: BOOT + 41n * SECOND });
  });
});

describe("an answer that proves nothing", () => {
  it.each<[string, string, RegExp]>([
    ["nothing", "", /answered nothing/],
    ["an error message", "sh: can't open '/proc/self/stat': No such file or directory\n", /where .* belongs/],
    [
      "no process 1",
      answer([])
        .replace("pids 1 42", "pids 42")
        .replace(/process 1\n(?:.*\n){4}/, ""),
      /process 1 or the shell is missing/,
    ],
    ["process 1 vanished", answer([]).replace(/process 1\n(?:.*\n){4}/, "process 1\nvanished\n"), /process 1 or the shell is missing/],
    ["no shell", answer([], { shell: 43, self: 43 }), /process 1 or the shell is missing/],
    ["the /proc of another namespace", answer([], { self: 7_042 }), /not that of its own processes/],
    ["hidepid", answer([], { mounts: ["mount proc /proc proc rw,hidepid=2 0 0"] }), /hidepid/],
    ["hidepid by its name", answer([], { mounts: ["mount proc /proc proc rw,relatime,hidepid=invisible 0 0"] }), /hidepid/],
    ["processes only", answer([], { mounts: ["mount proc /proc proc rw,subset=pid 0 0"] }), /subset/],
    ["no mount", answer([], { mounts: [] }), /not the kernel's/],
    ["a folder in its place", answer([], { mounts: [MOUNT, "mount /dev/vda /proc ext4 rw 0 0"] }), /not the kernel's/],
    ["something that only mentions /proc", answer([], { mounts: ["mount a/b /proc/sys proc rw 0 0"] }), /not the kernel's/],
    ["a process that may not be read", answer([{ pid: 300 }]).replace(/process 300\n(?:.*\n){4}/, "process 300\nunreadable\n"), /300 may not be looked at/],
    ["a number twice", answer([{ pid: 300 }, { pid: 300 }]), /twice/],
    ["a number that was never expanded", answer([]).replace("pids 1 42", "pids [0-9]*"), /something else belongs/],
    ["a process that says it is another", answer([{ pid: 300 }]).replace("NSpid:\t300", "NSpid:\t301"), /another/],
    ["no btime", answer([], { btime: "" }), /something else belongs/],
    ["a line too many", answer([]).replace("process 42", "process 41\nprocess 42"), /order of its list/],
    ["words behind its end", `${answer([])}more\n`, /behind its end/],
    ["the same answer twice", answer([]) + answer([]), /behind its end/],
    ["an end without its newline", answer([]).slice(0, -1), /cut off/],
    ["the end of another shell", answer([]).replace("probe-end 42", "probe-end 4"), /another shell/],
  ])("%s", (_, text, problem) => {
    expect(problemOf(text)).toMatch(problem);
  });

  it("more than is read", () => {
    expect(parseProbe(new Uint8Array(MAX_PROBE_BYTES + 1))).toMatchObject({ kind: "could-not-look", problem: expect.stringContaining("too long") });
  });

  it("what it quotes does not act on a terminal", () => {
    expect(problemOf("\u{1b}[2J\n")).not.toContain("\u{1b}");
  });
});

// A name of up to 15 bytes as the kernel writes it into status: newlines and backslashes are escaped, everything else is as it is.
const processName = fc.oneof(
  fc.constantFrom("pulumi", ") S 1 1", "(((", "a b c", "vanished", "unreadable", "process 1", "\u{1b}[31m", "", "Name:", "lock-janitor-pr"),
  fc.string({ maxLength: 15 }).map((text) => text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")),
);
const words: fc.Arbitrary<Words> = fc.record({
  pid: fc.integer({ min: 100, max: 4_194_304 }),
  name: processName,
  state: fc.constantFrom("S", "R", "D", "T", "Z"),
  inner: fc.array(fc.integer({ min: 1, max: 99_999 }), { maxLength: 3 }),
  ticks: fc.integer({ min: 0, max: 1_000_000_000 }),
  tasks: fc.constantFrom("1 0", "2 1", "0 0"),
});
const several = fc.uniqueArray(words, { maxLength: 4, selector: ({ pid }) => pid });

function pidsOf(text: string): readonly number[] {
  return (/^pids (.*)$/m.exec(text)?.[1] ?? "").split(" ").map(Number);
}

/** The processes of an answer that is believed; those of its list where it is not. */
function pidsIn(parsed: ProbeAnswer, text: string): readonly number[] {
  return parsed.kind === "looked" ? parsed.processes.map(({ pid }) => pid) : pidsOf(text);
}

describe("P1: an answer is believed whole, or not at all", () => {
  it("whatever the processes are called", () => {
    fc.assert(
      fc.property(several, (processes) => {
        const parsed = parse(answer(processes));
        for (const { pid, name } of processes) expect(find(parsed, pid)).toMatchObject({ pid, name });
      }),
    );
  });

  it("cut off at any byte", () => {
    fc.assert(
      fc.property(several, (processes) => {
        const bytes = ENCODER.encode(answer(processes));
        for (let length = 0; length < bytes.length; length += 1) expect(parseProbe(bytes.subarray(0, length)).kind).toBe("could-not-look");
      }),
      { numRuns: 10 },
    );
  });

  it("with any piece left out", () => {
    fc.assert(
      fc.property(several, fc.nat(), fc.nat({ max: 400 }), (processes, from, length) => {
        const text = answer(processes);
        const start = from % text.length;
        const left = text.slice(0, start) + text.slice(start + length);
        const parsed = parse(left);
        expect(pidsIn(parsed, left)).toEqual(pidsOf(left));
      }),
      { numRuns: 2_000 },
    );
  });

  it("with its lines left out, doubled or in another order", () => {
    const change = fc.record({ from: fc.nat(), to: fc.nat(), kind: fc.constantFrom("drop", "double", "swap") });
    fc.assert(
      fc.property(several, change, (processes, { from, to, kind }) => {
        const lines = answer(processes).split("\n");
        const [a, b] = [from % lines.length, to % lines.length];
        const changed = lines.flatMap((line, index) => {
          if (kind === "swap") return [index === a ? (lines[b] ?? "") : index === b ? (lines[a] ?? "") : line];
          return index === a ? (kind === "drop" ? [] : [line, line]) : [line];
        });
        const parsed = parse(changed.join("\n"));
        // Two lines of one kind may change places; no process may be lost.
        const sorted = (pids: readonly number[]): readonly number[] => pids.toSorted((x, y) => x - y);
        const all = sorted([1, SHELL, ...processes.map(({ pid }) => pid)]);
        expect(parsed.kind === "looked" ? sorted(parsed.processes.map(({ pid }) => pid)) : all).toEqual(all);
      }),
      { numRuns: 2_000 },
    );
  });

  it("garbage makes it throw as little as it is believed", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 500 }),
          fc.string({ maxLength: 300 }).map((text) => ENCODER.encode(text)),
        ),
        (bytes) => {
          expect(parseProbe(bytes).kind).toBe("could-not-look");
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it("any byte changed into another: no process is lost", () => {
    fc.assert(
      fc.property(several, fc.nat(), fc.nat({ max: 255 }), (processes, where, value) => {
        const bytes = ENCODER.encode(answer(processes));
        bytes[where % bytes.length] = value;
        const parsed = parseProbe(bytes);
        const changed = new TextDecoder().decode(bytes);
        expect(pidsIn(parsed, changed)).toEqual(pidsOf(changed));
      }),
      { numRuns: 2_000 },
    );
  });
});
