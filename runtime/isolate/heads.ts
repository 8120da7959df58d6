/**
 * Request and response heads on the wire.
 *
 * A head is one text: its fields joined by NUL, which neither a URL nor a header can contain, so that one encode
 * and one split replace a length and a decode for each of them. A small body travels in the head's frame.
 */
import type { Payload } from "./frame_reader.ts";
import type { FrameWriter } from "./frame_writer.ts";

/** How a head's body travels. */
export const BODY = { none: 0, inline: 1, stream: 2 } as const;
/** Added to the body's kind in a response head: nothing follows, the request has settled with it. */
export const SETTLED = 0x80;

/** Bodies up to this size travel with their head: one frame, no credit. Above, copying twice begins to show. */
export const INLINE_BYTES_MAX = 64 * 1024;

const SEPARATOR = "\0";

/** The head of a request, or of an outgoing fetch. */
export interface RequestHead {
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

/** Fields and their values as one text. */
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

/** The header pairs of a split head, from field `from` on. */
export function headerPairs(fields: readonly string[], from: number): [string, string][] {
  const out: [string, string][] = [];
  for (let i = from; i + 1 < fields.length; i += 2) out.push([fields[i] ?? "", fields[i + 1] ?? ""]);
  return out;
}

/** Writes a request head, after fields of the caller's own; an inline body follows as the rest of the payload. */
export function writeRequestHead(
  writer: FrameWriter,
  own: readonly string[],
  head: RequestHead,
  body: number,
): void {
  const fields = own.join(SEPARATOR) + SEPARATOR + head.method + SEPARATOR + head.url;
  writer.u8(body).text(joinHeaders(fields, head.headers));
}

/** A request head's fields: the caller's own, then method, URL and header pairs. */
export function readRequestHead(payload: Payload): { fields: string[]; body: number } {
  const body = payload.u8();
  return { fields: payload.text().split(SEPARATOR), body };
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

/** Reads what {@link writeResponseHead} wrote, up to the body. */
export function readResponseHead(payload: Payload): { head: ResponseHead; body: number; settles: boolean } {
  const status = payload.u16();
  const kind = payload.u8();
  const fields = payload.text().split(SEPARATOR);
  const headers = headerPairs(fields, 1);
  // A frame that the app has bent may not have them so, and who looks for a name looks for it in lower case.
  for (const pair of headers) pair[0] = pair[0].toLowerCase();
  const head = { status, statusText: fields[0] ?? "", headers };
  return { head, body: kind & ~SETTLED, settles: (kind & SETTLED) !== 0 };
}
