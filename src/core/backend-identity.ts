import { escapeUntrusted } from "./text.ts";

/**
 * What a backend is called everywhere: in reports, records, messages and logs. It holds no credential.
 * `prefix` is empty or ends as the user gave it; keys of locks are relative to it.
 */
export type BackendIdentity =
  | { readonly scheme: "azblob"; readonly account: string; readonly container: string; readonly prefix: string }
  | { readonly scheme: "s3"; readonly endpoint?: string; readonly bucket: string; readonly prefix: string }
  | { readonly scheme: "gs"; readonly endpoint?: string; readonly bucket: string; readonly prefix: string }
  | { readonly scheme: "file"; readonly path: string; readonly prefix: string }
  | { readonly scheme: "postgres"; readonly endpoint: string; readonly database: string; readonly table: string; readonly prefix: string };

/** Names a backend for a person, without anything secret. */
export function formatIdentity(identity: BackendIdentity): string {
  return escapeUntrusted(formatPlain(identity));
}

function formatPlain(identity: BackendIdentity): string {
  switch (identity.scheme) {
    case "azblob":
      return `azblob://${identity.container}${formatPrefix(identity.prefix)} (account ${identity.account})`;
    case "s3":
    case "gs":
      return `${identity.scheme}://${identity.bucket}${formatPrefix(identity.prefix)}${identity.endpoint === undefined ? "" : ` (endpoint ${identity.endpoint})`}`;
    case "file":
      return `file://${identity.path}`;
    case "postgres":
      return `postgres://${identity.endpoint}/${identity.database} (table ${identity.table})`;
  }
}

function formatPrefix(prefix: string): string {
  return prefix === "" ? "" : `/${prefix.replace(/\/$/, "")}`;
}
