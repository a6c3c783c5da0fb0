// Helm's command lines of README and docs, as the real helm reads them, without a cluster.
import { expect, it } from "vitest";

import { findCommandLines, listPages } from "../cli/command-lines.ts";
import { runHelm } from "./peers/helm.ts";

const LINES = listPages()
  .flatMap((page) => findCommandLines(page))
  .map(({ text }) => text)
  .filter((text) => text.startsWith("helm "));

function wordsOf(text: string): readonly string[] {
  return (text.match(/'[^']*'|\S+/g) ?? []).slice(1).map((word) => word.replaceAll("'", ""));
}

it.each(LINES.filter((text) => text.startsWith("helm install ")))("%s", (text) => {
  const { exitCode, stdout, stderr } = runHelm(["template", ...wordsOf(text).slice(1)].filter((word) => word !== "--create-namespace"));
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toContain("registry.example/ops/pulumi-lock-janitor");
});

it.each(LINES.filter((text) => !text.startsWith("helm install ")))("%s: helm has these flags", (text) => {
  const [verb = "", ...words] = wordsOf(text);
  const { stdout } = runHelm([verb, "--help"]);
  expect(words.filter((word) => word.startsWith("--") && !stdout.includes(word))).toEqual([]);
});
