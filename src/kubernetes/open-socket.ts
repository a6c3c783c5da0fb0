import type { Duplex } from "node:stream";

import { WebSocket, type Dispatcher } from "undici";

/** A WebSocket to the API server, which may be open, on its way, or refused. */
export interface ApiSocket {
  readonly socket: WebSocket;
  /** The status with which the API server refused it; undefined if it did not. */
  readonly refusal: () => number | undefined;
  /** What kept the request from being answered. */
  readonly failure: () => unknown;
  /** Ends it at once, without waiting for the other side to agree. */
  readonly destroy: () => void;
}

export interface SocketRequest {
  /** Of the API server: `https://…`. */
  readonly url: string;
  readonly protocols: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Opens a WebSocket through the dispatcher that all other requests go through, so with its proxy and its certificates. The browser's interface of it says
 * neither why it failed nor ends a connection whose other side is silent, so what passes below is noted.
 */
export function openSocket(dispatcher: Dispatcher, { url, protocols, headers }: SocketRequest): ApiSocket {
  let refusal: number | undefined;
  let failure: unknown;
  let upgraded: Duplex | undefined;
  const noting = dispatcher.compose((dispatch) => (options, handler) => {
    const noted: Dispatcher.DispatchHandler = {
      onRequestStart: (controller, context: unknown) => handler.onRequestStart?.(controller, context),
      onRequestUpgrade: (controller, status, responseHeaders, socket) => {
        upgraded = socket;
        handler.onRequestUpgrade?.(controller, status, responseHeaders, socket);
      },
      onResponseStart: (controller, status, responseHeaders, text) => {
        refusal = status;
        handler.onResponseStart?.(controller, status, responseHeaders, text);
      },
      onResponseData: (controller, chunk) => handler.onResponseData?.(controller, chunk),
      onResponseEnd: (controller, trailers) => handler.onResponseEnd?.(controller, trailers),
      onResponseError: (controller, error) => {
        failure ??= error;
        handler.onResponseError?.(controller, error);
      },
    };
    // Servers take an upgrade over HTTP/1.1 only.
    return dispatch(Object.assign({}, options, { allowH2: false }), noted);
  });
  const socket = new WebSocket(url.replace(/^http/, "ws"), { protocols: [...protocols], headers, dispatcher: noting });
  return {
    socket,
    refusal: () => refusal,
    failure: () => failure,
    destroy: () => {
      socket.close();
      upgraded?.destroy();
    },
  };
}
