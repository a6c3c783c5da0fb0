import { cpus, release, totalmem } from "node:os";

/** The machine that the figures are of, as every page of results names it. */
export const MACHINE = `${cpus().length} × ${cpus()[0]?.model ?? "?"}, ${Math.round(totalmem() / 1_073_741_824)} GB, Linux ${release()}, Node ${process.version}`;
