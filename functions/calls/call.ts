/**
 * What is asked of a stateful session and what it answers, as bytes: the same in the log (the event `request`),
 * between an isolate and its site, and between sites.
 *
 *   call    0 method arguments | 1 method url headers body?
 *   answer  0 value | 1 code message | 2 status text headers body?
 *
 * Texts and byte strings have their length before them (store/model/codec.ts); arguments are one encoded array and a
 * value one encoded value (functions/values/value.ts).
 *
 * A call holds all of its request: what is read while it is handled is the same at every replay.
 *
 * K1  One form for each call and each answer; the readers throw CodecError for anything else, and take no more
 *     than CALL_BYTES_MAX.
 */
import { CodecError, Reader, Writer } from "../../store/model/codec.ts";
import { encodeValue, NUMBER_BYTES, writeNumber } from "../values/value.ts";

/** A request to a stateful session. */
export type SessionCall =
  | {
    readonly kind: "rpc";
    readonly method: string;
    /** The array of arguments, encoded. */
    readonly args: Uint8Array;
  }
  | {
    readonly kind: "fetch";
    readonly method: string;
    readonly url: string;
    readonly headers: readonly (readonly [string, string])[];
    readonly body: Uint8Array | null;
  };

/** What comes of it. */
export type SessionAnswer =
  | { readonly kind: "value"; readonly value: Uint8Array }
  | { readonly kind: "error"; readonly code: string; readonly message: string }
  | {
    readonly kind: "response";
    readonly status: number;
    readonly statusText: string;
    readonly headers: readonly (readonly [string, string])[];
    readonly body: Uint8Array | null;
  };

/** A body of 1 MiB, or so many bytes of arguments, and a head: a call is one entry of a log. */
export const CALL_BYTES_MAX = 1024 * 1024 + 64 * 1024;
/** A body, of a request and of a response. */
export const CALL_BODY_BYTES_MAX = 1024 * 1024;
/** The longest name of a method: longer than any that people write. */
const METHOD_CHARS_MAX = 200;

const CALL = { rpc: 0, fetch: 1 } as const;
const ANSWER = { value: 0, error: 1, response: 2 } as const;

/** A call's bytes. */
export function encodeCall(call: SessionCall): Uint8Array<ArrayBuffer> {
  const writer = new Writer();
  if (call.kind === "rpc") return writer.byte(CALL.rpc).text(call.method).bytes(call.args).done();
  writer.byte(CALL.fetch).text(call.method).text(call.url);
  writeHeaders(writer, call.headers);
  writeBody(writer, call.body);
  return writer.done();
}

/** The call that bytes are; its arguments are a view of them. @throws CodecError (K1) */
export function decodeCall(bytes: Uint8Array): SessionCall {
  const reader = readerOf(bytes);
  const kind = reader.byte();
  const method = reader.text();
  if (method === "" || method.length > METHOD_CHARS_MAX) {
    throw new CodecError(
      `a method's name has 1 to ${METHOD_CHARS_MAX} characters, this one has ${method.length}`,
    );
  }
  if (kind === CALL.rpc) return ended(reader, { kind: "rpc", method, args: reader.view() });
  if (kind !== CALL.fetch) throw new CodecError(`there is no call of kind ${kind}`);
  return ended(reader, {
    kind: "fetch",
    method,
    url: reader.text(),
    headers: readHeaders(reader),
    body: readBody(reader),
  });
}

/** An answer's bytes. */
export function encodeAnswer(answer: SessionAnswer): Uint8Array<ArrayBuffer> {
  if (answer.kind === "value") return valueAnswer(answer.value);
  const writer = new Writer();
  if (answer.kind === "error") {
    return writer.byte(ANSWER.error).text(answer.code).text(answer.message.toWellFormed()).done();
  }
  writer.byte(ANSWER.response).uint(answer.status).text(answer.statusText);
  writeHeaders(writer, answer.headers);
  writeBody(writer, answer.body);
  return writer.done();
}

/** The answer's bytes of what a method returns: as `encodeAnswer` of what `encodeValue` makes of it. */
export function encodeReturned(value: unknown): Uint8Array<ArrayBuffer> {
  if (typeof value !== "number") return valueAnswer(encodeValue(value));
  // In one piece: each array that is made costs as much as all else here.
  const bytes = new Uint8Array(2 + NUMBER_BYTES);
  bytes[0] = ANSWER.value;
  bytes[1] = NUMBER_BYTES;
  writeNumber(bytes, 2, value);
  return bytes;
}

/** Most are short: a writer, and a copy of what it wrote, would cost more than all else. */
function valueAnswer(value: Uint8Array): Uint8Array<ArrayBuffer> {
  const { length } = value;
  if (length >= 0x80) return new Writer(length + 8).byte(ANSWER.value).bytes(value).done();
  const bytes = new Uint8Array(2 + length);
  bytes[0] = ANSWER.value;
  bytes[1] = length;
  bytes.set(value, 2);
  return bytes;
}

/** The answer that bytes are. @throws CodecError (K1) */
export function decodeAnswer(bytes: Uint8Array): SessionAnswer {
  const reader = readerOf(bytes);
  const kind = reader.byte();
  if (kind === ANSWER.value) return ended(reader, { kind: "value", value: reader.bytes() });
  if (kind === ANSWER.error) {
    return ended(reader, { kind: "error", code: reader.text(), message: reader.text() });
  }
  if (kind !== ANSWER.response) throw new CodecError(`there is no answer of kind ${kind}`);
  const status = reader.uint();
  if (status < 200 || status > 599) throw new CodecError(`${status} is no status of an answer`);
  return ended(reader, {
    kind: "response",
    status,
    statusText: reader.text(),
    headers: readHeaders(reader),
    body: readBody(reader),
  });
}

function readerOf(bytes: Uint8Array): Reader {
  if (bytes.length > CALL_BYTES_MAX) {
    throw new CodecError(`${bytes.length} bytes; a call or an answer has at most ${CALL_BYTES_MAX}`);
  }
  return new Reader(bytes);
}

function ended<T>(reader: Reader, value: T): T {
  reader.end();
  return value;
}

function writeHeaders(writer: Writer, headers: readonly (readonly [string, string])[]): void {
  writer.list(headers, ([name, value]) => void writer.text(name).text(value));
}

const readHeaders = (reader: Reader): [string, string][] => reader.list(() => [reader.text(), reader.text()]);

function writeBody(writer: Writer, body: Uint8Array | null): void {
  writer.flag(body !== null);
  if (body !== null) writer.bytes(body);
}

const readBody = (reader: Reader): Uint8Array<ArrayBuffer> | null => reader.flag() ? reader.bytes() : null;
