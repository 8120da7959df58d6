/**
 * The `fetch` for an app: it asks the client's site, in the client's session, and another site where that one is dead.
 *
 * Life of a request: session (a first request waits for its token) → attempt → answered, or repeated: at another site
 * where this one is dead or away; after a while where the answer says so → the answer, or the last failure.
 *
 * A1  A request presents all tokens of its session that were there when it left; its answer's token is one of them
 *     from then on (token_set.ts).
 * A2  A request that may not be sent again (app_request.ts, Q1) is sent once, unless the gateway said that it did not
 *     look at it.
 * A3  A repeat has the same `Idempotency-Key`.
 * A4  A site that is silent is asked whether it lives, and reaches others; a handler that takes long is waited for.
 * A5  A request ends: attempts begin for `giveUpMs`, and what was answered last is the answer.
 */
import { platformUrl } from "./address.ts";
import { type AppRequest, appRequest } from "./app_request.ts";
import { ClientError } from "./client_error.ts";
import * as limits from "./limits.ts";
import type { ClientHost } from "./ports.ts";
import type { KnownSite, SiteChoice } from "./site_choice.ts";
import type { SiteWatch } from "./site_watch.ts";
import type { Presented, TokenSet } from "./token_set.ts";
import { type AnswerVerdict, verdictOf, wayMs } from "./verdict.ts";
import { within } from "./within.ts";

/** Parts of the client that its requests use. */
export interface FetchParts {
  readonly host: ClientHost;
  readonly choice: SiteChoice;
  readonly watch: SiteWatch;
  readonly tokens: TokenSet;
  /** Returns the site for what is done now; tells the program of a move of the client. */
  readonly site: (without?: ReadonlySet<string>) => KnownSite;
  readonly isRepeated: boolean;
  readonly giveUpMs: number;
  /** Resolves when the tokens are in the storage. */
  readonly kept: () => Promise<unknown>;
  /** Reports that the session was not taken any more, and another is begun. */
  readonly begunAnew: (code: string) => void;
  readonly closed: AbortSignal;
}

const SESSION = "sojourn-session";

/** Request on its way. */
interface Sending {
  readonly request: AppRequest;
  readonly untilMs: number;
  /** Sites where the request is not tried again before all others were. */
  readonly tried: Set<string>;
  attempts: number;
}

type Attempt =
  | { readonly kind: "answer"; readonly answer: Response; readonly verdict: AnswerVerdict }
  | { readonly kind: "failed"; readonly error: unknown };

/** Sender of a client's requests. */
export class AppFetch {
  readonly #parts: FetchParts;
  #starting: Promise<Response | null> | null = null;

  constructor(parts: FetchParts) {
    this.#parts = parts;
  }

  async fetch(path: string, input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
    const { host, isRepeated, giveUpMs } = this.#parts;
    this.#checkOpen();
    const request = await appRequest(path, { input, init, draw: isRepeated ? () => host.draw() : null });
    const sending = { request, untilMs: host.nowMs() + giveUpMs, tried: new Set<string>(), attempts: 0 };
    for (;;) {
      request.signal?.throwIfAborted();
      this.#checkOpen();
      const attempt = await this.#attempt(sending);
      const waitMs = attempt.kind === "failed"
        ? this.#afterFailure(sending)
        : this.#afterAnswer(attempt, sending);
      const isLate = waitMs !== null && host.nowMs() + waitMs >= sending.untilMs;
      if (waitMs === null || isLate) {
        if (attempt.kind === "failed") throw attempt.error;
        return attempt.answer;
      }
      if (attempt.kind === "answer") void attempt.answer.body?.cancel();
      if (waitMs > 0) await this.#pause(waitMs, request.signal);
    }
  }

  /** Returns the tokens that a socket presents at a site. @throws Error where the site gives no token. */
  async tokensAt(site: KnownSite): Promise<readonly string[]> {
    const refusal = await this.#session(site, null);
    if (refusal === null) return this.#parts.tokens.presented.tokens;
    throw new Error(`${site.url} answered ${refusal.status} and no token`);
  }

