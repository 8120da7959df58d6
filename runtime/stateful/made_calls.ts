/**
 * Calls that a stateful session makes, made by its home: reads and checked writes of the store, outside requests, calls
 * of other stateful sessions.
 *
 * M1  A call ends with an outcome, whatever happens.
 * M2  A call with an effect is made again with the same key after a recovery: an outside request carries it as its
 *     `Idempotency-Key`, a call of another stateful session as its request's id. The session that is called keeps its
 *     answer until the caller's log has it.
 */
import {
  type Call,
  type CallOutcome,
  type CallToSession,
  decodeCallToSession,
  decodeGet,
  decodeList,
  decodeOutside,
  decodeStoreCommit,
  encodeCommitResult,
  encodeOutsideAnswer,
  encodePage,
  encodeRows,
} from "../../functions/sessions/turn/mod.ts";
import { CALL_BODY_BYTES_MAX, decodeCall, encodeAnswer } from "../../functions/calls/call.ts";
import type { KeptAnswer } from "../../functions/sessions/serve/request.ts";
import { CodecError, Writer } from "../../store/model/codec.ts";
import { fetchOutside } from "../isolate/egress.ts";
import type { EgressRules } from "../isolate/egress_rules.ts";
import { FetchRefused, type OutgoingResponse } from "../isolate/outgoing_http.ts";
import type { CallMaker, Making } from "../../functions/sessions/serve/ports.ts";
import type { OwnStore } from "../../functions/sessions/serve/own_store.ts";

/** Stateful session and its site, as making calls needs them. */
export interface CallingSession {
  readonly store: OwnStore;
  readonly egress: EgressRules;
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
  /** HTTP origin of the class; null: it has none. */
  readonly origin: HttpOrigin | null;
}

/** Server that a class names as its origin, reached by way of the root (origins/http_origins.ts). */
export interface HttpOrigin {
  /** Origin, as `URL.origin` has it. */
  readonly origin: string;
  /** Makes a request. @param key null: the request has no effect. */
  fetch(call: Call, key: string | null, signal: AbortSignal): Promise<CallOutcome>;
}

/** Returns the maker of one session's calls. */
export const callMaker = (session: CallingSession): CallMaker => ({
  keyOf: (effect) => session.keyOf(effect),
  make: (call, making) => makeCall(session, call, making),
});

/** Makes a call (M1). */
export async function makeCall(maker: CallingSession, call: Call, making: Making): Promise<CallOutcome> {
  try {
    const { origin } = maker, { signal } = making;
    if (origin !== null && call.kind === "fetch" && isTo(origin.origin, call)) {
      return await origin.fetch(call, call.effect === null ? null : maker.keyOf(call.effect), signal);
    }
    return { ok: true, bytes: await make(maker, call, making) };
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

function isTo(origin: string, { bytes }: Call): boolean {
  const { call } = decodeOutside(bytes);
  const wanted = decodeCall(call);
  return wanted.kind === "fetch" && URL.canParse(wanted.url) && new URL(wanted.url).origin === origin;
}

async function make(
  maker: CallingSession,
  call: Call,
  { signal, kept }: Making,
): Promise<Uint8Array> {
  const { store } = maker;
  switch (call.kind) {
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
    case "fetch":
      return await fetchFor({ egress: maker.egress, keyOf: (effect) => maker.keyOf(effect), signal }, call);
  }
}

/** Largest number of redirects, as the standard has it: a loop beyond. */
const REDIRECTS_MAX = 20;

/** Makes an outside request from this site. @throws FetchRefused, TypeError */
export async function fetchFor(
  maker: Pick<CallingSession, "egress" | "keyOf"> & { readonly signal: AbortSignal },
  call: Call,
): Promise<Uint8Array> {
  const { redirect, call: bytes } = decodeOutside(call.bytes);
  const wanted = decodeCall(bytes);
  if (wanted.kind !== "fetch") {
    throw new FetchRefused("fetch_refused", "an outside request is no method call");
  }
  const headers = wanted.headers.map(([name, value]): [string, string] => [name, value]);
  if (call.effect !== null && !headers.some(([name]) => name.toLowerCase() === "idempotency-key")) {
    headers.push(["idempotency-key", maker.keyOf(call.effect)]); // M2
  }
  const how = redirect === "follow" && wanted.body !== null ? "replay" : redirect;
  let url = wanted.url;
  for (let step = 0; step <= REDIRECTS_MAX; step++) {
    const body = wanted.body === null ? null : new Blob([wanted.body as Uint8Array<ArrayBuffer>]).stream();
    const { method } = wanted;
    const got = await fetchOutside({ method, url, headers, body, signal: maker.signal }, how, maker.egress);
    const location = got.response.headers.find(([name]) => name.toLowerCase() === "location")?.[1];
    const isReplayed = how === "replay" && [307, 308].includes(got.response.status) && location !== undefined;
    if (!isReplayed) {
      const answer = encodeAnswer({ kind: "response", ...await wholeResponse(got.response, url) });
      return encodeOutsideAnswer({ url: got.url, answer });
    }
    await got.response.body?.cancel();
    url = new URL(location, got.url).href;
  }
  throw new FetchRefused("fetch_failed", `fetch: more than ${REDIRECTS_MAX} redirects`);
}

/** Returns a whole answer, bounded: it goes into a log. */
async function wholeResponse({ status, statusText, headers, body }: OutgoingResponse, url: string) {
  const writer = new Writer(4096);
  for await (const chunk of body ?? []) {
    if (writer.length + chunk.length > CALL_BODY_BYTES_MAX) {
      throw new FetchRefused(
        "limit_body",
        `fetch(${
          new URL(url).host
        }): an answer to a stateful session has at most ${CALL_BODY_BYTES_MAX} bytes`,
      );
    }
    writer.raw(chunk);
  }
  return { status, statusText, headers, body: body === null ? null : writer.done() };
}
