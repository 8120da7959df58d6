/**
 * Calls that a stateful session makes, made by its home: reads and checked writes of the store, outside requests, calls
 * of other stateful sessions.
 *
 * M1  A call ends with an outcome, whatever happens.
 * M2  A call with an effect is made again with the same key after a recovery: an outside request carries it as its
 *     `Idempotency-Key` (runtime/stateful/outside_requests.ts), a call of another stateful session as its request's id. The session that is called keeps its
 *     answer until the caller's log has it.
 */
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
import { CodecError } from "../../../store/model/codec.ts";
import type { Making, OutsideRequests } from "./ports.ts";
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
