/**
 * Choice of the cluster's secret that is proved to a dialling site, while the secret is being changed and sites have
 * the old one, the new one, or both.
 *
 * SX1  A site that went away before its own proof is shown the next secret when it comes again: of all that both have,
 *      one is found in as many attempts as there are secrets.
 * SX2  Memory is bounded: {@link SITES_MAX} ids are remembered, as a stranger can claim any.
 */
const SITES_MAX = 1_024;

/** Chooses the secret for each dialling site. */
export class SecretChoice {
  readonly #secrets: readonly [Uint8Array, ...Uint8Array[]];
  /**
   * Index of the secret that was shown last, by site; kept once the site's proof came, else dropped with the attempt.
   */
  readonly #shown = new Map<string, { at: number; isProved: boolean }>();

  constructor(secrets: readonly [Uint8Array, ...Uint8Array[]]) {
    this.#secrets = secrets;
  }

  /** Returns the secret to prove to a site now. */
  next(site: string): Uint8Array {
    const [first, ...others] = this.#secrets;
    if (others.length === 0) return first;
    const last = this.#shown.get(site);
    const at = last === undefined ? 0 : last.isProved ? last.at : (last.at + 1) % this.#secrets.length;
    this.#shown.delete(site);
    this.#shown.set(site, { at, isProved: false });
    for (const oldest of this.#shown.keys()) {
      if (this.#shown.size <= SITES_MAX) break;
      this.#shown.delete(oldest);
    }
    return this.#secrets[at] ?? first;
  }

  /** Notes that a site has the secret, too. */
  proved(site: string): void {
    const last = this.#shown.get(site);
    if (last !== undefined) last.isProved = true;
  }
}
