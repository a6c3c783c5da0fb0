import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { parse } from "yaml";
import { z } from "zod";

/** What is used of the form of a composite action. */
const actionFile = z.strictObject({
  name: z.string(),
  description: z.string(),
  branding: z.strictObject({ icon: z.string(), color: z.string() }),
  inputs: z.record(z.string(), z.strictObject({ description: z.string(), required: z.boolean(), default: z.string() })),
  outputs: z.record(z.string(), z.strictObject({ description: z.string(), value: z.string() })),
  runs: z.strictObject({
    using: z.literal("composite"),
    steps: z.array(
      z.strictObject({
        name: z.string(),
        id: z.string().optional(),
        shell: z.literal("bash"),
        run: z.string(),
        env: z.record(z.string(), z.string()).optional(),
      }),
    ),
  }),
});

/** The project's `action.yml`. */
export const ACTION = actionFile.parse(parse(readFileSync("action.yml", "utf8")));

/** What a use of the action gave: as GitHub would show it. */
export interface ActionResult {
  /** Of the last step that ran: the first that fails ends the action. */
  readonly exitCode: number | null;
  readonly log: string;
  readonly outputs: Readonly<Record<string, string>>;
  readonly summary: string;
}

/** What npm needs of this machine to reach its registry: whom to trust, and which way. */
const NPM_VARIABLE = /^(HOME|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|(https?|no)_proxy|npm_config_(cache|cafile|registry|prefer_offline))$/i;

/** A checkout of the action and a runner's folders. */
export class ActionRunner {
  readonly folder = mkdtempSync(join(tmpdir(), "action-"));
  readonly #action = join(this.folder, "_actions/lock janitor/v1");
  readonly #bin = join(this.folder, "bin");
  readonly #machine: Readonly<Record<string, string>>;

  /** `installs`: whether the dependencies are really installed; else they are those of this checkout, and a stand-in for npm writes down how it was called. */
  constructor(installs: boolean) {
    mkdirSync(this.#action, { recursive: true });
    mkdirSync(join(this.folder, "temp"));
    for (const name of ["action.yml", "package.json", "package-lock.json", "src", "scripts"])
      cpSync(resolve(name), join(this.#action, name), { recursive: true });
    mkdirSync(this.#bin);
    this.#machine = installs
      ? Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (value !== undefined && NPM_VARIABLE.test(name) ? [[name, value]] : [])))
      : {};
    if (installs) return;
    symlinkSync(resolve("node_modules"), join(this.#action, "node_modules"));
    writeFileSync(join(this.#bin, "npm"), `#!/bin/sh\nprintf '%s\\n' "$@" >"$RUNNER_TEMP/npm"\n`);
    chmodSync(join(this.#bin, "npm"), 0o755);
  }

  /** How the stand-in for npm was called; its folder is named as the variable. */
  get npmWords(): readonly string[] {
    return readFileSync(join(this.folder, "temp/npm"), "utf8").trimEnd().replaceAll(this.#action, "$GITHUB_ACTION_PATH").split("\n");
  }

  /** Runs the steps one after the other with the shell, the variables and the files that GitHub gives them. */
  use(inputs: Readonly<Record<string, string>>, workspace: string, env: Readonly<Record<string, string>> = {}): ActionResult {
    const file = (name: string): string => join(this.folder, "temp", name);
    for (const name of ["output", "summary"]) writeFileSync(file(name), "");
    let log = "";
    let exitCode: number | null = 0;
    for (const step of ACTION.runs.steps) {
      writeFileSync(file("step.sh"), step.run);
      const given = Object.entries(step.env ?? {}).map(([name, value]) => [name, evaluate(value, inputs)] as const);
      const { status, stdout, stderr } = spawnSync("bash", ["--noprofile", "--norc", "-eo", "pipefail", file("step.sh")], {
        cwd: workspace,
        encoding: "utf8",
        env: {
          PATH: `${this.#bin}:${process.env["PATH"] ?? ""}`,
          HOME: this.folder,
          ...this.#machine,
          GITHUB_ACTIONS: "true",
          GITHUB_ACTION_PATH: this.#action,
          GITHUB_WORKSPACE: workspace,
          GITHUB_OUTPUT: file("output"),
          GITHUB_STEP_SUMMARY: file("summary"),
          RUNNER_TEMP: join(this.folder, "temp"),
          ...env,
          ...Object.fromEntries(given),
        },
      });
      log += `${stdout}${stderr}`;
      exitCode = status;
      if (status !== 0) break;
    }
    return { exitCode, log, outputs: readOutputs(readFileSync(file("output"), "utf8")), summary: readFileSync(file("summary"), "utf8") };
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The value of `${{ inputs.name }}`, which is all that the action's variables may hold. */
function evaluate(expression: string, inputs: Readonly<Record<string, string>>): string {
  const name = /^\$\{\{ inputs\.([a-z-]+) \}\}$/.exec(expression)?.[1];
  if (name === undefined || ACTION.inputs[name] === undefined) throw new Error(`${expression} is no input of the action`);
  return inputs[name] ?? ACTION.inputs[name].default;
}

/** Reads a file of outputs as the runner does: `name<<delimiter`, lines, `delimiter`. */
function readOutputs(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from(text.matchAll(/^(.+?)<<(.+)\n([^]*?)\n\2$/gm), ([, name = "", , value = ""]) => [name, value]));
}

/** Where a report of the action is; throws where it said so and there is none. */
export function readReport(result: ActionResult, format: "json" | "markdown" | "junit"): string {
  const path = result.outputs[format];
  if (path === undefined || !existsSync(path)) throw new Error(`no ${format} report: ${result.log}`);
  return readFileSync(path, "utf8");
}
