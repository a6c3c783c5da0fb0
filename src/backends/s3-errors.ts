import { describeError, systemCode, type JanitorError } from "../errors.ts";
import { composeBackendError, type FailureDescription } from "./driver.ts";

/** What of an error of the AWS SDK says what happened: never its text. */
export interface AwsFailure {
  /** HTTP status; undefined when there was no answer. */
  readonly status: number | undefined;
  /** The service's code, "NoSuchKey", or the network's, "ECONNREFUSED". */
  readonly code: string;
}

/** Reads the failure from anything that the SDK threw. */
export function readFailure(error: unknown): AwsFailure {
  if (!(error instanceof Error)) return { status: undefined, code: "" };
  const metadata: unknown = "$metadata" in error ? error.$metadata : undefined;
  const status =
    typeof metadata === "object" && metadata !== null && "httpStatusCode" in metadata && typeof metadata.httpStatusCode === "number"
      ? metadata.httpStatusCode
      : undefined;
  return { status, code: status === undefined ? (systemCode(error) ?? error.name) : error.name };
}

/** True when the same request may be sent again: no answer, or one that says "later". */
export function isTransient({ status, code }: AwsFailure): boolean {
  if (status === undefined) return !/Credential|Token|Provider|ENOTFOUND/.test(code);
  return status === 408 || status === 429 || status >= 500;
}

/** What the janitor does in a bucket, in words, each with the permission that it needs. */
const PERMISSIONS = {
  "list the locks": "s3:ListBucket on the bucket",
  "read a lock": "s3:GetObject (and s3:ListBucket: without it a missing object is denied too; kms:Decrypt for an encrypted bucket)",
  "read a checkpoint": "s3:GetObject (and s3:ListBucket: without it a missing object is denied too; kms:Decrypt for an encrypted bucket)",
  "remove a lock": "s3:DeleteObject and s3:GetObject",
  "put a lock back": "s3:PutObject",
  "write a record": "s3:PutObject on .pulumi-lock-janitor/audit/ (and kms:GenerateDataKey for an encrypted bucket)",
  "list the records": "s3:ListBucket on the bucket",
  "read a record": "s3:GetObject",
} as const;

export type Action = keyof typeof PERMISSIONS;

/** Turns an error of the SDK into one that names the backend, what was tried, and what is missing. */
export function wrapAwsError(error: unknown, backend: string, action: Action): JanitorError {
  return composeBackendError(error, backend, action, () => describeFailure(readFailure(error), action, error));
}

// Codes: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
function describeFailure({ status, code }: AwsFailure, action: Action, error: unknown): FailureDescription {
  switch (code) {
    case "NoSuchBucket":
      return { code: "backend-missing", problem: "there is no such bucket", hint: "Check the bucket, the region and the endpoint." };
    case "InvalidAccessKeyId":
    case "SignatureDoesNotMatch":
    case "ExpiredToken":
    case "InvalidToken":
    case "RequestTimeTooSkewed":
      return {
        code: "backend-denied",
        problem: `the credentials were not accepted (${code})`,
        hint: "The key or token is wrong or has expired, or the clock of this machine is wrong.",
      };
    case "CredentialsProviderError":
    case "TokenProviderError":
      return {
        code: "backend-denied",
        problem: "no credentials could be found",
        hint: "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or a profile, or give the pod a role (IRSA, EKS Pod Identity).",
      };
    case "PermanentRedirect":
    case "AuthorizationHeaderMalformed":
    case "IllegalLocationConstraintException":
      return { code: "backend-failed", problem: `the bucket is in another region (${code})`, hint: "Add ?region=… to the URL." };
    case "ECONNREFUSED":
      return { code: "backend-unreachable", problem: "nothing listens at the service's address" };
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return {
        code: "backend-unreachable",
        problem: "the service's name could not be resolved",
        hint: "Check the endpoint and the region; a server of your own usually wants s3ForcePathStyle=true.",
      };
    default:
      return describeOther({ status, code }, action, error);
  }
}

function describeOther({ status, code }: AwsFailure, action: Action, error: unknown): FailureDescription {
  if (status === 401 || status === 403)
    return { code: "backend-denied", problem: `permission denied${code === "" ? "" : ` (${code})`}`, hint: `It needs ${PERMISSIONS[action]}.` };
  if (code === "TimeoutError" || code === "AbortError") return { code: "backend-unreachable", problem: "the service did not answer in time" };
  if (error instanceof Error && /Region is missing/.test(error.message))
    return { code: "backend-url-invalid", problem: "the region is not known", hint: "Set AWS_REGION, or add ?region=… to the URL." };
  if (status === undefined) return { code: "backend-unreachable", problem: `the connection failed (${code})` };
  return { code: "backend-failed", problem: `the service answered ${status}${code === "" ? `: ${describeError(error).slice(0, 120)}` : ` (${code})`}` };
}
