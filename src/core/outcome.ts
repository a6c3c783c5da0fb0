/** What became of a removal, as its record says. */
export const OUTCOME_ACTIONS = ["deleted", "deleted-unconfirmed", "vanished", "changed", "failed", "keep"] as const;

/** What became of a removal in the end. `open`: no outcome was written; `restored`: a person put the lock back. */
export const OUTCOMES = [...OUTCOME_ACTIONS, "open", "restored"] as const;
export type OutcomeName = (typeof OUTCOMES)[number];