  /** Asks a site whether it takes the tokens: where it does not, another session is begun. */
  async checkTokens(site: KnownSite): Promise<void> {
    const { tokens, begunAnew } = this.#parts;
    const presented = tokens.presented;
    if (presented.tokens.length === 0) return;
    const refusal = await this.#ask(site, presented).catch(() => null);
    const verdict = refusal === null ? null : await verdictOf(refusal);
    if (verdict?.kind !== "session" || tokens.presented.session !== presented.session) return;
    tokens.clear();
    begunAnew(verdict.code);
  }

  async #attempt(sending: Sending): Promise<Attempt> {
    const { watch, choice, site: siteOf } = this.#parts;
    const site = siteOf(sending.tried);
    sending.attempts++;
    watch.tick(site.url);
    const { signal } = sending.request;
    try {
      const answer = await this.#session(site, signal) ?? await this.#send(sending.request, site);
      const verdict = await verdictOf(answer);
      this.#judge(verdict, site, sending);
      return { kind: "answer", answer, verdict };
    } catch (error) {
      if (signal?.aborted === true || this.#parts.closed.aborted) throw error;
      // A connection that broke is no dead site: it may have been an old connection, and the site be there again.
      const isAlive = choice.sites.find(({ url }) => url === site.url)?.state !== "dead" &&
        await watch.isAlive(site.url);
      const isLeft = !isAlive || sending.attempts > 1 || choice.isCutOff(site.url, this.#parts.host.nowMs());
      if (isLeft) sending.tried.add(site.url);
      if (!isAlive) watch.lost();
      return { kind: "failed", error };
    }
  }

  /** Notes what an answer says of its site. */
  #judge(verdict: AnswerVerdict, site: KnownSite, sending: Sending): void {
    const { choice, host, tokens, begunAnew } = this.#parts;
    if (verdict.kind === "away") choice.away(site.url, host.nowMs());
    // Another site may reach what this one cannot; a first time the site is given a moment.
    const isStuck = verdict.kind === "later" && (verdict.isBusy || sending.attempts > 1);
    if (verdict.kind === "away" || isStuck) sending.tried.add(site.url);
    if (sending.tried.size >= choice.sites.length) sending.tried.clear();
    if (verdict.kind === "session" && tokens.size > 0) {
      tokens.clear();
      begunAnew(verdict.code);
    }
  }

