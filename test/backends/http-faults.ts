import type { FaultSwitch } from "./contract.ts";
import type { Fault, FaultProxy, SeenRequest } from "./fault-proxy.ts";

/** How the faults of one protocol look. */
export interface FaultWords {
  readonly kindOf: (seen: SeenRequest) => "list" | "read" | "delete" | "write" | "other";
  /** The server's refusal. */
  readonly denial: (seen: SeenRequest) => Fault;
  /** A page of a listing, made to lie. */
  readonly lie: (page: string) => string;
}

/** Plays the faults of a protocol over HTTP. */
export function playHttpFaults(proxy: FaultProxy, { kindOf, denial, lie }: FaultWords): FaultSwitch {
  return {
    deny: (what) => {
      proxy.fault = (seen) => (kindOf(seen) === what ? denial(seen) : undefined);
    },
    hang: () => {
      proxy.fault = () => ({ kind: "hang" });
    },
    cut: () => {
      proxy.fault = () => ({ kind: "cut", after: false });
    },
    loseAnswerOfDelete: (whatFollows) => {
      let lost = false;
      proxy.fault = (seen) => {
        const kind = kindOf(seen);
        if (lost) return whatFollows === "denied" && (kind === "delete" || kind === "read") ? denial(seen) : undefined;
        if (kind !== "delete") return undefined;
        lost = true;
        return { kind: "cut", after: true };
      };
    },
    lieAboutListing: () => {
      proxy.fault = (seen) => (kindOf(seen) === "list" ? { kind: "rewrite", body: lie } : undefined);
    },
    heal: () => {
      proxy.fault = () => undefined;
    },
  };
}
