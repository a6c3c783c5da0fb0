import type { BackendIdentity } from "./backend-identity.ts";
import { meansBackend } from "./backend-url.ts";
import { LOCKS_FOLDER, meansStack, parseLockKey, parseStackReference, unescapeKey } from "./key.ts";
import { findLockReferences, type LockReference } from "./lock-reference.ts";

/** A lock as a person names it: by its id, or by a text that holds its key (its URL, or Pulumi's own line). */
export type WantedLock = { readonly kind: "id"; readonly id: string } | { readonly kind: "reference"; readonly reference: LockReference };

/** A lock's name as read, or what is wrong with it. */
export type ParsedWantedLock = { readonly kind: "wanted"; readonly wanted: WantedLock } | { readonly kind: "refused"; readonly problem: string };

/** Reads how a person names a lock: `<id>`, `organization/<project>/<stack>/<id>`, its key, its URL, or the line that Pulumi printed. */
export function parseWantedLock(text: string): ParsedWantedLock {
  const references = findLockReferences(text);
  const [reference] = references;
  if (reference !== undefined) {
    if (references.some(({ key }) => key !== reference.key)) return { kind: "refused", problem: "it names several locks; give one" };
    return { kind: "wanted", wanted: { kind: "reference", reference } };
  }
  const id = text.trim();
  if (id === "" || /\s/.test(id) || id.includes("://"))
    return { kind: "refused", problem: "it is no lock's id, URL or line; the id is the name of the lock's file" };
  return { kind: "wanted", wanted: { kind: "id", id } };
}

/** True when the lock of that key in that backend is the wanted one. */
export function isWanted(wanted: WantedLock, key: string, backend: BackendIdentity): boolean {
  const shown = unescapeKey(key);
  if (wanted.kind === "reference") {
    const { backendUrl, key: named } = wanted.reference;
    return (named === key || named === shown) && (backendUrl === undefined || meansBackend(backendUrl, backend));
  }
  const path = shown.startsWith(LOCKS_FOLDER) ? shown.slice(LOCKS_FOLDER.length) : shown;
  return [path, path.slice(path.lastIndexOf("/") + 1)].some((name) => name === wanted.id || name.replace(/\.json$/, "") === wanted.id);
}

/** Which locks a sweep is about: of each kind that is given, a lock must match one. */
export interface LockSelection {
  readonly projects: readonly string[];
  /** As in `spec.stack`: `dev`, `organization/dev` or `organization/<project>/dev`. */
  readonly stacks: readonly string[];
  readonly locks: readonly WantedLock[];
}

/** True when a lock is among those that the sweep is about. */
export function isSelected({ projects, stacks, locks }: LockSelection, key: string, backend: BackendIdentity): boolean {
  const { stack } = parseLockKey(key);
  const [, project, name] = stack.split("/");
  return (
    (projects.length === 0 || (name !== undefined && project !== undefined && projects.includes(project))) &&
    (stacks.length === 0 ||
      stacks.some((wanted) => {
        const reference = parseStackReference(wanted);
        return reference !== undefined && meansStack(reference, stack);
      })) &&
    (locks.length === 0 || locks.some((wanted) => isWanted(wanted, key, backend)))
  );
}