  /** Returns how long to wait before the next attempt, in milliseconds; null: there is none (A2). */
  #afterAnswer({ verdict }: Extract<Attempt, { kind: "answer" }>, sending: Sending): number | null {
    const { isRepeatable, isWhole } = sending.request;
    switch (verdict.kind) {
      case "answer":
        return null;
      case "away":
        return isWhole ? this.#untilNext(sending) : null;
      case "session":
        return isWhole && sending.attempts < 3 ? 0 : null;
      case "later":
        return isRepeatable ? verdict.waitMs : null;
    }
  }

  /** Returns how long to wait before the next attempt, as {@link #afterAnswer}. */
  #afterFailure(sending: Sending): number | null {
    return sending.request.isRepeatable ? this.#untilNext(sending) : null;
  }

  /** Returns the wait before the next attempt: none where another site is left, else a pause. */
  #untilNext(sending: Sending): number {
    const { choice, host } = this.#parts;
    const isLeft = choice.sites.some(({ url, state }) => !sending.tried.has(url) && state !== "dead");
    if (isLeft) return 0;
    sending.tried.clear();
    const pause = Math.min(limits.PAUSE_MS * 2 ** Math.min(sending.attempts, 8), limits.PAUSE_MS_MAX);
    return Math.max(pause, Math.min(choice.waitMs(host.nowMs()), limits.PAUSE_MS_MAX));
  }

  /**
   * Makes sure that there is a token to present, and not too many (token_set.ts, S2, S3).
   *
   * @returns the site's answer where it gave no token; null: there is one.
   */
  async #session(site: KnownSite, signal: AbortSignal | null): Promise<Response | null> {
    const { tokens } = this.#parts;
    for (;;) {
      const surplus = tokens.surplus;
      if (tokens.size > 0 && surplus.tokens.length === 0) return null;
      this.#starting ??= this.#ask(site, surplus).finally(() => this.#starting = null);
      const refusal = await abortable(this.#starting, signal);
      if (refusal !== null) return refusal.clone();
    }
  }

  /** Asks a site for one token in the place of some, or of none. @returns its answer where it gave no token. */
  async #ask(site: KnownSite, presented: Presented): Promise<Response | null> {
    const { tokens } = this.#parts;
    const headers: Record<string, string> = presented.tokens.length === 0
      ? {}
      : { [SESSION]: presented.tokens.join(", ") };
    const url = platformUrl(site.url, "session");
    return await within(this.#parts.host, { ms: limits.TOKEN_MS }, async (signal) => {
      const init: RequestInit = { headers, cache: "no-store" };
      const answer = await this.#guarded(site, url, init, { signal, isRepeatable: true });
      const token = answer.headers.get(SESSION);
      if (answer.status !== 204 || token === null) {
        // Read whole, since several requests may be waiting for it.
        const { status, headers } = answer;
        return new Response(await answer.text(), { status: status === 204 ? 502 : status, headers });
      }
      tokens.answered(presented, token);
      return null;
    });
  }

  async #send(request: AppRequest, site: KnownSite): Promise<Response> {
    const { path, method, headers, init, isShort } = request;
    const { host, tokens, choice } = this.#parts;
    const presented = tokens.presented;
    const told = new Headers(headers);
    told.set("sojourn-timing", "1");
    if (presented.tokens.length > 0) told.set(SESSION, presented.tokens.join(", "));
    const begunMs = host.nowMs();
    const answer = await this.#guarded(site, site.url + path, { ...init, method, headers: told }, request);
    const ms = isShort ? wayMs(answer.headers, { ms: host.nowMs() - begunMs, site: site.id }) : null;
    if (answer.status !== 503) {
      choice.answered(site.url, ms, ms === null ? null : answer.headers.get("sojourn-site"));
    }
    const token = answer.headers.get(SESSION);
    if (token !== null) {
      tokens.answered(presented, token);
      await this.#parts.kept(); // what is shown is known to the next page too
    }
    return answer;
  }

  /** Sends a request, and gives it up when the site does not live any more (A4). */
  async #guarded(
    site: KnownSite,
    url: string,
    init: RequestInit,
    { signal, isRepeatable }: Pick<AppRequest, "signal" | "isRepeatable">,
  ): Promise<Response> {
    const { host, watch, choice, closed } = this.#parts;
    const dead = new AbortController();
    let cancel = () => {};
    let isOver = false;
    const look = () =>
      cancel = host.after(limits.UNANSWERED_MS, () => {
        look();
        void watch.isAlive(site.url).then((isAlive) => {
          if (isOver) return;
          if (!isAlive) dead.abort(new TypeError(`${site.url} does not answer any more`));
          // The site may wait for others in vain, and another site need not.
          else if (isRepeatable && choice.isCutOff(site.url, host.nowMs())) {
            dead.abort(new TypeError(`${site.url} reaches no other site`));
          }
        });
      });
    look();
    try {
      const signals = [dead.signal, closed, ...signal === null ? [] : [signal]];
      return await host.fetch(url, { ...init, signal: AbortSignal.any(signals) });
    } finally {
      isOver = true; // what streams after the head is the caller's
      cancel();
    }
  }

  #pause(ms: number, signal: AbortSignal | null): Promise<void> {
    const { host, closed } = this.#parts;
    const over = Promise.withResolvers<void>();
    const cancel = host.after(ms, over.resolve);
    const stop = () => {
      cancel();
      over.resolve();
    };
    for (const each of [closed, signal]) each?.addEventListener("abort", stop, { once: true });
    return over.promise.finally(() => {
      for (const each of [closed, signal]) each?.removeEventListener("abort", stop);
    });
  }

  #checkOpen(): void {
    if (this.#parts.closed.aborted) {
      throw new ClientError("closed", "can't send a request: the client is closed");
    }
  }
}

/** Waits for a result that others wait for too, until the caller gives up. */
async function abortable<T>(wanted: Promise<T>, signal: AbortSignal | null): Promise<T> {
  if (signal === null) return await wanted;
  const over = Promise.withResolvers<never>();
  const stop = () => over.reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([wanted, over.promise]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
