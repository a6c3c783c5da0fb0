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
  | "record-invalid"
  | "record-failed"
  | "restore-refused"
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
    return this.code === "restore-refused" ? 4 : 1;
  }
}

/** The message of anything thrown, in one line. */
export function describeError(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s+/g, " ").trim();
}
