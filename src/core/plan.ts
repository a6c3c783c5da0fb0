/** A lock that the rules call stale, reduced to what the valve counts. */
export interface PlannedRemoval {
  /** Names the backend; removals are counted for each by itself. */
  readonly backend: string;
  readonly hostname: string;
}

/** Whether a sweep may remove what it found, or refuses for one of its backends. */
export interface Refusal {
  readonly backend: string;
  readonly owners: number;
  readonly message: string;
}

/**
 * The valve: refuses every removal in a backend where more distinct owners than `maxDeletions` would lose their locks. Many owners gone at once is
 * what a wrong cluster looks like. `earlier`: removals of this backend that count along.
 */
export function refuseTooMany(removals: readonly PlannedRemoval[], maxDeletions: number, earlier: readonly PlannedRemoval[] = []): readonly Refusal[] {
  const owners = new Map<string, Set<string>>();
  const planned = new Set(removals.map(({ backend }) => backend));
  for (const { backend, hostname } of [...removals, ...earlier]) owners.set(backend, (owners.get(backend) ?? new Set()).add(hostname));
  return Array.from(owners, ([backend, hostnames]) => ({ backend, owners: hostnames.size }))
    .filter(({ backend, owners: count }) => count > maxDeletions && planned.has(backend))
    .map(({ backend, owners: count }) => ({
      backend,
      owners: count,
      message: `${backend}: nothing was removed, because the locks of ${count} owners would go and at most ${maxDeletions} may; if that is right, run again with --max-deletions ${count}`,
    }));
}
