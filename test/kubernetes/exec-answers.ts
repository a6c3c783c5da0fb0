import type { StubApiServer } from "./stub-api-server.ts";

export function channel(number: number, text: string): Buffer {
  return Buffer.concat([Buffer.from([number]), Buffer.from(text)]);
}

export const SUCCESS = channel(3, JSON.stringify({ metadata: {}, status: "Success" }));

export function aFailure(reason: string, message: string, exitCode?: number): Buffer {
  const causes = exitCode === undefined ? {} : { details: { causes: [{ reason: "ExitCode", message: String(exitCode) }] } };
  return channel(3, JSON.stringify({ status: "Failure", reason, message, ...causes }));
}

/** What a shell with number 9, which sees process 1 and those given, answers. */
export function anAnswer(pids: readonly number[] = []): string {
  const all = [1, ...pids, 9];
  const stat = ["S", ...Array.from({ length: 49 }, () => 100)].join(" ");
  const process = (pid: number): readonly string[] => [`process ${pid}`, "Name:\tsh", "State:\tS (sleeping)", `NSpid:\t${pid}`, `stat ${stat}`];
  const lines = ["lock-janitor-probe-begin 9", "self 9", "btime 1772323200", "mount proc /proc proc rw 0 0", `pids ${all.join(" ")}`, ...all.flatMap(process)];
  return [...lines, "lock-janitor-probe-end 9", ""].join("\n");
}

export function answerWith(output: string, status: Buffer = SUCCESS): StubApiServer["exec"] {
  return (_, socket) => {
    for (let at = 0; at < output.length; at += 100) socket.send(channel(1, output.slice(at, at + 100)));
    socket.send(status);
    socket.close();
  };
}
