import leven from "leven";
import type { z } from "zod";

import { quoteUntrusted } from "./core/text.ts";

/** One setting as it was given, with the word for where. */
export interface Sourced {
  readonly value: unknown;
  /** What to call its place in a message: `--min-age`, a variable, a line of the file. */
  readonly source: string;
  /** The place of a part of it, where that is known more exactly. */
  readonly locate?: (path: readonly PropertyKey[], what: "value" | "name") => string;
}

/** Tells what is wrong with the settings, one line each, naming the place and what may have been meant. */
export function describeIssues(issues: readonly z.core.$ZodIssue[], values: ReadonlyMap<string, Sourced>, names: readonly string[]): string {
  return issues
    .flatMap(spreadUnion)
    .flatMap((issue) => describeIssue(issue, values, names))
    .join("\n");
}

/** Of the forms that a value may have, tells the problems of the one that was meant: whose own type fits. */
function spreadUnion(issue: z.core.$ZodIssue): readonly z.core.$ZodIssue[] {
  if (issue.code !== "invalid_union") return [issue];
  const meant = issue.errors.find((problems) => problems.every(({ path }) => path.length > 0)) ?? [];
  if (meant.length === 0) return [issue];
  return meant.map((problem) => ({ ...problem, path: [...issue.path, ...problem.path] })).flatMap(spreadUnion);
}

function describeIssue(issue: z.core.$ZodIssue, values: ReadonlyMap<string, Sourced>, names: readonly string[]): readonly string[] {
  const [key] = issue.path;
  if (issue.code === "unrecognized_keys") return issue.keys.map((name) => describeUnknown(name, issue.path, values, names));
  const found = values.get(String(key));
  const rest = issue.path.slice(1);
  const place = found?.locate === undefined ? (found?.source ?? String(key)) : `${found.locate(issue.path, "value")}, ${describePath(issue.path)}`;
  const item: unknown = rest.length > 0 && Array.isArray(found?.value) ? found.value[Number(rest[0])] : found?.value;
  // A backend may hold a password: what it says is not repeated.
  const shown =
    key === "backends" || (typeof item !== "string" && typeof item !== "number" && typeof item !== "boolean") ? "" : ` ${quoteUntrusted(String(item))}`;
  return [`${place}${shown}: ${describeMessage(issue)}`];
}

function describeMessage(issue: z.core.$ZodIssue): string {
  if (issue.code === "invalid_union" && issue.path[0] === "backends")
    return issue.path.length > 2
      ? 'this is a text, "{ variable: NAME }" or "{ file: PATH }"'
      : "a backend is its URL, or a mapping with url, exclusive and env";
  return issue.message;
}

function describeUnknown(name: string, path: readonly PropertyKey[], values: ReadonlyMap<string, Sourced>, names: readonly string[]): string {
  const known = path.length === 0 ? names : path.length === 2 ? ["url", "exclusive", "env"] : [];
  const place = values.get(String(path[0] ?? name));
  const where = place?.locate === undefined ? (place?.source ?? "the configuration") : place.locate([...path, name], "name");
  const near = findNearest(name, known);
  const what = path.length === 0 ? "setting" : "key";
  return `${where}: there is no ${what} ${quoteUntrusted(name)}${near === undefined ? "" : `; did you mean ${quoteUntrusted(near)}?`}`;
}

/** What a person may have meant: `min-age`, `MinAge` and `minAje` are all `minAge`. */
function findNearest(name: string, known: readonly string[]): string | undefined {
  // Nobody misspells so long a name, and the comparison takes its time.
  if (name.length > 60) return undefined;
  const plain = (text: string): string => text.toLowerCase().replace(/[-_]/g, "");
  const nearest = known
    .map((candidate) => ({ candidate, distance: leven(plain(name), plain(candidate)) }))
    .toSorted((a, b) => a.distance - b.distance)
    .at(0);
  return nearest !== undefined && nearest.distance <= Math.max(1, Math.floor(nearest.candidate.length / 3)) ? nearest.candidate : undefined;
}

function describePath(path: readonly PropertyKey[]): string {
  return path.map((part, index) => (typeof part === "number" ? `[${part}]` : index === 0 ? String(part) : `.${String(part)}`)).join("");
}
