import picomatch from "picomatch";

/** Which operator's pods a built-in profile is for. */
export type ProfileKind = "operator-v1" | "operator-v2";

/** A pattern for the hostnames of pods that run pulumi. */
export interface OwnerPattern {
  readonly glob: string;
  /** The only ordinary container of such a pod that runs pulumi; absent when any may. */
  readonly container?: string;
  /** `explicit` for a pattern of the user's. */
  readonly profile: ProfileKind | "explicit";
}

/** Pods of the Pulumi Kubernetes Operator, as its charts name them. */
export const BUILTIN_OWNERS: readonly OwnerPattern[] = [
  { glob: "*pulumi-kubernetes-operator*-*-*", container: "pulumi-kubernetes-operator", profile: "operator-v1" },
  { glob: "*-workspace-0", container: "pulumi", profile: "operator-v2" },
];

/** The kernel's limit for a hostname (`HOST_NAME_MAX`); a lock's may be longer, and takes a pattern long to refuse. */
const LONGEST_HOSTNAME = 64;

/** What a pod's hostname may be made of (RFC 1123). */
const POD_HOSTNAME = /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/;

/** The patterns of a list that match a lock's hostname. */
export function matchOwners(hostname: string, patterns: readonly OwnerPattern[]): readonly OwnerPattern[] {
  if (hostname.length > LONGEST_HOSTNAME || !POD_HOSTNAME.test(hostname)) return [];
  return patterns.filter(({ glob }) => compile(glob)(hostname));
}

/** An `--owner` value `glob[=container]` as read, or what is wrong with it. */
export type ParsedOwner = { readonly kind: "pattern"; readonly pattern: OwnerPattern } | { readonly kind: "refused"; readonly problem: string };

/** Reads an `--owner` value. A glob that would match a machine that never was a pod is refused. */
export function parseOwnerPattern(text: string): ParsedOwner {
  const equals = text.indexOf("=");
  const glob = equals === -1 ? text : text.slice(0, equals);
  const container = equals === -1 ? undefined : text.slice(equals + 1);
  const refuse = (problem: string): ParsedOwner => ({ kind: "refused", problem });
  if (glob === "") return refuse("the pattern is empty");
  if (!/^[A-Za-z0-9.*?-]+$/.test(glob)) return refuse("a pattern has letters, digits, '.', '-', '*' and '?' only: other characters are in no pod's hostname");
  if (container !== undefined && !/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(container)) return refuse("what follows '=' is no container's name");
  if (couldMatchContainerId(glob)) return refuse("it matches the 12 hexadecimal digits of a Docker container, which is no pod");
  if (/-concurrent-[^-]*$/.test(glob))
    return refuse(
      "it matches a virtual machine of GitLab's docker executor, which is no pod; use the whole tail, as in 'runner-*-project-*-concurrent-*-????????'",
    );
  if (/^ip-[\d*?]/.test(glob) && /[*?]/.test(glob)) return refuse("it matches EC2 machines, which are no pods");
  const machine = MACHINES.find((name) => compile(glob)(name));
  if (machine !== undefined)
    return refuse(`it matches ${machine}, which is no pod; use the whole tail of the pod's name, as in 'runner-*-project-*-concurrent-*-????????'`);
  return { kind: "pattern", pattern: { glob, ...(container === undefined ? {} : { container }), profile: "explicit" } };
}

// Names of machines that take locks and are no pods: a pattern that admits one of them admits too much.
const MACHINES: readonly string[] = [
  "localhost",
  "localhost.localdomain",
  "user-laptop.local",
  "Users-MacBook-Pro.local",
  "DESKTOP-4F7K2QJ",
  "ip-10-0-42-235.us-west-2.compute.internal",
  "fv-az1234-567",
  "runner-abcdefgh-project-42-concurrent-0",
  "0b5e2f4c-7d1a-4a3e-9d2a-9c1d5b7a2e61",
];

/** True when some string of 12 hexadecimal digits matches: only `*`, `?` and hexadecimal digits, at most 12 of the latter two. */
function couldMatchContainerId(glob: string): boolean {
  const fixed = glob.replaceAll("*", "");
  if (!/^[0-9a-f?]*$/.test(fixed)) return false;
  return glob.includes("*") ? fixed.length <= 12 : fixed.length === 12;
}

const compiled = new Map<string, (hostname: string) => boolean>();

function compile(glob: string): (hostname: string) => boolean {
  const known = compiled.get(glob);
  if (known !== undefined) return known;
  // picomatch's defaults let "*" skip a leading dot and "!x" match everything else.
  const matcher = picomatch(glob, { dot: true, nonegate: true, noextglob: true, nobrace: true, nobracket: true, bash: true });
  compiled.set(glob, matcher);
  return matcher;
}
