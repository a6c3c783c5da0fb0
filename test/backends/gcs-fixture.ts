import type { FaultSwitch } from "./contract.ts";
import type { FaultProxy, SeenRequest } from "./fault-proxy.ts";

function kindOf({ method, path }: SeenRequest): "list" | "read" | "delete" | "write" | "other" {
  if (method === "GET") return /\/o(\?|$)/.test(path) ? "list" : "read";
  return method === "DELETE" ? "delete" : method === "POST" ? "write" : "other";
}

/** Faults of Google's API, played by a proxy. */
export function playGcsFaults(proxy: FaultProxy): FaultSwitch {
  return {
    deny: (what) => {
      const body = JSON.stringify({ error: { code: 403, message: "does not have access (or it may not exist)", errors: [{ reason: "forbidden" }] } });
      proxy.fault = (seen) => (kindOf(seen) === what ? { kind: "answer", status: 403, headers: { "content-type": "application/json" }, body } : undefined);
    },
    hang: () => {
      proxy.fault = () => ({ kind: "hang" });
    },
    cut: () => {
      proxy.fault = () => ({ kind: "cut", after: false });
    },
    loseAnswerOfDelete: () => {
      let lost = false;
      proxy.fault = (seen) => {
        if (kindOf(seen) !== "delete" || lost) return undefined;
        lost = true;
        return { kind: "cut", after: true };
      };
    },
    lieAboutListing: () => {
      proxy.fault = (seen) =>
        kindOf(seen) === "list" ? { kind: "rewrite", body: (text) => JSON.stringify({ ...JSON.parse(text), nextPageToken: "0" }) } : undefined;
    },
    heal: () => {
      proxy.fault = () => undefined;
    },
  };
}
