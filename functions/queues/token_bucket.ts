/**
 * A token bucket, which limits how many messages a second are given out: tokens come evenly, up to the bucket's fill.
 *
 * TB1 In no time of t seconds more than `perSecond` × t and the bucket's fill are taken.
 */

/** Time over which unused tokens add up: a queue that rested for so long may be given out at once what it missed. */
const FILL_MS = 1_000;

export class TokenBucket {
  #perSecond: number;
  #tokens: number;
  #atMs: number;

  /** Makes a full bucket. */
  constructor(perSecond: number, nowMs: number) {
    this.#perSecond = perSecond;
    this.#tokens = this.#most;
    this.#atMs = nowMs;
  }

  /** Sets another rate from now on; tokens that were saved stay, as far as they fit. */
  configure(perSecond: number, nowMs: number): void {
    if (perSecond === this.#perSecond) return;
    this.#fill(nowMs);
    this.#perSecond = perSecond;
    this.#tokens = Math.min(this.#tokens, this.#most);
  }

  /** Returns the whole tokens that there are. */
  available(nowMs: number): number {
    this.#fill(nowMs);
    return this.#perSecond === Infinity ? Infinity : Math.floor(this.#tokens);
  }

  /** Takes `count` of the tokens that there are. */
  take(count: number, nowMs: number): void {
    this.#fill(nowMs);
    if (this.#perSecond !== Infinity) this.#tokens -= count;
  }

  /** Returns the time at which there is one token. */
  nextMs(nowMs: number): number {
    this.#fill(nowMs);
    if (this.#tokens >= 1) return nowMs;
    // A hundredth of a millisecond more than enough: sums of parts fall short of a whole.
    return nowMs + (1 - this.#tokens) * 1_000 / this.#perSecond + 0.01;
  }

  get #most(): number {
    return this.#perSecond === Infinity ? 1 : Math.max(1, this.#perSecond * FILL_MS / 1_000);
  }

  #fill(nowMs: number): void {
    const gainedMs = Math.max(0, nowMs - this.#atMs);
    this.#atMs = Math.max(this.#atMs, nowMs);
    if (this.#perSecond === Infinity) return;
    this.#tokens = Math.min(this.#most, this.#tokens + gainedMs * this.#perSecond / 1_000);
  }
}
