import { spawn, type ChildProcess } from "node:child_process";
import { resolve } from "node:path";

import { BlobServiceClient, type ContainerClient } from "@azure/storage-blob";

/** Azurite's only account; its key is in Microsoft's documentation (https://learn.microsoft.com/azure/storage/common/storage-connect-azurite). */
const AZURITE_ACCOUNT = "devstoreaccount1";
export const AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/** A running Azurite, Microsoft's emulator of Blob storage, in memory and on a free port. */
export interface Azurite {
  readonly port: number;
  /** What an `azblob://` URL needs beside it; the domain may be a proxy's. */
  readonly env: (port?: number) => Readonly<Record<string, string>>;
  readonly createContainer: (name: string) => Promise<ContainerClient>;
  readonly stop: () => Promise<void>;
}

export async function startAzurite(): Promise<Azurite> {
  const main = resolve("node_modules/azurite/dist/src/blob/main.js");
  // Without --skipApiVersionCheck a current SDK's API version is refused.
  const child = spawn(
    process.execPath,
    [main, "--blobHost", "127.0.0.1", "--blobPort", "0", "--silent", "--disableTelemetry", "--inMemoryPersistence", "--skipApiVersionCheck"],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const port = await readPort(child);
  const service = BlobServiceClient.fromConnectionString(
    `DefaultEndpointsProtocol=http;AccountName=${AZURITE_ACCOUNT};AccountKey=${AZURITE_KEY};BlobEndpoint=http://127.0.0.1:${port}/${AZURITE_ACCOUNT};`,
  );
  return {
    port,
    env: (through = port) => ({
      AZURE_STORAGE_ACCOUNT: AZURITE_ACCOUNT,
      AZURE_STORAGE_KEY: AZURITE_KEY,
      AZURE_STORAGE_DOMAIN: `127.0.0.1:${through}`,
      AZURE_STORAGE_PROTOCOL: "http",
    }),
    createContainer: async (name) => {
      const container = service.getContainerClient(name);
      await container.create();
      return container;
    },
    stop: async () => {
      const ended = new Promise<void>((done) => {
        child.once("exit", () => done());
      });
      child.kill("SIGKILL");
      await ended;
    },
  };
}

async function readPort(child: ChildProcess): Promise<number> {
  return await new Promise((done, fail) => {
    let text = "";
    const timer = setTimeout(() => fail(new Error(`Azurite did not start: ${text}`)), 30_000);
    const read = (chunk: Buffer): void => {
      text += chunk.toString();
      const port = /successfully listens on http:\/\/127\.0\.0\.1:(\d+)/.exec(text)?.[1];
      if (port === undefined) return;
      clearTimeout(timer);
      done(Number(port));
    };
    child.stdout?.on("data", read);
    child.stderr?.on("data", read);
    child.once("exit", (code) => fail(new Error(`Azurite ended with ${code ?? "a signal"}: ${text}`)));
  });
}
