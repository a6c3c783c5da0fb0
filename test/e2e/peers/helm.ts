import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { parseAllDocuments } from "yaml";

import { findPeer } from "./build-peers.ts";

/** The chart's folder. */
export const CHART = resolve("charts/pulumi-lock-janitor");

/** What Helm said. */
interface HelmResult {
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** A rendered object, as far as every object has the same fields. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

/** Runs Helm with the values given, and with nobody's own configuration. */
export function runHelm(words: readonly string[], values: object = {}, kubeconfig = "/nonexistent"): HelmResult {
  const home = mkdtempSync(join(tmpdir(), "helm-"));
  try {
    const { status, stdout, stderr } = spawnSync(findPeer("helm"), [...words], {
      input: JSON.stringify(values),
      encoding: "utf8",
      env: { PATH: process.env["PATH"] ?? "", HOME: home, KUBECONFIG: kubeconfig },
    });
    return { exitCode: status ?? undefined, stdout, stderr };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** The text that `helm template` makes of values, of a release "janitor" in the namespace "ops". Throws what Helm says when it refuses them. */
export function renderText(values: object): string {
  const { exitCode, stdout, stderr } = runHelm(["template", "janitor", CHART, "--namespace", "ops", "--values", "-"], values);
  if (exitCode !== 0) throw new Error(stderr);
  return stdout;
}

/** The objects that `helm template` makes of values. */
export function render(values: object): readonly Manifest[] {
  return parseManifests(renderText(values));
}

/** The objects of a text of YAML documents. */
export function parseManifests(text: string): readonly Manifest[] {
  return parseAllDocuments(text).flatMap((document) => {
    const manifest: Manifest | null = document.toJS();
    return manifest === null ? [] : [manifest];
  });
}

/** The only object of a kind, or of a kind and name. Throws where there is none, or several. */
export function findManifest(manifests: readonly Manifest[], kind: string, name?: string): Manifest {
  const [found, ...others] = manifests.filter((manifest) => manifest.kind === kind && (name === undefined || manifest.metadata.name === name));
  if (found === undefined || others.length > 0) throw new Error(`there are ${found === undefined ? "no" : "several"} ${kind}s`);
  return found;
}
