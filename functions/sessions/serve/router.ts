/**
 * Router of calls to the homes of stateful sessions, from wherever they are made; it answers those that other sites
 * bring.
 *
 * A call goes to the site that was its home when last heard of; a site that is not says where it may be, or that it does
 * not know: then this site asks to become it (functions/sessions/home), and is told who is, or serves it itself.
 *
 * T1  A call keeps its request's id from its first attempt to its last: whatever was lost on the way, it is run once.
 * T2  A site that is asked over a link serves what is at home there, and passes nothing on but calls for other sites.
 * T3  A call ends: with an answer, or with a problem that says what its caller can do.
 * T4  Only the first call of a stateful session that nobody can open waits to hear it again. Of a client's calls after it
 *     one tries now and then, once, since each try asks the arbiter for an epoch; the others are told at once what that
 *     one was told.
 * T5  A stateful session that calls another has nobody to ask again for it: when its time is over it asks anew, a few
 *     times, since the answer may be there, and the attempt that waits may be lost with a home, or with minutes that
 *     passed at once.
 * T6  A call that nobody waits for any more is not begun, where it was not: its home is told by the end of the request on
 *     the link. That is so for calls of stateful sessions; what a client asked for may be run when it has gone.
 * T7  A stateful session is never told of a failure that passes: that a site stops, or that the store waits in vain for
 *     a disk, for owners, or for what a session has seen. The session that it called may have run the call before that,
 *     and what the caller is told is in its log for good. It asks anew, at the next home as well.
 */
import { HomeError, type Homes, type StatefulName } from "../home/mod.ts";
import type { PeerClock } from "../attach/mod.ts";
import { chainName } from "../turn/mod.ts";
import { StoreUnavailable } from "../../../store/api/api.ts";
import { CodecError } from "../../../store/model/codec.ts";
import {
  hopTowards,
  type LinkReply,
  type LinkRequest,
  type RequestLinks,
  type SiteTree,
} from "../../vocabulary/site_links.ts";
import { isProblemCode, Problem } from "../../vocabulary/problem.ts";
import type { Answered, KeptAnswer, StatefulRequest } from "./request.ts";
import { pauseBy } from "./clock.ts";
import {
  bodyOf,
  CHAIN_MAX,
  decodeForwarded,
  decodeHeard,
  decodeReply,
  encodeForwarded,
  encodeForwardedReply,
  type ForwardedCall,
  type ForwardedReply,
  type Framed,
  readBody,
} from "./forwarded.ts";
import { HOPS_MAX } from "./limits.ts";
import { Hearing } from "./hearing.ts";
import { mapKey, shownSession } from "./session_name.ts";
import { PASSING_CODES, REACH_MS_MAX } from "./refusals.ts";
import type { SessionHost } from "./session_host.ts";
import { WHERE_KIND, type Whereabouts } from "./whereabouts.ts";
import {
  type CallWait,
  decodeWaits,
  decodeWaitsAsked,
  encodeWaits,
  encodeWaitsAsked,
  NO_WAITS,
  type WaitedCall,
  type WaitsAsked,
} from "./waits.ts";

/** Site, as bringing calls needs it. */
export interface RouterServices {
  readonly site: string;
  readonly homes: Pick<Homes, "where" | "misled">;
  readonly host: Pick<SessionHost, "request" | "received" | "waits">;
  readonly links: RequestLinks;
  /** Way to ask other sites where the arbiter does not answer; left out: none are asked. */
  readonly whereabouts?: Pick<Whereabouts, "meanwhile" | "serve">;
  readonly sites: () => SiteTree;
  /** Draws a new request's id. */
  readonly draw: () => string;
  readonly wallMs: number;
  readonly count: (what: "here" | "there" | "served" | "retried") => void;
  readonly clock: PeerClock;
}

/** Kinds of the requests on the links: calls, word of answers that arrived, what calls wait for, which site is a home. */
export const STATEFUL_KIND = "stateful";
const HEARD_KIND = "stateful-heard";
const WAITS_KIND = "stateful-waits";
const KINDS: ReadonlySet<string> = new Set([STATEFUL_KIND, HEARD_KIND, WAITS_KIND, WHERE_KIND]);
/** Reports whether a request on a link is for the router. */
export const isForRouter = (kind: string): boolean => KINDS.has(kind);

/** Milliseconds for an answer on what a call waits for: where it is known it is known at once. */
const WAITS_MS_MAX = 500;
/** Times that a call is sent on to where its stateful session is said to be, before it is begun anew. */
const TURNS_MAX = 4;
/** Milliseconds after which a word that nobody can take the session over is believed. */
const UNREACHABLE_MS_MAX = 3_000;
/**
 * Milliseconds for which calls are told at once that a session is unreachable, as long as they come this often (T4).
 */
