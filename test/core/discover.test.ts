import { describe, expect, it } from "vitest";

import { describeStackUrl, judgeStackUrl, parseAllowGlob, type DiscoveryRules, type StackUrlDecision } from "../../src/core/discover.ts";

/** Globs that admit whatever is written plainly and begins with acme. */
const WIDE = ["s3://acme*/**", "gs://acme*/**", "azblob://acme*/**"];

function judge(url: string, rules: Partial<DiscoveryRules> = {}): StackUrlDecision {
  return judgeStackUrl(url, { allow: WIDE, configured: [], environment: {}, ...rules });
}

describe("a --discover-allow value", () => {
  it.each([
    ["s3://acme-*", "s3://acme-*"],
    ["s3://acme-*/**", "s3://acme-*/**"],
    ["s3://*-acme-state", "s3://*-acme-state"],
    ["gs://acme.iac_state/team/*", "gs://acme.iac_state/team/*"],
    ["azblob://abc", "azblob://abc"],
    ["azblob://state/team/", "azblob://state/team"],
  ])("%s is taken", (text, glob) => {
    expect(parseAllowGlob(text)).toEqual({ kind: "glob", glob });
  });

  it.each([
    ["s3://*", /nearly every bucket/],
    ["s3://**", /nearly every bucket/],
    ["s3://*/acme/state", /nearly every bucket/],
    ["s3://*-*", /nearly every bucket/],
    ["s3://ab*", /nearly every bucket/],
    ["azblob://*", /nearly every bucket/],
    ["**", /scheme and a bucket/],
    ["*", /scheme and a bucket/],
    ["acme-*", /scheme and a bucket/],
    ["*://acme", /scheme and a bucket/],
    ["S3://acme", /scheme and a bucket/],
    ["", /scheme and a bucket/],
    ["s3://", /besides/],
    ["s3:///acme", /besides/],
    ["s3://acme//x", /besides/],
    ["s3://acme?region=eu-west-1", /no parameters/],
    ["s3://acme-???", /no parameters/],
    ["s3://user@acme", /besides/],
    ["s3://{acme,*}", /besides/],
    ["s3://[a-z]cme", /besides/],
    ["s3://!acme", /besides/],
    ["s3://acme\\*", /besides/],
    ["s3://acme\n*", /besides/],
    ["file:///srv/*", /folder is never/],
    ["postgres://db.acme.example/*", /database is never/],
    ["postgresql://db.acme.example/*", /database is never/],
    ["https://acme*", /only azblob/],
  ])("%j is refused", (text, problem) => {
    expect(parseAllowGlob(text)).toEqual({ kind: "refused", problem: expect.stringMatching(problem) });
  });
});

describe("an admitted backend", () => {
  it.each([
    ["s3://acme-iac", "s3://acme-*", true],
    ["s3://acme-iac/", "s3://acme-*", true],
    ["s3://acme-iac/team", "s3://acme-*", false],
    ["s3://acme-iac/team", "s3://acme-*/*", true],
    ["s3://acme-iac/team/a", "s3://acme-*/*", false],
    ["s3://acme-iac/team/a", "s3://acme-*/**", true],
    ["s3://acme-iac", "s3://acme-*/**", true],
    ["s3://acme-iac", "s3://acme-iac/**", true],
    ["s3://acme-iac", "s3://acme-*/*", false],
    ["s3://acme-iac/team/x/state", "s3://acme-iac/team/*/state", true],
    ["s3://acme-iac/team/x/y/state", "s3://acme-iac/team/*/state", false],
    ["s3://acme-iac/team/x/y/state", "s3://acme-iac/team/**/state", true],
    ["s3://evil-acme-iac", "s3://acme-*", false],
    ["s3://acmexiac", "s3://acme.iac", false],
    ["s3://acme", "s3://acme-*", false],
    ["gs://acme-iac", "s3://acme-*", false],
    ["s3://acme-iac", "s3://ACME-iac", false],
  ])("%s by %s: %s", (url, glob, admitted) => {
    expect(judge(url, { allow: [glob] }).kind).toBe(admitted ? "admitted" : "refused");
  });

  it.each<readonly [url: string, taken: string, environment: DiscoveryRules["environment"]]>([
    ["s3://acme-iac?awssdk=v2", "s3://acme-iac", {}],
    ["s3://acme-iac/team/a/?region=eu-west-1&awssdk=v2", "s3://acme-iac/team/a", {}],
    ["s3://acme-iac?region=eu-west-1", "s3://acme-iac", { region: "eu-west-1" }],
    ["s3://acme-iac?", "s3://acme-iac", {}],
    ["azblob://acme-state?storage_account=acme", "azblob://acme-state", { storageAccount: "acme" }],
    ["gs://acme_iac.state/a~b/c+d=e", "gs://acme_iac.state/a~b/c+d=e", {}],
  ])("%s is opened as %s: no parameter is ever taken over", (url, taken, environment) => {
    expect(judge(url, { environment })).toEqual({ kind: "admitted", url: taken });
  });
});

