import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { runCommand } from "./command.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "completion-"));
  const command = join(folder, "pulumi-lock-janitor");
  writeFileSync(command, `#!/bin/sh\nexec "${process.execPath}" "${resolve("dist/main.js")}" "$@"\n`);
  chmodSync(command, 0o755);
});
afterEach(() => rmSync(folder, { recursive: true }));

async function scriptFor(shell: string): Promise<string> {
  const { exitCode, stdout, stderr } = await runCommand(["completion", shell]);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  const file = join(folder, `completion.${shell}`);
  writeFileSync(file, stdout);
  return file;
}

/** What bash offers behind the given words, the last of which is being typed. */
async function completeInBash(words: readonly string[]): Promise<readonly string[]> {
  const driver = `
    source "$1"; shift
    COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMP_LINE="$*"; COMP_POINT=\${#COMP_LINE}; COMP_TYPE=9
    function=$(complete -p pulumi-lock-janitor | sed -E 's/.*-F ([^ ]+).*/\\1/')
    "$function" pulumi-lock-janitor "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD-1]}"
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const output = execFileSync("bash", ["-c", driver, "bash", await scriptFor("bash"), "pulumi-lock-janitor", ...words], {
    encoding: "utf8",
    env: { PATH: `${folder}:${process.env["PATH"] ?? ""}`, HOME: folder },
  });
  return output
    .split("\n")
    .map((line) => line.trim().split(/\s/)[0] ?? "")
    .filter((word) => word !== "");
}

describe("in a real bash", () => {
  it.each<readonly [words: readonly string[], offered: readonly string[], not: readonly string[]]>([
    [[""], ["sweep", "watch", "check", "unlock", "restore", "audit", "config", "completion"], ["--min-age"]],
    [["sw"], ["sweep"], ["watch"]],
    [["audit", ""], ["list", "show"], ["sweep"]],
    [["sweep", "--min"], ["--min-age"], ["--force"]],
    [["unlock", "--fo"], ["--force"], ["--min-age"]],
    [["audit", "list", "--out"], ["--outcome", "--output"], ["--min-age"]],
    [["sweep", "--output", ""], ["table", "json", "markdown"], ["--min-age"]],
    [["audit", "list", "--outcome", "del"], ["deleted", "deleted-unconfirmed"], ["open"]],
    [["completion", ""], ["bash", "zsh", "fish", "powershell"], ["sweep"]],
  ])("%j", async (words, offered, not) => {
    const shown = await completeInBash(words);
    expect(shown).toEqual(expect.arrayContaining([...offered]));
    for (const word of not) expect(shown).not.toContain(word);
  });
});

/** Whether a shell takes a script, without running it; undefined where the shell is not on this machine. */
function checkSyntax(shell: string, file: string): string | undefined {
  const { error, status, stderr } = spawnSync(shell, shell === "fish" ? ["--no-execute", file] : ["-n", file], { encoding: "utf8" });
  if (error !== undefined) return undefined;
  return status === 0 ? "" : stderr;
}

describe("the scripts", () => {
  it.each(["bash", "zsh", "fish"])("%s takes its own, where it is installed, and the script asks the hidden command", async (shell) => {
    const file = await scriptFor(shell);
    expect(checkSyntax(shell, file) ?? "").toBe("");
    expect(readFileSync(file, "utf8")).toMatch(/pulumi-lock-janitor.* complete --/);
  });

  it("P7: a word of the command line is never evaluated: it may have been pasted from a lock", async () => {
    const bait = join(folder, "bait");
    await completeInBash(["unlock", `$(touch ${bait})`, `\`touch ${bait}\``, `;touch ${bait};`, ""]);
    expect(existsSync(bait)).toBe(false);
  });

  it("that of PowerShell closes what it opens", async () => {
    const text = readFileSync(await scriptFor("powershell"), "utf8");
    expect(text).toContain("Register-ArgumentCompleter");
    const count = (character: string): number => text.split(character).length - 1;
    expect([count("{"), count("(")]).toEqual([count("}"), count(")")]);
  });

  it("another shell is refused with those that there are: exit 2", async () => {
    const { exitCode, stderr } = await runCommand(["completion", "tcsh"]);
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(/zsh.*bash.*fish.*powershell/);
  });
});
