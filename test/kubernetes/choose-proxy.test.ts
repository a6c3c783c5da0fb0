import { describe, expect, it } from "vitest";

import { chooseProxy } from "../../src/kubernetes/choose-proxy.ts";

const PROXY = "http://proxy.example:3128";

describe("which proxy is taken", () => {
  it.each<[string, Readonly<Record<string, string>>, string | undefined]>([
    ["https://10.96.0.1", {}, undefined],
    ["https://10.96.0.1", { HTTPS_PROXY: PROXY }, PROXY],
    ["https://10.96.0.1", { https_proxy: PROXY, HTTPS_PROXY: "http://other" }, PROXY],
    ["https://10.96.0.1", { HTTPS_PROXY: "" }, undefined],
    ["https://10.96.0.1", { HTTP_PROXY: PROXY }, undefined],
    ["http://10.96.0.1", { HTTPS_PROXY: PROXY }, undefined],
    ["http://10.96.0.1", { HTTP_PROXY: "proxy.example:3128" }, PROXY],
    ["https://10.96.0.1", { HTTPS_PROXY: PROXY, NO_PROXY: "192.168.0.0/16, 10.0.0.0/8" }, undefined],
    ["https://10.96.0.1:6443", { HTTPS_PROXY: PROXY, no_proxy: "10.96.0.1/32" }, undefined],
    ["https://10.96.0.1", { HTTPS_PROXY: PROXY, NO_PROXY: "10.97.0.0/16,/8,10.96.0.1/,10/8,10.0.0.0/33" }, PROXY],
    ["https://[fd00:10:96::1]", { HTTPS_PROXY: PROXY, NO_PROXY: "fd00:10::/32" }, undefined],
    ["https://[fd00:10:96::1]", { HTTPS_PROXY: PROXY, NO_PROXY: "10.0.0.0/8" }, PROXY],
    ["https://10.96.0.1", { HTTPS_PROXY: PROXY, NO_PROXY: "::/0" }, PROXY],
    ["https://[::1]:6443", { HTTPS_PROXY: PROXY }, undefined],
    ["https://127.0.0.53:6443", { HTTPS_PROXY: PROXY }, undefined],
    ["https://localhost:6443", { HTTPS_PROXY: PROXY }, undefined],
    ["https://localhost.example", { HTTPS_PROXY: PROXY }, PROXY],
  ])("to %s with %j", (server, env, expected) => {
    expect(chooseProxy(new URL(server), env)?.uri).toBe(expected);
  });
});
