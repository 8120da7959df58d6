/**
 * Session tokens at the gateway: opened when a request presents them, sealed when an answer leaves with another
 * state than was presented.
 *
 * T1  A token that does not open is refused before any state is touched.
 * T2  A state that says nothing new keeps its text: an answer to a function that touched no rows costs no seal,
 *     and its client gets no new cookie, until the token is old enough to be renewed.
 */
import type { TokenState } from "../../store/api.ts";
import type { OpenedToken as TokenOpening } from "../../store/token.ts";
import { Problem } from "./problem.ts";

/** Seals and opens tokens under the cluster's keys (store/token.ts). */
export interface TokenCodec {
  seal(state: TokenState): string;
  open(text: string): TokenOpening;
}

/** A token that opened. */
export interface OpenedToken {
  readonly text: string;
  readonly state: TokenState;
  readonly issuedMs: number;
}

interface Remembered {
  readonly token: OpenedToken;
  readonly untilMs: number;
}

/** A token's text grows with nothing; longer than this is garbage that is not worth decoding. */
const TOKEN_CHARS_MAX = 1024;
/** More than a client library keeps (one a site) is an attempt to make us wait on many. */
const TOKENS_MAX = 8;
/** Opening costs 8 µs, a look here 0.1; sessions that are active within seconds fit. Two generations of so many. */
const CACHE_MAX = 8_192;
/** A cached token is opened again after this long, so that expiry and rotated keys are noticed. */
const CACHE_MS_MAX = 10_000;
/** An unchanged token is renewed after a day, of the thirty that a cookie lives. */
const RENEW_MS = 24 * 60 * 60_000;
/** `Max-Age` of the cookie: 30 days. */
const COOKIE_S = 30 * 24 * 60 * 60;

/** Opens and seals the tokens of one site. */
export class SessionTokens {
  readonly #codec: TokenCodec;
  readonly #nowMs: () => number;
  #recent = new Map<string, Remembered>();
  #older = new Map<string, Remembered>();

  constructor(codec: TokenCodec, nowMs: () => number) {
    this.#codec = codec;
    this.#nowMs = nowMs;
  }

  /** @throws Problem `token_*`. */
  open(texts: readonly string[]): OpenedToken[] {
    if (texts.length > TOKENS_MAX) {
      throw new Problem(
        "token_oversized",
        `${texts.length} tokens in one request; at most ${TOKENS_MAX} are accepted`,
      );
    }
    return texts.map((text) => this.#open(text));
  }

  #open(text: string): OpenedToken {
    const nowMs = this.#nowMs();
    const cached = this.#recent.get(text) ?? this.#older.get(text);
    if (cached !== undefined && cached.untilMs > nowMs) return cached.token;
    if (text.length > TOKEN_CHARS_MAX) {
      throw new Problem(
        "token_oversized",
        `a session token of ${text.length} characters; ours have at most ${TOKEN_CHARS_MAX}`,
      );
    }
    const opened = this.#codec.open(text);
    if (!opened.ok) throw new Problem(opened.code, opened.message);
    const token = { text, state: opened.token, issuedMs: opened.issuedMs };
    this.#remember(token, nowMs);
    return token;
  }

  /** A token that we sealed comes back soon, mostly here: it need not be opened. */
  #remember(token: OpenedToken, nowMs: number): void {
    if (this.#recent.size >= CACHE_MAX) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(token.text, { token, untilMs: nowMs + CACHE_MS_MAX });
  }

  /** The text that an answer leaves with (T2); `changed` where it is not what came. */
  seal(state: TokenState, presented: readonly OpenedToken[]): { text: string; changed: boolean } {
    const [only] = presented;
    if (
      presented.length === 1 && only !== undefined && sameState(only.state, state) &&
      this.#nowMs() - only.issuedMs < RENEW_MS
    ) {
      return { text: only.text, changed: false };
    }
    const text = this.#codec.seal(state);
    const nowMs = this.#nowMs();
    this.#remember({ text, state, issuedMs: nowMs }, nowMs);
    return { text, changed: true };
  }
}

/** Whether two states tell the next site the same; the sequence alone tells it nothing. */
export function sameState(a: TokenState, b: TokenState): boolean {
  if (
    a.replica !== b.replica || a.clock !== b.clock || a.open !== b.open || a.path.length !== b.path.length
  ) return false;
  for (let i = 0; i < a.path.length; i++) if (a.path[i] !== b.path[i]) return false;
  for (let i = 0; i < a.session.length; i++) if (a.session[i] !== b.session[i]) return false;
  return a.session.length === b.session.length;
}

/**
 * Whether an answer's token is to be kept as a cookie: it is another one, and the client keeps cookies. A token in
 * a query may be somebody else's choice: as a cookie it would put all later requests into that one's session.
 */
export const wantsCookie = (
  head: { readonly tokenFrom: string; readonly tokens: readonly string[] },
  token: string,
): boolean => (head.tokenFrom === "cookie" || head.tokenFrom === "none") && token !== head.tokens[0];

/** The `Set-Cookie` that keeps a token. */
export const sessionCookie = (text: string, secure: boolean): string =>
  `sojourn_session=${text}; HttpOnly; SameSite=Lax; Path=/; Max-Age=${COOKIE_S}${secure ? "; Secure" : ""}`;

/** The `Set-Cookie` that drops it. */
export const CLEARED_COOKIE = "sojourn_session=; HttpOnly; SameSite=Lax; Path=/; Max-Age=0";
