/** Counts of rare things that happened: proof that the runs reached them. */
export class Probes {
  readonly #counts = new Map<string, number>();

  count(name: string, by = 1): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + by);
  }

  add(other: Readonly<Record<string, number>>): void {
    for (const [name, by] of Object.entries(other)) this.count(name, by);
  }

  /** By name, in the order of names. */
  all(): Record<string, number> {
    return Object.fromEntries([...this.#counts].sort(([a], [b]) => a < b ? -1 : 1));
  }
}
