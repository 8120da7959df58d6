/**
 * Heads of link requests that carry a call to a stateful session between sites, and the answer to it. A long call or
 * answer travels as the body.
 *
 * F1  Reading throws CodecError for anything that writing does not make.
 * F2  A call says how many links it may still take, and names every stateful session that waits for it.
 */
import type { TokenState } from "../../../store/api/api.ts";
import { CodecError, Reader, Writer } from "../../../store/model/codec.ts";
import { CALL_BYTES_MAX } from "../../calls/call.ts";
import type { StatefulName } from "../home/mod.ts";
import { HOPS_MAX } from "./limits.ts";
import { readToken, writeToken } from "./token_bytes.ts";

/** Length of the longest chain of calls: longer chains are loops that change their ids. */
export const CHAIN_MAX = 16;
/** Bytes of a call or answer that travel in the head, which must fit one record of a link (128 KiB). */
const INLINE_BYTES_MAX = 64 * 1024;

/** A call on its way between sites. */
export interface ForwardedCall {
  readonly name: StatefulName;
  /** Id of the request, drawn by the caller, which asks again with the same one. */
  readonly request: string;
  /** Site that the call is for. */
  readonly to: string;
  readonly hops: number;
  /** Stateful sessions of the app that wait for this call, outermost first (chainName). */
  readonly chain: readonly string[];
  readonly token: TokenState | null;
  readonly call: Uint8Array;
}

/** Reply of a site to a call. */
export type ForwardedReply =
  | { readonly kind: "answer"; readonly answer: Uint8Array; readonly token: TokenState | null }
  /** The session is not at home there; `site`: where it may be, "" where that site does not know. */
  | { readonly kind: "elsewhere"; readonly site: string }
  | { readonly kind: "problem"; readonly code: string; readonly message: string };

/** A head, and the body behind it where there is one. */
export interface Framed {
  readonly head: Uint8Array;
  readonly body: Uint8Array | null;
}

export function encodeForwarded(call: ForwardedCall): Framed {
  const writer = new Writer(512).text(call.name.app).text(call.name.class).text(call.name.id);
  writer.text(call.request).text(call.to).uint(call.hops);
  writer.list(call.chain, (link) => void writer.text(link));
  writeToken(writer, call.token);
  return framed(writer, call.call);
}

/** @throws CodecError (F1) */
export function decodeForwarded(head: Uint8Array, body: Uint8Array | null): ForwardedCall {
  const reader = new Reader(head);
  const call = {
    name: { app: reader.text(), class: reader.text(), id: reader.text() },
    request: reader.text(),
    to: reader.text(),
    hops: reader.uint(),
    chain: reader.list(() => reader.text()),
    token: readToken(reader),
    call: readRest(reader, body),
  };
  if (call.hops > HOPS_MAX) throw new CodecError(`a call takes at most ${HOPS_MAX} links`); // F2
  if (call.chain.length > CHAIN_MAX) throw new CodecError(`a chain has at most ${CHAIN_MAX} links`); // F2
  return call;
}

const KINDS = ["answer", "elsewhere", "problem"] as const;

export function encodeForwardedReply(reply: ForwardedReply): Framed {
  const writer = new Writer().byte(KINDS.indexOf(reply.kind));
  if (reply.kind === "elsewhere") return { head: writer.text(reply.site).done(), body: null };
  if (reply.kind === "problem") {
    return { head: writer.text(reply.code).text(reply.message.toWellFormed()).done(), body: null };
  }
  writeToken(writer, reply.token);
  return framed(writer, reply.answer);
}

/** @throws CodecError (F1) */
export function decodeReply(head: Uint8Array, body: Uint8Array | null): ForwardedReply {
  const reader = new Reader(head);
  const kind = KINDS[reader.byte()];
  if (kind === undefined) throw new CodecError("there is no such reply");
  if (kind === "answer") {
    return { kind, token: readToken(reader), answer: readRest(reader, body) };
  }
  const reply = kind === "elsewhere"
    ? { kind, site: reader.text() }
    : { kind, code: reader.text(), message: reader.text() };
  reader.end();
  return reply;
}

/** Name of an answer that has arrived: it need not be kept for a caller who asks again. */
export interface HeardAnswers {
  readonly name: StatefulName;
  readonly request: string;
}

export function encodeHeard(heard: readonly HeardAnswers[]): Uint8Array {
  const writer = new Writer();
  return writer.list(heard, ({ name, request }) => {
    writer.text(name.app).text(name.class).text(name.id).text(request);
  }).done();
}

/** @throws CodecError (F1) */
export function decodeHeard(head: Uint8Array): HeardAnswers[] {
  const reader = new Reader(head);
  const heard = reader.list(() => ({
    name: { app: reader.text(), class: reader.text(), id: reader.text() },
    request: reader.text(),
  }));
  reader.end();
  return heard;
}

/** Returns a head that ends with these bytes, or says that they are the body. */
export function framed(writer: Writer, bytes: Uint8Array): Framed {
  const isInline = bytes.length <= INLINE_BYTES_MAX;
  writer.flag(isInline);
  if (isInline) writer.bytes(bytes);
  return { head: writer.done(), body: isInline ? null : bytes };
}

/** Reads the bytes that {@link framed} put behind a head. @throws CodecError */
export function readRest(reader: Reader, body: Uint8Array | null): Uint8Array {
  const bytes = reader.flag() ? reader.bytes() : body;
  reader.end();
  if (bytes === null) throw new CodecError("the body is missing");
  return bytes;
}

/** Returns a body as a stream of one chunk. */
export const bodyOf = (bytes: Uint8Array | null): ReadableStream<Uint8Array> | null =>
  bytes === null ? null : new Blob([bytes as Uint8Array<ArrayBuffer>]).stream();

/** Reads a body as a whole. @throws CodecError above CALL_BYTES_MAX */
export async function readBody(body: ReadableStream<Uint8Array> | null): Promise<Uint8Array | null> {
  if (body === null) return null;
  const writer = new Writer(INLINE_BYTES_MAX);
  for await (const chunk of body) {
    if (writer.length + chunk.length > CALL_BYTES_MAX) {
      throw new CodecError(`a call or an answer has at most ${CALL_BYTES_MAX} bytes`);
    }
    writer.raw(chunk);
  }
  return writer.done();
}
