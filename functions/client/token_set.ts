/**
 * The tokens of one client session, which a request presents so that it follows all that this client was told before.
 *
 * S1  A token is dropped only for one that was issued to a request that presented it: that one says all that it says.
 *     Tokens are sealed; two that were issued side by side can't be compared here, and both are kept.
 * S2  More of them than a request may present are merged first, by asking a site for one in their place. An answer to a
 *     request of an earlier session changes nothing.
 * S3  All are of one session: the first is there before any request is made without one (requests.ts).
 */
import { TOKENS_MAX } from "./limits.ts";

/** Tokens that a request presents. */
export interface Presented {
  readonly tokens: readonly string[];
  /** Number of the session, as this client counts its sessions. */
  readonly session: number;
}

/** Tokens of one client session. */
export class TokenSet {
  #tokens: readonly string[];
  #session = 0;
  readonly #changed: (tokens: readonly string[]) => void;

  constructor(tokens: readonly string[], changed: (tokens: readonly string[]) => void) {
    this.#tokens = tokens;
    this.#changed = changed;
  }

  get size(): number {
    return this.#tokens.length;
  }

  /** Tokens of the session, all of them: they may be more than TOKENS_MAX (S2). */
  get presented(): Presented {
    return { tokens: this.#tokens, session: this.#session };
  }

  /** Tokens that are to be merged into one, where there are too many; else none (S2). */
  get surplus(): Presented {
    const { tokens, session } = this.presented;
    return { tokens: tokens.length > TOKENS_MAX ? tokens.slice(0, TOKENS_MAX) : [], session };
  }

  /** Takes the token that a request was answered with (S1). */
  answered({ tokens: presented, session }: Presented, token: string): void {
    if (session !== this.#session) return;
    if (this.#tokens.includes(token) && !presented.some((each) => each !== token)) return;
    this.#tokens = [...this.#tokens.filter((each) => each !== token && !presented.includes(each)), token];
    this.#changed(this.#tokens);
  }

  /** Begins another session with the next request: this one is over. */
  clear(): void {
    this.#tokens = [];
    this.#session++;
    this.#changed([]);
  }
}
