/**
 * Clients that send more than they ask. While a request is answered, and while its answer streams, Deno goes on reading its
 * connection to see it close, and keeps whatever comes, without a bound: a gibibyte in two seconds, of anybody, at any path,
 * over TLS too. Bodies are not read so (who does not take them is sent no more), nor are WebSockets.
 *
 * Life of a watch: `begin`, when a request has waited a while or its answer streams → the kernel is asked how much its
 * connection has received (link/descriptors.ts) → cut, or over with the request. Short requests are not watched: what comes
 * in a tenth of a second is no more than the line carries.
 *
 * SU1  Whoever sends SURPLUS_BYTES_MAX beyond his request's body while it is answered is cut off, and what has come of him is
 *      gone. A client of HTTP/1.1 has nothing to send then, or a few heads of what it asks next.
 * SU2  A body that tells its length may have that, and over TLS what records add to it; of another so much may have come as
 *      its app has taken, with what frames each piece, and what waits on the way. When it is at its end nothing more may.
 *      GET and HEAD have no body that anybody takes.
 * SU3  A connection on which another request begins meanwhile speaks HTTP/2, which bounds by itself what comes: it is watched
 *      no more. Where a request may be one of HTTP/2 (no header names its host) what comes in the first SETTLE_MS is not
 *      counted: it may be the body of one that began before it. By then that one is over, or watched itself. And it may say
 *      HTTP2_BYTES and HTTP2_BYTES_PER_MS beside: of windows, and that it is there.
 * SU4  Where the system can't tell (DS2) nobody is cut off.
 */
import { ConnectionWatch, descriptors } from "../link/descriptors.ts";
import type { ArrivalContent } from "./arrival.ts";

/** Beyond a body: thousands of heads. */
export const SURPLUS_BYTES_MAX = 1024 * 1024;
/** The part of a body that is read ahead of its app, here and by the system. */
const AHEAD_BYTES = 8 * 1024 * 1024;
/** A piece of one byte takes six of a chunked body. */
const FRAMED_FACTOR = 7;
/** The most that all its pieces may have beside what they carry. */
const FRAMED_BYTES_MAX = 16 * 1024 * 1024;
/** A few times what a request takes until it counts as slow (departures.ts). */
const SETTLE_MS = 400;
/** A record of TLS has 22 bytes beside what it carries: an eighth, where that is 176. */
const RECORDED_PART = 8;
/** The room for HTTP/2's window updates and pings: a sixth of a percent of what it is sent, where clients are eager. */
const HTTP2_BYTES = 16 * 1024 * 1024;
const HTTP2_BYTES_PER_MS = 1024;
/** The pace of notes: whoever is cut off comes again. */
const NOTE_MS = 60_000;

/** The sender of a request, as Deno tells it. */
export interface RequestClient {
  readonly remoteAddr: Deno.Addr;
  /** Settles when the answer is gone, or its client is, or its connection is a WebSocket. */
  readonly completed?: Promise<void>;
}

/** A request's body; {@link CountedContent} where it does not tell its length. */
export function contentOf(request: Request): ArrivalContent {
  return hasNoBody(request) || request.headers.has("content-length") ? request : new CountedContent(request);
}

const hasNoBody = ({ method }: Request): boolean => method === "GET" || method === "HEAD";

/** A request whose body is read as that content. */
export const withContent = (request: Request, content: ArrivalContent): Request =>
  content === request || content.body === null ? request : new Request(request, { body: content.body });

/** A body that does not tell its length, counted as it is taken. */
export class CountedContent implements ArrivalContent {
  readonly #request: Request;
  #body: ReadableStream<Uint8Array<ArrayBuffer>> | null | undefined;
  taken = 0;
  /** All of it was taken. */
  isOver = false;

  constructor(request: Request) {
    this.#request = request;
  }

  get body(): ReadableStream<Uint8Array<ArrayBuffer>> | null {
    if (this.#body === undefined) {
      const counted = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
        transform: (piece, controller) => {
          this.taken += piece.length;
          controller.enqueue(piece);
        },
        flush: () => {
          this.isOver = true;
        },
      });
      this.#body = this.#request.body?.pipeThrough(counted) ?? null;
    }
    return this.#body;
  }

  bytes(): Promise<Uint8Array> {
    return new Response(this.body).bytes();
  }
}

/** Bytes that a connection may send. */
interface Allowance {
  /** Beside its body, since the watch began. */
  readonly framesBytes: () => number;
  readonly body: BodyAllowance;
  /** Nothing counts before (SU3). */
  readonly sinceMs: number;
}

/** Bytes that a body may have; `isOver`: all of it has come. */
type BodyAllowance = () => { readonly bytes: number; readonly isOver: boolean };

class SurplusWatch extends ConnectionWatch {
  readonly #allowance: Allowance;
  readonly #tell: () => void;
  /** Read of the connection since which it counts. */
  #from: number | null = null;
  #isBodyOver = false;

  constructor(
    ends: { readonly peer: Deno.NetAddr; readonly port: number | null },
    allowance: Allowance,
    tell: () => void,
  ) {
    super(ends.peer, ends.port);
    this.#allowance = allowance;
    this.#tell = tell;
  }

  override lost(): void {
    this.#from = null;
  }

