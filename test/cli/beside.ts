import { aNodeObject, StubApiServer } from "../kubernetes/stub-api-server.ts";
import { Workspace } from "./snapshot-files.ts";

/** What a command works on: a folder with a backend in it, and a cluster with one node. */
export interface Beside {
  readonly workspace: Workspace;
  readonly server: StubApiServer;
  readonly remove: () => Promise<void>;
}

/** Makes an empty backend and starts a cluster with these pods. */
export async function startBeside(pods: readonly object[]): Promise<Beside> {
  const [workspace, server] = [new Workspace(), new StubApiServer()];
  await server.start();
  server.objects.set("/api/v1/nodes", [aNodeObject("node-1")]);
  server.objects.set("/api/v1/pods", [...pods]);
  return {
    workspace,
    server,
    remove: async () => {
      await server.stop();
      workspace.remove();
    },
  };
}
