import { REQUEST_ANNOTATION } from "../core/after-removal.ts";
import { formatTimestamp, type EpochNanoseconds } from "../core/time.ts";
import type { ApiAnswer, ApiClient } from "./api-client.ts";
import { reviewAccess } from "./review-access.ts";

/** A Stack, as it is written to. */
export interface StackName {
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
}

/** An Event on a Stack. */
export interface StackEvent {
  readonly message: string;
  readonly at: EpochNanoseconds;
  /** What tells this Event's name from those of other runs. */
  readonly id: string;
  /** The pod of the janitor, or its machine. */
  readonly reporter: string;
}

/** What the API server made of a write. */
export type Written = { readonly kind: "written" } | { readonly kind: "refused"; readonly problem: string };

// Names of objects (https://kubernetes.io/docs/concepts/overview/working-with-objects/names/): nothing else goes into a path.
const OBJECT_NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** Sets the one annotation whose change makes the operator try a Stack at once, and nothing else. */
export async function requeueStack(client: ApiClient, { namespace, name, uid }: StackName, request: string, signal: AbortSignal): Promise<Written> {
  if (!OBJECT_NAME.test(namespace) || !OBJECT_NAME.test(name)) return { kind: "refused", problem: "it has no name that may be written to" };
  const metadata = { ...(uid === undefined ? {} : { uid }), annotations: { [REQUEST_ANNOTATION]: request } };
  return describeWrite(await client.patch(`/apis/pulumi.com/v1/namespaces/${namespace}/stacks/${name}`, { metadata }, signal), "patch", "stacks.pulumi.com");
}

/** Writes an Event on a Stack, as `kubectl describe` shows it. */
export async function tellStack(client: ApiClient, { namespace, name, uid }: StackName, event: StackEvent, signal: AbortSignal): Promise<Written> {
  if (!OBJECT_NAME.test(namespace) || !OBJECT_NAME.test(name)) return { kind: "refused", problem: "it has no name that may be written to" };
  const at = `${formatTimestamp(event.at).slice(0, 19)}Z`;
  const body = {
    apiVersion: "v1",
    kind: "Event",
    // At most 253 characters.
    metadata: { namespace, name: `${name.slice(0, 200).replace(/[-.]+$/, "")}.${event.id}` },
    involvedObject: { apiVersion: "pulumi.com/v1", kind: "Stack", namespace, name, ...(uid === undefined ? {} : { uid }) },
    type: "Normal",
    reason: "StaleLockRemoved",
    message: event.message,
    source: { component: "pulumi-lock-janitor", host: event.reporter },
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
  };
  return describeWrite(await client.post(`/api/v1/namespaces/${namespace}/events`, body, signal), "create", "events");
}

/** Whether a right to write is there, in every namespace or in each of those given; undefined where the API server does not tell. */
export async function reviewStackWrite(
  client: ApiClient,
  what: "requeue" | "event",
  namespaces: readonly string[],
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const right = what === "requeue" ? { verb: "patch", group: "pulumi.com", resource: "stacks" } : { verb: "create", group: "", resource: "events" };
  const places = namespaces.length === 0 ? [{}] : namespaces.map((namespace) => ({ namespace }));
  const answers = await Promise.all(places.map((place) => reviewAccess(client, { ...right, ...place }, signal)));
  return answers.includes(false) ? false : answers.includes(undefined) ? undefined : true;
}

function describeWrite(answer: ApiAnswer, verb: string, resource: string): Written {
  switch (answer.kind) {
    case "ok":
      return { kind: "written" };
    case "unreachable":
      return { kind: "refused", problem: answer.problem };
    case "refused":
      if (answer.status === 403) return { kind: "refused", problem: `the verb "${verb}" on ${resource} is not allowed (or an admission policy forbids it)` };
      if (answer.status === 404) return { kind: "refused", problem: "it is no longer there" };
      if (answer.status === 409) return { kind: "refused", problem: "another Stack of that name is there now" };
      return { kind: "refused", problem: `the API server answered ${answer.status} ${answer.reason}`.trimEnd() };
  }
}
