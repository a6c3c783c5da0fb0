import { formatCount } from "../core/text.ts";
import type { Progress } from "../sweep.ts";

/** Shows how far a sweep is, on a terminal's stderr only: one line that is written over, and taken away at the end. */
export interface ProgressLine {
  readonly show: (progress: Progress) => void;
  readonly clear: () => void;
}

/** A progress line; on anything but a terminal, or when told to be quiet, it shows nothing. */
export function openProgressLine(stream: NodeJS.WriteStream, quiet: boolean, now: () => number): ProgressLine {
  if (quiet || !stream.isTTY) return { show: () => undefined, clear: () => undefined };
  let shownAt = 0;
  let visible = false;
  return {
    show: (progress) => {
      // Ten times a second is enough for an eye.
      if (now() - shownAt < 100) return;
      shownAt = now();
      visible = true;
      stream.write(`\r\u001b[K${describeProgress(progress)}`);
    },
    clear: () => {
      if (visible) stream.write("\r\u001b[K");
      visible = false;
    },
  };
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
