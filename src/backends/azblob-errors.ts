import { describeError, systemCode, systemCodeOfCause, type JanitorError } from "../errors.ts";
import { composeBackendError, type FailureDescription } from "./driver.ts";

/** What of an error of the Azure SDK says what happened: never its text. */
export interface AzureFailure {
  /** HTTP status; undefined when there was no answer. */
  readonly status: number | undefined;
  /** The service's code, "BlobNotFound", or the network's, "ECONNREFUSED". */
  readonly code: string;
  readonly name: string;
}

/** Reads the failure from anything that the SDK threw. */
export function readFailure(error: unknown): AzureFailure {
  if (!(error instanceof Error)) return { status: undefined, code: "", name: "" };
  const status = "statusCode" in error && typeof error.statusCode === "number" ? error.statusCode : undefined;
  return { status, code: findServiceCode(error) ?? systemCodeOfCause(error) ?? "", name: error.name };
}

function findServiceCode(error: Error): string | undefined {
  // The SDK copies the header x-ms-error-code into `details.errorCode`; an answer to HEAD has no body to take it from.
  const details: unknown = "details" in error ? error.details : undefined;
  const code: unknown = typeof details === "object" && details !== null && "errorCode" in details ? details.errorCode : undefined;
  if (typeof code === "string") return code;
  const own = systemCode(error);
  return own === "REQUEST_SEND_ERROR" ? undefined : own;
}

/** True when the same request may be sent again: no answer, or one that says "later". */
export function isTransient({ status, name }: AzureFailure): boolean {
  if (status === undefined) return name === "RestError" || name === "AbortError";
  return status === 408 || status === 429 || status >= 500;
}

/** Turns an error of the SDK into one that names the backend, what was tried, and what is missing. */
export function wrapAzureError(error: unknown, backend: string, action: Action): JanitorError {
  return composeBackendError(error, backend, action, () => describeFailure(readFailure(error), action, error));
}

/** What the janitor does in a container, in words. */
export type Action =
  | "list the locks"
  | "read a lock"
  | "read a checkpoint"
  | "remove a lock"
  | "put a lock back"
  | "write a record"
  | "list the records"
  | "read a record";

/** The SAS permission that each action needs (https://learn.microsoft.com/rest/api/storageservices/create-service-sas#permissions-for-a-directory-container-or-blob). */
const SAS_PERMISSIONS: Readonly<Record<Action, string>> = {
  "list the locks": "l",
  "read a lock": "r",
  "read a checkpoint": "r",
  "remove a lock": "d",
  "put a lock back": "c",
  "write a record": "c",
  "list the records": "l",
  "read a record": "r",
};

// Codes: https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes
function describeFailure({ status, code, name }: AzureFailure, action: Action, error: unknown): FailureDescription {
  switch (code) {
    case "AuthenticationFailed":
    case "InvalidAuthenticationInfo":
    case "NoAuthenticationInformation":
      return {
        code: "backend-denied",
        problem: `the credentials were not accepted (${code})`,
        hint: "The key or SAS token is wrong or has expired, or the clock of this machine is wrong.",
      };
    case "KeyBasedAuthenticationNotPermitted":
      return {
        code: "backend-denied",
        problem: "the account does not allow keys",
        hint: 'Use an identity: unset AZURE_STORAGE_KEY and give it the role "Storage Blob Data Contributor".',
      };
    case "ContainerNotFound":
      return {
        code: "backend-missing",
        problem: "there is no such container",
        hint: "Check the container and the account: another account may have one of that name.",
      };
    case "ContainerBeingDeleted":
      return { code: "backend-missing", problem: "the container is being deleted" };
    case "LeaseIdMissing":
      return {
        code: "lock-protected",
        problem: "another program holds a lease on it (LeaseIdMissing)",
        hint: "A lease is never broken from here; find out who took it.",
      };
    case "SnapshotsPresent":
      return { code: "lock-protected", problem: "it has snapshots (SnapshotsPresent)", hint: "Remove its snapshots first: they are somebody's copies." };
    case "BlobImmutableDueToPolicy":
    case "BlobImmutableDueToLegalHold":
    case "ImmutabilityPolicyDeleteOnLockedPolicy":
      return {
        code: "lock-protected",
        problem: `it is immutable (${code})`,
        hint: "A retention policy or a legal hold protects it; Pulumi's own locks cannot be released there either.",
      };
    case "ECONNREFUSED":
      return { code: "backend-unreachable", problem: "nothing listens at the service's address" };
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return { code: "backend-unreachable", problem: "the service's name could not be resolved", hint: "Check the account's name and the domain." };
    default:
      return describeOther({ status, code, name }, action, error);
  }
}

function describeOther({ status, code, name }: AzureFailure, action: Action, error: unknown): FailureDescription {
  if (status === 401 || status === 403) {
    return {
      code: "backend-denied",
      problem: `permission denied${code === "" ? "" : ` (${code})`}`,
      hint: `It needs the permission "${SAS_PERMISSIONS[action]}" of a SAS token, or the role "Storage Blob Data Contributor" on the container ("Contributor" alone gives no access to data).`,
    };
  }
  if (/Credential|Authentication/.test(name)) {
    return {
      code: "backend-denied",
      problem: "no identity could be found to sign in with",
      hint: "Set AZURE_STORAGE_KEY, a SAS token or a connection string, or set up workload identity or 'az login'.",
    };
  }
  if (name === "AbortError" || name === "TimeoutError") return { code: "backend-unreachable", problem: "the service did not answer in time" };
  if (status === undefined) return { code: "backend-unreachable", problem: `the connection failed${code === "" ? "" : ` (${code})`}` };
  return { code: "backend-failed", problem: `the service answered ${status}${code === "" ? `: ${describeError(error).slice(0, 120)}` : ` (${code})`}` };
}
