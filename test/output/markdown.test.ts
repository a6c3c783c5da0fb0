import fc from "fast-check";
import { fromHtml } from "hast-util-from-html";
import { micromark } from "micromark";
import { gfm, gfmHtml } from "micromark-extension-gfm";
import { describe, expect, it } from "vitest";

import type { ForeignReason, UndeterminedReason } from "../../src/core/judgement.ts";
import { renderMarkdown } from "../../src/output/markdown.ts";
import { aLock, aReport } from "./reports.ts";

/** As GitHub renders it. */
function toHtml(markdown: string): string {
  return micromark(markdown, { extensions: [gfm()], htmlExtensions: [gfmHtml()] });
}

/** What is left of the page without code: where mentions, references and links would act. */
function outsideCode(html: string): string {
  return html.replaceAll(/<code>[^<]*<\/code>/g, "");
}

const OURS = ["code", "h3", "li", "p", "table", "tbody", "td", "th", "thead", "tr", "ul"];

type Parent = ReturnType<typeof fromHtml>;
type Child = Parent["children"][number];
type Element = Extract<Child, { type: "element" }>;

function findElements({ children }: { readonly children: readonly Child[] }): readonly Element[] {
  return children.flatMap((child) => (child.type === "element" ? [child, ...findElements(child)] : []));
}

/** All that a reader sees as words, without the blanks between blocks. */
function readOutsideCode({ children }: { readonly children: readonly Child[] }): readonly string[] {
  return children.flatMap((child) => {
    if (child.type === "text") return child.value.trim() === "" ? [] : [child.value];
    if (child.type === "element") return child.tagName === "code" ? [] : readOutsideCode(child);
    return [child.type];
  });
}

describe("the report for a pull request", () => {
  it("shows what is stuck, whose it is, and what to do", () => {
    const held = aLock({ verdict: "held", reason: "container-running", message: "it runs", action: "keep", stack: "organization/dns/dev" });
    expect(renderMarkdown(aReport([aLock(), held]))).toMatchInlineSnapshot(`
      "### Pulumi locks: 1 stale, 1 held

      \`azblob://state (account acme)\` against \`prod\` at 2026-03-10T12:00:01Z, a dry run: 1 would be removed.

      | verdict | stack                    | owner                             | age       | what happens     |
      | ------- | ------------------------ | --------------------------------- | --------- | ---------------- |
      | stale   | \`organization/shop/prod\` | \`pulumi@shop-workspace-0 (pid 7)\` | 2 h 1 min | would be removed |
      | held    | \`organization/dns/dev\`   | \`pulumi@shop-workspace-0 (pid 7)\` | 2 h 1 min | kept             |

      - \`organization/shop/prod\` is stale, pod-not-found: \`none of the 12 pods gives its processes the hostname "shop-workspace-0"\`
      - \`organization/dns/dev\` is held, container-running: \`it runs\`

      What to do:

      - Stale locks go with \`--delete --exclusive\`, or one at a time with \`pulumi-lock-janitor unlock <id>\`.
      - container-running: A held lock whose update died inside a pod that lives on: look with \`--probe-processes\`, or restart the pod.
      "
    `);
  });

  it("without locks it is two lines", () => {
    expect(renderMarkdown(aReport([]))).toMatchInlineSnapshot(`
      "### Pulumi locks: none

      \`azblob://state (account acme)\` against \`prod\` at 2026-03-10T12:00:01Z, a dry run: 0 would be removed.
      "
    `);
  });

  it("shows what was found and done after a removal, in code", () => {
    const stacks = [{ cluster: "prod", namespace: "iac", name: "shop", requeued: true }];
    const lock = aLock({ action: "deleted", pendingOperations: { kind: "unknown", problem: "@team denied it" }, afterUnlock: { stacks } });
    const markdown = renderMarkdown(aReport([lock], { dryRun: false }));
    expect(markdown).toContain("`whether its checkpoint holds pending operations is not known: @team denied it`");
    expect(markdown).toContain('`Stack "iac/shop" of "prod": told to try again`');
  });

  it("tells what could not be read", () => {
    const report = aReport([], { clusters: [{ name: "prod", pods: 0, complete: false, error: "403 Forbidden" }], exitCode: 1 });
    const markdown = renderMarkdown(report);
    expect(markdown).toContain("not everything could be read");
    expect(markdown).toContain("- error: cluster `prod`: `403 Forbidden`");
  });

  it("of many locks shows a hundred", () => {
    const markdown = renderMarkdown(aReport(Array.from({ length: 130 }, () => aLock())));
    expect(markdown).toContain("… and 30 locks more");
    expect(markdown.length).toBeLessThan(65_536);
  });
});

