/**
 * Peers by whose word nobody can go: what one of them alone was told, ahead of the disks, may be gone. What was released
 * holds for them as for all others.
 */

/** What makes one unsure. */
export type Why = "lies" | "lost its log" | "went back" | "was left behind";

/** With what they may be sent away. */
const SENT_AWAY: Readonly<Record<Why, readonly string[]>> = {
  "lies": ["log_forged", "peer_ahead"],
  "lost its log": ["peer_ahead"],
  "went back": ["peer_ahead", "peer_behind"],
  "was left behind": ["peer_unknown"],
};

/** See the file's header. */
export class Unsure {
  readonly #whys = new Map<string, Set<Why>>();

  add(peer: string, why: Why): void {
    this.#whys.set(peer, (this.#whys.get(peer) ?? new Set()).add(why));
  }

  has(peer: string): boolean {
    return this.#whys.has(peer);
  }

  /** Why one may be sent away with a code; null: it may not. */
  sentAway(peer: string, code: string): Why | null {
    return [...this.#whys.get(peer) ?? []].find((why) => SENT_AWAY[why].includes(code)) ?? null;
  }

  /** Why, if it is for several reasons the first one; null: it is not. */
  why(peer: string): Why | null {
    const [first = null] = this.#whys.get(peer) ?? [];
    return first;
  }
}
