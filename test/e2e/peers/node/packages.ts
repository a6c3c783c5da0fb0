import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

/** What a node needs of the machine, by a file of each Debian package. */
const NEEDED: readonly (readonly [package_: string, file: string])[] = [
  ["busybox-static", "/bin/busybox"],
  ["containernetworking-plugins", "/usr/lib/cni/bridge"],
  ["iproute2", "/sbin/ip"],
  ["libseccomp-dev", "/usr/include/seccomp.h"],
  ["nftables", "/usr/sbin/nft"],
  ["pkg-config", "/usr/bin/pkg-config"],
  ["util-linux", "/usr/bin/nsenter"],
];

/** Installs the Debian packages that are missing, of all or of these, where that is allowed; says which are missing where it is not. */
export function installPackages(wanted: readonly string[] = NEEDED.map(([name]) => name)): void {
  const missing = NEEDED.filter(([name, file]) => wanted.includes(name) && !existsSync(file)).map(([name]) => name);
  if (missing.length === 0) return;
  const names = missing.join(" ");
  const apt = (...words: readonly string[]): boolean =>
    spawnSync("apt-get", words, { stdio: ["ignore", "ignore", "inherit"], env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } }).status === 0;
  const install = ["install", "-y", "-q", "--no-install-recommends", ...missing];
  if (process.getuid?.() === 0 && (apt(...install) || (apt("update", "-q") && apt(...install)))) return;
  throw new Error(`the field test needs the Debian packages ${names}: apt-get install ${names}`);
}
