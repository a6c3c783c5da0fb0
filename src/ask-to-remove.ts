import { askYesNo } from "./ask.ts";
import type { BackendSettings, Settings } from "./config.ts";
import type { SweepReport } from "./core/report.ts";
import { formatCount } from "./core/text.ts";
import { renderTable } from "./output/table.ts";
import { painterFor, widthOf } from "./output/terminal.ts";
import type { Surroundings } from "./surroundings.ts";
import type { Answer } from "./sweep.ts";

/** Shows a person what would be removed and asks for it, and before that for what `--exclusive` would state, where it was not given. */
export async function askToRemove(plan: SweepReport, settings: Settings, backends: readonly BackendSettings[], surroundings: Surroundings): Promise<Answer> {
  showPlan(plan, settings, surroundings);
  // A backend of the plan that is not in the settings is not stated exclusive by them.
  const unstated = plan.backends.filter((_, index) => backends[index]?.exclusive !== true).map(({ name }) => name);
  const clusters = plan.clusters.map(({ name }) => name).join(", ");
  const question = `Does every pod that writes to ${unstated.join(", ")} run in ${clusters}? (--exclusive says so without asking)`;
  if (unstated.length > 0 && !(await askYesNo(question, surroundings))) return { kind: "no" };
  if (!(await askYesNo(`Remove ${formatCount(plan.summary.wouldRemove, "stale lock")}?`, surroundings))) return { kind: "no" };
  return { kind: "yes", overrides: unstated.map((value) => ({ option: "--exclusive", value })) };
}

/** Shows a report on stderr, above the question that is about it. */
export function showPlan(plan: SweepReport, { verbose }: Settings, { stderr }: Surroundings): void {
  stderr.write(renderTable(plan, { width: widthOf(stderr), paint: painterFor(stderr), verbose }));
}
