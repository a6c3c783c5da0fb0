import { existsSync } from "node:fs";

import { keyPrefix, splitBackendUrl } from "../core/backend-url.ts";
import { quoteUntrusted } from "../core/text.ts";
import { invalidUrl, nonEmpty, readFlag, refuseUnknownParameters } from "./url-parameters.ts";

/** Where the credentials of a `gs://` backend come from, in Pulumi's order (pkg/authhelpers/gcpauth.go). */
export type GcsCredential =
  | { readonly kind: "anonymous" }
  | { readonly kind: "json"; readonly text: string }
  | { readonly kind: "access-token"; readonly token: string }
  | { readonly kind: "default"; readonly keyFile?: string };

/** What a `gs://` URL and its environment say. */
export interface GcsSettings {
  readonly bucket: string;
  readonly prefix: string;
  /** An emulator's address (`STORAGE_EMULATOR_HOST`), with its scheme. */
  readonly endpoint?: string;
  readonly universeDomain?: string;
  readonly credential: GcsCredential;
}

// gocloud's (blob/gcsblob/gcsblob.go, `forParams`), and its opener's for every scheme (`prefix`).
const PARAMETERS: readonly string[] = ["anonymous", "access_id", "private_key_path", "universe_domain", "prefix"];

/** Reads a `gs://` URL with its environment as Pulumi does. Throws `backend-url-invalid`. */
export function readGcsSettings(url: string, env: Readonly<Record<string, string | undefined>>): GcsSettings {
  const parts = splitBackendUrl(url);
  if (parts === undefined || parts.scheme !== "gs") throw invalidUrl("this is no gs:// URL");
  const { host: bucket, query } = parts;
  if (bucket === "") throw invalidUrl("a gs:// URL needs a bucket", "Write gs://bucket.");
  if (bucket === "storage.googleapis.com") throw invalidUrl(`${quoteUntrusted(bucket)} is the host of a service, not a bucket`, "Write gs://bucket.");
  refuseUnknownParameters(query, "gs", PARAMETERS);
  const anonymous = readFlag(query, "anonymous");
  const keyPath = nonEmpty(query.get("private_key_path"));
  // It signs URLs, which are not needed here; Pulumi wants it to be there all the same.
  if (keyPath !== undefined && !existsSync(keyPath)) throw invalidUrl("the file of private_key_path is not there");
  const emulator = nonEmpty(env["STORAGE_EMULATOR_HOST"]);
  const endpoint = emulator === undefined ? undefined : emulator.includes("://") ? emulator.replace(/\/+$/, "") : `http://${emulator}`;
  const universeDomain = query.get("universe_domain") ?? undefined;
  const isAnonymous = anonymous || query.get("access_id") === "-" || endpoint !== undefined;
  return {
    bucket,
    prefix: keyPrefix(parts),
    credential: isAnonymous ? { kind: "anonymous" } : chooseCredential(env),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(universeDomain === undefined ? {} : { universeDomain }),
  };
}

function chooseCredential(env: Readonly<Record<string, string | undefined>>): GcsCredential {
  const json = nonEmpty(env["GOOGLE_CREDENTIALS"]);
  if (json !== undefined) {
    if (!json.trimStart().startsWith("{"))
      throw invalidUrl("GOOGLE_CREDENTIALS holds no JSON", "It is the text of a key, not a file's name; for a file set GOOGLE_APPLICATION_CREDENTIALS.");
    return { kind: "json", text: json };
  }
  const token = nonEmpty(env["GOOGLE_OAUTH_ACCESS_TOKEN"]);
  if (token !== undefined) return { kind: "access-token", token };
  const keyFile = nonEmpty(env["GOOGLE_APPLICATION_CREDENTIALS"]);
  return keyFile === undefined ? { kind: "default" } : { kind: "default", keyFile };
}
