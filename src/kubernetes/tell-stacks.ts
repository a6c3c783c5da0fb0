import { randomUUID } from "node:crypto";

import { RECONCILIATION_REQUEST, type StackEvent } from "../core/after-unlock.ts";
import type { StackResource } from "../core/cluster.ts";
import { formatTimestamp, truncateToSecond, type EpochNanoseconds } from "../core/time.ts";
import type { ApiAnswer, ApiClient } from "./api-client.ts";
import type { StackRight, Telling } from "./cluster-source.ts";
import { describeRefusal } from "./list-objects.ts";
import { reviewAccess } from "./review-access.ts";

const JANITOR = "pulumi-lock-janitor";

/** Tells the operator to try a Stack again, by the annotation that it compares with the last value it saw. */
export async function requeueStack(client: ApiClient, { namespace, name }: StackResource, value: string, signal: AbortSignal): Promise<Telling> {
  const path = `/apis/pulumi.com/v1/namespaces/${encodeURIComponent(namespace)}/stacks/${encodeURIComponent(name)}`;
  const change = { metadata: { annotations: { [RECONCILIATION_REQUEST]: value } } };
  return describeTelling(await client.patch(path, { fieldManager: JANITOR }, change, signal), "patch", "stacks.pulumi.com");
}

/** Writes an Event on a Stack, as `kubectl describe` shows it: by the Stack's kind, name and UID. */
export async function writeEvent(
  client: ApiClient,
  { namespace, name, uid }: StackResource,
  { type, reason, message }: StackEvent,
  at: EpochNanoseconds,
  signal: AbortSignal,
): Promise<Telling> {
  const time = formatTimestamp(truncateToSecond(at));
  const event = {
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace, name: `${JANITOR}.${randomUUID()}` },
    involvedObject: { apiVersion: "pulumi.com/v1", kind: "Stack", namespace, name, ...(uid === undefined ? {} : { uid }) },
    type,
    reason,
    message,
    source: { component: JANITOR },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
  const answer = await client.create(`/api/v1/namespaces/${encodeURIComponent(namespace)}/events`, event, signal);
  return describeTelling(answer, "create", "events");
}

function describeTelling(answer: ApiAnswer, verb: "patch" | "create", name: string): Telling {
  return answer.kind === "ok" ? { kind: "told" } : { kind: "failed", problem: describeRefusal(answer, { path: "", name }, verb) };
}

/** The namespaces among the given ones in which a right is missing, or "every namespace" where all are asked; undefined where the API server does not tell. */
export async function findMissingRight(
  client: ApiClient,
  right: StackRight,
  namespaces: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const access = right === "create events" ? { verb: "create", group: "", resource: "events" } : { verb: "patch", group: "pulumi.com", resource: "stacks" };
  if (namespaces.length === 0) {
    const allowed = await reviewAccess(client, access, signal);
    return allowed === undefined ? undefined : allowed ? [] : ["every namespace"];
  }
  const missing: string[] = [];
  for (const namespace of namespaces) {
    const allowed = await reviewAccess(client, { ...access, namespace }, signal);
    if (allowed === undefined) return undefined;
    if (!allowed) missing.push(`namespace ${namespace}`);
  }
  return missing;
}
