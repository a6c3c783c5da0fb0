import type { Socket } from "node:net";

import { TcpProxy } from "./tcp-proxy.ts";

/** How a server can be away: it answers, it takes no connection, it says nothing, it breaks off what it had begun. */
export type Fickleness = "answers" | "refuses" | "hangs" | "resets";

/** A way to a server that comes and goes. */
export class FickleProxy extends TcpProxy {
  readonly #open = new Set<Socket>();
  #mood: Fickleness = "answers";

  get mood(): Fickleness {
    return this.#mood;
  }

  /** From now on; what is open is cut, as it is where a server dies. */
  set mood(mood: Fickleness) {
    this.#mood = mood;
    for (const socket of this.#open) socket.destroy();
    this.#open.clear();
  }

  protected override join(socket: Socket, upstream: Socket): void {
    this.#open.add(socket);
    socket.on("close", () => this.#open.delete(socket));
    switch (this.#mood) {
      case "answers":
        socket.pipe(upstream);
        upstream.pipe(socket);
        return;
      case "refuses":
        socket.destroy();
        return;
      case "hangs":
        socket.resume();
        return;
      case "resets":
        socket.once("data", () => socket.resetAndDestroy());
    }
  }
}
