import { buildNodePeers, buildPeers } from "../e2e/peers/build-peers.ts";
import { installPackages } from "../e2e/peers/node/packages.ts";
import { readGivenSettings } from "./given-settings.ts";

/** Runs once before the field test. A cluster that is there already needs no more than what its pods run. */
export function setup(): void {
  const own = readGivenSettings() === undefined;
  installPackages(own ? undefined : ["busybox-static"]);
  if (own) buildNodePeers();
  else buildPeers();
}
