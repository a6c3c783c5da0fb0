import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { resolve } from "node:path";

import Builder from "fast-xml-builder";
import stringWidth from "string-width";

import { makeDemoFolder } from "./demo-folder.ts";

/** A piece of a line in one look. */
interface Piece {
  readonly column: number;
  readonly text: string;
  readonly look: string;
}

// The colours of a dark terminal, by the number that the escape sequence has.
const COLOURS: ReadonlyMap<number, string> = new Map([
  [31, "#ff7b72"],
  [32, "#7ee787"],
  [33, "#e3b341"],
  [36, "#79c0ff"],
]);
const PLAIN = "#e6edf3";
const CELL = { width: 8.4, height: 19 } as const;
const MARGIN = 16;

/** What a person sees of the demo's dry run: the command as it is typed, and what it writes to a terminal of that many columns. Its clock stands still, and dates and the folder are made the same for every run. */
export function recordDemo(columns: number, env: Readonly<Record<string, string>> = {}): string {
  const { folder, now, where } = makeDemoFolder();
  try {
    const command = [process.execPath, resolve("dist/main.js"), "sweep", ...where].map((word) => `'${word}'`).join(" ");
    const { stdout } = spawnSync("script", ["--quiet", "--return", "--command", `stty cols ${columns}; ${command}`, "/dev/null"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
      env: { PATH: process.env["PATH"] ?? "", TERM: "xterm-256color", NODE_OPTIONS: `--import=data:text/javascript,Date.now=()=>${now}`, ...env },
    });
    return stdout
      .replaceAll("\r\n", "\n")
      .replaceAll(folder, "/srv/demo")
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "2026-03-10T12:00:00Z");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Draws what a terminal shows as SVG. Each piece of text is held to its columns, whatever the reader's font is. */
export function drawTerminal(output: string, columns: number): string {
  const lines = output.trimEnd().split("\n").map(splitLine);
  const [width, height] = [Math.ceil(columns * CELL.width) + 2 * MARGIN, lines.length * CELL.height + 2 * MARGIN];
  const texts = lines.flatMap((pieces, row) => pieces.map((piece) => drawPiece(piece, row)));
  const document = {
    svg: {
      "@xmlns": "http://www.w3.org/2000/svg",
      "@width": width,
      "@height": height,
      "@viewBox": `0 0 ${width} ${height}`,
      "@role": "img",
      title: "A dry run in a terminal",
      rect: { "@width": width, "@height": height, "@rx": 8, "@fill": "#0d1117" },
      g: { "@font-family": "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace", "@font-size": 14, text: texts },
    },
  };
  const builder = new Builder({ attributeNamePrefix: "@", ignoreAttributes: false, format: true, suppressEmptyNode: true, suppressBooleanAttributes: false });
  return builder.build(document);
}

function drawPiece({ column, text, look }: Piece, row: number): object {
  const codes = look.split(";").map(Number);
  const colour = codes.map((code) => COLOURS.get(code)).find((found) => found !== undefined);
  return {
    "@x": round(MARGIN + column * CELL.width),
    "@y": MARGIN + row * CELL.height + 14,
    "@textLength": round(stringWidth(text) * CELL.width),
    "@lengthAdjust": "spacingAndGlyphs",
    "@fill": colour ?? PLAIN,
    ...(codes.includes(1) ? { "@font-weight": "bold" } : {}),
    ...(codes.includes(2) ? { "@opacity": 0.65 } : {}),
    // Blanks within a piece would be taken together.
    "#text": text.replaceAll(" ", "\u00a0"),
  };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** Splits a line at its colours and at wide gaps, so that columns stay where they are. */
function splitLine(line: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let [column, looks]: [number, readonly string[]] = [0, []];
  // oxlint-disable-next-line eslint/no-control-regex -- colours are control characters.
  for (const part of line.split(/(\u001b\[[\d;]*m)/)) {
    // oxlint-disable-next-line eslint/no-control-regex -- colours are control characters.
    const code = /^\u001b\[([\d;]*)m$/.exec(part)?.[1];
    if (code !== undefined) {
      looks = applyCode(looks, code);
      continue;
    }
    for (const text of part.split(/( {2,})/)) {
      if (text.trim() !== "") {
        const indent = text.length - text.trimStart().length;
        pieces.push({ column: column + indent, text: text.trim(), look: looks.join(";") });
      }
      column += stringWidth(text);
    }
  }
  return pieces;
}

/** The looks that are on after a code: 39 ends a colour, 22 bold and dim, 0 all. */
function applyCode(looks: readonly string[], code: string): readonly string[] {
  if (code === "" || code === "0") return [];
  if (code === "39") return looks.filter((look) => !COLOURS.has(Number(look)));
  if (code === "22") return looks.filter((look) => look !== "1" && look !== "2");
  return [...looks, code];
}
