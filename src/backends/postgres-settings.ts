import { readFileSync } from "node:fs";

import { keyPrefix, splitBackendUrl } from "../core/backend-url.ts";
import { quoteUntrusted } from "../core/text.ts";
import { describeError, JanitorError } from "../errors.ts";
import { invalidUrl, nonEmpty, refuseUnknownParameters } from "./url-parameters.ts";

/** How the connection is encrypted, in the words of `sslmode`. */
export type PostgresTls =
  | { readonly kind: "off" }
  /** Encrypted, the server's certificate not checked: what `require` means to lib/pq and libpq. */
  | { readonly kind: "unchecked" }
  | { readonly kind: "checked"; readonly ca?: string; readonly checkHost: boolean };

/** What a `postgres://` URL and its environment say. */
export interface PostgresSettings {
  readonly host: string;
  readonly port: number;
  readonly user?: string;
  readonly password?: string;
  readonly database: string;
  readonly table: string;
  /** Put before every key; begins with the database's name, since Pulumi takes the URL's path for it. */
  readonly prefix: string;
  readonly tls: PostgresTls;
  readonly clientCertificate?: { readonly cert: string; readonly key: string };
  readonly applicationName?: string;
  readonly searchPath?: string;
}

// What lib/pq (https://pkg.go.dev/github.com/lib/pq#hdr-Connection_String_Parameters) takes, as far as it means something here; and Pulumi's table and gocloud's prefix.
const PARAMETERS: readonly string[] = [
  "sslmode",
  "sslrootcert",
  "sslcert",
  "sslkey",
  "connect_timeout",
  "application_name",
  "search_path",
  "user",
  "password",
  "host",
  "port",
  "table",
  "prefix",
];

/** A table's name as it may stand in a statement: Pulumi puts it there as it is, so it may name its schema. */
const TABLE = /^[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?$/;

/** Reads a `postgres://` URL with its environment as Pulumi does. Throws `backend-url-invalid`. */
export function readPostgresSettings(url: string, env: Readonly<Record<string, string | undefined>>): PostgresSettings {
  const parts = splitBackendUrl(url);
  if (parts === undefined || parts.scheme !== "postgres") throw invalidUrl("this is no postgres:// URL");
  const { query } = parts;
  refuseUnknownParameters(query, "postgres", PARAMETERS);
  const at = parts.host.lastIndexOf("@");
  const [urlUser, urlPassword] = splitOnce(at === -1 ? "" : parts.host.slice(0, at), ":");
  const [urlHost, urlPort] = splitHost(parts.host.slice(at + 1));
  const port = Number(urlPort ?? query.get("port") ?? env["PGPORT"] ?? 5432);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw invalidUrl("the port is no number");
  const database = nonEmpty(parts.path.replace(/\/+$/, "")) ?? nonEmpty(env["PGDATABASE"]);
  if (database === undefined) throw invalidUrl("a postgres:// URL needs a database", "Write postgres://user@host/database.");
  const table = query.get("table") ?? "pulumi_state";
  if (!TABLE.test(table)) throw invalidUrl(`${quoteUntrusted(table)} is no table's name`);
  const user = nonEmpty(urlUser) ?? query.get("user") ?? env["PGUSER"];
  const password = nonEmpty(urlPassword) ?? query.get("password") ?? env["PGPASSWORD"];
  const applicationName = query.get("application_name") ?? env["PGAPPNAME"];
  const searchPath = query.get("search_path");
  if (!/^\d*$/.test(query.get("connect_timeout") ?? "")) throw invalidUrl("the parameter connect_timeout is no number");
  const [cert, key] = [query.get("sslcert") ?? env["PGSSLCERT"], query.get("sslkey") ?? env["PGSSLKEY"]];
  return {
    host: nonEmpty(urlHost) ?? query.get("host") ?? nonEmpty(env["PGHOST"]) ?? "localhost",
    port,
    database,
    table,
    prefix: keyPrefix(parts),
    tls: readTls(query.get("sslmode") ?? env["PGSSLMODE"], query.get("sslrootcert") ?? env["PGSSLROOTCERT"]),
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { password }),
    ...(applicationName === undefined ? {} : { applicationName }),
    ...(searchPath === null ? {} : { searchPath }),
    ...(cert === undefined || key === undefined ? {} : { clientCertificate: { cert: readFile("sslcert", cert), key: readFile("sslkey", key) } }),
  };
}

/** lib/pq's reading of sslmode: `require` is the default, and checks the certificate only where an authority is given. */
function readTls(mode: string | undefined, rootCertificate: string | undefined): PostgresTls {
  const ca = rootCertificate === undefined || rootCertificate === "" ? {} : { ca: readFile("sslrootcert", rootCertificate) };
  switch (mode) {
    case "disable":
      return { kind: "off" };
    case undefined:
    case "":
    case "require":
      return "ca" in ca ? { kind: "checked", checkHost: false, ...ca } : { kind: "unchecked" };
    case "verify-ca":
      return { kind: "checked", checkHost: false, ...ca };
    case "verify-full":
      return { kind: "checked", checkHost: true, ...ca };
    default:
      throw invalidUrl(`the sslmode ${quoteUntrusted(mode)} is none of disable, require, verify-ca, verify-full`);
  }
}

function readFile(name: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new JanitorError("backend-url-invalid", `the file of ${name} could not be read: ${describeError(error)}`, { cause: error });
  }
}

function splitOnce(text: string, separator: string): readonly [string, string | undefined] {
  const index = text.indexOf(separator);
  return index === -1 ? [decode(text), undefined] : [decode(text.slice(0, index)), decode(text.slice(index + 1))];
}

function splitHost(host: string): readonly [string, string | undefined] {
  const match = /^(\[[^\]]+\]|[^:]*)(?::(\d+))?$/.exec(host);
  if (match === null) throw invalidUrl("the host is no address");
  return [(match[1] ?? "").replace(/^\[|\]$/g, ""), match[2]];
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
