import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { describe, expect, it } from "vitest";

import { VERSION } from "../src/version.ts";

const PAGES = [
  "README.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  ...readdirSync("docs").flatMap((name) => (name.endsWith(".md") ? [`docs/${name}`] : [])),
];

/** A page without its blocks of code, which hold comments that look like headings. */
function readProse(page: string): string {
  return readFileSync(page, "utf8").replace(/^```[\s\S]*?^```/gm, "");
}

/** The anchors that GitHub gives to headings. */
function listAnchors(page: string): readonly string[] {
  return Array.from(readProse(page).matchAll(/^#+ (.*)$/gm), ([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

describe("the pages", () => {
  it.each(PAGES)("every link of %s leads somewhere", (page) => {
    const broken = Array.from(readProse(page).matchAll(/\]\(([^)\s]+)\)/g), ([, target = ""]) => target)
      .filter((target) => !/^https?:/.test(target))
      .filter((target) => {
        const [path = "", anchor] = target.split("#");
        const file = path === "" ? page : join(dirname(page), path);
        return !existsSync(file) || (anchor !== undefined && !listAnchors(file).includes(anchor));
      });
    expect(broken).toEqual([]);
  });

  it("each page of docs/ is linked from the README", () => {
    const readme = readFileSync("README.md", "utf8");
    expect(PAGES.filter((page) => page.startsWith("docs/") && !readme.includes(`(${page})`))).toEqual([]);
  });

  it("each promise is in the README, with a command that shows it", () => {
    const rows = readFileSync("README.md", "utf8").match(/^\| \*\*P\d\*\* .*npm .*$/gm) ?? [];
    expect(rows.map((row) => row.slice(4, 6))).toEqual(["P1", "P2", "P3", "P4", "P5", "P6", "P7"]);
  });

  it("the changelog has this version", () => {
    expect(readFileSync("CHANGELOG.md", "utf8")).toContain(`\n## [${VERSION}] - `);
  });
});
