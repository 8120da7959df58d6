/**
 * Request and response heads on the wire.
 *
 * A head is one text: its fields joined by NUL, which neither a URL nor a header can contain, so that one encode
 * and one split replace a length and a decode for each of them. A small body travels in the head's frame.
 */
import { readEnd, readWord } from "./frame_fields.ts";
import type { Payload } from "./frame_reader.ts";
import type { FrameWriter } from "./frame_writer.ts";
import { FrameError } from "./frames.ts";

/** Ways in which a head's body travels. */
export const BODY = { none: 0, inline: 1, stream: 2 } as const;
/** Bit added to the body's kind in a response head: nothing follows, the request has settled with it. */
export const SETTLED = 0x80;
/** Bit added to the body's kind where the app has asked for the name of its session. */
export const SESSION_NAMED = 0x40;

/** Bytes up to which a body travels with its head: one frame, no credit. Above, copying twice begins to show. */
export const INLINE_BYTES_MAX = 64 * 1024;

/**
 * Bytes of a head that an app makes, statuses, names and values: half of what a browser takes. It is more than any
 * needs.
 */
export const HEAD_BYTES_MAX = 128 * 1024;

const SEPARATOR = "\0";

/** The head of a request, or of an outgoing fetch. */
export interface IsolateRequestHead {
  readonly method: string;
  readonly url: string;
  readonly headers: Iterable<readonly [string, string]>;
}

/** The head of a response. */
export interface ResponseHead {
  readonly status: number;
  readonly statusText: string;
  readonly headers: [string, string][];
}

/** Joins header fields and their values into one text, after `first`. */
export function joinHeaders(first: string, headers: Iterable<readonly [string, string]>): string {
  let out = first;
  // Headers' own forEach makes no iterator results: a fifth of the cost of iterating.
  if (headers instanceof Headers) {
    headers.forEach((value, name) => out += SEPARATOR + name + SEPARATOR + value);
    return out;
  }
  for (const [name, value] of headers) out += SEPARATOR + name + SEPARATOR + value;
  return out;
}

/** Returns the header pairs of a split head, from field `from` on. */
export function headerPairs(fields: readonly string[], from: number): [string, string][] {
  const out: [string, string][] = [];
  for (let i = from; i + 1 < fields.length; i += 2) out.push([fields[i] ?? "", fields[i + 1] ?? ""]);
  return out;
}

/** Writes a request head, after fields of the caller's own; an inline body follows as the rest of the payload. */
export function writeRequestHead(
  writer: FrameWriter,
  own: readonly string[],
  head: IsolateRequestHead,
  body: number,
): void {
  const fields = own.join(SEPARATOR) + SEPARATOR + head.method + SEPARATOR + head.url;
  writer.u8(body).text(joinHeaders(fields, head.headers));
}

/**
 * Reads a request head's fields: the caller's own, then method, URL and header pairs.
 *
 * @param bytesMax where the head may be a forger's (frames.ts, F5).
 */
export function readRequestHead(payload: Payload, bytesMax = Infinity): { fields: string[]; body: number } {
  const body = payload.u8();
  return { fields: payload.text(bytesMax).split(SEPARATOR), body };
}

/**
 * Checks the length of a head that an app makes. @throws TypeError for one that is too long; nothing of its frame is
 * sent then.
 */
export function assertHead(writer: FrameWriter): void {
  const bytes = writer.payloadBytes;
  if (bytes > HEAD_BYTES_MAX) {
    throw new TypeError(
      `status, address and headers have ${bytes} bytes together; at most ${HEAD_BYTES_MAX} are accepted`,
    );
  }
}

/** Writes a response head; the body, if inline, follows as the rest of the payload. */
export function writeResponseHead(
  writer: FrameWriter,
  status: number,
  statusText: string,
  headers: Iterable<readonly [string, string]>,
  body: number,
): void {
  writer.u16(status).u8(body).text(joinHeaders(statusText, headers));
}

/** A response head as it was read. */
export interface ReadHead {
  readonly head: ResponseHead;
  readonly body: number;
  readonly settles: boolean;
  /** True where the app has asked for the name of its session. */
  readonly named: boolean;
}

/** Characters of a header's name; with {@link VALUE}, what an app can set by a `Response`. */
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Reads the head of an app's response, such as a `Response` can have (frames.ts, F4). @throws FrameError */
export function readAppHead(payload: Payload): ReadHead {
  const read = readResponseHead(payload, HEAD_BYTES_MAX), { head, body } = read;
  if (!VALUE.test(head.statusText)) throw new FrameError("a status text has characters that none may have");
  for (const [name, value] of head.headers) {
    if (!NAME.test(name) || !VALUE.test(value)) {
      throw new FrameError("a response's header has a name or a value that none may have");
    }
  }
  if (body > BODY.stream) throw new FrameError(`${body} is no kind of a body`);
  if (body !== BODY.inline) readEnd(payload);
  return read;
}

/** Reads the subprotocol of a WebSocket; empty for none. @throws FrameError */
export function readProtocol(payload: Payload): string {
  const protocol = readWord(payload);
  if (protocol !== "" && !NAME.test(protocol.toLowerCase())) throw new FrameError("a subprotocol is no name");
  return protocol;
}

/** Reads a head that {@link writeResponseHead} wrote, up to the body. */
export function readResponseHead(payload: Payload, bytesMax = Infinity): ReadHead {
  const status = payload.u16();
  const kind = payload.u8();
  const fields = payload.text(bytesMax).split(SEPARATOR);
  const headers = headerPairs(fields, 1);
  // Lookups of a name expect lower case, and a frame that the app has bent may have it otherwise.
  for (const pair of headers) pair[0] = pair[0].toLowerCase();
  const head = { status, statusText: fields[0] ?? "", headers };
  return {
    head,
    body: kind & ~(SETTLED | SESSION_NAMED),
    settles: (kind & SETTLED) !== 0,
    named: (kind & SESSION_NAMED) !== 0,
  };
}
