/**
 * Maker of the calls of one stateful session at its home (made_calls.ts): in its name, and with what it has seen.
 *
 * XS1  A call that was answered was run. Where what the other session had seen has not come here yet, that is not told
 *      in place of the answer (router.ts T7): it is waited for, as a home that is out of reach is.
 */
import { createHash } from "node:crypto";
import type { StatefulName } from "../home/mod.ts";
import type { Call, CallOutcome, CallToSession } from "../turn/mod.ts";
import { StoreUnavailable, type TokenState } from "../../../store/api/api.ts";
import { Problem } from "../../vocabulary/problem.ts";
import type { KeptAnswer } from "./request.ts";
import type { PeerClock } from "../attach/mod.ts";
import { pauseBy } from "./clock.ts";
import { type CallingSession, makeCall } from "./made_calls.ts";
import type { OwnStore } from "./own_store.ts";
import type { CallMaker, Making, OutsideRequests } from "./ports.ts";
import { PASSING_CODES, REACH_MS_MAX } from "./refusals.ts";

/** Milliseconds between tries. Each has waited for some seconds by itself, but for a clock that is wrong. */
const SEE_AGAIN_MS = 100;

/** Site, as calls of its sessions need it. */
export interface CallingSite {
  readonly clock: PeerClock;
  /** Calls another stateful session for one that is at home here. */
  readonly call: (
    from: StatefulName,
    call: CallToSession,
    request: string,
    token: TokenState,
    signal: AbortSignal,
  ) => Promise<KeptAnswer>;
}

/** Session whose calls they are. */
export interface Caller {
  readonly name: StatefulName;
  readonly seed: Uint8Array;
  readonly store: OwnStore;
  readonly outside: OutsideRequests;
}

/** Calls of one session (see the file's header). */
export class SessionCalls implements CallingSession, CallMaker {
  readonly store: OwnStore;
  readonly outside: OutsideRequests;
  readonly #name: StatefulName;
  readonly #seed: Uint8Array;
  readonly #site: CallingSite;

  constructor(site: CallingSite, { name, seed, store, outside }: Caller) {
    this.#site = site;
    this.#name = name;
    this.#seed = seed;
    this.store = store;
    this.outside = outside;
  }

  /**
   * Returns the key of a call. Two UUIDs are longer; what it is made of is drawn once for a session, and numbered by
   * it.
   */
  keyOf(effect: number): string {
    return createHash("sha256").update(this.#seed).update(`${effect}`).digest("hex");
  }

  make(call: Call, making: Making): Promise<CallOutcome> {
    return makeCall(this, call, making);
  }

  async callSession(call: CallToSession, request: string, signal: AbortSignal): Promise<KeptAnswer> {
    const seen = await this.store.token();
    const reply = await this.#site.call(this.#name, call, request, seen, signal);
    if (reply.token !== null) await this.#see(reply.token, signal);
    return reply;
  }

  /** Waits until the session has seen what the one that answered had (XS1). */
  async #see(token: TokenState, signal: AbortSignal): Promise<void> {
    const { clock } = this.#site, untilMs = clock.nowMs() + REACH_MS_MAX;
    for (;;) {
      try {
        return await this.store.see(token);
      } catch (error) {
        if (!(error instanceof StoreUnavailable) || !PASSING_CODES.has(error.code)) throw error;
        if (signal.aborted || clock.nowMs() >= untilMs) {
          throw new Problem("stateful_unreachable", error.message, error.detail);
        }
      }
      await pauseBy(clock, SEE_AGAIN_MS);
    }
  }
}
