import type { BackendIdentity } from "./backend-identity.ts";

/** The parts of a backend's URL that every scheme has in common. Nothing of it is checked against the store. */
export interface BackendUrl {
  readonly scheme: string;
  /** The container, bucket or server; with user and port where given. Empty for `file`. */
  readonly host: string;
  /** Without its leading slashes; for `file` everything up to the query. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Splits the URL of `PULUMI_BACKEND_URL` or `spec.backend`; undefined when it has no scheme. */
export function splitBackendUrl(url: string): BackendUrl | undefined {
  const match = /^([a-z][a-z0-9+.-]*):\/\/([^?]*)(?:\?(.*))?$/su.exec(url);
  if (match === null) return undefined;
  const [, scheme = "", place = "", query = ""] = match;
  if (scheme === "file") return { scheme, host: "", path: decode(place), query: new URLSearchParams(query) };
  const slash = place.indexOf("/");
  return {
    scheme: scheme === "postgresql" ? "postgres" : scheme,
    host: slash === -1 ? place : place.slice(0, slash),
    path: decode(slash === -1 ? "" : place.slice(slash).replace(/^\/+/, "")),
    query: new URLSearchParams(query),
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * The prefix of every key, as Pulumi makes it: gocloud's `prefix` parameter as it is, then the URL's path with a slash
 * behind it (pkg/backend/diy/backend.go, `newDIYBackend`; gocloud.dev/blob `OpenBucketURL`).
 */
export function keyPrefix(url: BackendUrl): string {
  const folder = url.path === "" || url.path.endsWith("/") ? url.path : `${url.path}/`;
  return `${url.query.get("prefix") ?? ""}${folder}`;
}

/**
 * True when a Stack's `spec.backend` may mean the given backend: the same bucket or container and prefix, and the same account or
 * endpoint where both name one. A folder is compared by its scheme only, since a pod's mount may be another path.
 */
export function meansBackend(url: string, identity: BackendIdentity): boolean {
  const parts = splitBackendUrl(url);
  if (parts === undefined || parts.scheme !== identity.scheme) return false;
  const given = (name: string, value: string | undefined): boolean => {
    const wanted = parts.query.get(name);
    return wanted === null || value === undefined || stripScheme(wanted) === stripScheme(value);
  };
  switch (identity.scheme) {
    case "file":
      return true;
    case "azblob":
      return parts.host === identity.container && samePrefix(parts, identity.prefix) && given("storage_account", identity.account);
    case "s3":
    case "gs":
      return parts.host === identity.bucket && samePrefix(parts, identity.prefix) && given("endpoint", identity.endpoint);
    case "postgres": {
      const server = parts.host.slice(parts.host.lastIndexOf("@") + 1);
      return (
        (server === "" || withPort(server) === withPort(identity.endpoint)) &&
        parts.path.replace(/\/+$/, "") === identity.database &&
        given("table", identity.table)
      );
    }
  }
}

function samePrefix(parts: BackendUrl, prefix: string): boolean {
  return keyPrefix(parts).replace(/\/+$/, "") === prefix.replace(/\/+$/, "");
}

function stripScheme(place: string): string {
  return place.replace(/^https?:\/\//, "").replace(/\/+$/, "");
}

function withPort(server: string): string {
  return /:\d+$/.test(server) ? server : `${server}:5432`;
}
