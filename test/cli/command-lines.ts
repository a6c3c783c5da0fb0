import { readdirSync, readFileSync } from "node:fs";

/** A command line that a page tells a person to type. */
export interface CommandLine {
  readonly page: string;
  readonly text: string;
}

const SHELL_LANGUAGES = new Set(["sh", "bash", "shell", "console", ""]);

/** The pages that people read. */
export function listPages(): readonly string[] {
  const docs = readdirSync("docs", { recursive: true, encoding: "utf8" }).map((name) => `docs/${name}`);
  return [...readdirSync("."), ...docs].filter((name) => name.endsWith(".md")).toSorted();
}

/** Every command line of a page: those of its blocks of shell, without comments, and those in code between words that begin with `npm`. */
export function findCommandLines(page: string, markdown = readFileSync(page, "utf8")): readonly CommandLine[] {
  const blocks = Array.from(markdown.matchAll(/^( *)```([a-z]*)\n([^]*?)^\1```/gm), ([, , language = "", text = ""]) => ({ language, text }));
  const typed = blocks.filter(({ language }) => SHELL_LANGUAGES.has(language)).flatMap(({ language, text }) => readBlock(language, text));
  const prose = markdown.replaceAll(/^( *)```[^]*?^\1```/gm, "");
  const inline = Array.from(prose.matchAll(/`(npm [^`]+)`/g), ([, text = ""]) => text);
  return [...typed, ...inline].flatMap((line) => splitCommands(line)).map((text) => ({ page, text }));
}

/** In a transcript the lines behind a prompt are typed; in a block of shell all are. */
function readBlock(language: string, text: string): readonly string[] {
  const lines = text.replaceAll(/\\\n\s*/g, "").split("\n");
  const transcript = lines.some((line) => line.startsWith("$ "));
  if (transcript) return lines.filter((line) => line.startsWith("$ ")).map((line) => line.slice(2));
  return language === "" ? [] : lines.map((line) => line.replace(/(^|\s+)#.*$/, "").trim()).filter((line) => line !== "");
}

function splitCommands(line: string): readonly string[] {
  return line.split(" && ").map((part) => part.trim());
}
