import type { BackendIdentity } from "./backend-identity.ts";
import { meansBackend } from "./backend-url.ts";
import type { ClusterObservation, StackResource } from "./cluster.ts";
import { meansStack, parseLockKey, parseStackReference } from "./key.ts";
import type { OwnerPattern } from "./owner.ts";

/** `--require-stack`: absent, the built-in profiles want a Stack and explicit patterns do not. */
export type RequireStack = "yes" | "no" | undefined;

/** Whether a Stack in one of the clusters accounts for a lock. */
export type Accounting =
  | { readonly kind: "accounted"; readonly by: string }
  /** `unseen`: what could not be listed and might have accounted for it. */
  | { readonly kind: "unaccounted"; readonly unseen?: string }
  | { readonly kind: "not-listed"; readonly problem: string };

/** True when some matching pattern admits the lock only if a Stack accounts for it, and none admits it without. */
export function wantsStack(patterns: readonly OwnerPattern[], requireStack: RequireStack): boolean {
  if (requireStack !== undefined) return requireStack === "yes";
  return patterns.every(({ profile }) => profile !== "explicit");
}

/** Looks for a Stack or Workspace that accounts for a lock: that it is written by this cluster's operator. */
export function accountForLock(
  key: string,
  hostname: string,
  patterns: readonly OwnerPattern[],
  backend: BackendIdentity,
  clusters: readonly ClusterObservation[],
): Accounting {
  const { stack } = parseLockKey(key);
  const unlisted: string[] = [];
  for (const { stacks } of clusters) {
    if (stacks.kind === "unlisted") {
      unlisted.push(stacks.problem);
      continue;
    }
    const found = stacks.stacks.find((resource) => accountsFor(resource, stack, hostname, patterns, backend));
    if (found !== undefined) return { kind: "accounted", by: `${found.kind} ${found.namespace}/${found.name}` };
  }
  const [problem] = unlisted;
  if (problem !== undefined) return { kind: "not-listed", problem };
  const [unseen] = clusters.flatMap(({ stacks }) => (stacks.kind === "listed" && stacks.withoutWorkspaces !== undefined ? [stacks.withoutWorkspaces] : []));
  return unseen === undefined ? { kind: "unaccounted" } : { kind: "unaccounted", unseen };
}

/**
 * The Stacks of one cluster that account for a lock, as `accountForLock` finds them: those whose operator may be waiting for it to go. A host that matches no pattern says nothing of
 * them, so a Stack has to name the lock's backend itself then.
 */
export function findStacksOf(
  key: string,
  hostname: string,
  patterns: readonly OwnerPattern[],
  backend: BackendIdentity,
  stacks: readonly StackResource[],
): readonly StackResource[] {
  const { stack } = parseLockKey(key);
  const asked: readonly Pick<OwnerPattern, "profile">[] = patterns.length === 0 ? [{ profile: "explicit" }] : patterns;
  const named = stacks.filter((resource) => resource.kind === "Stack" && (patterns.length > 0 || resource.backend !== undefined));
  return named.filter((resource) => accountsFor(resource, stack, hostname, asked, backend));
}

function accountsFor(
  resource: StackResource,
  lockedStack: string,
  hostname: string,
  patterns: readonly Pick<OwnerPattern, "profile">[],
  backend: BackendIdentity,
): boolean {
  if (resource.backend !== undefined && !meansBackend(resource.backend, backend)) return false;
  const namesStack = resource.stacks.some((name) => {
    const reference = parseStackReference(name);
    return reference !== undefined && meansStack(reference, lockedStack);
  });
  if (!namesStack) return false;
  return patterns.some(({ profile }) => profile !== "operator-v2" || workspaceHostname(resource.name) === hostname.toLowerCase());
}

// The StatefulSet of a Stack is called <name>-workspace, its only pod <name>-workspace-0; the kernel cuts that at 63 characters.
function workspaceHostname(name: string): string {
  return `${name}-workspace-0`.slice(0, 63).replace(/[-.]+$/, "");
}
