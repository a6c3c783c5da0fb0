/** How a cluster that is there already is used. */
export interface GivenSettings {
  readonly kubeconfig: string;
  /** Where its pods reach this machine. */
  readonly hostAddress: string;
  /** Loads one image archive, `{}`, into every node. */
  readonly loadImage: string | undefined;
  /** Runs what follows it on a node, `{node}`, as root. */
  readonly nodeCommand: string | undefined;
}

/** The settings of the environment; undefined where the test is to build a node of its own. */
export function readGivenSettings(): GivenSettings | undefined {
  const kubeconfig = read("KUBECONFIG");
  const hostAddress = read("HOST_ADDRESS");
  if (kubeconfig === undefined) return undefined;
  if (hostAddress === undefined) throw new Error("FIELD_KUBECONFIG wants FIELD_HOST_ADDRESS beside it: the address at which pods reach this machine");
  return { kubeconfig, hostAddress, loadImage: read("LOAD_IMAGE"), nodeCommand: read("NODE_COMMAND") };
}

/** The names of the scenarios that are to be run; undefined for all. */
export function readWantedScenarios(): readonly string[] | undefined {
  return read("SCENARIOS")?.split(",");
}

function read(name: string): string | undefined {
  const value = process.env[`FIELD_${name}`];
  return value === "" ? undefined : value;
}
