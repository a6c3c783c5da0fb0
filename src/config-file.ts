import { readFileSync } from "node:fs";

import { isMap, isNode, isScalar, LineCounter, parseDocument, type Document } from "yaml";

import { describeError, JanitorError } from "./errors.ts";

/** A configuration file as read: its settings, and where in it a thing is. */
export interface ConfigFile {
  readonly values: ReadonlyMap<string, unknown>;
  /** A place for a message, as in `config.yaml, line 3, column 5`: of a value, or of the name of a key. */
  readonly locate: (path: readonly PropertyKey[], what: "value" | "name") => string;
}

/** Reads a YAML file. Throws `config-invalid` with line and column. */
export function readConfigFile(file: string): ConfigFile {
  const text = readText(file);
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const describe = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${file}, line ${line}, column ${col}`;
  };
  const [problem] = document.errors;
  if (problem !== undefined)
    throw new JanitorError(
      "config-invalid",
      `${describe(problem.pos[0])}: ${(problem.message.split("\n")[0] ?? "").replace(/ at line \d+, column \d+:?$/, "")}`,
      {
        cause: problem,
      },
    );
  const content = toValue(document, file);
  if (content === null) return { values: new Map(), locate: () => file };
  if (typeof content !== "object" || Array.isArray(content))
    throw new JanitorError("config-invalid", `${file}: a configuration is a mapping of settings`, { hint: 'Write it as in "minAge: 5m", one setting a line.' });
  return {
    values: new Map(Object.entries<unknown>({ ...content })),
    locate: (path, what) => describe(findOffset(document, path, what)),
  };
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new JanitorError("config-invalid", `the configuration file ${file} could not be read: ${describeError(error)}`, {
      cause: error,
      hint: "--config and PULUMI_LOCK_JANITOR_CONFIG name it.",
    });
  }
}

/** Throws `config-invalid` for aliases that would grow without end. */
function toValue(document: Document.Parsed, file: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw new JanitorError("config-invalid", `${file}: ${describeError(error)}`, { cause: error });
  }
}

/** The place of the deepest node of a path that there is. */
function findOffset(document: Document.Parsed, path: readonly PropertyKey[], what: "value" | "name"): number {
  const parent: unknown = path.length <= 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  const last = path.at(-1);
  if (what === "name" && isMap(parent)) {
    const pair = parent.items.find(({ key }) => isScalar(key) && key.value === last);
    if (isNode(pair?.key) && pair.key.range) return pair.key.range[0];
  }
  const node: unknown = document.getIn(path, true);
  if (isNode(node) && node.range) return node.range[0];
  return path.length === 0 ? 0 : findOffset(document, path.slice(0, -1), "value");
}
