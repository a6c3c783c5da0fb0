import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";

/** What a container of the image runs by itself, and as whom. */
export interface ImageConfig {
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly Env?: readonly string[];
  readonly User?: string;
  readonly WorkingDir?: string;
  readonly Labels?: Readonly<Record<string, string>>;
}

/** Packs a folder as an image of one layer: an OCI layout in a tar, as `ctr images import` takes it. */
export function writeImage(file: string, name: string, rootFolder: string, config: ImageConfig): void {
  const layout = mkdtempSync(join(tmpdir(), "image-"));
  try {
    const blobs = join(layout, "blobs/sha256");
    mkdirSync(blobs, { recursive: true });
    const draft = join(layout, "layer");
    pack(draft, rootFolder);
    const digest = createHash("sha256").update(readFileSync(draft)).digest("hex");
    const size = statSync(draft).size;
    renameSync(draft, join(blobs, digest));
    const layer = { mediaType: "application/vnd.oci.image.layer.v1.tar", digest: `sha256:${digest}`, size };
    const put = (mediaType: string, content: object): { readonly mediaType: string; readonly digest: string; readonly size: number } => {
      const bytes = Buffer.from(JSON.stringify(content));
      const digest = createHash("sha256").update(bytes).digest("hex");
      writeFileSync(join(blobs, digest), bytes);
      return { mediaType, digest: `sha256:${digest}`, size: bytes.length };
    };
    const platform = { architecture: process.arch === "arm64" ? "arm64" : "amd64", os: "linux" };
    const described = put("application/vnd.oci.image.config.v1+json", {
      ...platform,
      config: { ...config, Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", ...(config.Env ?? [])] },
      rootfs: { type: "layers", diff_ids: [layer.digest] },
    });
    const mediaType = "application/vnd.oci.image.manifest.v1+json";
    const manifest = put(mediaType, { schemaVersion: 2, mediaType, config: described, layers: [layer] });
    writeFileSync(join(layout, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
    const manifests = [{ ...manifest, platform, annotations: { "io.containerd.image.name": name } }];
    writeFileSync(join(layout, "index.json"), JSON.stringify({ schemaVersion: 2, manifests }));
    pack(file, layout);
  } finally {
    rmSync(layout, { recursive: true, force: true });
  }
}

/** Puts busybox with all its names, the users and the usual folders into an image's folder. */
export function addBase(rootFolder: string): void {
  for (const folder of ["bin", "etc", "tmp", "proc", "sys", "dev", "root"]) mkdirSync(join(rootFolder, folder), { recursive: true });
  chmodSync(join(rootFolder, "tmp"), 0o1777);
  const busybox = "/bin/busybox";
  copyFileSync(busybox, join(rootFolder, "bin/busybox"));
  const { stdout } = spawnSync(busybox, ["--list"], { encoding: "utf8" });
  for (const applet of stdout.split("\n").filter((name) => name !== "" && name !== "busybox")) symlinkSync("busybox", join(rootFolder, "bin", applet));
  writeFileSync(join(rootFolder, "etc/passwd"), "root:x:0:0::/root:/bin/sh\npulumi:x:1000:1000::/tmp:/bin/sh\nnonroot:x:65532:65532::/tmp:/bin/sh\n");
  writeFileSync(join(rootFolder, "etc/group"), "root:x:0:\npulumi:x:1000:\nnonroot:x:65532:\n");
}

/** Puts a program into an image's folder, with the libraries that it is linked to. */
export function addProgram(rootFolder: string, program: string, target = join("bin", basename(program))): void {
  copyInto(rootFolder, program, target);
  const { stdout } = spawnSync("ldd", [program], { encoding: "utf8" });
  for (const [, library = ""] of stdout.matchAll(/(\/\S+\.so\S*)/g)) copyInto(rootFolder, library, library);
}

function copyInto(rootFolder: string, source: string, target: string): void {
  const path = join(rootFolder, target);
  mkdirSync(dirname(path), { recursive: true });
  copyFileSync(source, path);
}

function pack(file: string, folder: string): void {
  const words = ["--create", `--file=${file}`, "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", `--directory=${folder}`, "."];
  const { status, stderr } = spawnSync("tar", words, { encoding: "utf8" });
  if (status !== 0) throw new Error(`tar could not pack ${folder}: ${stderr}`);
}
