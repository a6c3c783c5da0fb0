import { formatCount } from "../core/text.ts";
import type { Progress } from "../sweep.ts";
import type { Log } from "./log.ts";

/** Shows how far a sweep is, on stderr. */
export interface ProgressLine {
  readonly show: (progress: Progress) => void;
  readonly clear: () => void;
}

/** Of a stream, what a progress line needs. */
type ProgressStream = Pick<NodeJS.WriteStream, "isTTY" | "columns"> & { write(text: string): boolean };

/** Ten times a second is enough for an eye. */
const REDRAWN_EVERY = 100;

/** A log that is read later wants to know that a long sweep goes on; of a short one it wants nothing. */
const LOGGED_EVERY = 15_000;

const BAR_WIDTH = 20;

/** On a terminal one line that is written over and taken away at the end, else a note in the log at intervals; nothing when told to be quiet. */
export function openProgressLine(stream: ProgressStream, quiet: boolean, now: () => number, log: Log): ProgressLine {
  if (quiet) return { show: () => undefined, clear: () => undefined };
  return stream.isTTY ? openTerminalLine(stream, now) : openLogLine(now, log);
}

function openTerminalLine(stream: ProgressStream, now: () => number): ProgressLine {
  let shownAt = 0;
  let visible = false;
  return {
    show: (progress) => {
      if (now() - shownAt < REDRAWN_EVERY) return;
      shownAt = now();
      visible = true;
      const bar = progress.kind === "removing" ? `${drawBar(progress.done, progress.of)} ` : "";
      // A line that wraps cannot be written over. The text is ours and plain, so that each character is a column.
      stream.write(`\r\u001b[K${`${bar}${describeProgress(progress)}`.slice(0, Math.max(stream.columns - 1, 1))}`);
    },
    clear: () => {
      if (visible) stream.write("\r\u001b[K");
      visible = false;
    },
  };
}

function openLogLine(now: () => number, log: Log): ProgressLine {
  let loggedAt = now();
  return {
    show: (progress) => {
      if (now() - loggedAt < LOGGED_EVERY) return;
      loggedAt = now();
      // Whoever cannot log has no use for how far it is.
      log("info", describeProgress(progress)).catch(() => undefined);
    },
    clear: () => undefined,
  };
}

function drawBar(done: number, of: number): string {
  const filled = of === 0 ? BAR_WIDTH : Math.floor((BAR_WIDTH * done) / of);
  return `[${"#".repeat(filled)}${"-".repeat(BAR_WIDTH - filled)}]`;
}

function describeProgress(progress: Progress): string {
  switch (progress.kind) {
    case "reading":
      return `reading locks … ${progress.locks}`;
    case "judging":
      return `asking about the owners of ${formatCount(progress.locks, "lock")} …`;
    case "waiting":
      return `waiting ${progress.milliseconds / 1_000} s for a second look …`;
    case "removing":
      return `removing … ${progress.done} of ${progress.of}`;
  }
}
