import type { Log } from "./output/log.ts";

/** What a command gets from the process it runs in. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** A person sits at the terminal and can be asked. */
  readonly interactive: boolean;
  /** Aborted by SIGINT or SIGTERM. */
  readonly stop: AbortSignal;
  readonly log: Log;
  /** Leaves errors only from now on: a setting says so. */
  readonly hush?: () => void;
}
