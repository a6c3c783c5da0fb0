import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

// Fills the compile cache beside the bundle, as the user who runs this: Node keeps compiled code apart by user, version and kind of processor, and where it fits none nothing is
// lost. What is kept is what has run by the end of a process, so each command runs its usual course, against a server that knows one lock and an empty cluster.
const LOCK = JSON.stringify({ pid: 7, username: "pulumi", hostname: "app-workspace-0", timestamp: "2026-01-01T00:00:00Z" });
const S3_LIST = `<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>.pulumi/locks/organization/app/dev/1.json</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"1"</ETag><Size>${LOCK.length}</Size></Contents></ListBucketResult>`;

function answer({ url = "", headers }: IncomingMessage): string {
  if (url.startsWith("/api")) return '{"kind":"List","metadata":{},"items":[]}';
  if (url.startsWith("/b/")) return "{}";
  if (headers["x-ms-version"] !== undefined) return "<EnumerationResults><Blobs/></EnumerationResults>";
  return url.includes("list-type=2") ? S3_LIST : LOCK;
}

const folder = mkdtempSync(join(tmpdir(), "warm-"));
const server = createServer((request, response) => {
  response.writeHead(200, { etag: '"1"' }).end(answer(request));
});
await new Promise<void>((done) => {
  server.listen(0, "127.0.0.1", done);
});
const address = server.address();
const place = `127.0.0.1:${typeof address === "object" ? (address?.port ?? 0) : 0}`;
const kubeconfig = join(folder, "kubeconfig");
writeFileSync(
  kubeconfig,
  `apiVersion: v1
kind: Config
current-context: warm
clusters: [{ name: warm, cluster: { server: "http://${place}", insecure-skip-tls-verify: true } }]
users: [{ name: warm, user: { token: none } }]
contexts: [{ name: warm, context: { cluster: warm, user: warm } }]
`,
);
const run = async (words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<void> => {
  try {
    await promisify(execFile)(process.execPath, ["dist/main.js", ...words], { env: { HOME: folder, KUBECONFIG: kubeconfig, ...env } });
  } catch {
    // What it says of an empty world does not matter.
  }
};
const sweep = ["sweep", "--confirm-delay", "1ms", "--timeout", "20s", "--backend"];
await run(["--help"]);
await run([...sweep, `s3://warm?endpoint=${place}&disableSSL=true&s3ForcePathStyle=true&region=us-east-1`], {
  AWS_ACCESS_KEY_ID: "warm",
  AWS_SECRET_ACCESS_KEY: "warm",
});
await run([...sweep, "azblob://warm"], {
  AZURE_STORAGE_CONNECTION_STRING: `DefaultEndpointsProtocol=http;AccountName=warm;AccountKey=d2FybQ==;BlobEndpoint=http://${place}/warm;`,
});
await run([...sweep, "gs://warm"], { STORAGE_EMULATOR_HOST: place, GOOGLE_OAUTH_ACCESS_TOKEN: "warm" });
await run([...sweep, `file://${folder}`]);
await run([...sweep, `postgres://warm@127.0.0.1:1/warm?sslmode=disable`]);
server.close();
server.closeAllConnections();
rmSync(folder, { recursive: true });
const files = readdirSync("dist/compile-cache", { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
if (files.length === 0) throw new Error("the commands left no compiled code");
// Node lets nobody else read them, and in an image they are root's.
for (const { parentPath, name } of files) chmodSync(join(parentPath, name), 0o644);
