import { chmodSync, cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { findPeer } from "../e2e/peers/build-peers.ts";
import { addBase, addProgram, writeImage } from "../e2e/peers/node/oci-image.ts";
import { readFinalStage } from "./dockerfile.ts";

/** The image of the pods that run pulumi: its CLI, its YAML host, a shell. */
export const PULUMI_IMAGE = "localhost/field-pulumi:1";
/** The janitor's own image, by the steps of its Dockerfile. */
export const JANITOR_IMAGE = "localhost/pulumi-lock-janitor:1";

/** Writes the image of the test's pods. */
export function writePulumiImage(file: string): void {
  inFolder((root) => {
    addBase(root);
    addProgram(root, findPeer("pulumi"));
    addProgram(root, findPeer("pulumi-language-yaml"));
    cpSync(resolve("test/field/agent.sh"), join(root, "agent.sh"));
    chmodSync(join(root, "agent.sh"), 0o755);
    writeImage(file, PULUMI_IMAGE, root, { Entrypoint: ["/bin/sh", "/agent.sh"] });
  });
}

/**
 * Writes the janitor's image as its Dockerfile says: what its last stage copies from the build stage is copied from this tree, where `npm run build`
 * has been run as the build stage runs it. In place of the base image stands the same Node that runs the tests.
 */
export function writeJanitorImage(file: string): void {
  const { copies, config } = readFinalStage(resolve("Dockerfile"));
  inFolder((root) => {
    addBase(root);
    addProgram(root, process.execPath, config.Entrypoint?.[0]?.slice(1));
    for (const { from, to } of copies) cpSync(resolve(from), join(root, to), { recursive: true });
    writeImage(file, JANITOR_IMAGE, root, config);
  });
}

function inFolder(use: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "image-root-"));
  chmodSync(folder, 0o755);
  try {
    use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
