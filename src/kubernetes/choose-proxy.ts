import { BlockList, isIP } from "node:net";

/** The proxy for a server, and the names that are reached without it. */
export interface ChosenProxy {
  readonly uri: string;
  readonly noProxy: string;
}

/**
 * The proxy that kubectl would take for an API server, by Go's rules (https://pkg.go.dev/golang.org/x/net/http/httpproxy#Config): HTTPS_PROXY for https
 * only, none for a loopback address, and NO_PROXY may hold address ranges. Names and ports in NO_PROXY are left to undici, which knows no ranges.
 */
export function chooseProxy(server: URL, env: Readonly<Record<string, string | undefined>>): ChosenProxy | undefined {
  const lower = server.protocol === "https:" ? "https_proxy" : "http_proxy";
  const proxy = env[lower] ?? env[lower.toUpperCase()] ?? "";
  if (proxy === "") return undefined;
  const noProxy = env["no_proxy"] ?? env["NO_PROXY"] ?? "";
  const host = server.hostname.replace(/^\[(.*)\]$/, "$1");
  if (host === "localhost" || isListed(host, ["127.0.0.0/8", "::1/128"]) || isListed(host, noProxy.split(/[,\s]+/))) return undefined;
  // Without a scheme it is an HTTP proxy.
  return { uri: proxy.includes("://") ? proxy : `http://${proxy}`, noProxy };
}

/** True for an address within one of the ranges; what is no range does not count. */
function isListed(host: string, ranges: readonly string[]): boolean {
  const kind = isIP(host);
  if (kind === 0) return false;
  const family = kind === 4 ? "ipv4" : "ipv6";
  const list = new BlockList();
  for (const range of ranges) {
    const [, address = "", bits = ""] = /^([\d.]+|[\da-f:]+)\/(\d{1,3})$/i.exec(range) ?? [];
    if (isIP(address) === kind && Number(bits) <= (kind === 4 ? 32 : 128)) list.addSubnet(address, Number(bits), family);
  }
  return list.check(host, family);
}
