import type { Process } from "./cluster.ts";
import { quoteUntrusted } from "./text.ts";
import { SECOND, type EpochNanoseconds, type Nanoseconds } from "./time.ts";

/** An answer with more bytes than this is not read to its end, so it proves nothing: some ten thousand processes. */
export const MAX_PROBE_BYTES = 4 * 1_024 * 1_024;

const BEGIN = "lock-janitor-probe-begin";
const END = "lock-janitor-probe-end";

/**
 * What is run in a container: one POSIX shell and its own builtins, since an image may have nothing else. It says everything it looked at,
 * so that an answer that is not whole can be told from one in which a process is missing. `status` escapes a newline in a name, `stat` does not:
 * of `stat` only what follows the last parenthesis is taken (https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html). A process that goes on
 * existing while the folder is read is in it. bash reads ahead and goes back, and finds a file that has changed meanwhile: hence the three tries.
 */
const SCRIPT = `LC_ALL=C
printf '%s\\n' "${BEGIN} $$"
read -r self rest </proc/self/stat
printf '%s\\n' "self $self"
for try in 1 2 3; do
  time=
  while IFS= read -r line; do case $line in 'btime '*) time=$line; break;; esac; done </proc/stat
  [ -z "$time" ] || break
done
printf '%s\\n' "$time"
while IFS= read -r line; do case $line in *' /proc '*) printf '%s\\n' "mount $line";; esac; done </proc/mounts
set -- /proc/[0-9]*
pids=
for folder do pids="$pids \${folder#/proc/}"; done
printf '%s\\n' "pids$pids"
for folder do
  pid=\${folder#/proc/}
  printf '%s\\n' "process $pid"
  for try in 1 2 3; do
    name= state= inner= stat=
    while IFS= read -r line; do case $line in
      Name:*) name=$line;;
      State:*) state=$line;;
      NSpid:*) inner=$line; break;;
    esac; done <"$folder/status"
    while IFS= read -r line || [ -n "$line" ]; do stat=$stat$line; done <"$folder/stat"
    [ -z "$state" ] || [ -z "$inner" ] || [ -z "$stat" ] || break
  done
  if [ -z "$state" ] || [ -z "$inner" ] || [ -z "$stat" ]; then
    if [ -d "$folder" ]; then printf '%s\\n' unreadable; else printf '%s\\n' vanished; fi
    continue
  fi
  stat=\${stat##*)}
  printf '%s\\n' "$name" "$state" "$inner" "stat$stat"
  case $stat in ' Z '*)
    all=0 live=0
    for task in "$folder"/task/[0-9]*; do
      state=
      while IFS= read -r line; do case $line in State:*) state=$line; break;; esac; done <"$task/status"
      [ -n "$state" ] || [ -d "$task" ] || continue
      all=$((all + 1))
      case $state in State:?[ZX]*) ;; *) live=$((live + 1));; esac
    done
    printf '%s\\n' "tasks $all $live"
  esac
done
printf '%s\\n' "${END} $$"
exit 0`;

/** The command whose output `parseProbe` reads. */
export const PROBE_COMMAND: readonly string[] = ["sh", "-c", SCRIPT];

/** Ticks in a second in what the kernel shows to programs (USER_HZ, the same on every architecture that Kubernetes runs on). */
export const TICK: Nanoseconds = SECOND / 100n;

/** What one container's answer says. */
export type ProbeAnswer = { readonly kind: "looked"; readonly processes: readonly Process[] } | { readonly kind: "could-not-look"; readonly problem: string };

/**
 * Reads the output of the command. Only a whole answer in its exact shape, in which the shell and process 1 are, says anything; what it says of a process that
 * vanished meanwhile is that it is gone. `containerStartedAt`, as the kubelet noted it, is a second way to tell when a process began.
 */
export function parseProbe(output: Uint8Array, containerStartedAt?: EpochNanoseconds): ProbeAnswer {
  if (output.length > MAX_PROBE_BYTES) return couldNotLook("its answer is too long");
  try {
    return { kind: "looked", processes: readAnswer(new Lines(new TextDecoder().decode(output)), containerStartedAt) };
  } catch (error) {
    if (error instanceof Unexpected) return couldNotLook(error.message);
    throw error;
  }
}

/** The answer is not of the shape that would say something. */
class Unexpected extends Error {}

/** What is read of one process before anything is calculated. */
interface Seen {
  readonly pid: number;
  readonly name: string;
  readonly zombie: boolean;
  readonly ticks: bigint;
  readonly innerPids: readonly number[];
}

