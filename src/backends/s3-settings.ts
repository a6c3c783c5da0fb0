import { keyPrefix, splitBackendUrl } from "../core/backend-url.ts";
import { quoteUntrusted } from "../core/text.ts";
import { invalidUrl, readFlag, refuseUnknownParameters } from "./url-parameters.ts";

/** What an `s3://` URL and its environment say. */
export interface S3Settings {
  readonly bucket: string;
  readonly prefix: string;
  /** With its scheme; absent for AWS itself. */
  readonly endpoint?: string;
  readonly region?: string;
  readonly profile?: string;
  readonly role?: string;
  readonly anonymous: boolean;
  readonly dualstack: boolean;
  readonly fips: boolean;
  readonly accelerate: boolean;
  readonly pathStyle: boolean;
  readonly https: boolean;
  readonly requestChecksums?: "WHEN_REQUIRED" | "WHEN_SUPPORTED";
  readonly responseChecksums?: "WHEN_REQUIRED" | "WHEN_SUPPORTED";
  readonly encryption?: "AES256" | "aws:kms" | "aws:kms:dsse" | "aws:fsx";
  readonly kmsKeyId?: string;
}

// gocloud's parameters (aws/aws.go, `V2ConfigFromURLParams`; blob/s3blob/s3blob.go), and Pulumi's older ones (backend.go, `translateLegacyS3Params`).
const BOOLEANS: readonly string[] = [
  "anonymous",
  "dualstack",
  "fips",
  "accelerate",
  "use_path_style",
  "s3ForcePathStyle",
  "disable_https",
  "disableSSL",
  "hostname_immutable",
];

const PARAMETERS: readonly string[] = [
  ...BOOLEANS,
  "region",
  "endpoint",
  "profile",
  "role",
  "rate_limiter_capacity",
  "request_checksum_calculation",
  "response_checksum_validation",
  "ssetype",
  "kmskeyid",
  "awssdk",
  "prefix",
];

const ENCRYPTIONS = ["AES256", "aws:kms", "aws:kms:dsse", "aws:fsx"] as const;

/** Reads an `s3://` URL with its environment as Pulumi does. Throws `backend-url-invalid`. */
export function readS3Settings(url: string, env: Readonly<Record<string, string | undefined>>): S3Settings {
  const parts = splitBackendUrl(url);
  if (parts === undefined || parts.scheme !== "s3") throw invalidUrl("this is no s3:// URL");
  const { host: bucket, query } = parts;
  if (bucket === "") throw invalidUrl("an s3:// URL needs a bucket", "Write s3://bucket?region=eu-west-1.");
  if (/^s3[.-].*\.amazonaws\.com/.test(bucket) || bucket.includes(":"))
    throw invalidUrl(`${quoteUntrusted(bucket)} is the host of a service, not a bucket`, "Write s3://bucket?endpoint=host.");
  refuseUnknownParameters(query, "s3", PARAMETERS);
  const flags = new Map(BOOLEANS.map((name) => [name, readFlag(query, name)]));
  const flag = (...names: readonly string[]): boolean => names.some((name) => flags.get(name) === true);
  const text = (name: string): string | undefined => query.get(name) ?? undefined;
  const capacity = query.get("rate_limiter_capacity");
  if (capacity !== null && !/^\d+$/.test(capacity)) throw invalidUrl("the parameter rate_limiter_capacity is no number");
  const role = text("role");
  if (role !== undefined && !role.startsWith("arn:")) throw invalidUrl("the parameter role is no ARN", "It begins with arn:.");
  const encryption = ENCRYPTIONS.find((name) => name.toLowerCase() === query.get("ssetype")?.toLowerCase());
  if (query.has("ssetype") && encryption === undefined) throw invalidUrl(`the parameter ssetype is none of ${ENCRYPTIONS.join(", ")}`);
  const disableSsl = flag("disableSSL");
  const endpoint = findEndpoint(query, env, disableSsl);
  const requestChecksums = readChecksums(
    "request_checksum_calculation",
    text("request_checksum_calculation") ?? env["AWS_REQUEST_CHECKSUM_CALCULATION"] ?? (endpoint === undefined ? undefined : "when_required"),
  );
  const responseChecksums = readChecksums(
    "response_checksum_validation",
    text("response_checksum_validation") ?? env["AWS_RESPONSE_CHECKSUM_VALIDATION"] ?? (endpoint === undefined ? undefined : "when_required"),
  );
  const region = text("region") ?? env["AWS_REGION"] ?? env["AWS_DEFAULT_REGION"] ?? (endpoint === undefined ? undefined : "us-east-1");
  const profile = text("profile") ?? env["AWS_PROFILE"];
  const kmsKeyId = text("kmskeyid");
  return {
    bucket,
    prefix: keyPrefix(parts),
    anonymous: flag("anonymous"),
    dualstack: flag("dualstack"),
    fips: flag("fips"),
    accelerate: flag("accelerate"),
    // An endpoint whose host may not change cannot have the bucket before it.
    pathStyle: flag("use_path_style", "s3ForcePathStyle") || (endpoint !== undefined && flag("hostname_immutable")),
    // Never a downgrade: an endpoint with its own scheme keeps it.
    https: endpoint === undefined ? !flag("disable_https", "disableSSL") : endpoint.startsWith("https:"),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
    ...(profile === undefined ? {} : { profile }),
    ...(role === undefined ? {} : { role }),
    ...(requestChecksums === undefined ? {} : { requestChecksums }),
    ...(responseChecksums === undefined ? {} : { responseChecksums }),
    ...(encryption === undefined ? {} : { encryption }),
    ...(kmsKeyId === undefined ? {} : { kmsKeyId }),
  };
}

/** The URL's endpoint, else the environment's, which AWS's SDKs know (https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html). */
function findEndpoint(query: URLSearchParams, env: Readonly<Record<string, string | undefined>>, disableSsl: boolean): string | undefined {
  const given = query.get("endpoint");
  if (given !== null) return composeEndpoint(given, "the parameter endpoint", disableSsl);
  if (env["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"]?.toLowerCase() === "true") return undefined;
  for (const name of ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]) {
    const endpoint = composeEndpoint(env[name] ?? "", `the variable ${name}`, disableSsl);
    if (endpoint !== undefined) return endpoint;
  }
  return undefined;
}

function composeEndpoint(endpoint: string, source: string, disableSsl: boolean): string | undefined {
  if (endpoint === "") return undefined;
  const whole = endpoint.includes("://") ? endpoint : `${disableSsl ? "http" : "https"}://${endpoint}`;
  if (!/^https?:\/\/[^/\s@]+(\/.*)?$/.test(whole) || !URL.canParse(whole)) throw invalidUrl(`${source} is no address`, "Write host:port or https://host:port.");
  return whole;
}

function readChecksums(name: string, value: string | undefined): "WHEN_REQUIRED" | "WHEN_SUPPORTED" | undefined {
  if (value === undefined || value === "") return undefined;
  const word = value.toUpperCase();
  if (word === "WHEN_REQUIRED" || word === "WHEN_SUPPORTED") return word;
  throw invalidUrl(`the parameter ${name} is neither when_required nor when_supported`);
}
