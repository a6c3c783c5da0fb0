// What a person at a terminal sees and is asked; `script` plays the terminal.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { resolve } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { Workspace } from "../cli/snapshot-files.ts";

let workspace: Workspace;
let key: string;
beforeEach(() => {
  workspace = new Workspace();
  key = workspace.addLock("iac-runner-gone");
});
afterEach(() => workspace.remove());

/** Runs the command on a terminal, answering each of its questions in turn. */
async function runOnTerminal(
  words: readonly string[],
  answers: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly screen: string; readonly exitCode: number | null }> {
  const command = [process.execPath, resolve("dist/main.js"), ...words].map((word) => `'${word}'`).join(" ");
  const child = spawn("script", ["--quiet", "--return", "--command", `stty cols 140; ${command}`, "/dev/null"], {
    env: { PATH: process.env["PATH"] ?? "", TERM: "xterm-256color", ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const left = [...answers];
  let screen = "";
  let answered = 0;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    screen += text;
    const questions = screen.match(/◆/g)?.length ?? 0;
    if (questions > answered && left.length > 0) {
      answered += 1;
      child.stdin.write(left.shift() ?? "");
    }
  });
  const exitCode = await new Promise<number | null>((done) => {
    child.once("close", done);
  });
  return { screen, exitCode };
}

describe("--delete on a terminal", () => {
  it("shows the plan, asks for the statement and for the removal, and removes after two yes", async () => {
    const { screen, exitCode } = await runOnTerminal(workspace.sweepWords("--delete"), ["y", "y"]);
    expect(screen).toContain("Plan");
    expect(screen).toContain("Does every pod that writes to");
    expect(screen).toContain("Remove 1 stale lock?");
    expect(screen).toContain("on your word: --exclusive");
    expect({ exitCode, there: existsSync(workspace.path(key)) }).toEqual({ exitCode: 0, there: false });
  });

  it.each([
    ["no to the first question", ["n"]],
    ["no to the second", ["y", "n"]],
    ["Ctrl-C", ["\u0003"]],
  ])("%s: nothing is removed, exit 4", async (_, answers) => {
    const { exitCode } = await runOnTerminal(workspace.sweepWords("--delete"), answers);
    expect({ exitCode, there: existsSync(workspace.path(key)) }).toEqual({ exitCode: 4, there: true });
  });

  it("--yes with --exclusive asks nothing", async () => {
    const { screen } = await runOnTerminal(workspace.sweepWords("--delete", "--exclusive", "--yes"), []);
    expect(screen).not.toContain("◆");
    expect(existsSync(workspace.path(key))).toBe(false);
  });
});

describe("colour", () => {
  // oxlint-disable-next-line eslint/no-control-regex -- colours are control characters.
  const COLOUR = /\u001b\[\d+m/;
  it("is used on a terminal, and not with NO_COLOR", async () => {
    expect((await runOnTerminal(workspace.sweepWords("--quiet"), [])).screen).toMatch(COLOUR);
    expect((await runOnTerminal(workspace.sweepWords("--quiet"), [], { NO_COLOR: "1" })).screen).not.toMatch(COLOUR);
  });
});
