import { quoteUntrusted } from "../core/text.ts";
import { JanitorError } from "../errors.ts";

/** The error of a backend's URL, or of what its environment says beside it. */
export function invalidUrl(message: string, hint?: string): JanitorError {
  return new JanitorError("backend-url-invalid", message, hint === undefined ? {} : { hint });
}

/** Refuses a parameter that the backend does not take, as gocloud does. Throws `backend-url-invalid`. */
export function refuseUnknownParameters(query: URLSearchParams, scheme: string, parameters: readonly string[]): void {
  const unknown = Array.from(query.keys()).find((name) => !parameters.includes(name));
  if (unknown !== undefined) throw invalidUrl(`the ${scheme} backend has no parameter ${quoteUntrusted(unknown)}`, `It takes ${parameters.join(", ")}.`);
}

/** Whether a flag among the parameters is set; an absent or empty one is not. Throws `backend-url-invalid`. */
export function readFlag(query: URLSearchParams, name: string): boolean {
  const value = nonEmpty(query.get(name));
  return value !== undefined && parseBooleanParameter(name, value);
}

/** A parameter's truth value. Throws `backend-url-invalid`. */
export function parseBooleanParameter(name: string, value: string): boolean {
  const parsed = parseGoBoolean(value);
  if (parsed === undefined) throw invalidUrl(`the parameter ${name} is neither true nor false`);
  return parsed;
}

/** A truth value as Go's strconv.ParseBool reads it; undefined when it is none. */
export function parseGoBoolean(value: string): boolean | undefined {
  if (/^(?:1|t|T|TRUE|true|True)$/.test(value)) return true;
  return /^(?:0|f|F|FALSE|false|False)$/.test(value) ? false : undefined;
}

/** A parameter or variable that says something: gocloud and Pulumi take an empty one for absent. */
export function nonEmpty(value: string | null | undefined): string | undefined {
  return value === "" || value === null ? undefined : value;
}