const KNOWN_MS = 10_000;
/** Milliseconds between tries: the session is served later by so much when its home is back. */
const TRY_MS = 500;
/** Names that are known to be unreachable: 300 bytes each at most. */
const KNOWN_MAX = 10_000;
/** Milliseconds of a further attempt (T5): a home is opened within that, and an answer that it keeps is a trip away. */
const LAST_MS = 2_000;
/** Further attempts (T5): a site that takes over a home that was lost has done so by then. */
const LAST_TIMES = 4;
/**
 * Milliseconds of pauses between attempts. A move, or a takeover by a standby, is a matter of milliseconds; a takeover
 * by suspicion one of seconds.
 */
const RETRY_MS_MIN = 5, RETRY_MS_MAX = 100;

/** Router of calls (see the file's header). */
export class StatefulRouter {
  readonly #services: RouterServices;
  readonly #hearing: Hearing;
  readonly #clock: PeerClock;
  /** Sessions that are unreachable, by name; those of which that was told last come last (T4). */
  readonly #unreachable = new Map<string, { readonly message: string; untilMs: number; triedMs: number }>();

  constructor(services: RouterServices) {
    this.#services = services;
    this.#clock = services.clock;
    this.#hearing = new Hearing(
      (site, head) => services.links.request(site, HEARD_KIND, head),
      this.#clock,
    );
  }

  close(): void {
    this.#hearing.close();
  }

  call({ address, call, token, once }: StatefulRequest): Promise<Answered> {
    const request = once ?? this.#services.draw(); // T1
    return this.ask({ name: address, request, chain: [], token, call }, once !== undefined);
  }

  /**
   * Has a call run, wherever its session's home is.
   *
   * @param isKept true where it may be sent with the same id again: the answer is kept for as long as answers are, or
   * until it is said to be heard.
   * @param gone aborted when the caller waits no longer (T6).
   * @throws Problem (T3)
   */
  async ask(
    asked: Omit<ForwardedCall, "to" | "hops">,
    isKept = false,
    gone?: AbortSignal,
  ): Promise<KeptAnswer> {
    if (asked.chain.includes(chainName(asked.name.class, asked.name.id)) || asked.chain.length >= CHAIN_MAX) {
      throw new Problem(
        "cycle",
        `${shownSession(asked.name)} waits for this call itself: ${asked.chain.join(" → ")}`,
      );
    }
    const begunMs = this.#clock.nowMs(), known = this.#known(asked.name);
    if (known !== null && asked.chain.length === 0) {
      if (begunMs < known.triedMs + TRY_MS) throw new Problem("stateful_unreachable", known.message);
      known.triedMs = begunMs;
    }
    let late = this.#limit(this.#services.wallMs);
    let left = asked.chain.length > 0 ? LAST_TIMES : 0;
    const leave = () => late.leave();
    gone?.addEventListener("abort", leave, { once: true });
    try {
      for (let pauseMs = RETRY_MS_MIN;; pauseMs = Math.min(2 * pauseMs, RETRY_MS_MAX)) {
        if (gone?.aborted) {
          throw new Problem("superseded", `nobody waits for this call of ${shownSession(asked.name)}`);
        }
        const { reply, at } = await this.#attempt(asked, late.signal);
        if (reply.kind === "answer") {
          this.#unreachable.delete(mapKey(asked.name));
          const heard = () => this.#heard(at, asked);
          if (!isKept) heard();
          return { answer: reply.answer, token: reply.token, heard };
        }
        if (late.signal.aborted && left > 0 && gone?.aborted !== true) { // T5
          left--;
          late.cancel();
          late = this.#limit(LAST_MS);
          continue;
        }
        if (reply.kind === "problem") {
          // T7
          const isAnew = asked.chain.length > 0 && PASSING_CODES.has(reply.code);
          const told = isAnew ? { ...reply, code: "superseded_home" } : reply;
          this.#giveUp(asked.name, told, this.#clock.nowMs() - begunMs, late.signal);
        }
        this.#services.count("retried");
        await pauseBy(this.#clock, pauseMs);
      }
    } finally {
      gone?.removeEventListener("abort", leave);
      late.cancel();
    }
  }

  /** Returns what a call waits for, wherever it is; nothing where that can't be asked (waits.ts, W3). */
  async waitsOf(call: WaitedCall): Promise<CallWait> {
    const { site, homes, host } = this.#services;
    const to = homes.where(call.name);
    if (to === site) return host.waits(call.name, call.request);
    if (to === null || to === undefined) return NO_WAITS;
    const late = this.#limit(WAITS_MS_MAX);
    try {
      return await this.#askWaits({ ...call, to, hops: HOPS_MAX }, late.signal);
    } catch {
      return NO_WAITS; // a site of the version before does not know the question
    } finally {
      late.cancel();
    }
  }

  async #askWaits(asked: WaitsAsked, signal: AbortSignal): Promise<CallWait> {
    const answer = await this.#request(
      asked.to,
      WAITS_KIND,
      { head: encodeWaitsAsked(asked), body: null },
      signal,
    );
    return decodeWaits(answer.head, asked.name.app);
  }

  async #serveWaits({ head, signal }: LinkRequest): Promise<LinkReply> {
    const asked = decodeWaitsAsked(head), { site, host } = this.#services;
    if (asked.to === site) return { head: encodeWaits(host.waits(asked.name, asked.request)) };
    if (asked.hops <= 0) return { head: encodeWaits(NO_WAITS) };
    return { head: encodeWaits(await this.#askWaits({ ...asked, hops: asked.hops - 1 }, signal)) };
  }

  #limit(
    ms: number,
  ): { readonly signal: AbortSignal; readonly cancel: () => void; readonly leave: () => void } {
    const late = new AbortController();
    const leave = () => late.abort();
    return { signal: late.signal, cancel: this.#clock.after(ms, leave), leave };
  }

  /** Gives a call up where trying again has no use (T3). @throws Problem then. */
  #giveUp(
    name: StatefulName,
    problem: Extract<ForwardedReply, { kind: "problem" }>,
    ms: number,
    late: AbortSignal,
  ): void {
    const { code, message } = problem;
    if (late.aborted) {
      throw new Problem("wall_time", `a stateful session gave no answer in ${this.#services.wallMs} ms`);
    }
    const mayWaitMs = code === "superseded_home"
      ? REACH_MS_MAX
      : code === "stateful_unreachable" && this.#known(name) === null
      ? UNREACHABLE_MS_MAX
      : 0;
    if (ms < mayWaitMs) return;
    if (code === "stateful_unreachable") this.#learn(name, message);
    if (code === "superseded_home") throw new Problem("stateful_unreachable", message);
    throw new Problem(isProblemCode(code) ? code : "internal", message);
  }

  /** Returns what is known of a session that is unreachable (T4). */
  #known(name: StatefulName) {
    const known = this.#unreachable.get(mapKey(name));
    return known !== undefined && this.#clock.nowMs() < known.untilMs ? known : null;
  }

  /** Notes that a session is unreachable (T4). */
  #learn(name: StatefulName, message: string): void {
    const key = mapKey(name), nowMs = this.#clock.nowMs();
    this.#unreachable.delete(key);
    this.#unreachable.set(key, { message, untilMs: nowMs + KNOWN_MS, triedMs: nowMs });
    for (const oldest of this.#unreachable.keys()) {
      if (this.#unreachable.size <= KNOWN_MAX) break;
      this.#unreachable.delete(oldest);
    }
  }

  /** Answers a call of another site. */
  async serve(request: LinkRequest): Promise<LinkReply> {
    if (request.kind === HEARD_KIND) {
      for (const { name, request: heard } of decodeHeard(request.head)) {
        this.#services.host.received(name, heard);
      }
      return { head: new Uint8Array() };
    }
    if (request.kind === WAITS_KIND) return await this.#serveWaits(request);
    if (request.kind === WHERE_KIND) {
      return this.#services.whereabouts?.serve(request) ?? { head: new Uint8Array() };
    }
    const reply = await this.#served(request);
    const { head, body } = encodeForwardedReply(reply);
    return { head, body: bodyOf(body) };
  }

  async #served(request: LinkRequest): Promise<ForwardedReply> {
    try {
      const call = decodeForwarded(request.head, await readBody(request.body));
      this.#services.count("served");
      const { site, homes } = this.#services;
      if (call.to !== site) { // T2
        // A call that can't be passed on is as one that its sender could not send.
        if (call.hops <= 0) return { kind: "elsewhere", site: "" };
        return await this.#there(call.to, { ...call, hops: call.hops - 1 }, request.signal);
      }
      const at = homes.where(call.name);
      if (at !== site) return { kind: "elsewhere", site: at ?? "" };
      const reply = await this.#here(call, request.signal);
      // A site that stops is no reason to refuse the call: another takes the session over.
      const isClosing = reply.kind === "problem" && reply.code === "draining";
      return isClosing ? { ...reply, code: "superseded_home" } : reply;
    } catch (error) {
      if (error instanceof CodecError) {
        return problem("internal", `a call that cannot be read: ${error.message}`);
      }
      return problem("internal", error instanceof Error ? error.message : String(error));
    }
  }

  async #attempt(
    asked: Omit<ForwardedCall, "to" | "hops">,
    late: AbortSignal,
  ): Promise<{ readonly reply: ForwardedReply; readonly at: string }> {
    const { site, homes } = this.#services;
    let at = homes.where(asked.name) ?? site;
    let reply: ForwardedReply = { kind: "elsewhere", site: "" };
    for (let turn = 0; turn < TURNS_MAX; turn++) {
      reply = at === site
        ? await this.#hereOrElsewhere(asked, late)
        : await this.#there(at, { ...asked, to: at, hops: HOPS_MAX }, late);
      if (reply.kind !== "elsewhere") return { reply, at };
      if (at !== site) homes.misled(asked.name);
      at = reply.site === "" || reply.site === at ? site : reply.site;
    }
    reply = problem(
      "superseded_home",
      `${shownSession(asked.name)} has no home that is reached from ${site}`,
    );
    return { reply, at };
  }

  /** Notes that nobody will ask for this answer again: the caller, at this site, has it. */
  #heard(at: string, { name, request }: Pick<ForwardedCall, "name" | "request">): void {
    if (at === this.#services.site) this.#services.host.received(name, request);
    else this.#hearing.add(at, { name, request });
  }

  /**
   * Runs a call here; or returns where the home is, where others know that before the arbiter does (whereabouts.ts).
   */
  async #hereOrElsewhere(
    asked: Omit<ForwardedCall, "to" | "hops">,
    late: AbortSignal,
  ): Promise<ForwardedReply> {
    const { whereabouts, homes, site } = this.#services;
    const isHome = homes.where(asked.name) === site;
    const here = timely(this.#here(asked, late), late);
    if (isHome || whereabouts === undefined) return await here;
    const elsewhere = whereabouts.meanwhile(asked.name, here).then((at): Promise<ForwardedReply> =>
      at === null ? here : Promise.resolve({ kind: "elsewhere", site: at })
    );
    return await Promise.race([here, elsewhere]);
  }

  /** Runs a call here, where this site is the session's home or becomes it. */
  async #here(
    asked: Omit<ForwardedCall, "to" | "hops">,
    signal: AbortSignal,
  ): Promise<ForwardedReply> {
    this.#services.count("here");
    const { request, chain, token, call: bytes } = asked;
    try {
      const { answer, token: seen } = await this.#services.host.request(asked.name, {
        ...{ request, chain, bytes, token, signal },
      });
      return { kind: "answer", answer, token: seen };
    } catch (error) {
      return replyOf(error);
    }
  }

  async #there(at: string, call: ForwardedCall, late: AbortSignal): Promise<ForwardedReply> {
    this.#services.count("there");
    try {
      return await this.#send(at, call, late);
    } catch (error) {
      // Only the arbiter can say whether it lives: this site asks to become the home in its place.
      if (late.aborted) return problem("wall_time", String(error));
      return { kind: "elsewhere", site: "" };
    }
  }

  /**
   * Sends a call straight to the site, or along the tree where it can't be reached so. @throws LinkError, CodecError
   */
  async #send(to: string, call: ForwardedCall, signal: AbortSignal): Promise<ForwardedReply> {
    const answer = await this.#request(to, STATEFUL_KIND, encodeForwarded(call), signal);
    return decodeReply(answer.head, await readBody(answer.body));
  }

  #request(to: string, kind: string, { head, body }: Framed, signal: AbortSignal) {
    const { links, sites, site } = this.#services;
    const next = hopTowards(sites(), site, to);
    const send = (hop: string) => links.request(hop, kind, head, { body: bodyOf(body), signal });
    return send(to).catch((error) => {
      if (next === null || next === to || (error as { code?: unknown }).code !== "unreachable") throw error;
      return send(next);
    });
  }
}

