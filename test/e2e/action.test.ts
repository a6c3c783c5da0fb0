// The steps of action.yml with a real install of what it needs to run, as on a runner.
import { afterEach, beforeEach, expect, it } from "vitest";

import { ActionRunner } from "../action-steps.ts";
import { Workspace } from "../cli/snapshot-files.ts";

let workspace: Workspace;
let runner: ActionRunner;
beforeEach(() => {
  workspace = new Workspace();
  runner = new ActionRunner(true);
});
afterEach(() => {
  runner.remove();
  workspace.remove();
});

it("the action works with what `npm ci --omit=dev` brings", () => {
  workspace.addLock("iac-runner-gone");
  const inputs = { backends: workspace.backend, "pods-from": "pods.json", "pods-taken-at": workspace.ago(0), owners: "iac-runner-*" };
  const result = runner.use(inputs, workspace.folder);
  expect([result.exitCode, result.outputs["stale"]], result.log).toEqual([0, "1"]);
  expect(result.summary).toContain("### Pulumi locks: 1 stale");
}, 600_000);
