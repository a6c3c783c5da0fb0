import * as z from "zod";

import type { ApiSocket } from "./open-socket.ts";

/** What became of a command in a container. `refused`: the API server did not even begin. */
export type CommandAnswer =
  | { readonly kind: "ok"; readonly output: Uint8Array }
  | { readonly kind: "refused"; readonly status: number }
  | { readonly kind: "failed"; readonly problem: string };

/** A command in a container, as it is sent. */
export interface CommandRequest {
  readonly path: string;
  /** Milliseconds in which the command must have ended. */
  readonly timeout: number;
  readonly mostBytes: number;
  readonly signal: AbortSignal;
}

/** Both carry the command's Status on a channel of its own (https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apimachinery/pkg/util/remotecommand/constants.go). */
export const EXEC_PROTOCOLS: readonly string[] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

const STDOUT = 1;
const STDERR = 2;
const STATUS = 3;

const statusObject = z.object({
  status: z.string(),
  reason: z.string().default(""),
  message: z.string().default(""),
  details: z.object({ causes: z.array(z.object({ reason: z.string().default(""), message: z.string().default("") })).nullish() }).nullish(),
});

/** Collects the output of a command until its Status. Only Success makes it an answer: an output without one may be cut off. */
export async function collectOutput(
  { socket, destroy, refusal, failure }: ApiSocket,
  { timeout, mostBytes, signal }: CommandRequest,
  describeFailure: (error: unknown) => string,
): Promise<CommandAnswer> {
  const parts: Uint8Array[] = [];
  let total = 0;
  const cleanUps: (() => void)[] = [destroy];
  try {
    return await new Promise<CommandAnswer>((settle) => {
      const fail = (problem: string): void => settle({ kind: "failed", problem });
      const timer = setTimeout(() => fail(`the command did not end within ${timeout / 1_000} s`), timeout);
      const onAbort = (): void => fail("it was stopped");
      signal.addEventListener("abort", onAbort, { once: true });
      cleanUps.push(
        () => clearTimeout(timer),
        () => signal.removeEventListener("abort", onAbort),
      );
      socket.binaryType = "arraybuffer";
      socket.addEventListener("message", ({ data }: { readonly data: unknown }) => {
        if (!(data instanceof ArrayBuffer) || data.byteLength === 0) {
          fail("the API server sent what belongs to no channel");
          return;
        }
        const [channel] = new Uint8Array(data, 0, 1);
        const part = new Uint8Array(data, 1);
        total += part.length;
        if (channel === STATUS) settle(readStatus(part, parts));
        else if (total > mostBytes) fail("its answer is too long");
        else if (channel === STDOUT) parts.push(part);
        else if (channel !== STDERR) fail("the API server sent what belongs to no channel");
      });
      const onEnd = (): void => {
        const status = refusal();
        const error = failure();
        if (status !== undefined) settle({ kind: "refused", status });
        else fail(error === undefined ? "the connection was cut before the command had ended" : describeFailure(error));
      };
      socket.addEventListener("close", onEnd);
      socket.addEventListener("error", onEnd);
      if (signal.aborted) onAbort();
    });
  } finally {
    for (const cleanUp of cleanUps) cleanUp();
  }
}

function readStatus(bytes: Uint8Array, parts: readonly Uint8Array[]): CommandAnswer {
  const parsed = statusObject.safeParse(parseJson(bytes));
  if (!parsed.success) return { kind: "failed", problem: "the API server sent a Status that is none" };
  const { status, reason, message, details } = parsed.data;
  if (status === "Success") return { kind: "ok", output: joinParts(parts) };
  const code = details?.causes?.find((cause) => cause.reason === "ExitCode")?.message;
  // A runtime says it in its own words, which are used for nothing but a better sentence.
  const noShell = code === "126" || code === "127" || /executable file not found|no such file or directory/i.test(message);
  if (noShell) return { kind: "failed", problem: "it has no shell (sh) to look with" };
  if (code !== undefined && /^\d{1,3}$/.test(code)) return { kind: "failed", problem: `its shell ended with exit code ${code}` };
  return { kind: "failed", problem: `the command could not be run (${reason.replace(/[^A-Za-z]/g, "").slice(0, 40) || "no reason given"})` };
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

function joinParts(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
