import { splitBackendUrl } from "../core/backend-url.ts";
import { quoteUntrusted } from "../core/text.ts";
import { JanitorError } from "../errors.ts";
import type { Backend, BackendOptions } from "./backend.ts";

/** Opens the backend of a URL; its SDK is loaded only then. Throws a `JanitorError` with the URL redacted. */
export async function openBackend(options: BackendOptions): Promise<Backend> {
  const parts = splitBackendUrl(options.url);
  if (parts === undefined)
    throw new JanitorError("backend-url-invalid", `${redactUrl(options.url)} is no backend URL`, {
      hint: "Write it as for 'pulumi login', as in azblob://container or file:///folder.",
    });
  if (parts.path.includes(".pulumi/locks/") || parts.query.toString().includes(".pulumi%2Flocks")) {
    throw new JanitorError("backend-url-invalid", `${redactUrl(options.url)} is the URL of a lock, not of a backend`, {
      hint: "Leave out everything from /.pulumi on.",
    });
  }
  switch (parts.scheme) {
    case "file":
      return await (await import("./file.ts")).openFile(options);
    case "azblob":
      return await (await import("./azblob.ts")).openAzblob(options);
    case "s3":
      return await (await import("./s3.ts")).openS3(options);
    case "gs":
      return await (await import("./gcs.ts")).openGcs(options);
    case "postgres":
      return await (await import("./postgres.ts")).openPostgres(options);
    case "http":
    case "https":
      throw new JanitorError("backend-unsupported", `${redactUrl(options.url)} is a Pulumi service, which keeps its locks itself`, {
        hint: "There are no lock files to remove; 'pulumi cancel' ends an update there.",
      });
    default:
      throw new JanitorError("backend-unsupported", `there is no backend for ${quoteUntrusted(`${parts.scheme}://`)}`, {
        hint: "There are azblob://, s3://, gs://, postgres:// and file://.",
      });
  }
}

/** A URL fit to be shown: without user, password and the values of its parameters. */
export function redactUrl(url: string): string {
  // A password that was not encoded may hold "/" and "?".
  const password = /^[^/]*\/\/[^/?:@]*:(?:[^?]*@|.*@)/.exec(url)?.[0] ?? "";
  const [place = "", query] = url.slice(password.length).split("?");
  const hidden = password === "" ? place.replace(/\/\/[^/]*@/, "//****@") : `${password.slice(0, password.indexOf("//"))}//****@${place}`;
  return quoteUntrusted(query === undefined ? hidden : `${hidden}?${query.replace(/=[^&]*/g, "=****")}`, 200);
}
