import pRetry from "p-retry";
import * as z from "zod";

import type { ApiClient } from "./api-client.ts";
import { describeRefusal, type ListedResource } from "./list-objects.ts";

export type ChangeType = "ADDED" | "MODIFIED" | "DELETED";

/** What a follower is told. `lost`: changes may have been missed, so everything is to be looked at again. */
export interface Follower {
  readonly onChange: (object: unknown, type: ChangeType) => void;
  readonly onLost: (problem: string) => void;
}

const list = z.object({ metadata: z.object({ resourceVersion: z.string() }) });
const event = z.object({
  type: z.enum(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]),
  object: z.looseObject({ metadata: z.looseObject({ resourceVersion: z.string().optional() }).optional(), code: z.number().optional() }),
});

/** Seconds after which the API server ends a watch, and it is begun anew where it ended. */
const WATCH_SECONDS = 240;

/** Milliseconds without even a bookmark after which a connection is dead. */
const LONGEST_SILENCE = 150_000;

/**
 * Follows the changes of one kind of object until the signal aborts; it throws nothing else. Only the resource version is kept. What is refused or cut off is tried
 * again with growing pauses: rights may be given later, and an API server comes back (https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes).
 */
export async function followObjects(client: ApiClient, resource: ListedResource, follower: Follower, signal: AbortSignal): Promise<void> {
  const place: Place = { version: undefined };
  while (!signal.aborted) {
    try {
      await pRetry(() => followOnce(client, resource, place, follower.onChange, signal), {
        retries: Infinity,
        minTimeout: 1_000,
        maxTimeout: 60_000,
        randomize: true,
        signal,
        onFailedAttempt: ({ error }) => {
          if (!signal.aborted && !(error instanceof AbsentKind)) follower.onLost(error.message);
        },
      });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

/** The cluster has no such kind, so there is nothing to miss. */
class AbsentKind extends Error {}

/** Where a watch goes on; undefined where that is not known. */
interface Place {
  version: string | undefined;
}

/** Follows one answer to its end. Throws where there was none, or it was cut off before anything came: then a pause is due. */
async function followOnce(client: ApiClient, resource: ListedResource, place: Place, onChange: Follower["onChange"], signal: AbortSignal): Promise<void> {
  place.version ??= await readVersion(client, resource, signal);
  const query = { watch: "1", resourceVersion: place.version, allowWatchBookmarks: "true", timeoutSeconds: String(WATCH_SECONDS) };
  const answer = await client.follow(resource.path, query, LONGEST_SILENCE, signal);
  if (answer.kind !== "ok") {
    if (answer.kind === "refused" && answer.status === 410) place.version = undefined;
    throw new Error(describeRefusal(answer, resource, "watch"));
  }
  let seen = 0;
  try {
    for await (const line of answer.lines) {
      const { type, object } = event.parse(JSON.parse(line));
      if (type === "ERROR") {
        place.version = undefined;
        throw new Error(`the watch of ${resource.name} ended (${object.code ?? "unknown"})`);
      }
      seen += 1;
      place.version = object.metadata?.resourceVersion ?? place.version;
      if (type !== "BOOKMARK") onChange(object, type);
    }
  } catch (error) {
    if (place.version === undefined) throw error;
    // What a parser says of it may hold the server's text.
    if (seen === 0) throw new Error(`the watch of ${resource.name} was cut off`, { cause: error });
  }
  if (seen === 0) throw new Error(`the watch of ${resource.name} ended at once`);
}

/** A list of one object tells the version of the whole, without reading it. */
async function readVersion(client: ApiClient, resource: ListedResource, signal: AbortSignal): Promise<string> {
  const answer = await client.get(resource.path, { limit: "1" }, signal);
  if (answer.kind === "refused" && answer.status === 404) throw new AbsentKind(describeRefusal(answer, resource));
  if (answer.kind !== "ok") throw new Error(describeRefusal(answer, resource));
  const parsed = list.safeParse(answer.body);
  if (!parsed.success) throw new Error(`the answer to the list of ${resource.name} is no list`);
  return parsed.data.metadata.resourceVersion;
}
