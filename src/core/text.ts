// Everything that moves a cursor, changes a colour, hides or reorders text: control (Cc), format (Cf: bidirectional
// overrides, zero-width, soft hyphen), line and paragraph separators (Zl, Zp), lone surrogates (Cs), unassigned (Cn) and private use (Co).
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Cn}\p{Co}]/gu;

/**
 * Makes text from a lock, a Stack or a server fit to be shown: every character that a terminal, a log viewer or a
 * renderer could act upon is written as its code point, `\u{1b}`.
 */
export function escapeUntrusted(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** Orders text by its code units: the same everywhere, whatever the locale. For `toSorted`. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A document as JSON in which nothing acts on a terminal: what `escapeUntrusted` would escape is written as JSON's own `\\uXXXX`. */
export function formatJson(document: object): string {
  return Array.from(formatJsonParts(document)).join("");
}

/** In characters. */
const PART = 65_536;

/** What `formatJson` gives, in parts: a report of a hundred thousand locks as one string would take more memory than the sweep. */
export function* formatJsonParts(document: object): Generator<string> {
  let part = "{";
  let before = "";
  for (const [name, value] of Object.entries<unknown>({ ...document })) {
    if (value === undefined) continue;
    part += `${before}\n  ${JSON.stringify(name)}: `;
    before = ",";
    if (!Array.isArray(value) || value.length === 0) {
      part += indentJson(value, "  ");
      continue;
    }
    let start = "[";
    for (const item of value) {
      part += `${start}\n    ${indentJson(item, "    ")}`;
      start = ",";
      if (part.length < PART) continue;
      yield escapeJson(part);
      part = "";
    }
    part += "\n  ]";
  }
  yield escapeJson(`${part}${before === "" ? "" : "\n"}}\n`);
}

/** No string in JSON holds a line break, so each one is between two lines. */
function indentJson(value: unknown, indent: string): string {
  return (JSON.stringify(value, undefined, 2) ?? "null").replaceAll("\n", `\n${indent}`);
}

function escapeJson(json: string): string {
  return json.replace(UNPRINTABLE, (character) =>
    character === "\n"
      ? character
      : Array.from({ length: character.length }, (_, unit) => `\\u${character.charCodeAt(unit).toString(16).padStart(4, "0")}`).join(""),
  );
}

/** A document as one line of JSON, with nothing in it that acts on a terminal or a log viewer. */
export function formatLine(document: object): string {
  return `${escapeJson(JSON.stringify(document))}\n`;
}

/** Untrusted text for a message: escaped, and cut to a readable length. */
export function quoteUntrusted(text: string, longest = 120): string {
  const characters = Array.from(text);
  const cut = characters.length > longest ? `${characters.slice(0, longest).join("")}…` : text;
  return `"${escapeUntrusted(cut)}"`;
}

/** A number of things: "1 lock", "3 locks". */
export function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** A list in words: "a", "a and b", "a, b and 3 more". */
export function joinSome(items: readonly string[], most = 3): string {
  if (items.length <= 1) return items.join("");
  if (items.length <= most) return `${items.slice(0, -1).join(", ")} and ${items.at(-1) ?? ""}`;
  return `${items.slice(0, most).join(", ")} and ${items.length - most} more`;
}
