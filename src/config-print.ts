import { Document, isNode, isScalar, visit } from "yaml";
import * as z from "zod";

import { redactUrl } from "./backends/open.ts";
import type { Sourced } from "./config-problems.ts";
import { settingsSchema, type Environment } from "./config.ts";
import { escapeUntrusted } from "./core/text.ts";
import { CONFIG_PRINT_OPTIONS } from "./options.ts";

const DEFAULT = "the default";

/**
 * The settings that a command would have, as a configuration file: what was given, where it came from, and the defaults. Values of a backend's environment
 * are hidden, and its URL is without user, password and the values of its parameters. The values must have been checked.
 */
export function renderSettings(values: ReadonlyMap<string, Sourced>, env: Environment): string {
  const document = new Document({});
  for (const [key, { value, source }] of listSettings(values, env)) {
    const node = document.createNode(hideSecrets(key, value));
    const pair = document.createPair(key, node);
    if (isScalar(node)) node.comment = ` ${escapeUntrusted(source)}`;
    else if (isNode(pair.key)) pair.key.commentBefore = ` ${escapeUntrusted(source)}`;
    document.add(pair);
  }
  // YAML's own quoting lets pass what reorders text.
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === "string" && node.value !== escapeUntrusted(node.value)) node.value = escapeUntrusted(node.value);
    },
  });
  return document.toString({ lineWidth: 0 });
}

function listSettings(values: ReadonlyMap<string, Sourced>, env: Environment): readonly (readonly [string, Sourced])[] {
  const { properties = {} } = z.toJSONSchema(settingsSchema, { io: "input" });
  const printed = new Set(CONFIG_PRINT_OPTIONS.map(({ key }) => key));
  return Object.entries(properties).flatMap(([key, property]): readonly (readonly [string, Sourced])[] => {
    if (!printed.has(key)) return [];
    const given = values.get(key);
    if (given !== undefined) return [[key, given]];
    const url = env["PULUMI_BACKEND_URL"];
    if (key === "backends" && url !== undefined && url !== "") return [[key, { value: [url], source: "PULUMI_BACKEND_URL" }]];
    return typeof property === "object" && property.default !== undefined ? [[key, { value: property.default, source: DEFAULT }]] : [];
  });
}

function hideSecrets(key: string, value: unknown): unknown {
  if (!Array.isArray(value)) return value;
  if (key === "backends") return value.map(hideInBackend);
  // A lock may be named by its URL, which has what the backend's has.
  return key === "locks" ? value.map((item: unknown) => (typeof item === "string" && item.includes("://") ? redact(item) : item)) : value;
}

function hideInBackend(backend: unknown): unknown {
  if (typeof backend === "string") return redact(backend);
  if (typeof backend !== "object" || backend === null) return backend;
  return Object.fromEntries(
    Object.entries<unknown>({ ...backend }).map(([name, value]) => {
      if (name === "url" && typeof value === "string") return [name, redact(value)];
      return [name, name === "env" && typeof value === "object" && value !== null ? hideValues({ ...value }) : value];
    }),
  );
}

/** The name of a variable or a file is no secret, and is what a person looks for. */
function hideValues(env: object): object {
  return Object.fromEntries(Object.entries<unknown>({ ...env }).map(([name, value]) => [name, typeof value === "object" && value !== null ? value : "****"]));
}

/** `redactUrl` puts its answer in quotes, which YAML does itself. */
function redact(url: string): string {
  return redactUrl(url).slice(1, -1);
}
