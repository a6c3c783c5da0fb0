import { keyPrefix, splitBackendUrl } from "../core/backend-url.ts";
import { quoteUntrusted } from "../core/text.ts";
import { invalidUrl, nonEmpty, parseBooleanParameter, parseGoBoolean, refuseUnknownParameters } from "./url-parameters.ts";

/** Which credential is used, by gocloud's order (blob/azureblob/azureblob.go, `newCredInfoFromEnv`). */
export type AzblobCredential =
  | { readonly kind: "shared-key"; readonly account: string; readonly key: string }
  | { readonly kind: "sas"; readonly token: string }
  | { readonly kind: "connection-string"; readonly text: string }
  | { readonly kind: "identity" };

/** What an `azblob://` URL and its environment say. */
export interface AzblobSettings {
  readonly account: string;
  readonly container: string;
  /** Put before every key. */
  readonly prefix: string;
  /** The service's URL, without a SAS token and without the container. */
  readonly serviceUrl: string;
  readonly credential: AzblobCredential;
}

type Environment = Readonly<Record<string, string | undefined>>;

const PARAMETERS: readonly string[] = ["storage_account", "domain", "protocol", "cdn", "localemu", "prefix"];

/** Reads an `azblob://` URL with its environment as gocloud does (`NewServiceURL`, `withOverrides`). Throws `backend-url-invalid`. */
export function readAzblobSettings(url: string, env: Environment): AzblobSettings {
  const parts = splitBackendUrl(url);
  if (parts === undefined || parts.scheme !== "azblob") throw invalidUrl("this is no azblob:// URL");
  const { host: container, query } = parts;
  if (container === "") throw invalidUrl("an azblob:// URL needs a container", "Write azblob://container, and the account in AZURE_STORAGE_ACCOUNT.");
  if (container.includes("."))
    throw invalidUrl(`${quoteUntrusted(container)} is the host of a service, not a container`, "Write azblob://container?storage_account=account.");
  refuseUnknownParameters(query, "azblob", PARAMETERS);
  const twice = PARAMETERS.find((name) => query.getAll(name).length > 1);
  if (twice !== undefined) throw invalidUrl(`the parameter ${twice} is given twice`);

  const connectionString = nonEmpty(env["AZURE_STORAGE_CONNECTION_STRING"]) ?? nonEmpty(env["AZURE_STORAGEBLOB_CONNECTIONSTRING"]);
  const connection = readConnectionString(connectionString);
  const credential = chooseCredential(env, connectionString);
  const account = query.get("storage_account") ?? nonEmpty(env["AZURE_STORAGE_ACCOUNT"]) ?? connection.get("AccountName");
  if (account === undefined || account === "")
    throw invalidUrl("the storage account is not known", "Set AZURE_STORAGE_ACCOUNT, or add ?storage_account=account to the URL.");
  if (!/^[a-z0-9]{3,24}$/.test(account)) throw invalidUrl(`${quoteUntrusted(account)} is no name of a storage account`);
  const protocol = query.get("protocol") ?? nonEmpty(env["AZURE_STORAGE_PROTOCOL"]) ?? connection.get("DefaultEndpointsProtocol") ?? "https";
  if (protocol !== "https" && protocol !== "http") throw invalidUrl(`the protocol ${quoteUntrusted(protocol)} is neither https nor http`);
  if (protocol === "http" && credential.kind === "identity")
    throw invalidUrl("a token must not be sent over plain http", "Use https, or a key, a SAS token or a connection string.");
  const domain = nonEmpty(query.get("domain") ?? env["AZURE_STORAGE_DOMAIN"]) ?? "blob.core.windows.net";
  const local = query.has("localemu") ? parseBooleanParameter("localemu", query.get("localemu") ?? "") : isTrue(env["AZURE_STORAGE_IS_LOCAL_EMULATOR"]);
  const cdn = query.has("cdn") ? parseBooleanParameter("cdn", query.get("cdn") ?? "") : isTrue(env["AZURE_STORAGE_IS_CDN"]);
  return { account, container, prefix: keyPrefix(parts), serviceUrl: composeServiceUrl(protocol, domain, account, local, cdn), credential };
}

function composeServiceUrl(protocol: string, domain: string, account: string, local: boolean, cdn: boolean): string {
  if (!/^[A-Za-z0-9.:[\]-]+$/.test(domain)) throw invalidUrl(`the domain ${quoteUntrusted(domain)} is no host`);
  if (domain.startsWith("127.0.0.1") || domain.startsWith("localhost") || local) return `${protocol}://${domain}/${account}`;
  return cdn ? `${protocol}://${domain}` : `${protocol}://${account}.${domain}`;
}

function chooseCredential(env: Environment, connectionString: string | undefined): AzblobCredential {
  const account = nonEmpty(env["AZURE_STORAGE_ACCOUNT"]);
  const key = nonEmpty(env["AZURE_STORAGE_KEY"]);
  if (account !== undefined && key !== undefined) return { kind: "shared-key", account, key };
  const token = nonEmpty(env["AZURE_STORAGE_SAS_TOKEN"]);
  if (token !== undefined) return { kind: "sas", token: token.replace(/^\?/, "") };
  return connectionString === undefined ? { kind: "identity" } : { kind: "connection-string", text: connectionString };
}

function readConnectionString(text: string | undefined): ReadonlyMap<string, string> {
  const pairs = (text ?? "").split(";").map((part): [string, string] => {
    const equals = part.indexOf("=");
    return [part.slice(0, equals).trim(), part.slice(equals + 1).trim()];
  });
  return new Map(pairs);
}

function isTrue(value: string | undefined): boolean {
  return parseGoBoolean(value ?? "") === true;
}
