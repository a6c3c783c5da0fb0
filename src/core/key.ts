/** The folder of all locks below the backend's prefix (pkg/backend/diy/backend.go, `workspace.LockDir`). */
export const LOCKS_FOLDER = ".pulumi/locks/";

/** The folder of all stacks' checkpoints (`workspace.StackDir`). */
export const STACKS_FOLDER = ".pulumi/stacks/";

/** What a lock's key says: which stack it locks and what the lock is called. */
export interface LockName {
  /** The stack as Pulumi names it: `organization/<project>/<stack>`, or `<stack>` in the legacy layout; empty for a file directly in the folder. */
  readonly stack: string;
  /** The file's name without `.json`; Pulumi uses a UUID, people do not. */
  readonly id: string;
}

/**
 * Undoes gocloud's escaping of object keys, `__0x<hex>__` for a character that the store does not take
 * (https://github.com/google/go-cloud/blob/master/internal/escape/escape.go).
 */
export function unescapeKey(key: string): string {
  return key.replace(/__0x([0-9a-f]+)__/g, (whole, hex: string) => {
    const codePoint = Number.parseInt(hex, 16);
    return codePoint > 0x10_ff_ff ? whole : String.fromCodePoint(codePoint);
  });
}

/** What gocloud escapes in the keys of each store (`escapeKey` of its drivers); in Postgres nothing. */
const ESCAPED: Readonly<Record<"azblob" | "s3" | "gs", RegExp>> = {
  // oxlint-disable-next-line eslint/no-control-regex -- control characters are what is escaped.
  azblob: /[\u0000-\u001f"#%?\\\u007f]|(?<=\.\.)\//gu,
  // oxlint-disable-next-line eslint/no-control-regex -- as above.
  s3: /[\u0000-\u001f]|(?<=\.\.)\//gu,
  gs: /[\n\r]|(?<=\.\.)\//gu,
};

/** A prefix as gocloud spells it in a store. Keys that the store lists are spelled so already. */
export function escapeKeyFor(scheme: keyof typeof ESCAPED, key: string): string {
  return key.replace(ESCAPED[scheme], (character) => `__0x${(character.codePointAt(0) ?? 0).toString(16)}__`);
}

/** Reads stack and id from a key relative to the backend's prefix, `.pulumi/locks/…`. No demand is made on the file's name. */
export function parseLockKey(key: string): LockName {
  const path = unescapeKey(key.startsWith(LOCKS_FOLDER) ? key.slice(LOCKS_FOLDER.length) : key);
  const slash = path.lastIndexOf("/");
  return {
    stack: slash === -1 ? "" : path.slice(0, slash),
    id: path.slice(slash + 1).replace(/\.json$/, ""),
  };
}

/** The folder that holds a lock: while any object is in it, Pulumi takes the stack for locked. */
export function stackFolder(key: string): string {
  return key.slice(0, key.lastIndexOf("/") + 1);
}

/**
 * Where Pulumi may keep the checkpoint of the stack that a lock is of: plain, or compressed in one of two ways (pkg/backend/diy/state.go, `stackPath`; store.go,
 * `StackBasePath`). None where the key names no stack. The store's spelling of the key is kept.
 */
export function findCheckpointKeys(lockKey: string): readonly string[] {
  const parts = stackFolder(lockKey).slice(LOCKS_FOLDER.length, -1).split("/");
  const [organization, project = "", stack = ""] = parts;
  const path = parts.length === 1 ? organization : parts.length === 3 && organization === "organization" ? `${project}/${stack}` : "";
  if (!lockKey.startsWith(LOCKS_FOLDER) || path === undefined || path.split("/").includes("")) return [];
  return [".json", ".json.gz", ".json.zst"].map((ending) => STACKS_FOLDER + path + ending);
}

/** How Pulumi reads the name of a stack on a self-managed backend (pkg/backend/diy/store.go, `parseStackReference`). */
export interface StackReference {
  readonly project?: string;
  readonly stack: string;
}

/**
 * Reads `spec.stack` as Pulumi does: `dev`, `organization/dev` (organization and stack, **not** project and stack) or
 * `organization/<project>/dev`. Undefined when it is none of these.
 */
export function parseStackReference(name: string): StackReference | undefined {
  const parts = name.split("/");
  const [first, second, third] = parts;
  if (parts.some((part) => part === "") || first === undefined) return undefined;
  if (parts.length === 1) return { stack: first };
  if (parts.length === 2 && second !== undefined) return { stack: second };
  if (parts.length === 3 && second !== undefined && third !== undefined) return { project: second, stack: third };
  return undefined;
}

/** True when a name in `spec.stack` can mean the stack of a lock, in either layout of the lock's key. */
export function meansStack(reference: StackReference, lockedStack: string): boolean {
  const parts = lockedStack.split("/");
  if (parts.length === 1) return parts[0] === reference.stack;
  const [organization, project, stack] = parts;
  if (organization !== "organization" || parts.length !== 3) return false;
  return stack === reference.stack && (reference.project === undefined || reference.project === project);
}
