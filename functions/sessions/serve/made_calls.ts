/**
 * Calls that a stateful session makes, made by its home in its name, and with what it has seen: reads and checked
 * writes of the store, outside requests, calls of other stateful sessions.
 *
 * M1  A call ends with an outcome, whatever happens.
 * M2  A call with an effect is made again with the same key after a recovery: an outside request carries it as its
 *     `Idempotency-Key` (runtime/stateful/outside_requests.ts), a call of another stateful session as its request's id.
 *     The session that is called keeps its answer until the caller's log has it.
 * XS1  A call that was answered was run. Where what the other session had seen has not come here yet, that is not told
 *      in place of the answer (router.ts T7): it is waited for, as a home that is out of reach is.
 */
import { createHash } from "node:crypto";
import type { StatefulName } from "../home/mod.ts";
import type { PeerClock } from "../attach/mod.ts";
import {
  type Call,
  type CallKind,
  type CallOutcome,
  type CallToSession,
  decodeCallToSession,
  decodeGet,
  decodeList,
  decodeStoreCommit,
  encodeCommitResult,
  encodePage,
  encodeRows,
} from "../turn/mod.ts";
import type { KeptAnswer } from "./request.ts";
import { StoreUnavailable, type TokenState } from "../../../store/api/api.ts";
import { CodecError } from "../../../store/model/codec.ts";
import { Problem } from "../../vocabulary/problem.ts";
import { pauseBy } from "./clock.ts";
import type { CallMaker, Making, OutsideRequests } from "./ports.ts";
import { PASSING_CODES, REACH_MS_MAX } from "./refusals.ts";
import type { OwnStore } from "./own_store.ts";

/** Stateful session and its site, as making calls needs them. */
export interface CallingSession {
  readonly store: OwnStore;
  readonly outside: OutsideRequests;
  /** Returns the name of a call with an effect: for ever, among all of the cluster's. */
  keyOf(effect: number): string;
  /**
   * Calls another stateful session of the app, which keeps its answer (M2). Where the signal says that nobody waits for
   * the call any more, and it was not begun, it is not begun.
   */
  callSession(
    call: CallToSession,
    request: string,
    signal: AbortSignal,
  ): Promise<Pick<KeptAnswer, "answer" | "heard">>;
}

/** Makes a call (M1). */
export async function makeCall(maker: CallingSession, call: Call, making: Making): Promise<CallOutcome> {
  try {
    if (call.kind !== "fetch") return { ok: true, bytes: await make(maker, call, call.kind, making) };
    const key = call.effect === null ? null : maker.keyOf(call.effect); // M2
    return await maker.outside.fetch(call, key, making.signal);
  } catch (error) {
    return failedCall(error);
  }
}

/** Returns the outcome of a call that was not answered. */
export function failedCall(error: unknown): CallOutcome {
  const { code } = error as { code?: unknown };
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof CodecError) return { ok: false, code: "internal", message };
  return { ok: false, code: typeof code === "string" ? code : "call_failed", message };
}

async function make(
  maker: CallingSession,
  call: Call,
  kind: Exclude<CallKind, "fetch">,
  { signal, kept }: Making,
): Promise<Uint8Array> {
  const { store } = maker;
  switch (kind) {
    case "get": {
      const { keys, level } = decodeGet(call.bytes);
      return encodeRows(await store.get(keys, level));
    }
    case "list":
      return encodePage(await store.list(decodeList(call.bytes)));
    case "commit": {
      const { checks, mutations } = decodeStoreCommit(call.bytes);
      return encodeCommitResult(await store.commit(call.call, checks, mutations));
    }
    case "session": {
      const asked = decodeCallToSession(call.bytes);
      const reply = await maker.callSession(asked, maker.keyOf(call.effect ?? call.call), signal);
      kept(() => reply.heard());
      return reply.answer;
    }
  }
}

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

/** Maker of the calls of one session (see the file's header). */
export class SessionCalls implements CallingSession, CallMaker {
  readonly store: OwnStore;
  readonly outside: OutsideRequests;
  readonly #name: StatefulName;
  readonly #seed: Uint8Array;
  readonly #site: CallingSite;

  constructor(site: CallingSite, { name, seed, store, outside }: {
    readonly name: StatefulName;
    readonly seed: Uint8Array;
    readonly store: OwnStore;
    readonly outside: OutsideRequests;
  }) {
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
