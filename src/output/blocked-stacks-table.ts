import cliui from "cliui";

import { formatIdentity } from "../core/backend-identity.ts";
import type { ReportedStack } from "../core/report.ts";
import { formatCount, quoteUntrusted } from "../core/text.ts";
import { renderLayout } from "./layout.ts";
import type { TableOptions } from "./table-frame.ts";

/** More are in the JSON only: whoever may create Stacks could fill any screen. */
const MOST_STACKS = 50;
const MOST_LOCKS = 3;

/** Renders the Stacks that are blocked, each with the locks that block it. */
export function renderBlockedStacks(stacks: readonly ReportedStack[], { width, paint }: Pick<TableOptions, "width" | "paint">): string {
  const wrap = Number.isFinite(width);
  const ui = cliui({ width: wrap ? width : 4_000, wrap });
  const line = (text: string, left: number): void => {
    ui.div({ text, padding: [0, 0, 0, left] });
  };
  const severalClusters = new Set(stacks.map(({ cluster }) => cluster)).size > 1;
  line(paint("bold", "Blocked Stacks"), 0);
  for (const { cluster, namespace, name, stack, blockedBy } of stacks.slice(0, MOST_STACKS)) {
    const place = severalClusters ? ` of cluster ${quoteUntrusted(cluster)}` : "";
    line(`${quoteUntrusted(`${namespace}/${name}`)}${stack === "" ? "" : ` (${quoteUntrusted(stack)})`}${place}`, 2);
    for (const block of blockedBy.slice(0, MOST_LOCKS)) line(paint("dim", describeBlock(block)), 4);
    if (blockedBy.length > MOST_LOCKS) line(paint("dim", `and ${formatCount(blockedBy.length - MOST_LOCKS, "more lock")}`), 4);
  }
  if (stacks.length > MOST_STACKS) line(`and ${formatCount(stacks.length - MOST_STACKS, "more Stack")} (--output json has all)`, 2);
  return renderLayout(ui);
}

function describeBlock({ key, backend, verdict, reason, message }: ReportedStack["blockedBy"][number]): string {
  const what = verdict === undefined ? `not known, ${message ?? ""}` : `${verdict}: ${reason ?? ""}`;
  return `by ${quoteUntrusted(key, 200)}${backend === undefined ? "" : ` in ${formatIdentity(backend)}`} (${what})`;
}
