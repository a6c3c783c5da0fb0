import { readFileSync } from "node:fs";
import { relative } from "node:path";

import * as z from "zod";

import type { ImageConfig } from "../e2e/peers/node/oci-image.ts";

/** What the last stage of a Dockerfile makes. */
export interface FinalStage {
  /** From the source tree to the image's root. */
  readonly copies: readonly { readonly from: string; readonly to: string }[];
  readonly config: ImageConfig;
}

const words = z.array(z.string());

/** Reads the last stage of a Dockerfile. An instruction that it does not know is an error, so that no step is left out silently. */
export function readFinalStage(file: string): FinalStage {
  const lines = readFileSync(file, "utf8")
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll(/\\\n/g, " ")
    .split("\n")
    .filter((line) => line.trim() !== "");
  const stage = lines.slice(lines.findLastIndex((line) => line.startsWith("FROM ")) + 1);
  const workOfBuild = lines.find((line) => line.startsWith("WORKDIR "))?.slice("WORKDIR ".length) ?? "/";
  const copies: { from: string; to: string }[] = [];
  const env: string[] = [];
  const config: { Env: string[]; Labels: Record<string, string>; User?: string; WorkingDir?: string; Entrypoint?: string[] } = { Env: env, Labels: {} };
  for (const line of stage) {
    const [, instruction = "", rest = ""] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    switch (instruction) {
      case "COPY": {
        const [, from = "", to = ""] = /^--from=build (\S+) (\S+)$/.exec(rest) ?? [];
        copies.push({ from: relative(workOfBuild, from), to });
        break;
      }
      case "LABEL":
        Object.assign(config.Labels, readLabels(rest));
        break;
      case "ENV":
        env.push(rest);
        break;
      case "USER":
        config.User = rest;
        break;
      case "WORKDIR":
        config.WorkingDir = rest;
        break;
      case "ENTRYPOINT":
        config.Entrypoint = words.parse(JSON.parse(rest));
        break;
      default:
        throw new Error(`the test does not know how to follow ${instruction} in ${file}`);
    }
  }
  return { copies, config };
}

function readLabels(rest: string): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from(rest.matchAll(/([\w.-]+)="([^"]*)"/g), ([, name = "", value = ""]) => [name, value]));
}
