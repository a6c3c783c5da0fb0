/** How often what happened: what shows that the histories were no monotony. */
export class Tally {
  readonly counts = new Map<string, number>();

  add(name: string, by = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + by);
  }

  action(name: string): void {
    this.add(`world: ${name}`);
  }

  /** A call of a janitor, by its kind. */
  call(name: string): void {
    this.add(`call: ${name.split(" ")[0] ?? name}`);
  }

  merge(other: Tally): void {
    for (const [name, count] of other.counts) this.add(name, count);
  }

  get(name: string): number {
    return this.counts.get(name) ?? 0;
  }

  lines(): readonly string[] {
    return Array.from(this.counts, ([name, count]) => `${name}: ${count}`).toSorted();
  }
}
