import { expect, it } from "vitest";

import { redactUrl } from "../../src/backends/open.ts";

it.each([
  ["postgres://user:pass@host:5432/db?options=a@b", "postgres://****@host:5432/db?options=****"],
  ["postgres://user:pa/ss@host/db?table=t", "postgres://****@host/db?table=****"],
  ["postgres://user:pa?ss@host/db?table=t", "postgres://****@host/db?table=****"],
  ["postgres://user:pa@ss@host/db", "postgres://****@host/db"],
  ["postgres://user@host/db", "postgres://****@host/db"],
  ["s3://bucket/folder?endpoint=http://user:pass@host", "s3://bucket/folder?endpoint=****"],
  ["azblob://container/pa@th", "azblob://container/pa@th"],
  ["gs://bucket", "gs://bucket"],
])("P7: %s is shown as %s", (url, shown) => {
  expect(redactUrl(url)).toBe(`"${shown}"`);
});
