import { resolve } from "node:path";

import { splitBackendUrl } from "../core/backend-url.ts";
import { invalidUrl, refuseUnknownParameters } from "./url-parameters.ts";

/** What gocloud's fileblob takes (`recognizedParams` in blob/fileblob/fileblob.go), and its URL opener for every scheme (`prefix`). */
const PARAMETERS: readonly string[] = ["base_url", "create_dir", "dir_file_mode", "metadata", "no_tmp_dir", "prefix", "secret_key_path"];

/** Where a `file://` backend is. */
export interface FileSettings {
  /** The absolute folder of the URL. */
  readonly root: string;
  /** gocloud's `prefix` parameter, put before every key; empty in nearly all cases. */
  readonly prefix: string;
}

/**
 * Reads Pulumi's forms of a file URL: `file:///abs`, `file://~`, `file://~/x`, `file://./rel`, on Windows `file:///C:/x`
 * (pkg/backend/diy/backend.go, `massageBlobPath`). Throws `backend-url-invalid`.
 */
export function readFileSettings(url: string, home: string): FileSettings {
  const parts = splitBackendUrl(url);
  if (parts === undefined || parts.scheme !== "file") throw invalidUrl("this is no file:// URL");
  refuseUnknownParameters(parts.query, "file", PARAMETERS);
  refuseWrongValues(parts.query);
  const { path } = parts;
  if (path === "") throw invalidUrl("a file:// URL needs a folder", "Write file:///absolute/folder, file://~ or file://./relative.");
  if (/^~[^/\\]/.test(path)) throw invalidUrl("another user's home cannot be named in a file:// URL", "Write the folder in full, file:///home/…");
  const expanded = path.startsWith("~") ? `${home}/${path.slice(2)}` : path.replace(/^\/([A-Za-z]:)/, "$1");
  return { root: resolve(expanded), prefix: parts.query.get("prefix") ?? "" };
}

/** What gocloud refuses of its parameters (blob/fileblob/fileblob.go, `forParams`), though they mean nothing here. */
function refuseWrongValues(query: URLSearchParams): void {
  const metadata = query.get("metadata");
  if (metadata !== null && metadata !== "" && metadata !== "skip") throw invalidUrl("the parameter metadata is not skip");
  const mode = query.get("dir_file_mode");
  if (mode !== null && !/^\d+$/.test(mode)) throw invalidUrl("the parameter dir_file_mode is no number");
  if (query.has("base_url") !== query.has("secret_key_path")) throw invalidUrl("the parameters base_url and secret_key_path go together");
}
