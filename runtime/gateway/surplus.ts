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
 * SU2  A body that tells its length may have that, and over TLS what records add to it; of another so much may have come as its app has taken, with what frames
 *      each piece, and what waits on the way.
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
  const { method } = request;
  if (method === "GET" || method === "HEAD" || request.headers.has("content-length")) return request;
  return new CountedContent(request);
}

/** A request whose body is read as that content. */
export const withContent = (request: Request, content: ArrivalContent): Request =>
  content === request || content.body === null ? request : new Request(request, { body: content.body });

/** A body that does not tell its length, counted as it is taken. */
export class CountedContent implements ArrivalContent {
  readonly #request: Request;
  #body: ReadableStream<Uint8Array<ArrayBuffer>> | null | undefined;
  taken = 0;

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
      });
      this.#body = this.#request.body?.pipeThrough(counted) ?? null;
    }
    return this.#body;
  }

  bytes(): Promise<Uint8Array> {
    return new Response(this.body).bytes();
  }
}

class SurplusWatch extends ConnectionWatch {
  readonly #mayBytes: () => number;
  readonly #tell: () => void;
  /** Nothing counts before (SU3). */
  readonly #countsMs: number;
  /** Read of the connection since which it counts. */
  #from: number | null = null;

  constructor(
    ends: { readonly peer: Deno.NetAddr; readonly port: number | null },
    counts: { readonly mayBytes: () => number; readonly sinceMs: number },
    tell: () => void,
  ) {
    super(ends.peer, ends.port);
    this.#mayBytes = counts.mayBytes;
    this.#countsMs = counts.sinceMs;
    this.#tell = tell;
  }

  override lost(): void {
    this.#from = null;
  }

  looked(read: number, nowMs: number): void {
    if (nowMs < this.#countsMs) return;
    this.#from ??= read;
    if (read < this.#from) return descriptors.lose(this);
    if (read - this.#from <= this.#mayBytes() + SURPLUS_BYTES_MAX) return;
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

interface Watched {
  readonly request: Request;
  readonly content: ArrivalContent;
  readonly mayBeHttp2: boolean;
}

/** The watches of one gateway. */
export class Surplus {
  /** By peer. */
  readonly #slow = new Map<string, Slow>();
  readonly #note: (cutOff: number) => void;
  readonly #port: () => number | null;
  #cutOff = 0;
  #notedMs = -Infinity;

  /**
   * @param note hears how many were cut off since it heard so before, once in NOTE_MS.
   * @param port at which requests come in; null: any.
   */
  constructor(note: (cutOff: number) => void = () => {}, port: () => number | null = () => null) {
    this.#note = note;
    this.#port = port;
  }

  /** How many connections are watched. */
  get size(): number {
    return this.#slow.values().reduce((size, { watch }) => watch === null ? size : size + 1, 0);
  }

  /** Begins to watch the connection of a request that is being answered. */
  begin(request: Request, client: RequestClient, content: ArrivalContent): void {
    const { remoteAddr, completed } = client;
    if (remoteAddr.transport !== "tcp" || completed === undefined) return;
    const peer = peerOf(remoteAddr);
    const mayBeHttp2 = !request.headers.has("host");
    let slow = this.#slow.get(peer);
    if (slow !== undefined && !mayBeHttp2) end(slow); // of HTTP/1.1 the one before is over
    if (slow === undefined || !mayBeHttp2) this.#slow.set(peer, slow = { count: 0, watch: null });
    if (slow.count++ === 0) this.#watch(slow, remoteAddr, { request, content, mayBeHttp2 });
    else end(slow); // SU3
    const over = () => {
      if (--slow.count > 0) return;
      end(slow);
      if (this.#slow.get(peer) === slow) this.#slow.delete(peer);
    };
    completed.then(over, over);
  }

  #watch(slow: Slow, peer: Deno.NetAddr, { request, content, mayBeHttp2 }: Watched): void {
    const mayOfBody = mayBytesOf(request, content), beganMs = performance.now();
    const mayOfFrames = () => HTTP2_BYTES + HTTP2_BYTES_PER_MS * (performance.now() - beganMs);
    const counts = {
      mayBytes: mayBeHttp2 ? () => mayOfBody() + mayOfFrames() : mayOfBody,
      sinceMs: beganMs + (mayBeHttp2 ? SETTLE_MS : 0),
    };
    slow.watch = new SurplusWatch({ peer, port: this.#port() }, counts, () => {
      end(slow);
      this.#told();
    });
    descriptors.watch(slow.watch);
  }

  /** Notes that a request begins (SU3). */
  asked({ remoteAddr }: RequestClient): void {
    if (this.#slow.size === 0 || remoteAddr.transport !== "tcp") return;
    const slow = this.#slow.get(peerOf(remoteAddr));
    if (slow !== undefined) end(slow);
  }

  /** Ends all watches. */
  close(): void {
    for (const slow of this.#slow.values()) end(slow);
    this.#slow.clear();
  }

  #told(): void {
    this.#cutOff++;
    const nowMs = performance.now();
    if (nowMs - this.#notedMs < NOTE_MS) return;
    this.#notedMs = nowMs;
    this.#note(this.#cutOff);
    this.#cutOff = 0;
  }
}

function end(slow: Slow): void {
  if (slow.watch !== null) descriptors.end(slow.watch);
  slow.watch = null;
}

const peerOf = ({ hostname, port }: Deno.NetAddr): string => `${hostname} ${port}`;

/** SU2 */
function mayBytesOf(request: Request, content: ArrivalContent): () => number {
  if (content instanceof CountedContent) {
    return () => content.taken + Math.min(content.taken * FRAMED_FACTOR, FRAMED_BYTES_MAX) + AHEAD_BYTES;
  }
  const length = Number(request.headers.get("content-length") ?? 0);
  const body = Number.isFinite(length) ? length : 0;
  const bytes = request.url.startsWith("https:") ? body + body / RECORDED_PART : body;
  return () => bytes;
}
