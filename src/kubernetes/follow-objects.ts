import pRetry from "p-retry";
import * as z from "zod";

import type { ApiClient } from "./api-client.ts";
import { describeRefusal, type ListedResource } from "./list-objects.ts";

export type ChangeType = "ADDED" | "MODIFIED" | "DELETED";

/** What a follower is told. */
export interface Follower {
  readonly onChange: (object: unknown, type: ChangeType) => void;
  /** Changes come, from the first answer on and again after each time they did not. */
  readonly onFollowed: () => void;
  /** Changes do not come now; whether any is missed is known when they come again. `denied`: the right is missing, which no waiting mends. */
  readonly onUnfollowed: (problem: string, denied: boolean) => void;
  /** Changes come again, from a later version than the last that was seen, so that some may have been missed: everything is to be looked at again. */
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

/** Milliseconds after which a watch that brought nothing counts as one. */
const SHORTEST_WATCH = 10_000;

/**
 * Follows the changes of one kind of object until the signal aborts; it throws nothing else. Only the resource version is kept. What is refused or cut off is tried
 * again with growing pauses: rights may be given later, and an API server comes back (https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes).
 */
export async function followObjects(client: ApiClient, resource: ListedResource, follower: Follower, signal: AbortSignal): Promise<void> {
  const place: Place = { version: undefined, lostBy: undefined };
  while (!signal.aborted) {
    try {
      await pRetry(() => followOnce(client, resource, place, follower, signal), {
        retries: Infinity,
        minTimeout: 1_000,
        maxTimeout: 60_000,
        randomize: true,
        signal,
        onFailedAttempt: ({ error }) => {
          if (signal.aborted) return;
          if (place.version === undefined) place.lostBy = error.message;
          // A version that is too old is no trouble of its own: the next attempt begins at another.
          if (!(error instanceof AbsentKind) && !(error instanceof Outdated)) follower.onUnfollowed(error.message, error instanceof Denied);
        },
      });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

/** The cluster has no such kind, so there is nothing to miss. */
class AbsentKind extends Error {}

/** The right to list or to watch is missing. */
class Denied extends Error {}

/** The API server no longer has the version at which the watch was to go on. */
class Outdated extends Error {}

interface Place {
  /** Where a watch goes on; undefined where that is not known. */
  version: string | undefined;
  /** Why it was not known. */
  lostBy: string | undefined;
}

/** Follows one answer to its end. Throws where there was none, or it was cut off before anything came: then a pause is due. */
async function followOnce(client: ApiClient, resource: ListedResource, place: Place, follower: Follower, signal: AbortSignal): Promise<void> {
  if (place.version === undefined) {
    place.version = await readVersion(client, resource, signal);
    // Told only now: a look that is made from here on sees everything up to this version, and what comes after it is told.
    if (place.lostBy !== undefined) follower.onLost(place.lostBy);
    place.lostBy = undefined;
  }
  const query = { watch: "1", resourceVersion: place.version, allowWatchBookmarks: "true", timeoutSeconds: String(WATCH_SECONDS) };
  const answer = await client.follow(resource.path, query, LONGEST_SILENCE, signal);
  if (answer.kind !== "ok") {
    const problem = describeRefusal(answer, resource, "watch");
    if (answer.kind !== "refused" || answer.status !== 410) throw toError(answer, problem);
    place.version = undefined;
    throw new Outdated(problem);
  }
  follower.onFollowed();
  const begunAt = performance.now();
  let seen = 0;
  // Not every API server sends bookmarks: one that was silent for long was followed all the same.
  const isHollow = (): boolean => seen === 0 && performance.now() - begunAt < SHORTEST_WATCH;
  try {
    for await (const line of answer.lines) {
      const { type, object } = event.parse(JSON.parse(line));
      if (type === "ERROR") {
        place.version = undefined;
        const problem = `the watch of ${resource.name} ended (${object.code ?? "unknown"})`;
        throw object.code === 410 ? new Outdated(problem) : new Error(problem);
      }
      seen += 1;
      place.version = object.metadata?.resourceVersion ?? place.version;
      if (type !== "BOOKMARK") follower.onChange(object, type);
    }
  } catch (error) {
    if (place.version === undefined) throw error;
    // What a parser says of it may hold the server's text.
    if (isHollow()) throw new Error(`the watch of ${resource.name} was cut off`, { cause: error });
  }
  if (isHollow()) throw new Error(`the watch of ${resource.name} ended at once`);
}

/** A list of one object tells the version of the whole, without reading it. */
async function readVersion(client: ApiClient, resource: ListedResource, signal: AbortSignal): Promise<string> {
  const answer = await client.get(resource.path, { limit: "1" }, signal);
  if (answer.kind === "refused" && answer.status === 404) throw new AbsentKind(describeRefusal(answer, resource));
  if (answer.kind !== "ok") throw toError(answer, describeRefusal(answer, resource));
  const parsed = list.safeParse(answer.body);
  if (!parsed.success) throw new Error(`the answer to the list of ${resource.name} is no list`);
  return parsed.data.metadata.resourceVersion;
}

function toError(answer: { readonly kind: string; readonly status?: number }, problem: string): Error {
  return answer.kind === "refused" && answer.status === 403 ? new Denied(problem) : new Error(problem);
}
