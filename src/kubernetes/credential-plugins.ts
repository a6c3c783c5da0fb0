import { spawn, type ChildProcess } from "node:child_process";

import type { KubeConfig } from "@kubernetes/client-node";

/** The credential plugins that a kubeconfig has started and that still run. */
export interface CredentialPlugins {
  /** Ends them. Whoever waits for one is told that it failed, and none of them keeps this process from ending. */
  readonly end: () => void;
}

/** Milliseconds that a plugin has to end by itself, once it was told to. */
const LAST_WORDS = 2_000;

/** Notes each plugin that the kubeconfig starts from now on: client-node waits for them without a limit, and hands none of them out. */
export function followPlugins(config: KubeConfig): CredentialPlugins {
  const running = new Set<ChildProcess>();
  const start = (...words: Parameters<typeof spawn>): ChildProcess => {
    const child = spawn(...words);
    running.add(child);
    // "close" follows a start that failed, too.
    child.once("close", () => running.delete(child));
    return child;
  };
  // Not of its published types: should the name ever change, a hung plugin lives on, and is still not waited for.
  const found: unknown = Reflect.get(config, "authenticators");
  const authenticators: readonly unknown[] = Array.isArray(found) ? found : [];
  for (const authenticator of authenticators) {
    if (typeof authenticator === "object" && authenticator !== null && "execFn" in authenticator) authenticator.execFn = start;
  }
  return { end: () => running.forEach(endChild) };
}

function endChild(child: ChildProcess): void {
  child.kill();
  setTimeout(() => child.kill("SIGKILL"), LAST_WORDS).unref();
  // A process of its own may hold the other ends.
  for (const stream of child.stdio) stream?.destroy();
  child.unref();
}
