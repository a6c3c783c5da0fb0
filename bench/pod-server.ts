// A process of its own: an API server with as many pods as its argument says, in the pages that it is asked for. It prints the port that it listens on.
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";

import { aListedPod } from "./pod-objects.ts";

const COUNT = Number(process.argv[2]);
// Between these parts stands what differs from pod to pod.
const PARTS = JSON.stringify(aListedPod(424_242, 10_000_000)).split("424242");

function textOf(index: number): string {
  // The pods in question are few, and each is written whole.
  if (index >= COUNT - 100) return JSON.stringify(aListedPod(index, COUNT));
  return PARTS.join(String(index).padStart(6, "0"));
}

async function writePods(response: ServerResponse, query: URLSearchParams): Promise<void> {
  const first = Number(query.get("continue") ?? 0);
  const end = Math.min(COUNT, first + Number(query.get("limit") ?? COUNT));
  const metadata = { resourceVersion: "1", ...(end < COUNT ? { continue: String(end), remainingItemCount: COUNT - end } : {}) };
  response.write(`{"kind":"PodList","apiVersion":"v1","metadata":${JSON.stringify(metadata)},"items":[`);
  for (let index = first; index < end; index += 50) {
    const some = Array.from({ length: Math.min(50, end - index) }, (_, at) => textOf(index + at)).join(",");
    if (!response.write(index === first ? some : `,${some}`)) await once(response, "drain");
  }
  response.end("]}");
}

const NODE = {
  metadata: { name: "node-1", creationTimestamp: "2026-01-01T00:00:00Z" },
  status: { conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:01:00Z", lastHeartbeatTime: new Date().toISOString() }] },
};

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://stub");
  response.setHeader("content-type", "application/json");
  if (pathname === "/api/v1/pods" && !searchParams.has("fieldSelector")) void writePods(response, searchParams);
  else if (pathname.startsWith("/api/v1/namespaces/")) response.end('{"metadata":{"uid":"0"}}');
  else response.end(JSON.stringify({ kind: "List", metadata: {}, items: pathname === "/api/v1/nodes" ? [NODE] : [] }));
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  process.stdout.write(`${typeof address === "object" ? (address?.port ?? 0) : 0}\n`);
});
