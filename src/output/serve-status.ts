import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { JanitorError } from "../errors.ts";
import type { Metrics } from "./metrics.ts";

/** Whether something is as it should be, and what to say when it is not. */
export type Probe = () => { readonly ok: boolean; readonly message: string };

/** What is served. */
export interface Status {
  readonly metrics: Metrics;
  readonly healthy: Probe;
  readonly ready: Probe;
}

/** A running server. */
export interface StatusServer {
  readonly port: number;
  readonly stop: () => Promise<void>;
}

/** Where something listens; at every address of the machine without a host. */
export interface ListenAddress {
  readonly host?: string;
  readonly port: number;
}

/** Serves `/metrics`, `/healthz` and `/readyz`. Throws `usage` when nothing can listen there. */
export async function serveStatus({ host, port }: ListenAddress, { metrics, healthy, ready }: Status): Promise<StatusServer> {
  const server = createServer((request, response) => {
    const answer = (status: number, type: string, text: string): void =>
      void response.writeHead(status, { "content-type": type }).end(request.method === "HEAD" ? "" : text);
    const probe = (look: Probe): void => {
      const { ok, message } = look();
      answer(ok ? 200 : 503, "text/plain; charset=utf-8", `${message}\n`);
    };
    if (request.method !== "GET" && request.method !== "HEAD") return answer(405, "text/plain", "only GET\n");
    switch (request.url?.split("?")[0]) {
      case "/metrics":
        metrics.render().then(
          ({ contentType, text }) => answer(200, contentType, text),
          () => answer(500, "text/plain", "the metrics could not be composed\n"),
        );
        return;
      case "/healthz":
        return probe(healthy);
      case "/readyz":
        return probe(ready);
      case undefined:
      default:
        answer(404, "text/plain", "there are /metrics, /healthz and /readyz\n");
    }
  });
  await new Promise<void>((done, fail) => {
    server.once("error", (error) =>
      fail(new JanitorError("usage", `--listen: nothing can listen at ${host ?? ""}:${port} (${error.message})`, { cause: error })),
    );
    server.listen(port, host, done);
  });
  const address: AddressInfo | string | null = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    stop: async () => {
      server.closeAllConnections();
      await new Promise<void>((done) => {
        server.close(() => done());
      });
    },
  };
}