describe("a hostile Stack's URL is refused, whatever the globs admit:", () => {
  it.each<readonly [url: string, problem: RegExp]>([
    ...["endpoint=https://evil.example", "profile=admin", "role=arn:aws:iam::1:role/evil", "anonymous=true", "disableSSL=true", "disable_https=true"].map(
      (parameter) => [`s3://acme?${parameter}`, /would say where or as whom/] as const,
    ),
    ...["s3ForcePathStyle=true", "use_path_style=true", "dualstack=true", "fips=true", "accelerate=true", "hostname_immutable=true", "prefix=team/"].map(
      (parameter) => [`s3://acme?${parameter}`, /would say where or as whom/] as const,
    ),
    ["s3://acme?region=eu-west-1&endpoint=evil.example", /endpoint would say/],
    ["s3://acme?awssdk=v2&awssdk=v2&&endpoint=evil.example", /endpoint would say/],
    ["s3://acme?%65ndpoint=evil.example", /endpoint would say/],
    ["s3://acme?awssdk=v2?endpoint=evil.example&endpoint=evil.example", /endpoint would say/],
    ["s3://acme?ENDPOINT=evil.example", /not known/],
    ["s3://acme?kmskeyid=1", /not known/],
    ["s3://acme?=x", /not known/],
    ["s3://acme?storage_account=x", /storage_account/],
    ["azblob://acme?region=x", /region/],
    ["azblob://acme?awssdk=v2", /not known/],
    ["azblob://acme?storage_account=x&domain=evil.example", /storage_account is not the one/],
    ["azblob://acme?domain=evil.example", /domain would say/],
    ["azblob://acme?protocol=http", /protocol would say/],
    ["azblob://acme?cdn=true", /cdn would say/],
    ["azblob://acme?localemu=true", /localemu would say/],
    ["gs://acme?universe_domain=evil.example", /universe_domain would say/],
    ["gs://acme?access_id=-", /access_id would say/],
    ["gs://acme?private_key_path=/etc/passwd", /private_key_path would say/],
    ["gs://acme?anonymous=true", /anonymous would say/],
    ["s3://acme@evil", /not written plainly/],
    ["s3://user:password@acme", /not written plainly/],
    ["s3://acme:443", /not written plainly/],
    ["s3://acme#evil", /not written plainly/],
    ["s3://acme/..", /not written plainly/],
    ["s3://acme/team/../../other", /not written plainly/],
    ["s3://acme/./team", /not written plainly/],
    ["s3://acme/.pulumi/locks", /not written plainly/],
    ["s3://acme//team", /not written plainly/],
    ["s3://acme/team//", /not written plainly/],
    ["s3://acme\\team", /not written plainly/],
    ["s3://acme/te%61m", /not written plainly/],
    ["s3://acme%2eevil", /not written plainly/],
    ["s3://acme/%2e%2e/x", /not written plainly/],
    ["s3://acme/te am", /not written plainly/],
    ["s3://acme/team\n", /not written plainly/],
    ["s3://acme\u0000", /not written plainly/],
    ["s3://acme\u202eevil", /not written plainly/],
    ["s3://acmé", /not written plainly/],
    ["s3://acme*", /not written plainly/],
    ["s3://ACME", /not written plainly/],
    ["s3://acme_iac", /not written plainly/],
    ["s3://acme..evil", /not written plainly/],
    ["azblob://acme.blob.core.windows.net", /not written plainly/],
    ["azblob://acme--x", /not written plainly/],
    ["gs://10.0.0.1", /not written plainly/],
    ["s3://", /not written plainly/],
    ["s3:///acme", /not written plainly/],
    ["S3://acme", /scheme is not known/],
    ["s3a://acme", /scheme is not known/],
    [" s3://acme", /scheme is not known/],
    ["constructor://acme", /scheme is not known/],
    ["s3:acme", /no backend's URL/],
    ["acme", /no backend's URL/],
    ["", /no backend's URL/],
    ["s3://acme\n://x", /not written plainly/],
    [`s3://acme/${"a".repeat(10_000)}`, /too long/],
    ["file:///etc", /folder is never/],
    ["file://~", /folder is never/],
    ["FILE:///etc", /scheme is not known/],
    ["postgres://user:password@evil.example/db", /database is never/],
    ["postgresql://evil.example/db", /database is never/],
    ["http://evil.example", /Pulumi service/],
    ["https://evil.example", /Pulumi service/],
  ])("%j", (url, problem) => {
    const decision = judge(url, { environment: { region: "eu-west-1", storageAccount: "acme" } });
    expect(decision).toEqual({ kind: "refused", problem: expect.stringMatching(problem) });
  });

  it("nothing is admitted without a glob", () => {
    expect(judge("s3://acme", { allow: [] })).toEqual({ kind: "refused", problem: "no --discover-allow admits it" });
  });

  it("another account or region than the environment's is refused, and an account that it does not name", () => {
    const kinds = [
      judge("azblob://acme?storage_account=other", { environment: { storageAccount: "acme" } }),
      judge("azblob://acme?storage_account=other"),
      judge("s3://acme?region=us-east-1", { environment: { region: "eu-west-1" } }),
    ].map(({ kind }) => kind);
    expect(kinds).toEqual(["refused", "refused", "refused"]);
  });
});

describe("a backend that is configured", () => {
  const state = { scheme: "s3", bucket: "acme-state", prefix: "team/", endpoint: "minio:9000" } as const;
  const database = { scheme: "postgres", endpoint: "db.acme.example:5432", database: "state", table: "pulumi_state", prefix: "state/" } as const;
  it.each([
    "s3://acme-state/team",
    "s3://acme-state/team/?region=eu-west-1",
    "s3://acme-state/team?endpoint=minio:9000&s3ForcePathStyle=true",
    "postgres://user:password@db.acme.example/state",
    "azblob://broken",
  ])("%s is not opened again", (url) => {
    const configured = [{ url: "s3://acme-state/team", identity: state }, { url: "postgres://x", identity: database }, { url: "azblob://broken?cdn=true" }];
    expect(judge(url, { configured })).toEqual({ kind: "configured" });
  });

  it.each(["s3://acme-state", "s3://acme-state/team?endpoint=evil.example", "postgres://evil.example/state"])("%s is another", (url) => {
    const configured = [
      { url: "s3://acme-state/team", identity: state },
      { url: "postgres://x", identity: database },
    ];
    expect(judge(url, { configured }).kind).not.toBe("configured");
  });
});

describe("P7: of a Stack's URL nothing secret or hostile is shown", () => {
  it.each([
    ["s3://acme/team?endpoint=https://user:password@evil", "s3://acme/team"],
    ["postgres://user:pass/word@evil.example/db", "postgres://…"],
    ["postgres://user:password", "postgres://…"],
    ["postgres://user%3Apassword%40evil.example/db", "postgres://…"],
    ["s3://acme\u001b[2J", "s3://…"],
    [`s3://${"a".repeat(10_000)}`, "s3://…"],
    ["\u001b[2Js3://acme", "…"],
    ["password", "…"],
  ])("%j", (url, shown) => {
    expect(describeStackUrl(url)).toBe(shown);
  });

  it("an unknown parameter is not repeated", () => {
    expect(JSON.stringify(judge("s3://acme?a-secret-token"))).not.toContain("secret");
  });
});
