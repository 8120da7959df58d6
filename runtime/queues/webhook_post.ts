/**
 * One post of a message to the endpoint of its queue, by Standard Webhooks 1.0.0, and what its answer says.
 *
 * Life: the message is signed → posted to a checked address → the head of the answer decides → of an answer that
 * refuses, the beginning is read as the reason.
 *
 * WP1 A message has the same `webhook-id` at each try, whatever its sender called it: characters that a header can't
 *     carry, and full stops, which end the id in what is signed, are written as in a URL.
 * WP2 A post goes where a fetch to that host may go (isolate/egress_rules.ts), and follows no redirect.
 * WP3 Whatever an endpoint does, its post is over in its time, and no more than ANSWER_KEPT_BYTES of an answer are kept.
 * WP4 What is told of an answer is one line without control characters.
 */
import type { MessageEnvelope } from "../../functions/queues/envelope.ts";
import { messageOf } from "../isolate/bodies.ts";
import type { EgressRules } from "../isolate/egress_rules.ts";
import {
  FetchRefused,
  type OutgoingRequest,
  type OutgoingResponse,
  sendChecked,
} from "../isolate/outgoing_http.ts";
import { shownBody } from "./outside_message.ts";

/** Endpoint that is posted to. */
export interface Endpoint {
  readonly url: string;
  readonly timeoutMs: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** Message as it is posted: all that no try changes. */
export interface PostedMessage {
  /** Id by which the receiver knows the message (WP1). */
  readonly id: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON: what a pull shows as the body. */
  readonly payload: string;
}

/** What became of a post. */
export type PostOutcome =
  /** The endpoint has taken the message. */
  | { readonly kind: "done" }
  /** It takes nothing for a while. */
  | { readonly kind: "later"; readonly ms: number; readonly error: string }
  /** It is over: 410. */
  | { readonly kind: "gone"; readonly error: string }
  | { readonly kind: "failed"; readonly code: PostFailure; readonly error: string }
  /** It was given up here before anything was heard. */
  | { readonly kind: "aborted" };

/** Kinds of failures, for metrics: few, whatever an endpoint answers. */
export type PostFailure = "refused" | "unreachable" | "timeout" | "redirect" | "status_4xx" | "status_5xx";

/** What a post needs beside the message. */
export interface PostParts {
  readonly endpoint: Endpoint;
  /** Returns the signature of a payload, as `webhook-signature` has it. */
  readonly sign: (id: string, at: Date, payload: string) => string;
  readonly rules: EgressRules;
  readonly nowMs: () => number;
  /** Ends the post before its time. */
  readonly signal: AbortSignal;
}

/** Time in which an endpoint answers where its queue names none: what Standard Webhooks advises. */
export const TIMEOUT_MS = 15_000;
/** Pause that an endpoint may ask for: one that asks for none has one all the same, and nobody's ends a queue. */
export const LATER_MS_MIN = 1_000, LATER_MS_MAX = 3_600_000;
/** Bytes of an answer that are read for the reason: more than any page of a proxy needs to say what it is. */
const ANSWER_KEPT_BYTES = 1_024;
/** Characters of a reason in the app's log; the note of a message that is given up has fewer (functions/queues/limits.ts). */
const REASON_CHARS = 200;
const USER_AGENT = "Sojourn-Webhooks";

const utf8 = new TextEncoder(), strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Returns a message as it is posted. @throws Error for a body that can't be read */
export function postedMessage(tuple: string, envelope: MessageEnvelope): PostedMessage {
  const { format, body } = shownBody(envelope);
  return {
    id: headerId(envelope.id || tuple),
    // The text of JSON goes as it is: numbers that JavaScript can't keep stay what they are.
    payload: envelope.format === "json" ? strictUtf8.decode(envelope.body) : JSON.stringify(body),
    headers: {
      "sojourn-message-format": format,
      ...envelope.trace === "" ? {} : { traceparent: envelope.trace },
    },
  };
}

/** Returns an id as a header carries it; two ids are never written alike (WP1). */
export const headerId = (id: string): string =>
  id.replace(
    /[^\x21-\x7e]|[.%]/gu,
    (char) =>
      Array.from(utf8.encode(char), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(
        "",
      ),
  );

/** Posts a message once. */
export async function post(message: PostedMessage, parts: PostParts): Promise<PostOutcome> {
  const { endpoint, rules, nowMs } = parts;
  if (parts.signal.aborted) return { kind: "aborted" };
  const over = new AbortController();
  const gone = () => over.abort();
  const timer = setTimeout(gone, endpoint.timeoutMs);
  parts.signal.addEventListener("abort", gone);
  try {
    const sending = sendChecked(requestOf(message, parts, over.signal), rules);
    const response = await beforeEnd(sending, over.signal);
    if (response !== null) return await answered(response, nowMs, over.signal);
    // Looking up a name can't be broken off: what comes of it still is dropped.
    sending.then(({ body }) => body?.cancel()).catch(() => {});
    if (parts.signal.aborted) return { kind: "aborted" };
    return { kind: "failed", code: "timeout", error: `no answer within ${endpoint.timeoutMs} ms` };
  } catch (error) {
    const isRefused = error instanceof FetchRefused && error.code === "fetch_refused";
    const told = oneLine(messageOf(error).replace(/^fetch\([^)]*\): /, ""));
    return isRefused
      ? { kind: "failed", code: "refused", error: `refused: ${told}` }
      : { kind: "failed", code: "unreachable", error: told };
  } finally {
    clearTimeout(timer);
    parts.signal.removeEventListener("abort", gone);
    over.abort(); // the connection of an answer that is not read to its end
  }
}

function requestOf(
  { id, headers, payload }: PostedMessage,
  { endpoint, sign, nowMs }: PostParts,
  signal: AbortSignal,
): OutgoingRequest {
  const at = new Date(nowMs()), bytes = utf8.encode(payload);
  const all = {
    "user-agent": USER_AGENT,
    ...endpoint.headers,
    ...headers,
    "accept-encoding": "identity",
    "content-type": "application/json",
    "content-length": `${bytes.length}`,
    "webhook-id": id,
    "webhook-timestamp": `${Math.floor(at.getTime() / 1000)}`,
    "webhook-signature": sign(id, at, payload),
  };
  const body = ReadableStream.from([bytes]);
  return { method: "POST", url: endpoint.url, headers: Object.entries(all), body, signal };
}

/** Resolves with what a promise does, or with null where the signal is first. */
function beforeEnd<T>(waited: Promise<T>, signal: AbortSignal): Promise<T | null> {
  const { promise, resolve, reject } = Promise.withResolvers<T | null>();
  const end = () => resolve(null);
  signal.addEventListener("abort", end, { once: true });
  // The abort of a request is an error of the request, too: that it is over is told.
  waited.then(resolve, (error) => signal.aborted ? resolve(null) : reject(error));
  return promise.finally(() => signal.removeEventListener("abort", end));
}

/** Returns what an answer says; its head decides. */
async function answered(
  response: OutgoingResponse,
  nowMs: () => number,
  signal: AbortSignal,
): Promise<PostOutcome> {
  const { status } = response;
  if (status >= 200 && status < 300) {
    await dropped(response);
    return { kind: "done" };
  }
  if (status >= 300 && status < 400) { // WP2
    await dropped(response);
    return { kind: "failed", code: "redirect", error: `${status}: redirects are not followed` };
  }
  const reason = await beginning(response, signal);
  const error = reason === "" ? `${status}` : `${status}: ${reason}`;
  if (status === 410) return { kind: "gone", error };
  const ms = status === 429 || status === 503 ? retryAfterMs(response, nowMs()) : null;
  if (ms !== null) return { kind: "later", ms, error };
  return { kind: "failed", code: status < 500 ? "status_4xx" : "status_5xx", error };
}

/** Returns the pause that an answer asks for, in seconds or as a date; null: none that can be read. */
function retryAfterMs({ headers }: OutgoingResponse, nowMs: number): number | null {
  const text = headers.find(([name]) => name.toLowerCase() === "retry-after")?.[1]?.trim() ?? "";
  const ms = /^\d{1,15}$/.test(text)
    ? Number(text) * 1000
    : /^[A-Za-z]{3}, [\w: ]+ GMT$/.test(text)
    ? Date.parse(text) - nowMs
    : NaN;
  return Number.isNaN(ms) ? null : Math.min(LATER_MS_MAX, Math.max(LATER_MS_MIN, ms));
}

/** Returns the beginning of an answer's body as one line (WP3, WP4). */
async function beginning({ body }: OutgoingResponse, signal: AbortSignal): Promise<string> {
  if (body === null) return "";
  const reader = body.getReader(), kept = new Uint8Array(ANSWER_KEPT_BYTES);
  let length = 0;
  try {
    while (length < kept.length) {
      const read = await beforeEnd(reader.read(), signal);
      if (read === null || read.done) break;
      const part = read.value.subarray(0, kept.length - length);
      kept.set(part, length);
      length += part.length;
    }
  } catch {
    // What has come by then is the reason.
  }
  await reader.cancel().catch(() => {});
  return oneLine(new TextDecoder().decode(kept.subarray(0, length)));
}

const dropped = ({ body }: OutgoingResponse): Promise<void> =>
  body?.cancel().catch(() => {}) ?? Promise.resolve();

/** Characters that control a terminal or lay out text: what is left of them is one space. */
const LAYOUT = /[\s\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]+/gu;

const oneLine = (text: string): string =>
  text.replace(LAYOUT, " ").trim().slice(0, REASON_CHARS).toWellFormed();
