import cliui from "cliui";

import { summarizeRemoval, type UnreadableRecord } from "../core/audit-entry.ts";
import { formatIdentity } from "../core/backend-identity.ts";
import type { RemovalHistory } from "../core/record.ts";
import { escapeUntrusted, quoteUntrusted } from "../core/text.ts";
import type { EpochNanoseconds } from "../core/time.ts";
import { describeTime, OUTCOME_WORDS } from "./audit-table.ts";
import { describeOwner, describeStack } from "./describe-lock.ts";
import { renderLayout } from "./layout.ts";
import type { TableOptions } from "./table-frame.ts";

/** A lock is a line; what is longer is no lock, and the JSON has it whole. */
const LONGEST_BODY = 600;

const LABEL_WIDTH = 13;

/** Renders one removal with its evidence, for a person. */
export function renderRemoval(
  removal: RemovalHistory,
  unreadable: readonly UnreadableRecord[],
  { width, paint, now }: Pick<TableOptions, "width" | "paint"> & { readonly now: EpochNanoseconds },
): string {
  const wrap = Number.isFinite(width);
  const ui = cliui({ width: wrap ? width : 4_000, wrap });
  const row = (label: string, text: string): void => {
    ui.div({ text: paint("dim", label), width: LABEL_WIDTH, padding: [0, 1, 0, 0] }, { text });
  };
  const { intent, outcome, restored } = removal;
  const entry = summarizeRemoval(removal);
  ui.div({ text: paint("bold", `Record ${removal.id}`) });
  row("stack", describeStack(entry));
  row("lock", escapeUntrusted(intent.key));
  row("backend", formatIdentity(intent.backend));
  row("owner", intent.owner === undefined ? "not readable" : describeOwner(entry));
  if (intent.owner !== undefined) row("locked", describeTime(intent.owner.timestamp, now));
  row("verdict", escapeUntrusted(`${intent.verdict}: ${intent.reason}: ${intent.message}`));
  row("recorded", describeTime(intent.at, now));
  row("by", escapeUntrusted(`pulumi-lock-janitor ${intent.janitor.version} on ${intent.janitor.hostname}, run ${intent.runId}`));
  row(
    "outcome",
    outcome === undefined
      ? "not known: the run ended before it wrote one; the next sweep with --delete completes it"
      : `${OUTCOME_WORDS[outcome.action ?? "open"]}, ${describeTime(outcome.at, now)}`,
  );
  if (outcome?.note !== undefined) row("", escapeUntrusted(outcome.note));
  if (restored !== undefined) row("put back", describeTime(restored.restoredAt ?? restored.at, now));
  for (const { option, value } of intent.overrides) row("on your word", escapeUntrusted(`${option} ${value}`.trim()));
  for (const { name, uid, pods, complete } of intent.evidence.clusters)
    row("cluster", escapeUntrusted(`${name}${uid === undefined ? "" : ` (${uid})`}, ${pods} pods${complete ? "" : ", a list that was not complete"}`));
  for (const { rule, applied, note } of intent.evidence.rules) row("rule", escapeUntrusted(`${applied ? "=> " : ""}${rule}: ${note}`));
  for (const candidate of intent.evidence.candidates) {
    const { cluster, namespace, pod, finding, reason, message, probe } = candidate;
    row("pod", escapeUntrusted(`${cluster}/${namespace}/${pod}: ${finding} (${reason}): ${message}`));
    if (probe === undefined) continue;
    row(
      "probe",
      escapeUntrusted(probe.looked ? `looked into ${probe.containers.map(({ container }) => container).join(", ")}` : `could not look: ${probe.problem ?? ""}`),
    );
    for (const { container, pid, name, zombie, startedAt } of probe.suspects)
      row("process", escapeUntrusted(`${pid} ${name} in ${container}, started ${startedAt}${zombie ? ", a zombie" : ""}`));
  }
  row("lock's body", quoteUntrusted(Buffer.from(intent.body, "base64").toString(), LONGEST_BODY));
  for (const { place, message } of unreadable) row("unreadable", escapeUntrusted(`${place}: ${message}`));
  if (outcome?.action === "deleted" && restored === undefined)
    ui.div({ text: `pulumi-lock-janitor restore ${removal.id} puts it back.`, padding: [1, 0, 0, 0] });
  return `${renderLayout(ui)}\n`;
}
