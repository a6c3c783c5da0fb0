import * as z from "zod";

import { describeError } from "../errors.ts";
import type { ApiAnswer, ApiClient } from "./api-client.ts";

/** What is listed, in the words of a Role: for the sentence that says what is missing. */
export interface ListedResource {
  readonly path: string;
  readonly name: string;
}

/** How a list ended. `absent`: the cluster has no such kind. */
export type ListResult = { readonly kind: "complete" } | { readonly kind: "absent" } | { readonly kind: "failed"; readonly problem: string };

/**
 * A page of a list. Kind and items are wanted: a 200 that is something else, a Status or what a gateway made up, would otherwise end a list early and as whole.
 */
const page = z.object({
  kind: z.string().regex(/List$/),
  metadata: z.object({ continue: z.string().nullish(), resourceVersion: z.string().nullish(), remainingItemCount: z.number().nullish() }),
  items: z.array(z.unknown()).nullable(),
});

/** How often a list may start anew when its continue token expires. */
const MOST_STARTS = 3;

/**
 * Lists a resource page by page, all of one snapshot of the API server and never from its cache (no resourceVersion: a consistent read,
 * https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions). An expired token starts over, and `onStart` tells so; the
 * token that a 410 offers for an inconsistent continuation is never used.
 */
export async function listObjects(
  client: ApiClient,
  resource: ListedResource,
  query: Readonly<Record<string, string>>,
  visit: { readonly onStart: () => void; readonly onItem: (item: unknown) => void },
  signal: AbortSignal,
): Promise<ListResult> {
  for (let start = 0; start < MOST_STARTS; start += 1) {
    visit.onStart();
    const result = await listOnce(client, resource, query, visit.onItem, signal);
    if (result !== "expired") return result;
  }
  return { kind: "failed", problem: `the list of ${resource.name} expired half-way (410 Gone) ${MOST_STARTS} times` };
}

async function listOnce(
  client: ApiClient,
  resource: ListedResource,
  query: Readonly<Record<string, string>>,
  onItem: (item: unknown) => void,
  signal: AbortSignal,
): Promise<ListResult | "expired"> {
  let token = "";
  let version: string | undefined;
  const seen = new Set<string>();
  for (;;) {
    const answer = await client.get(resource.path, token === "" ? query : { ...query, continue: token }, signal);
    if (answer.kind === "refused" && answer.status === 410) return "expired";
    if (answer.kind === "refused" && answer.status === 404) return { kind: "absent" };
    if (answer.kind !== "ok") return { kind: "failed", problem: describeRefusal(answer, resource) };
    const parsed = page.safeParse(answer.body);
    if (!parsed.success) return { kind: "failed", problem: `the answer to the list of ${resource.name} is no list` };
    const { metadata, items } = parsed.data;
    // All pages of one snapshot have one version (https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks).
    version ??= metadata.resourceVersion ?? "";
    if (version !== (metadata.resourceVersion ?? "")) return { kind: "failed", problem: `the pages of the list of ${resource.name} are not of one snapshot` };
    try {
      items?.forEach((item) => onItem(item));
    } catch (error) {
      return { kind: "failed", problem: `one of the ${resource.name} could not be read: ${describeError(error).slice(0, 120)}` };
    }
    token = metadata.continue ?? "";
    if (token === "" && (metadata.remainingItemCount ?? 0) > 0) return { kind: "failed", problem: `the list of ${resource.name} ends before its end` };
    if (token === "") return { kind: "complete" };
    if (seen.has(token)) return { kind: "failed", problem: `the list of ${resource.name} goes round in circles` };
    seen.add(token);
  }
}

/** Why a list, a watch or a write could not be had, naming the verb that is missing. */
export function describeRefusal(
  answer: Exclude<ApiAnswer, { kind: "ok" }>,
  { name }: ListedResource,
  verb: "list" | "watch" | "patch" | "create" = "list",
): string {
  if (answer.kind === "unreachable") return answer.problem;
  switch (answer.status) {
    case 401:
      return "the credentials were not accepted (401)";
    case 403:
      return `the verb "${verb}" on ${name} is not allowed (403)`;
    case 429:
      return "the API server is overloaded (429)";
    default:
      return `the API server answered ${answer.status}${answer.reason === "" ? "" : ` ${answer.reason}`} to the ${verb} of ${name}`;
  }
}
