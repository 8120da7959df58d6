/**
 * Session tokens at the gateway: opened when a request presents them, sealed when an answer leaves with another
 * state than was presented.
 *
 * TK1  A token that does not open is refused before any state is touched.
 * TK2  A session state that says nothing new keeps its token's text: an answer to a function that touched no rows costs
 *      no seal, and its client gets no new cookie, until the token is old enough to be renewed.
 */
import type { TokenState } from "../../store/api/api.ts";
import { followedOf } from "../../store/api/token_path.ts";
import { type OpenedToken as TokenOpening, sessionIdOf } from "../../store/session/token.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { TokenCache } from "./token_cache.ts";

/** Seals and opens tokens under the cluster's keys (store/session/token.ts). */
export interface TokenCodec {
  seal(state: TokenState): string;
  open(text: string): TokenOpening;
}

/** Names by which apps know a session; remembered, since deriving a name costs as much as opening a token. */
export class SessionNames {
  readonly #session: Uint8Array;
  #app = "";
  #name = "";

  constructor(session: Uint8Array) {
    this.#session = session;
  }

  /** Returns the session's name in an app. The last one is kept, as most sessions use one app. */
  of(app: string): string {
    if (app !== this.#app) {
      this.#name = sessionIdOf(this.#session, app);
      this.#app = app;
    }
    return this.#name;
  }
}

/** A token that opened. */
export interface RequestToken {
  readonly text: string;
  readonly state: TokenState;
  readonly issuedMs: number;
  /** Names of the session, passed on from token to token. */
  readonly names: SessionNames;
}

interface Remembered extends RequestToken {
  readonly untilMs: number;
}

/** Longest text of a token, in characters: it does not grow, and a longer one is garbage that is not worth decoding. */
const TOKEN_CHARS_MAX = 1024;
/**
 * Most tokens that a request may present: more than a client library keeps (one a site) is an attempt to make us wait
 * on many.
 */
const TOKENS_MAX = 8;
/** Milliseconds after which a cached token is opened again, so that expiry and rotated keys are noticed. */
const CACHE_MS_MAX = 10_000;
/** Age at which an unchanged token is renewed, in milliseconds: a day, of the thirty that a cookie lives. */
const RENEW_MS = 24 * 60 * 60_000;

/** Opens and seals the tokens of one site. */
export class SessionTokens {
  readonly #codec: TokenCodec;
  readonly #nowMs: () => number;
  readonly #cache = new TokenCache<Remembered>();

  constructor(codec: TokenCodec, nowMs: () => number) {
    this.#codec = codec;
    this.#nowMs = nowMs;
  }

  /** Opens the tokens of a request. @throws Problem `token_*`. */
  open(texts: readonly string[]): RequestToken[] {
    if (texts.length > TOKENS_MAX) {
      throw new Problem(
        "token_oversized",
        `${texts.length} tokens in one request; at most ${TOKENS_MAX} are accepted`,
      );
    }
    const [only] = texts;
    if (texts.length === 1 && only !== undefined) return [this.#open(only)];
    return texts.map((text) => this.#open(text));
  }

  #open(text: string): RequestToken {
    const nowMs = this.#nowMs();
    const cached = this.#cache.get(text);
    if (cached !== undefined && cached.untilMs > nowMs) return cached;
    if (text.length > TOKEN_CHARS_MAX) {
      throw new Problem(
        "token_oversized",
        `a session token of ${text.length} characters; ours have at most ${TOKEN_CHARS_MAX}`,
      );
    }
    const opened = this.#codec.open(text);
    if (!opened.ok) throw new Problem(opened.code, opened.message);
    const { token: state, issuedMs } = opened;
    const token = {
      text,
      state,
      issuedMs,
      names: cached?.names ?? new SessionNames(state.session),
      untilMs: nowMs + CACHE_MS_MAX,
    };
    this.#cache.put(token);
    return token;
  }

  /** Returns the token that an answer leaves with (TK2); `changed` where it is not the one that came. */
  seal(
    state: TokenState,
    presented: readonly RequestToken[],
    names: SessionNames = new SessionNames(state.session),
  ): { text: string; changed: boolean } {
    const [only] = presented;
    const nowMs = this.#nowMs();
    if (
      presented.length === 1 && only !== undefined && sameState(only.state, state) &&
      nowMs - only.issuedMs < RENEW_MS
    ) {
      return { text: only.text, changed: false };
    }
    const text = this.#codec.seal(state);
    this.#cache.put({ text, state, issuedMs: nowMs, names, untilMs: nowMs + CACHE_MS_MAX });
    return { text, changed: true };
  }
}

/** Reports whether two states tell the next site the same; the sequence alone tells it nothing. */
export function sameState(a: TokenState, b: TokenState): boolean {
  if (
    a.replica !== b.replica || a.clock !== b.clock || a.open !== b.open || a.path.length !== b.path.length
  ) return false;
  if (a.session === b.session && a.path === b.path && a.followed === b.followed) return true;
  for (let i = 0; i < a.path.length; i++) {
    if (a.path[i] !== b.path[i] || followedOf(a, i) !== followedOf(b, i)) return false;
  }
  for (let i = 0; i < a.session.length; i++) if (a.session[i] !== b.session[i]) return false;
  return a.session.length === b.session.length;
}

/**
 * Reports whether an answer's token is to be kept as a cookie: it is another one, and the client keeps cookies. A token
 * in a query may be somebody else's choice: as a cookie it would put all later requests into that one's session. For a
 * request that another site's page made the browser send, none is kept (cookies.ts, CK3).
 */
export const wantsCookie = (
  head: { readonly tokenFrom: string; readonly tokens: readonly string[]; readonly isCrossSite: boolean },
  token: string,
): boolean =>
  !head.isCrossSite && (head.tokenFrom === "cookie" || head.tokenFrom === "none") && token !== head.tokens[0];
