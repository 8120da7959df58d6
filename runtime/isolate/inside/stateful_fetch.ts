/**
 * `fetch` inside a stateful session: a call whose answer is in the log, head and body whole.
 *
 * SF1  A request that is no GET or HEAD has an effect: the site makes it when its intent is recorded, and with the
 *      same `Idempotency-Key` when it has to be made again.
 * SF2  The log has what the app got: a body that streams is read to its end first, in both directions.
 */
import { CALL_BODY_BYTES_MAX, decodeAnswer, encodeCall } from "../../../functions/calls/call.ts";
import { decodeOutsideAnswer, encodeOutside } from "../../../functions/sessions/turn/call_bytes.ts";
import { withFixedBoundary } from "../../../functions/sessions/turn/form_boundary.ts";
import type { Program } from "../../../functions/sessions/turn/program.ts";
import { fetchedResponse, FetchError } from "./fetched_response.ts";
import type { Current } from "./stateful_current.ts";

const local = globalThis.fetch;

/** Makes the global `fetch` of stateful sessions. */
export function recordedFetch(current: Current): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const { protocol } = new URL(request.url);
    if (protocol === "data:" || protocol === "blob:") return await local.call(globalThis, request);
    const program = current();
    if (program === undefined) {
      throw new TypeError(`fetch(${request.url}) works in a handler, not while a module loads`);
    }
    const headers = [...request.headers] as [string, string][];
    const body = request.body === null ? null : new Uint8Array(await request.arrayBuffer());
    if (body !== null && body.length > CALL_BODY_BYTES_MAX) {
      throw new FetchError(
        "limit_body",
        `fetch(${request.url}): a stateful session sends ${CALL_BODY_BYTES_MAX} bytes at most, this is ${body.length}`,
      );
    }
    if (request.signal.aborted) throw request.signal.reason;
    return await asked(program, request, withFixedBoundary(headers, body));
  };
}

function asked(
  program: Program,
  request: Request,
  { headers, body }: ReturnType<typeof withFixedBoundary>,
): Promise<Response> {
  const { method, url, redirect, signal } = request;
  return new Promise((resolve, reject) => {
    const call = program.call({
      kind: "fetch",
      bytes: encodeOutside({ redirect, call: encodeCall({ kind: "fetch", method, url, headers, body }) }),
      name: `fetch(${url})`,
      done: (bytes) => resolve(responseOf(bytes, url)),
      failed: (code, message) => reject(new FetchError(code, message)),
    }, method !== "GET" && method !== "HEAD");
    signal.addEventListener("abort", () => {
      program.drop(call);
      reject(signal.reason);
    });
  });
}

function responseOf(bytes: Uint8Array, asked: string): Response {
  const { url, answer } = decodeOutsideAnswer(bytes);
  const decoded = decodeAnswer(answer);
  if (decoded.kind !== "response") throw new FetchError("fetch_failed", "what came is no response");
  const { status, statusText, headers, body } = decoded;
  const stream = body === null ? null : new Response(body as Uint8Array<ArrayBuffer>).body;
  return fetchedResponse({ status, statusText, headers: headers as [string, string][] }, stream, {
    url,
    redirected: url !== asked.split("#", 1)[0],
  });
}
