import { describeError, systemCode, systemCodeOfCause, type JanitorError } from "../errors.ts";
import { composeBackendError, type FailureDescription } from "./driver.ts";

/** What of an error of Google's SDK says what happened. */
export interface GoogleFailure {
  /** HTTP status; undefined when there was no answer. */
  readonly status: number | undefined;
  /** The service's reason, "forbidden", or the network's code, "ECONNREFUSED". */
  readonly reason: string;
  /** The service's text: only dates are taken from it. */
  readonly message: string;
}

/** Reads the failure from anything that the SDK threw. */
export function readFailure(error: unknown): GoogleFailure {
  if (!(error instanceof Error)) return { status: undefined, reason: "", message: "" };
  const code: unknown = "code" in error ? error.code : undefined;
  const status = typeof code === "number" ? code : "status" in error && typeof error.status === "number" ? error.status : undefined;
  const errors: unknown = "errors" in error ? error.errors : undefined;
  const first: unknown = Array.isArray(errors) ? errors[0] : undefined;
  const reason = typeof first === "object" && first !== null && "reason" in first && typeof first.reason === "string" ? first.reason : undefined;
  return { status, reason: reason ?? systemCode(error) ?? systemCodeOfCause(error) ?? "", message: error.message };
}

/** True when the same request may be sent again: no answer, or one that says "later" (https://cloud.google.com/storage/docs/retry-strategy). */
export function isTransient({ status }: GoogleFailure): boolean {
  return status === undefined || status === 408 || status === 429 || status >= 500;
}

const PERMISSIONS = {
  "list the locks": "storage.objects.list",
  "read a lock": "storage.objects.get",
  "read a checkpoint": "storage.objects.get",
  "remove a lock": "storage.objects.delete",
  "put a lock back": "storage.objects.create",
  "write a record": "storage.objects.create",
  "list the records": "storage.objects.list",
  "read a record": "storage.objects.get",
} as const;

/** What the janitor does in a bucket, in words. */
export type Action = keyof typeof PERMISSIONS;

/** Turns an error of the SDK into one that names the backend, what was tried, and what is missing. */
export function wrapGoogleError(error: unknown, backend: string, action: Action): JanitorError {
  return composeBackendError(error, backend, action, () => describeFailure(readFailure(error), action, error));
}

function describeFailure({ status, reason, message }: GoogleFailure, action: Action, error: unknown): FailureDescription {
  if (reason === "retentionPolicyNotMet" || (status === 403 && /retention policy|\bhold\b/i.test(message))) {
    // The service tells the date only in its text.
    const date = /\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)/.exec(message)?.[0];
    return {
      code: "lock-protected",
      problem: `a retention policy or a hold protects it${date === undefined ? "" : ` until ${date}`}`,
      hint: "Neither is ever broken from here; Pulumi's own locks cannot be released there either.",
    };
  }
  if (status === 401)
    return {
      code: "backend-denied",
      problem: "the credentials were not accepted (401)",
      hint: "The token has expired, or the request went out without one; set GOOGLE_CREDENTIALS, GOOGLE_OAUTH_ACCESS_TOKEN or application default credentials.",
    };
  if (status === 403)
    return {
      code: "backend-denied",
      problem: "permission denied (403)",
      hint: `It needs ${PERMISSIONS[action]} on the bucket, as in the role "Storage Object User" (roles/storage.objectUser); without it a missing bucket is denied too.`,
    };
  if (status === 404) return { code: "backend-missing", problem: "there is no such bucket" };
  switch (reason) {
    case "ECONNREFUSED":
      return { code: "backend-unreachable", problem: "nothing listens at the service's address" };
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return { code: "backend-unreachable", problem: "the service's name could not be resolved" };
    default:
      if (status === undefined) return { code: "backend-unreachable", problem: `the service did not answer${reason === "" ? "" : ` (${reason})`}` };
      return { code: "backend-failed", problem: `the service answered ${status}${reason === "" ? `: ${describeError(error).slice(0, 120)}` : ` (${reason})`}` };
  }
}
