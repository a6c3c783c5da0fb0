// The very command of the probe, run by real shells on this machine's own /proc.
import { spawn, spawnSync, type ChildProcess, type SpawnSyncOptionsWithBufferEncoding } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { afterEach, describe, expect, it } from "vitest";

import { parseProbe, PROBE_COMMAND, type ProbeAnswer } from "../../src/core/process-probe.ts";
import { fromMilliseconds, SECOND } from "../../src/core/time.ts";

const [, , SCRIPT = ""] = PROBE_COMMAND;
const SHELLS = [["sh"], ["dash"], ["bash"], ["bash", "--posix"], ["busybox", "sh"], ["busybox", "ash"], ["mksh"], ["zsh", "--emulate", "sh"]];
// What a container is known to have, so that nothing is found outside the shell.
const NOTHING: SpawnSyncOptionsWithBufferEncoding = {
  env: { PATH: "/nowhere" },
  stdio: ["ignore", "pipe", "ignore"],
  encoding: "buffer",
  maxBuffer: 16 * 1_024 * 1_024,
};

function pathOf(name: string): string | undefined {
  const found = spawnSync("/bin/sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).stdout.trim();
  return found === "" ? undefined : found;
}

const linux = process.platform === "linux";
const shells = linux
  ? SHELLS.flatMap(([name = "", ...words]): [string, readonly string[]][] => {
      const path = pathOf(name);
      return path === undefined ? [] : [[[name, ...words].join(" "), [path, ...words]]];
    })
  : [];
const inNamespace = ["--user", "--map-root-user", "--pid", "--fork"];
const mayNest = linux && spawnSync("unshare", [...inNamespace, "true"]).status === 0;

function probe([shell = "", ...words]: readonly string[]): ProbeAnswer {
  const { stdout } = spawnSync(shell, [...words, "-c", SCRIPT], NOTHING);
  return parseProbe(stdout);
}

function find(answer: ProbeAnswer, pid: number | undefined): object | undefined {
  if (answer.kind !== "looked") throw new Error(answer.problem);
  return answer.processes.find((process) => process.pid === pid);
}

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) {
    child.kill("SIGCONT");
    child.kill("SIGKILL");
  }
});

/** Starts a program that goes on until the test ends, and gives what it says first. */
async function start(command: string, ...words: readonly string[]): Promise<{ readonly child: ChildProcess; readonly said: string }> {
  const child = spawn(command, words, { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  const said = await new Promise<string>((done) => {
    child.stdout.once("data", (data: Buffer) => done(data.toString().trim()));
  });
  return { child, said };
}

async function waitForState(pid: number, state: string): Promise<void> {
  while (!readFileSync(`/proc/${pid}/status`, "utf8").includes(`State:\t${state}`)) await sleep(5);
}

describe.runIf(linux).each(shells)("%s", (_, shell) => {
  it("sees every process, this one with the time at which it began", () => {
    const answer = probe(shell);
    expect(find(answer, 1)).toBeDefined();
    const startedAt = fromMilliseconds(Date.now() - process.uptime() * 1_000);
    expect(find(answer, process.pid)).toMatchObject({
      zombie: false,
      startedAt: expect.toSatisfy((at: bigint) => at > startedAt - 3n * SECOND && at < startedAt + 3n * SECOND),
    });
    expect(find(answer, 4_194_305)).toBeUndefined();
  });

  it("tells a zombie, a stopped child and one that lives apart, and one that was reaped is gone", async () => {
    const parent = await start("/bin/sh", "-c", "sleep 0.2 & echo $!; exec sleep 60");
    const zombie = Number(parent.said);
    await waitForState(zombie, "Z");
    const stopped = await start("/bin/sh", "-c", "echo here; read line");
    stopped.child.kill("SIGSTOP");
    await waitForState(stopped.child.pid ?? 0, "T");
    const reaped = spawnSync("true").pid;
    const answer = probe(shell);
    expect(find(answer, zombie)).toMatchObject({ zombie: true });
    expect(find(answer, parent.child.pid)).toMatchObject({ name: "sleep", zombie: false });
    expect(find(answer, stopped.child.pid)).toMatchObject({ zombie: false });
    expect(find(answer, reaped)).toBeUndefined();
  });

  it.each([") Z 1 (", "a\\nb", "-n", "%s%n", "\\\\", "\\t x", "", " ", "pulumi", "\u{1b}[31m", "*", "äöü", "\\377\\201\\210"])(
    "a process called %j does not break it",
    async (name) => {
      const named = await start("/bin/sh", "-c", `printf -- '${name.replaceAll("%", "%%")}' > /proc/$$/comm; echo here; read line`);
      expect(find(probe(shell), named.child.pid)).toMatchObject({ zombie: false, pid: named.child.pid });
    },
  );
});

describe.runIf(mayNest)("PID namespaces", () => {
  it("1.6 a process in a nested one has its inner number, too", async () => {
    await start("unshare", ...inNamespace, "sh", "-c", "echo here; read line; true");
    const answer = probe(["/bin/sh"]);
    expect(answer).toMatchObject({ kind: "looked", processes: expect.arrayContaining([expect.objectContaining({ innerPids: [1] })]) });
  });

  it("the shell may be process 1 of its own", () => {
    const { stdout } = spawnSync("unshare", [...inNamespace, "--mount-proc", "/bin/sh", "-c", SCRIPT], { encoding: "buffer" });
    expect(parseProbe(stdout)).toMatchObject({ kind: "looked", processes: [{ pid: 1, zombie: false }] });
  });

  it("the /proc of another namespace is not believed", () => {
    const { stdout } = spawnSync("unshare", [...inNamespace, "/bin/sh", "-c", SCRIPT], { encoding: "buffer" });
    expect(parseProbe(stdout)).toMatchObject({ kind: "could-not-look", problem: expect.stringContaining("not that of its own processes") });
  });

  it("hidepid is noticed", () => {
    const script = `mount -t proc -o hidepid=invisible proc /proc && exec /bin/sh -c "$0"`;
    const { stdout } = spawnSync("unshare", [...inNamespace, "--mount", "/bin/sh", "-c", script, SCRIPT], { encoding: "buffer" });
    expect(parseProbe(stdout)).toMatchObject({ kind: "could-not-look", problem: expect.stringContaining("hidepid") });
  });
});
