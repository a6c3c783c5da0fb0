import type { InsideOptions, InsideResult } from "../e2e/peers/node/node.ts";

/** A node's machine, whose processes are seen and signalled there by the numbers that its kernel gives them. */
export interface Machine {
  readonly node: string;
  /** Runs a shell script as root; gives what it prints. Throws when it fails. */
  readonly sh: (script: string) => Promise<string>;
}

/** Cuts a node off from its control plane while its containers run on. */
export interface Cutter {
  readonly node: string;
  readonly cutOff: () => Promise<void>;
  readonly joinAgain: () => Promise<void>;
}

/** Where the field test takes place: a node of its own, or a cluster that is there already. */
export interface Site {
  /** The test's own files. */
  readonly folder: string;
  /** Where pods reach what listens on the test's host. */
  readonly hostAddress: string;
  /** Whether a folder of the host can be mounted into pods, and whether commands reach the host's ports as pods do. */
  readonly isOwn: boolean;
  /** Runs a command that is to reach the API server. */
  readonly run: (words: readonly string[], options?: InsideOptions) => Promise<InsideResult>;
  /** Takes images into every node: pods name them with `imagePullPolicy: Never`. */
  readonly loadImages: (images: readonly { readonly name: string; readonly file: string }[]) => Promise<void>;
  /** Makes ports of the host's loopback reachable at `hostAddress`. */
  readonly relay: (ports: readonly number[]) => Promise<void>;
  /** The nodes' machines; the images are there by then. */
  readonly openMachines: () => Promise<readonly Machine[]>;
  /** In words, why not, where no node can be cut off. */
  readonly findCutter: (machines: readonly Machine[]) => Promise<Cutter | string>;
  readonly stop: () => Promise<void>;
}