/** Every reason for which the janitor may not touch a lock though it may be dead, and a piece of its cure. */
const CURES: Readonly<Record<UndeterminedReason | ForeignReason, string>> = {
  "clock-contradiction": "pulumi cancel",
  "empty-cluster": "--context",
  interrupted: "--timeout",
  "list-incomplete": "pulumi-lock-janitor check",
  "lock-not-read": "pulumi-lock-janitor check",
  "no-cluster": "--kubeconfig",
  "node-deleted": "pulumi cancel",
  "node-not-ready": "--unreachable-nodes=ignore:<node>",
  "node-unreachable": "pulumi-lock-janitor unlock --force <id>",
  "nodes-not-listed": "pulumi-lock-janitor check",
  "not-settled": "run again in a minute",
  "snapshot-older": "kubectl",
  "stacks-not-listed": "--require-stack=no",
  "status-older": "run again in a minute",
  "lock-undated": "Wait until the pod is over or runs again",
  "no-pattern": "--owner",
  "no-stack": "--require-stack=no",
  "node-name": "pulumi cancel",
};

describe("how to fix what the janitor may not touch", () => {
  it.each(Object.entries(CURES))("%s: %s", (reason, cure) => {
    const verdict = reason === "no-pattern" || reason === "no-stack" || reason === "node-name" ? "foreign" : "undetermined";
    const [, advice] = renderMarkdown(aReport([aLock({ verdict, reason, action: "keep" })])).split("What to do:");
    expect(advice).toContain(`- ${reason}: `);
    expect(advice).toContain(cure);
  });

  it("lock-undated: by hand only with --force, as unlock itself refuses what is undetermined", () => {
    const [, advice = ""] = renderMarkdown(aReport([aLock({ verdict: "undetermined", reason: "lock-undated", action: "keep" })])).split("What to do:");
    expect(advice.match(/unlock[^`]*/g)).toEqual(["unlock --force <id>"]);
  });

  it("an unreadable lock: both ways by hand; once for many, and not for what was removed", () => {
    const unreadable = aLock({ verdict: "unreadable", reason: "empty", action: "keep" });
    const [, advice = ""] = renderMarkdown(aReport([unreadable, unreadable])).split("What to do:");
    expect(advice.match(/`pulumi cancel`/g)).toHaveLength(1);
    expect(renderMarkdown(aReport([{ ...unreadable, action: "deleted" }]))).not.toContain("What to do");
  });
});

describe("P7: text that somebody else wrote does not act", () => {
  const HOSTILE = [
    "@team",
    "#12",
    "a|b",
    "a\nb",
    "<img src=x onerror=alert(1)>",
    "[x](https://evil.example)",
    "https://evil.example",
    "``` ` ``",
    "`",
    "**bold**",
    "\u202egnp.exe",
    "&lt;script&gt;",
    "|---|",
    " x ",
  ];

  function render(hostile: string): string {
    const owner = { username: hostile, hostname: hostile, pid: 7, timestamp: "2026-03-10T10:00:00Z" };
    const lock = aLock({ owner, stack: hostile, message: hostile, note: hostile, verdict: "undetermined", reason: "list-incomplete" });
    return toHtml(
      renderMarkdown(
        aReport([lock], {
          warnings: [hostile],
          refusals: [hostile],
          clusters: [{ name: hostile, pods: 1, complete: false, error: hostile }],
          stacks: [{ cluster: hostile, namespace: hostile, name: hostile, stack: hostile, blockedBy: [{ key: hostile }] }],
        }),
      ),
    );
  }

  it.each(HOSTILE)("%j: as a tree, only our elements, every row as wide as the head, and nothing of it outside code", (hostile) => {
    const tree = fromHtml(render(hostile), { fragment: true });
    const elements = findElements(tree);
    expect(Array.from(new Set(elements.map(({ tagName }) => tagName))).toSorted()).toEqual(OURS);
    expect(elements.filter(({ properties }) => Object.keys(properties).length > 0)).toEqual([]);
    const widths = elements.filter(({ tagName }) => tagName === "tr").map(({ children }) => children.filter((child) => child.type === "element").length);
    expect(widths).toEqual([5, 5]);
    expect(readOutsideCode(tree)).toEqual(readOutsideCode(fromHtml(render("tame"), { fragment: true })));
  });

  const structure = (html: string): string => (html.match(/<[^>]*>/g) ?? []).join("");

  it.each(HOSTILE)("%j", (hostile) => {
    const html = render(hostile);
    expect(outsideCode(html)).not.toMatch(/@team|#12|evil|onerror|bold|script|gnp/);
    expect(html).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
    expect(structure(html)).toBe(structure(render("tame")));
  });

  it("whatever it is: the page is built as with a tame name", () => {
    const tame = structure(render("tame"));
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 30 }), (hostile) => {
        expect(structure(render(hostile))).toBe(tame);
      }),
      { numRuns: 300 },
    );
  });
});
