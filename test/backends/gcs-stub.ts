import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Stored {
  readonly bytes: Buffer;
  readonly generation: string;
  readonly timeCreated: string;
}

/** The part of Google's JSON API that the janitor uses, with its preconditions, which emulators ignore (https://cloud.google.com/storage/docs/json_api/v1). */
export class GcsStub {
  readonly buckets = new Map<string, Map<string, Stored>>();
  #generations = 1_700_000_000_000_000;
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  async start(): Promise<void> {
    await new Promise<void>((done) => {
      this.#server.listen(0, "127.0.0.1", done);
    });
  }

  get port(): number {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port has such an address.
    return (this.#server.address() as AddressInfo).port;
  }

  put(bucket: string, key: string, bytes: Uint8Array): void {
    this.buckets.get(bucket)?.set(key, { bytes: Buffer.from(bytes), generation: String(++this.#generations), timeCreated: new Date().toISOString() });
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((done) => {
      this.#server.close(() => done());
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://stub");
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const [, bucketName = "", name] = /\/b\/([^/]+)\/o(?:\/(.+))?$/.exec(url.pathname) ?? [];
    const objects = this.buckets.get(bucketName);
    const reply = (status: number, body: object): void => void response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const refuse = (status: number, reason: string): void => reply(status, { error: { code: status, message: reason, errors: [{ reason, message: reason }] } });
    if (objects === undefined) return refuse(404, "notFound");
    if (request.method === "POST") return this.#upload(bucketName, objects, url, Buffer.concat(chunks), reply, refuse);
    if (name === undefined) return listObjects(objects, url, reply);
    const key = decodeURIComponent(name);
    const stored = objects.get(key);
    if (stored === undefined) return refuse(404, "notFound");
    const wanted = url.searchParams.get("ifGenerationMatch");
    if (wanted !== null && wanted !== stored.generation) return refuse(412, "conditionNotMet");
    if (request.method === "DELETE") {
      objects.delete(key);
      response.writeHead(204).end();
      return;
    }
    if (url.searchParams.get("alt") !== "media") return reply(200, describe(key, stored));
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
    const headers = { "x-goog-generation": stored.generation };
    if (first === undefined || last === undefined) {
      response.writeHead(200, { ...headers, "content-length": String(stored.bytes.length) }).end(stored.bytes);
      return;
    }
    if (Number(first) >= stored.bytes.length) return refuse(416, "requestedRangeNotSatisfiable");
    const part = stored.bytes.subarray(Number(first), Number(last) + 1);
    const range = `bytes ${first}-${Number(first) + part.length - 1}/${stored.bytes.length}`;
    response.writeHead(206, { ...headers, "content-length": String(part.length), "content-range": range }).end(part);
  }

  #upload(
    bucket: string,
    objects: ReadonlyMap<string, Stored>,
    url: URL,
    body: Buffer,
    reply: (status: number, body: object) => void,
    refuse: (status: number, reason: string) => void,
  ): void {
    const key = url.searchParams.get("name") ?? "";
    if (url.searchParams.get("ifGenerationMatch") === "0" && objects.has(key)) return refuse(412, "conditionNotMet");
    this.put(bucket, key, secondPart(body));
    const stored = objects.get(key);
    reply(200, stored === undefined ? {} : describe(key, stored));
  }
}

/** The content of a multipart upload: its second part. */
function secondPart(body: Buffer): Buffer {
  const boundary = body.subarray(0, body.indexOf("\r\n"));
  const second = body.indexOf(boundary, boundary.length);
  const start = body.indexOf("\r\n\r\n", second) + 4;
  return body.subarray(start, body.indexOf(Buffer.concat([Buffer.from("\r\n"), boundary]), start));
}

function listObjects(objects: ReadonlyMap<string, Stored>, url: URL, reply: (status: number, body: object) => void): void {
  const prefix = url.searchParams.get("prefix") ?? "";
  const most = Number(url.searchParams.get("maxResults") ?? 1_000);
  const first = Number(url.searchParams.get("pageToken") ?? 0);
  const keys = Array.from(objects.keys())
    .filter((key) => key.startsWith(prefix))
    .toSorted();
  const items = keys.slice(first, first + most).flatMap((key) => {
    const stored = objects.get(key);
    return stored === undefined ? [] : [describe(key, stored)];
  });
  reply(200, { kind: "storage#objects", items, ...(first + most < keys.length ? { nextPageToken: String(first + most) } : {}) });
}

function describe(name: string, { bytes, generation, timeCreated }: Stored): object {
  return { kind: "storage#object", name, generation, timeCreated, updated: timeCreated, size: String(bytes.length) };
}
