import type { Socket } from "node:net";

import { TcpProxy } from "./tcp-proxy.ts";

/** A request to Postgres: what a client sends before it waits for the server. */
export interface PostgresRequest {
  /** Counts from 1, over all connections. */
  readonly number: number;
  /** Its statement, or what kind of message it is. */
  readonly text: string;
}

/** A way to Postgres that sees each request whole, before it goes on and when the server has done it. */
export class PostgresRequestProxy extends TcpProxy {
  readonly requests: PostgresRequest[] = [];
  /** False: the request is not passed on, and the connection cut. */
  beforeRequest: (request: PostgresRequest) => boolean = () => true;
  /** False: the answer is not passed on, and the connection cut. */
  afterRequest: (request: PostgresRequest) => boolean = () => true;

  protected override join(socket: Socket, upstream: Socket): void {
    let sent = Buffer.alloc(0);
    let answer = Buffer.alloc(0);
    let started = false;
    let current: PostgresRequest | undefined;
    const cut = (): void => {
      socket.destroy();
      upstream.destroy();
    };
    socket.on("data", (bytes: Buffer) => {
      sent = Buffer.concat([sent, bytes]);
      const end = endOfRequest(sent, started);
      if (end === 0) return;
      const request = { number: this.requests.length + 1, text: describeRequest(sent, started) };
      started = true;
      this.requests.push(request);
      if (!this.beforeRequest(request)) {
        cut();
        return;
      }
      current = request;
      upstream.write(sent.subarray(0, end));
      sent = sent.subarray(end);
    });
    upstream.on("data", (bytes: Buffer) => {
      answer = Buffer.concat([answer, bytes]);
      if (!isWhole(answer)) return;
      const request = current;
      current = undefined;
      if (request !== undefined && !this.afterRequest(request)) {
        cut();
        return;
      }
      socket.write(answer);
      answer = Buffer.alloc(0);
    });
  }
}

// https://www.postgresql.org/docs/current/protocol-message-formats.html: a type and a length that counts itself; the first message has no type.
const TYPE_LENGTH = 1;

/** Where the first request of the bytes ends: behind a message that the server answers. 0 while more is to come. */
function endOfRequest(bytes: Buffer, started: boolean): number {
  if (!started) return bytes.length >= 4 && bytes.length >= bytes.readInt32BE(0) ? bytes.readInt32BE(0) : 0;
  let at = 0;
  while (bytes.length >= at + TYPE_LENGTH + 4) {
    const type = String.fromCharCode(bytes[at] ?? 0);
    at += TYPE_LENGTH + bytes.readInt32BE(at + TYPE_LENGTH);
    if (at > bytes.length) return 0;
    // Query, Sync, a word of the login. Terminate has no answer, so it is none.
    if ("QSp".includes(type)) return at;
  }
  return 0;
}

function describeRequest(bytes: Buffer, started: boolean): string {
  if (!started) return "startup";
  const statement = /(?:SELECT|INSERT|DELETE|SET|SHOW)[^\0]{0,60}/.exec(bytes.toString("latin1"))?.[0];
  return statement?.replaceAll(/\s+/g, " ") ?? `message ${String.fromCharCode(bytes[0] ?? 0)}`;
}

/** Whether the bytes end with a message after which the server waits: ReadyForQuery, or a demand of the login. */
function isWhole(bytes: Buffer): boolean {
  let at = 0;
  let last = "";
  while (bytes.length >= at + TYPE_LENGTH + 4) {
    last = String.fromCharCode(bytes[at] ?? 0);
    at += TYPE_LENGTH + bytes.readInt32BE(at + TYPE_LENGTH);
  }
  return at === bytes.length && "ZREN".includes(last);
}
