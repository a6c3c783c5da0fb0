import type { Logger } from "pino";

import { escapeUntrusted } from "../core/text.ts";

/** What a log line may carry beside its text; never a secret. */
export type LogFields = Readonly<Record<string, string | number | boolean>>;

export type LogLevel = "info" | "warn" | "error";

/** Writes one note for the person or the log collector: to stderr, never stdout. */
export type Log = (level: LogLevel, text: string, fields?: LogFields) => Promise<void>;

/** The log of a process: plain lines on a terminal, else one line of JSON each. While `isQuiet` says so there are errors only. */
export function openLog(stderr: NodeJS.WriteStream, isQuiet: () => boolean): Log {
  const write = stderr.isTTY ? openTerminalLog(stderr) : openJsonLog();
  return async (level, text, fields = {}) => {
    if (!isQuiet() || level === "error") await write(level, text, fields);
  };
}

function openTerminalLog(stderr: NodeJS.WriteStream): Log {
  return (level, text) => {
    const label = level === "info" ? "" : level === "warn" ? "warning: " : "error: ";
    stderr.write(`${label}${text.split("\n").map(escapeUntrusted).join("\n")}\n`);
    return Promise.resolve();
  };
}

/** The library is loaded with the first line: most runs write none. */
function openJsonLog(): Log {
  const open = async (): Promise<Logger> => {
    // The library is CommonJS: once bundled, it has a default export only.
    const { default: pino } = await import("pino");
    return pino(
      { base: null, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) } },
      pino.destination({ fd: 2, sync: true }),
    );
  };
  let logger: Promise<Logger> | undefined;
  return async (level, text, fields = {}) => {
    logger ??= open();
    (await logger)[level](fields, text.split("\n").map(escapeUntrusted).join("\n"));
  };
}
