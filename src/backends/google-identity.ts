import { setTimeout as sleep } from "node:timers/promises";

import { GoogleAuth, OAuth2Client, PassThroughClient, type AuthClient } from "google-auth-library";
import * as z from "zod";

import { describeError, JanitorError } from "../errors.ts";
import type { GcsCredential, GcsSettings } from "./gcs-settings.ts";

const SCOPES = "https://www.googleapis.com/auth/devstorage.read_write";

/** Milliseconds between tries: GKE's metadata server refuses in a pod's first seconds (https://cloud.google.com/kubernetes-engine/docs/how-to/workload-identity#limitations). */
const PATIENCE: readonly number[] = [500, 1_000, 2_000, 4_000];

/** Opens the identity of a backend. Throws `backend-denied` where there is none: requests never go out without one unless the URL says so. */
export async function openGoogleIdentity({ credential, universeDomain }: GcsSettings, backend: string): Promise<AuthClient> {
  try {
    return await openClient(credential, universeDomain);
  } catch (error) {
    throw new JanitorError("backend-denied", `${backend}: no credentials could be found: ${describeError(error).slice(0, 160)}`, {
      cause: error,
      hint: "Set GOOGLE_CREDENTIALS (the text of a key), GOOGLE_OAUTH_ACCESS_TOKEN or GOOGLE_APPLICATION_CREDENTIALS, or run where there is a metadata server.",
    });
  }
}

async function openClient(credential: GcsCredential, universeDomain: string | undefined): Promise<AuthClient> {
  const universe = universeDomain === undefined ? {} : { universeDomain };
  switch (credential.kind) {
    case "anonymous":
      return new PassThroughClient();
    case "access-token": {
      const client = new OAuth2Client();
      client.setCredentials({ access_token: credential.token });
      return client;
    }
    case "json": {
      const credentials = z.looseObject({ type: z.string() }).parse(JSON.parse(credential.text));
      return await new GoogleAuth({ credentials, scopes: SCOPES, clientOptions: universe }).getClient();
    }
    case "default":
      return await openDefault(credential, universe);
  }
}

async function openDefault({ keyFile }: Extract<GcsCredential, { kind: "default" }>, universe: { readonly universeDomain?: string }): Promise<AuthClient> {
  for (const wait of [...PATIENCE, undefined]) {
    try {
      const client = await new GoogleAuth({ scopes: SCOPES, clientOptions: universe, ...(keyFile === undefined ? {} : { keyFile }) }).getClient();
      await client.getAccessToken();
      return client;
    } catch (error) {
      if (wait === undefined || keyFile !== undefined) throw error;
      await sleep(wait);
    }
  }
  throw new Error("no credentials");
}
