import { buildNodePeers } from "../e2e/peers/build-peers.ts";
import { installPackages } from "../e2e/peers/node/packages.ts";

/** Runs once before the field test. */
export function setup(): void {
  installPackages();
  buildNodePeers();
}
