/**
 * The tokens of one client session: what a request presents so that it follows all that this client was told before.
 *
 * S1  A token is dropped only for one that was issued to a request that presented it: that one says all that it says.
 *     Tokens are sealed; two that were issued side by side can't be compared here, and both are kept.
 * S2  More of them than a request may present are merged first, by asking a site for one in their place.
 *     What is answered to a request of a session before this one changes nothing.
 * S3  All are of one session: the first is there before any request is made without one (requests.ts).
 */
import { TOKENS_MAX } from "./limits.ts";

/** What a request presents. */
export interface Presented {
  readonly tokens: readonly string[];
  /** The session, as this client counts its sessions. */
  readonly session: number;
}

/** See the file's header. */
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

  /** All of them: it may be more than TOKENS_MAX (S2). */
  get presented(): Presented {
    return { tokens: this.#tokens, session: this.#session };
  }

  /** Some that are to be merged into one, where there are too many; else none (S2). */
  get surplus(): Presented {
    const { tokens, session } = this.presented;
    return { tokens: tokens.length > TOKENS_MAX ? tokens.slice(0, TOKENS_MAX) : [], session };
  }

  /** A request was answered with a token (S1). */
  answered({ tokens: presented, session }: Presented, token: string): void {
    if (session !== this.#session) return;
    if (this.#tokens.includes(token) && !presented.some((each) => each !== token)) return;
    this.#tokens = [...this.#tokens.filter((each) => each !== token && !presented.includes(each)), token];
    this.#changed(this.#tokens);
  }

  /** The session is over: the next request begins another one. */
  clear(): void {
    this.#tokens = [];
    this.#session++;
    this.#changed([]);
  }
}
