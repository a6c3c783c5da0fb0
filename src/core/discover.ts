import picomatch from "picomatch";

import type { BackendIdentity } from "./backend-identity.ts";
import { meansBackend, splitBackendUrl } from "./backend-url.ts";

/** The stores in which a Stack may name a backend of its own, with the names that their buckets or containers can have. */
const BUCKET_NAMES = {
  // https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
  s3: /^(?!\d+\.\d+\.\d+\.\d+$)(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
  // https://cloud.google.com/storage/docs/buckets#naming
  gs: /^(?!\d+\.\d+\.\d+\.\d+$)(?!.*\.\.)[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$/,
  // https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata#container-names
  azblob: /^[a-z0-9](?:[a-z0-9]|-(?=[a-z0-9])){2,62}$/,
} as const;

type Scheme = keyof typeof BUCKET_NAMES;

/** A folder in a bucket, as far as it is discovered: nothing hidden, nothing that a store or a library could read in another way. */
const SEGMENT = /^[A-Za-z0-9_~+=-][A-Za-z0-9._~+=-]*$/;

/** A `--discover-allow` value as read, or what is wrong with it. */
export type ParsedAllowGlob = { readonly kind: "glob"; readonly glob: string } | { readonly kind: "refused"; readonly problem: string };

/** Letters and digits that a bucket's pattern must name: fewer would admit about every bucket of the store, anybody's. */
const LEAST_FIXED = 3;

/**
 * Reads a `--discover-allow` value, `scheme://bucket[/path]`: `*` stays within a bucket's name or a folder's, `**` stands for any folders. A glob that would admit
 * every bucket of a store is refused.
 */
export function parseAllowGlob(text: string): ParsedAllowGlob {
  const refuse = (problem: string): ParsedAllowGlob => ({ kind: "refused", problem });
  const [, scheme, rest = ""] = /^([a-z][a-z0-9]*):\/\/(.*)$/s.exec(text) ?? [];
  if (scheme === undefined) return refuse("it is a scheme and a bucket or container, with a path if need be, as in 's3://acme-*/**'");
  if (scheme === "file") return refuse("a folder is never taken from a Stack; give it with --backend");
  if (scheme === "postgres" || scheme === "postgresql") return refuse("a database is never taken from a Stack; give it with --backend");
  if (!isDiscoverable(scheme)) return refuse("only azblob://, s3:// and gs:// are taken from a Stack");
  if (rest.includes("?")) return refuse("it has no parameters, and '?' stands for nothing in it; for any characters write '*'");
  const [bucket = "", ...folders] = rest.replace(/\/$/, "").split("/");
  if (!/^[A-Za-z0-9._*-]+$/.test(bucket) || !folders.every((folder) => /^[A-Za-z0-9._~+=*-]+$/.test(folder)))
    return refuse("besides '*' it has letters, digits, '.', '-', '_' and in a path '~', '+', '=' only");
  if (bucket.includes("*") && bucket.replace(/[^A-Za-z0-9]/g, "").length < LEAST_FIXED)
    return refuse(`it admits nearly every bucket, also a stranger's; name what is yours, with ${LEAST_FIXED} letters at least, as in '${scheme}://acme-*'`);
  return { kind: "glob", glob: `${scheme}://${[bucket, ...folders].join("/")}` };
}

/** A backend that a person configured: its URL, and its identity once it is open. */
export interface ConfiguredBackend {
  readonly url: string;
  readonly identity?: BackendIdentity;
}

/** What a Stack's URL is measured by. */
export interface DiscoveryRules {
  /** Globs as `parseAllowGlob` gives them. */
  readonly allow: readonly string[];
  readonly configured: readonly ConfiguredBackend[];
  /** What the environment itself says, which a Stack's URL may repeat. */
  readonly environment: { readonly storageAccount?: string; readonly region?: string };
}

/** What becomes of a Stack's `spec.backend`. `url` of an admitted one is written anew from its parts and has no parameter. */
export type StackUrlDecision =
  | { readonly kind: "admitted"; readonly url: string }
  | { readonly kind: "configured" }
  | { readonly kind: "refused"; readonly problem: string };

/** No store has names that long; nothing longer is read. */
const LONGEST_URL = 2_048;

/**
 * Decides what becomes of a Stack's `spec.backend`. A Stack is written by a tenant, who must not be able to choose where the janitor connects to, or as whom:
 * only scheme, bucket and path are taken, spelled plainly, and only where a glob admits them.
 */
export function judgeStackUrl(url: string, { allow, configured, environment }: DiscoveryRules): StackUrlDecision {
  const refuse = (problem: string): StackUrlDecision => ({ kind: "refused", problem });
  if (url.length > LONGEST_URL) return refuse("it is too long for a backend's URL");
  if (configured.some((backend) => isConfigured(url, backend))) return { kind: "configured" };
  const [place = "", ...queries] = url.split("?");
  const [, scheme, bucket = "", path = ""] = /^([^:/]*):\/\/([^/]*)(?:\/(.*))?$/su.exec(place) ?? [];
  if (scheme === undefined) return refuse("it is no backend's URL");
  if (scheme === "file") return refuse("a folder is never taken from a Stack");
  if (scheme === "postgres" || scheme === "postgresql") return refuse("a database is never taken from a Stack");
  if (scheme === "http" || scheme === "https") return refuse("a Pulumi service keeps its locks itself");
  if (!isDiscoverable(scheme)) return refuse("its scheme is not known");
  const folders = path === "" ? [] : path.replace(/\/$/, "").split("/");
  if (!BUCKET_NAMES[scheme].test(bucket) || !folders.every((folder) => SEGMENT.test(folder)))
    return refuse(
      "it is not written plainly: bucket and folders of letters, digits and a few signs, nothing encoded, no user, no folder that begins with a dot",
    );
  const plain = `${scheme}://${[bucket, ...folders].join("/")}`;
  if (!allow.some((glob) => admits(glob, plain))) return refuse("no --discover-allow admits it");
  const problem = queries.length === 0 ? undefined : judgeParameters(scheme, queries.join("?"), environment);
  return problem === undefined ? { kind: "admitted", url: plain } : refuse(problem);
}

/** A Stack's URL for a person: its place where that is written plainly, else no more than its scheme; never a user, a password or a parameter. Holds no space. */
export function describeStackUrl(url: string): string {
  const [place = ""] = url.slice(0, LONGEST_URL).split("?");
  if (/^[a-z0-9+.-]{1,20}:\/\/[A-Za-z0-9._~+=/-]{0,160}$/.test(place)) return place;
  const [scheme] = /^[a-z0-9+.-]{1,20}:\/\//.exec(place) ?? [];
  return scheme === undefined ? "…" : `${scheme}…`;
}

function isDiscoverable(scheme: string): scheme is Scheme {
  return Object.hasOwn(BUCKET_NAMES, scheme);
}

/** One that could not be opened has no identity: then what stands before the parameters is compared. */
function isConfigured(url: string, { url: own, identity }: ConfiguredBackend): boolean {
  if (identity !== undefined) return meansBackend(url, identity);
  const [parts, ownParts] = [splitBackendUrl(url), splitBackendUrl(own)];
  if (parts === undefined || ownParts === undefined || parts.scheme !== ownParts.scheme) return false;
  return parts.host === ownParts.host && parts.path.replace(/\/+$/, "") === ownParts.path.replace(/\/+$/, "");
}

// Parameters that say where or as whom a backend is opened, or under which keys it looks.
const MOVING: ReadonlySet<string> = new Set(
  [
    "endpoint profile role anonymous dualstack fips accelerate hostname_immutable use_path_style s3ForcePathStyle disable_https disableSSL region",
    "storage_account domain protocol cdn localemu",
    "access_id private_key_path universe_domain prefix",
  ].flatMap((names) => names.split(" ")),
);

/** Why the parameters of a Stack's URL refuse it, if so. None of them is taken: one may only say again what the environment says, or mean nothing here. */
function judgeParameters(scheme: Scheme, query: string, { storageAccount, region }: DiscoveryRules["environment"]): string | undefined {
  for (const [name, value] of new URLSearchParams(query)) {
    if (scheme === "s3" && (name === "awssdk" || (name === "region" && (region === undefined || region === value)))) continue;
    if (scheme === "azblob" && name === "storage_account" && value === storageAccount) continue;
    // Only known names are repeated: what else stands there may be a secret.
    if (!MOVING.has(name)) return "it has a parameter that is not known, and none is taken from a Stack";
    return name === "region" || name === "storage_account"
      ? `its ${name} is not the one of the janitor's environment, and no parameter is taken from a Stack`
      : `its parameter ${name} would say where or as whom it is opened, and none is taken from a Stack`;
  }
  return undefined;
}

const compiled = new Map<string, (place: string) => boolean>();

function admits(glob: string, place: string): boolean {
  let matcher = compiled.get(glob);
  if (matcher === undefined) {
    matcher = picomatch(glob, { dot: true, nonegate: true, noextglob: true, nobrace: true, nobracket: true });
    compiled.set(glob, matcher);
  }
  // "bucket/**" is for the bucket itself too.
  return matcher(place) || (glob.endsWith("/**") && matcher(`${place}/`));
}