const problem = (code: string, message: string): ForwardedReply => ({ kind: "problem", code, message });

/** Bounds the wait for a call that runs here, as for one that runs elsewhere; the call goes on. */
async function timely(reply: Promise<ForwardedReply>, late: AbortSignal): Promise<ForwardedReply> {
  const over = Promise.withResolvers<ForwardedReply>();
  const stop = () => over.resolve(problem("wall_time", "no answer in time"));
  late.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([reply, over.promise]);
  } finally {
    late.removeEventListener("abort", stop);
  }
}

/** Returns what callers are told of a failure. */
export function replyOf(error: unknown): ForwardedReply {
  if (error instanceof HomeError) {
    switch (error.code) {
      case "elsewhere":
        return { kind: "elsewhere", site: error.site ?? "" };
      case "superseded":
      case "ended": // it begins anew with the next
        return problem("superseded_home", error.message);
      case "closed":
        return problem("draining", error.message);
      case "limit_stateful":
      case "overloaded":
        return problem(error.code, error.message);
      case "stateful_unreachable":
      case "arbiter_unreachable":
        return problem("stateful_unreachable", error.message);
    }
  }
  if (error instanceof Problem) return problem(error.code, error.message);
  if (error instanceof StoreUnavailable) return problem(error.code, error.message);
  const { code } = error as { code?: unknown };
  const message = error instanceof Error ? error.message : String(error);
  return problem(typeof code === "string" && isProblemCode(code) ? code : "app_error", message);
}
