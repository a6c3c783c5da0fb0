import { buildPeers } from "./peers/build-peers.ts";

/** Runs once before all end-to-end tests. */
export function setup(): void {
  buildPeers();
}