function readAnswer(lines: Lines, containerStartedAt: EpochNanoseconds | undefined): readonly Process[] {
  const shell = toPid(lines.take(`${BEGIN} `));
  // Another number means that /proc is that of another namespace than the shell's.
  if (toPid(lines.take("self ")) !== shell) throw new Unexpected("its /proc is not that of its own processes");
  const bootedAt = BigInt(match(lines.take("btime "), /^(\d{1,12})$/)) * SECOND;
  readMounts(lines);
  const pids = lines
    .take("pids ")
    .split(" ")
    .map((text) => toPid(text));
  if (new Set(pids).size !== pids.length) throw new Unexpected("its list of processes names one twice");
  const seen = pids.map((pid) => readProcess(lines, pid)).filter((process) => process !== undefined);
  if (toPid(lines.take(`${END} `)) !== shell) throw new Unexpected("its answer ends with another shell's mark");
  lines.end();
  const first = seen.find(({ pid }) => pid === 1);
  if (first === undefined || !seen.some(({ pid }) => pid === shell))
    throw new Unexpected("its list of processes is not whole: process 1 or the shell is missing");
  return seen.map(({ ticks, ...process }) => ({
    ...process,
    // A clock that is set forward makes every process look younger by btime, one set back by the container's start: the earlier of the two is believed.
    startedAt: earlier(bootedAt + ticks * TICK, containerStartedAt === undefined ? undefined : containerStartedAt + (ticks - first.ticks) * TICK),
  }));
}

function readMounts(lines: Lines): void {
  let last: readonly string[] = [];
  while (lines.next("mount ")) {
    const fields = lines.take("mount ").split(" ");
    if (fields[1] === "/proc") last = fields;
  }
  const [, , type, options = ""] = last;
  if (type !== "proc") throw new Unexpected("its /proc is not the kernel's");
  // With hidepid the processes of other users are not listed (https://docs.kernel.org/filesystems/proc.html#mount-options).
  if (options.split(",").some((option) => /^hidepid=(?!0$|off$)/.test(option) || option.startsWith("subset=")))
    throw new Unexpected("its /proc does not show every process (hidepid or subset)");
}

/** One process of the list; undefined for one that vanished. */
function readProcess(lines: Lines, pid: number): Seen | undefined {
  if (toPid(lines.take("process ")) !== pid) throw new Unexpected("its processes are not in the order of its list");
  if (lines.next("vanished")) {
    lines.takeWhole("vanished");
    return undefined;
  }
  if (lines.next("unreadable")) throw new Unexpected(`its process ${pid} may not be looked at`);
  const name = lines.take("Name:\t");
  const state = match(lines.take("State:\t"), /^([A-Za-z]) \(/);
  const [own, ...innerPids] = lines
    .take("NSpid:\t")
    .split("\t")
    .map((text) => toPid(text));
  if (own !== pid) throw new Unexpected(`its process ${pid} says that it is another`);
  const [letter = "", ...numbers] = match(lines.take("stat "), /^([A-Za-z](?: -?\d{1,20}){30,80})$/).split(" ");
  const ticks = match(numbers[TICKS_AFTER_STATE] ?? "", /^(\d{1,18})$/);
  const tasks = letter === "Z" ? match(lines.take("tasks "), /^(\d{1,7} \d{1,7})$/).split(" ") : [];
  // Both were read one after the other, and nothing comes back from the dead.
  const zombie = state === "Z" && letter === "Z" && Number(tasks[0]) > 0 && tasks[1] === "0";
  return { pid, name, zombie, ticks: BigInt(ticks), innerPids };
}

/** Field 22 of `stat`, `starttime`, counted from the one behind field 3, `state`. */
const TICKS_AFTER_STATE = 18;

/** The lines of an answer, each of which is wanted at its place. */
class Lines {
  readonly #lines: readonly string[];
  #at = 0;

  constructor(text: string) {
    if (text === "") throw new Unexpected("it answered nothing");
    this.#lines = text.split("\n");
  }

  next(prefix: string): boolean {
    return this.#lines[this.#at]?.startsWith(prefix) === true;
  }

  /** What follows the prefix. The last piece has no newline behind it, so it is no line. */
  take(prefix: string): string {
    const line = this.#lines[this.#at];
    if (line === undefined || this.#at >= this.#lines.length - 1) throw new Unexpected("its answer is cut off");
    if (!line.startsWith(prefix)) throw new Unexpected(`its answer has ${quoteUntrusted(line, 60)} where ${quoteUntrusted(prefix.trim())} belongs`);
    this.#at += 1;
    return line.slice(prefix.length);
  }

  takeWhole(line: string): void {
    if (this.take(line) !== "") throw new Unexpected("its answer has a line that is too long");
  }

  end(): void {
    if (this.#at !== this.#lines.length - 1 || this.#lines.at(-1) !== "") throw new Unexpected("its answer goes on behind its end");
  }
}

function toPid(text: string): number {
  const pid = Number(match(text, /^([1-9]\d{0,9})$/));
  return pid;
}

function match(text: string, pattern: RegExp): string {
  const found = pattern.exec(text)?.[1];
  if (found === undefined) throw new Unexpected(`its answer has ${quoteUntrusted(text, 60)} where something else belongs`);
  return found;
}

function earlier(one: EpochNanoseconds, other: EpochNanoseconds | undefined): EpochNanoseconds {
  return other !== undefined && other < one ? other : one;
}

function couldNotLook(problem: string): ProbeAnswer {
  return { kind: "could-not-look", problem };
}
