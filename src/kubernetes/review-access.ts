import * as z from "zod";

import type { ApiClient } from "./api-client.ts";

/** What is asked for, in the words of a Role; in every namespace without one. */
export interface AskedRight {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly namespace?: string;
}

const accessReview = z.object({ status: z.object({ allowed: z.boolean() }) });

/** Whether something is allowed; undefined where the API server does not tell. */
export async function reviewAccess(client: ApiClient, resourceAttributes: AskedRight, signal: AbortSignal): Promise<boolean | undefined> {
  const review = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: { resourceAttributes } };
  const answer = await client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, signal);
  const parsed = answer.kind === "ok" ? accessReview.safeParse(answer.body) : undefined;
  return parsed?.success === true ? parsed.data.status.allowed : undefined;
}
