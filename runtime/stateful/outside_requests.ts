/**
 * Outside requests of stateful sessions, made by the site of their home, or by way of the origin that their class names
 * (runtime/origins).
 */
import {
  type Call,
  type CallOutcome,
  decodeOutside,
  encodeOutsideAnswer,
} from "../../functions/sessions/turn/mod.ts";
import { CALL_BODY_BYTES_MAX, decodeCall, encodeAnswer } from "../../functions/calls/call.ts";
import { Writer } from "../../store/model/codec.ts";
import { fetchOutside } from "../isolate/egress.ts";
import type { EgressRules } from "../isolate/egress_rules.ts";
import { FetchRefused, type OutgoingResponse } from "../isolate/outgoing_http.ts";
import type { OutsideRequests } from "../../functions/sessions/serve/ports.ts";

/** Server that a class names as its origin, reached by way of the root (origins/http_origins.ts). */
export interface HttpOrigin {
  /** Origin, as `URL.origin` has it. */
  readonly origin: string;
  /** Makes a request. @param key null: the request has no effect. */
  fetch(call: Call, key: string | null, signal: AbortSignal): Promise<CallOutcome>;
}

/** Returns what makes the requests of a session whose class has that origin; null: it has none. */
export const outsideRequests = (egress: EgressRules, origin: HttpOrigin | null): OutsideRequests => ({
  fetch: async (call, key, signal) => {
    if (origin !== null && isTo(origin.origin, call)) return await origin.fetch(call, key, signal);
    return { ok: true, bytes: await fetchFor({ egress, key, signal }, call) };
  },
});

function isTo(origin: string, { bytes }: Call): boolean {
  const { call } = decodeOutside(bytes);
  const wanted = decodeCall(call);
  return wanted.kind === "fetch" && URL.canParse(wanted.url) && new URL(wanted.url).origin === origin;
}

/** Largest number of redirects, as the standard has it: a loop beyond. */
const REDIRECTS_MAX = 20;

/** Way in which an outside request is made. */
export interface OutsideMaking {
  readonly egress: EgressRules;
  /** Key of the request, for ever (functions/sessions/serve/made_calls.ts, M2); null: it has no effect. */
  readonly key: string | null;
  readonly signal: AbortSignal;
}

/** Makes an outside request from this site. @throws FetchRefused, TypeError */
export async function fetchFor({ egress, key, signal }: OutsideMaking, call: Call): Promise<Uint8Array> {
  const { redirect, call: bytes } = decodeOutside(call.bytes);
  const wanted = decodeCall(bytes);
  if (wanted.kind !== "fetch") {
    throw new FetchRefused("fetch_refused", "an outside request is no method call");
  }
  const headers = wanted.headers.map(([name, value]): [string, string] => [name, value]);
  if (key !== null && !headers.some(([name]) => name.toLowerCase() === "idempotency-key")) {
    headers.push(["idempotency-key", key]); // M2
  }
  const how = redirect === "follow" && wanted.body !== null ? "replay" : redirect;
  let url = wanted.url;
  for (let step = 0; step <= REDIRECTS_MAX; step++) {
    const body = wanted.body === null ? null : new Blob([wanted.body as Uint8Array<ArrayBuffer>]).stream();
    const { method } = wanted;
    const got = await fetchOutside({ method, url, headers, body, signal }, how, egress);
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
