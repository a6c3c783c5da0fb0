import type { FaultSwitch } from "./contract.ts";
import type { FaultProxy, SeenRequest } from "./fault-proxy.ts";
import { playHttpFaults } from "./http-faults.ts";

function kindOf({ method, path }: SeenRequest): "list" | "read" | "delete" | "write" | "other" {
  if (method === "GET") return /\/o(\?|$)/.test(path) ? "list" : "read";
  return method === "DELETE" ? "delete" : method === "POST" ? "write" : "other";
}

/** Faults of Google's API, played by a proxy. */
export function playGcsFaults(proxy: FaultProxy): FaultSwitch {
  const body = JSON.stringify({ error: { code: 403, message: "does not have access (or it may not exist)", errors: [{ reason: "forbidden" }] } });
  return playHttpFaults(proxy, {
    kindOf,
    denial: () => ({ kind: "answer", status: 403, headers: { "content-type": "application/json" }, body }),
    lie: (page) => JSON.stringify({ ...JSON.parse(page), nextPageToken: "0" }),
  });
}
