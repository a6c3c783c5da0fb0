import { z } from "zod";

import type { ApiClient } from "./api-client.ts";

/** One thing that a Role may allow. */
export interface Access {
  /** Every namespace when absent. */
  readonly namespace?: string;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
}

const accessReview = z.object({ status: z.object({ allowed: z.boolean() }) });

/** Asks whether the janitor may do something, without doing it; undefined where the API server does not tell. */
export async function mayDo(client: ApiClient, access: Access, signal: AbortSignal): Promise<boolean | undefined> {
  const review = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: { resourceAttributes: access } };
  const answer = await client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, signal);
  const parsed = answer.kind === "ok" ? accessReview.safeParse(answer.body) : undefined;
  return parsed?.success === true ? parsed.data.status.allowed : undefined;
}