  looked(read: number, nowMs: number): void {
    const { body, framesBytes, sinceMs } = this.#allowance;
    if (nowMs < sinceMs) return;
    this.#from ??= read;
    if (read < this.#from) return descriptors.lose(this);
    const { bytes, isOver } = this.#isBodyOver ? NO_BODY : body();
    if (read - this.#from > bytes + framesBytes() + SURPLUS_BYTES_MAX) return this.#cut();
    if (isOver && !this.#isBodyOver) this.#from = read; // SU2
    this.#isBodyOver = isOver;
  }

  #cut(): void {
    if (!descriptors.isStill(this)) return descriptors.lose(this);
    descriptors.cut(this);
    this.#tell();
  }
}

/** A connection with requests that take a while. */
interface Slow {
  /** Requests. */
  count: number;
  /** null: it is not watched any more (SU3), or was cut off. */
  watch: SurplusWatch | null;
}

export interface SurplusOptions {
  /** Hears how many were cut off since it heard so before, once in `noteMs`. */
  readonly note?: (cutOff: number) => void;
  readonly noteMs?: number;
  /** At which requests come in; null: at any. */
  readonly port?: () => number | null;
  readonly settleMs?: number;
}

/** The watches of one gateway. */
export class Surplus {
  /** By peer. */
  readonly #slow = new Map<string, Slow>();
  readonly #options: Required<SurplusOptions>;
  #cutOff = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(options: SurplusOptions = {}) {
    const { note = () => {}, port = () => null, noteMs = NOTE_MS, settleMs = SETTLE_MS } = options;
    this.#options = { note, port, noteMs, settleMs };
  }

  /** How many connections are watched. */
  get size(): number {
    return this.#slow.values().reduce((size, { watch }) => watch === null ? size : size + 1, 0);
  }

  /** Begins to watch the connection of a request that is being answered, which is no WebSocket yet. */
  begin(request: Request, client: RequestClient, content: ArrivalContent): void {
    const { remoteAddr, completed } = client;
    if (this.#isClosed || remoteAddr.transport !== "tcp" || completed === undefined) return;
    const peer = peerOf(remoteAddr);
    const mayBeHttp2 = !request.headers.has("host");
    let slow = this.#slow.get(peer);
    if (slow !== undefined && !mayBeHttp2) end(slow); // of HTTP/1.1 the one before is over
    if (slow === undefined || !mayBeHttp2) this.#slow.set(peer, slow = { count: 0, watch: null });
    if (slow.count++ === 0) {
      this.#watch(
        slow,
        remoteAddr,
        allowanceOf(request, content, mayBeHttp2 ? this.#options.settleMs : null),
      );
    } else end(slow); // SU3
    const over = () => {
      if (--slow.count > 0) return;
      end(slow);
      if (this.#slow.get(peer) === slow) this.#slow.delete(peer);
    };
    completed.then(over, over);
  }

  #watch(slow: Slow, peer: Deno.NetAddr, allowance: Allowance): void {
    slow.watch = new SurplusWatch({ peer, port: this.#options.port() }, allowance, () => {
      end(slow);
      this.#cutOff++;
      this.#tell();
    });
    descriptors.watch(slow.watch);
  }

  /** Notes that a request begins (SU3). */
  asked({ remoteAddr }: RequestClient): void {
    if (this.#slow.size === 0 || remoteAddr.transport !== "tcp") return;
    const slow = this.#slow.get(peerOf(remoteAddr));
    if (slow !== undefined) end(slow);
  }

  /** Ends all watches, and begins none any more. */
  close(): void {
    this.#isClosed = true;
    for (const slow of this.#slow.values()) end(slow);
    this.#slow.clear();
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#tell();
  }

  #tell(): void {
    if (this.#timer !== undefined || this.#cutOff === 0) return;
    this.#options.note(this.#cutOff);
    this.#cutOff = 0;
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#tell();
    }, this.#options.noteMs);
  }
}

function end(slow: Slow): void {
  if (slow.watch !== null) descriptors.end(slow.watch);
  slow.watch = null;
}

const peerOf = ({ hostname, port }: Deno.NetAddr): string => `${hostname} ${port}`;

/** @param settleMs null: it is none of HTTP/2 (SU3). */
function allowanceOf(request: Request, content: ArrivalContent, settleMs: number | null): Allowance {
  const body = bodyAllowanceOf(request, content), beganMs = performance.now();
  if (settleMs === null) return { body, framesBytes: () => 0, sinceMs: beganMs };
  const framesBytes = () => HTTP2_BYTES + HTTP2_BYTES_PER_MS * (performance.now() - beganMs);
  return { body, framesBytes, sinceMs: beganMs + settleMs };
}

const NO_BODY = { bytes: 0, isOver: true };

/** SU2 */
function bodyAllowanceOf(request: Request, content: ArrivalContent): BodyAllowance {
  if (content instanceof CountedContent) {
    return () => ({
      bytes: content.taken + Math.min(content.taken * FRAMED_FACTOR, FRAMED_BYTES_MAX) + AHEAD_BYTES,
      isOver: content.isOver,
    });
  }
  const length = hasNoBody(request) ? 0 : Number.parseInt(request.headers.get("content-length") ?? "0");
  const body = Number.isSafeInteger(length) ? length : 0;
  const bytes = request.url.startsWith("https:") ? body + body / RECORDED_PART : body;
  return () => ({ bytes, isOver: false });
}
