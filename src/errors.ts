/** Stable codes of everything that can go wrong; scripts may rely on them. */
export type ErrorCode =
  | "usage"
  | "config-invalid"
  | "backend-url-invalid"
  | "backend-unsupported"
  | "backend-missing"
  | "backend-denied"
  | "backend-unreachable"
  | "backend-failed"
  | "backend-listing-broken"
  | "lock-protected"
  | "lock-not-found"
  | "record-invalid"
  | "record-failed"
  | "restore-refused"
  | "unlock-refused"
  | "cluster-not-configured"
  | "cluster-denied"
  | "cluster-unreachable"
  | "cluster-failed"
  | "snapshot-invalid"
  | "output-failed"
  | "interrupted";

const USAGE_CODES: ReadonlySet<ErrorCode> = new Set([
  "usage",
  "config-invalid",
  "backend-url-invalid",
  "backend-unsupported",
  "cluster-not-configured",
  "snapshot-invalid",
]);

/**
 * An error that a person can act upon. `message` says what happened and to what, `hint` what to do next; neither holds a secret
 * or unescaped text of others.
 */
export class JanitorError extends Error {
  override readonly name = "JanitorError";
  readonly code: ErrorCode;
  readonly hint: string | undefined;

  constructor(code: ErrorCode, message: string, options: { readonly hint?: string; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
  }

  /** The exit code that the error leads to where nothing else decides: 2 for usage and configuration, 4 for a refusal, else 1. */
  get exitCode(): 1 | 2 | 4 {
    if (USAGE_CODES.has(this.code)) return 2;
    return this.code === "restore-refused" || this.code === "unlock-refused" ? 4 : 1;
  }
}

/** The message of anything thrown, in one line. */
export function describeError(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s+/g, " ").trim();
}

/** What happened and, where it is known, what to do. */
export function describeWithHint(error: unknown): string {
  return error instanceof JanitorError && error.hint !== undefined ? `${error.message}. ${error.hint}` : describeError(error);
}

/** The code that the system or a driver gave an error (`ENOENT`, `ECONNREFUSED`), or undefined. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** The first code among the causes of an error: SDKs and fetch wrap the network's. */
export function systemCodeOfCause(error: unknown): string | undefined {
  for (let cause = error instanceof Error ? error.cause : undefined; cause instanceof Error; cause = cause.cause) {
    const code = systemCode(cause);
    if (code !== undefined) return code;
  }
  return undefined;
}
