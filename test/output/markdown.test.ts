import fc from "fast-check";
import { micromark } from "micromark";
import { gfm, gfmHtml } from "micromark-extension-gfm";
import { describe, expect, it } from "vitest";

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
      - A held lock whose update died inside a pod that lives on: look with \`--probe-processes\`, or restart the pod.
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
