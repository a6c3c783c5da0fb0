import { expect, it } from "vitest";

import { countPendingOperations, listCheckpointKeys } from "../../src/core/checkpoint.ts";

it.each([
  [".pulumi/locks/organization/shop/prod/1.json", [".pulumi/stacks/shop/prod.json", ".pulumi/stacks/shop/prod.json.gz"]],
  [".pulumi/locks/prod/1.json", [".pulumi/stacks/prod.json", ".pulumi/stacks/prod.json.gz"]],
  [".pulumi/locks/1.json", []],
  ["elsewhere/prod/1.json", []],
])("the checkpoint of %s", (key, expected) => {
  expect(listCheckpointKeys(key)).toEqual(expected);
});

const latest = (content: unknown): string => JSON.stringify({ version: 3, checkpoint: { stack: "organization/shop/prod", latest: content } });

it.each([
  ["none", latest({ resources: [] }), { kind: "counted", count: 0 }],
  ["null", latest({ pending_operations: null }), { kind: "counted", count: 0 }],
  ["a stack that was never updated", latest(null), { kind: "counted", count: 0 }],
  ["two", latest({ pending_operations: [{ type: "creating" }, { type: "updating" }] }), { kind: "counted", count: 2 }],
  ["cut short", '{"version":3,"checkpoint":{"lat', { kind: "unknown", problem: "the checkpoint is no JSON" }],
  ["another shape", '{"version":9}', { kind: "unknown", problem: "the checkpoint has a shape that is not known" }],
  ["a list that is none", latest({ pending_operations: "many" }), { kind: "unknown", problem: "the checkpoint has a shape that is not known" }],
])("pending operations: %s", (_, text, expected) => {
  expect(countPendingOperations(text)).toEqual(expected);
});
