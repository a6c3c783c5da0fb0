import { describeError, systemCode, type JanitorError } from "../errors.ts";
import { composeBackendError, type FailureDescription } from "./driver.ts";

const PRIVILEGES = {
  "list the locks": "SELECT",
  "read a lock": "SELECT",
  "read a checkpoint": "SELECT",
  "remove a lock": "DELETE and SELECT",
  "put a lock back": "INSERT",
  "write a record": "INSERT",
  "list the records": "SELECT",
  "read a record": "SELECT",
  "ask for its rights": "CONNECT",
} as const;

/** What the janitor does in a table, in words. */
export type Action = keyof typeof PRIVILEGES;

/** True when nobody knows whether the statement was carried out: the connection was lost, or it took too long. */
export function isUnanswered(error: unknown): boolean {
  const code = systemCode(error);
  if (code === undefined) return error instanceof Error && /timeout|terminated|closed/i.test(error.message);
  return /^(08|57P0)/.test(code) || /^E[A-Z]+$/.test(code);
}

/** Turns an error of the driver into one that names the backend, what was tried, and what is missing. */
export function wrapPostgresError(error: unknown, backend: string, action: Action): JanitorError {
  return composeBackendError(error, backend, action, () => describeCode(systemCode(error), action, error));
}

// Codes: https://www.postgresql.org/docs/current/errcodes-appendix.html
function describeCode(code: string | undefined, action: Action, error: unknown): FailureDescription {
  switch (code) {
    case "42501":
      return { code: "backend-denied", problem: "permission denied", hint: `The role needs ${PRIVILEGES[action]} on the table.` };
    case "28P01":
    case "28000":
      return { code: "backend-denied", problem: "the user or password was not accepted", hint: "Check the URL, PGUSER and PGPASSWORD." };
    case "42P01":
      return {
        code: "backend-missing",
        problem: "there is no such table",
        hint: "Check ?table=…; Pulumi makes the table at its first login, the janitor never does.",
      };
    case "3D000":
      return { code: "backend-missing", problem: "there is no such database" };
    case "ECONNREFUSED":
      return { code: "backend-unreachable", problem: "nothing listens at the server's address" };
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return { code: "backend-unreachable", problem: "the server's name could not be resolved" };
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
    case "SELF_SIGNED_CERT_IN_CHAIN":
    case "UNABLE_TO_VERIFY_LEAF_SIGNATURE":
    case "UNABLE_TO_GET_ISSUER_CERT_LOCALLY":
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return {
        code: "backend-unreachable",
        problem: `the server's certificate is not to be trusted (${code})`,
        hint: "Give the authority with sslrootcert=FILE.",
      };
    case undefined:
    default:
      break;
  }
  if (error instanceof Error && /does not support SSL/i.test(error.message))
    return { code: "backend-unreachable", problem: "the server does not speak TLS", hint: "Add sslmode=disable, as for Pulumi." };
  if (isUnanswered(error)) return { code: "backend-unreachable", problem: `the server did not answer${code === undefined ? "" : ` (${code})`}` };
  return { code: "backend-failed", problem: `the server answered ${code ?? describeError(error).slice(0, 120)}` };
}
