/**
 * Cutting off of clients that send more than their requests. While a request is answered, and while its answer streams,
 * Deno goes on reading its connection to see it close, and keeps whatever comes, without a bound: a gibibyte in two
 * seconds, of anybody, at any path, over TLS too. Bodies are not read so (where the app does not take one, the client
 * can send no more), nor are WebSockets.
 *
 * Life of a watch: `begin`, when a request has waited a while or its answer streams → the kernel is asked how much its
 * connection has received (link/descriptors.ts) → cut, or over with the request. Short requests are not watched: what comes
 * in a tenth of a second is no more than the line carries.
 *
 * SU1  A client that sends SURPLUS_BYTES_MAX beyond its request's body while it is answered is cut off, and what has
 *      come of it is dropped. A client of HTTP/1.1 has nothing to send then, or a few heads of what it asks next.
 * SU2  A body that tells its length may have that, up to the longest that is taken of anybody, and over TLS what
 *      records add to it; a body of unknown length may have as much as its app has taken, with the framing of each
 *      piece, and what waits on the way. When the body is at its end nothing more may come. GET and HEAD have no body
 *      that anybody takes.
 * SU3  A connection is watched while one of its requests is answered, and no other. Where another begins meanwhile it
 *      speaks HTTP/2, which bounds by itself what comes: it is not watched for the first one any more. Where a
 *      connection's requests name a host in their headers, as those of HTTP/1.1 do and some of HTTP/2, its other
 *      requests are known only once they take a while, too: so nobody is cut off in the first JUDGED_MS.
 * SU4  A client of HTTP/2 also sends window updates, a few bytes for each piece or some thousands of the answer, and
 *      pings. So what may come grows with what has gone: a client that is sent little may send little.
 * SU5  The untaken bytes of all watched connections are HELD_BYTES_MAX at most: beyond that each connection that holds
 *      the average, or more, is cut off.
 * SU6  Where the system can't tell (DS2) nobody is cut off.
 * SU7  A client that asks for a WebSocket has nothing to say until that is there (RFC 6455, 4.1), and speaks HTTP/1.1:
 *      it is watched from the beginning, and cut off after UPGRADE_BYTES_MAX. All that has come of it by then would be
 *      copied at one go.
 */
import { ConnectionWatch, descriptors } from "../link/descriptors.ts";
import { ASSET_BYTES_MAX } from "../assets/asset_index.ts";
import type { ArrivalContent } from "./arrival.ts";
import type { GoneSignal } from "./departures.ts";

/** Bytes that a client may send beyond a body: thousands of heads. */
export const SURPLUS_BYTES_MAX = 1024 * 1024;
/** Bytes that a client may send beyond a request that asks for a WebSocket. */
export const UPGRADE_BYTES_MAX = 64 * 1024;
/** The part of a body that is read ahead of its app, here and by the system. */
const AHEAD_BYTES = 8 * 1024 * 1024;
/**
 * Bytes on the wire for one of a body, at worst: a piece of one byte takes six of a chunked body, and 22 more where it
 * is a record of TLS.
 */
const FRAMED_FACTOR = 29;
/** Most bytes that framing by pieces or records may add to a body. */
const FRAMED_BYTES_MAX = 16 * 1024 * 1024;
/** Divisor for longer bodies: beyond that a record of TLS adds no more than an eighth. */
const RECORDED_PART = 8;
/**
 * Milliseconds before a connection is judged: longer than it takes until a request counts as slow (departures.ts),
 * which is then known here.
 */
const JUDGED_MS = 250;
/**
 * Bytes of window updates allowed for each byte sent, and their most (SU4): at first there is an update for each piece,
 * of 26 bytes for as little as 10.
 */
const UPDATES_FACTOR = 3;
const UPDATES_BYTES_MAX = 16 * 1024 * 1024;
/** Divisor of the bytes sent, for further window updates: one for 4 KiB where clients are eager, with room to spare. */
const UPDATES_PART = 64;
/** Allowance for pings: three a second. */
const PING_BYTES_PER_MS = 0.064;
/** Bytes of the longest body that is taken of anybody: a blob of a deploy, or what the site's file allows its apps. */
const BODY_BYTES_MAX = ASSET_BYTES_MAX;
/** Bytes that may be held over all connections. */
const HELD_BYTES_MAX = 256 * 1024 * 1024;
/**
 * Length in bytes below which a body counts as taken as soon as it is begun: to count each piece costs a fifth of what
 * it takes to read it.
 */
const COUNTED_BYTES = 1024 * 1024;
/** Milliseconds between two notes: whoever is cut off comes again. */
const NOTE_MS = 60_000;

/** The sender of a request, as Deno tells it. */
export interface RequestClient {
  readonly remoteAddr: Deno.Addr;
  /** Settles when the answer is gone, or its connection is a WebSocket; or its client is gone, once there is an answer. */
  readonly completed?: Promise<void>;
}

/** Returns a request's body; as {@link CountedContent} where it does not tell its length, or that is long. */
export function contentOf(request: Request): ArrivalContent {
  if (hasNoBody(request)) return request;
  const length = request.headers.get("content-length");
  return length !== null && Number.parseInt(length) <= COUNTED_BYTES ? request : new CountedContent(request);
}

/** Reports whether a request asks for a WebSocket. */
export const isUpgrade = ({ method, headers }: Request): boolean =>
  method === "GET" && headers.get("upgrade")?.toLowerCase() === "websocket";

const hasNoBody = ({ method }: Request): boolean => method === "GET" || method === "HEAD";

/** Returns a request whose body is read as that content. */
export const withContent = (request: Request, content: ArrivalContent): Request =>
  content === request || content.body === null ? request : new Request(request, { body: content.body });

/** A body that is counted as it is taken. */
export class CountedContent implements ArrivalContent {
  readonly #request: Request;
  #body: ReadableStream<Uint8Array<ArrayBuffer>> | null | undefined;
  taken = 0;
  /** True when all of the body was taken. */
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

/** Returns the bytes that a body may have, and those that were taken of it; `isOver`: all of it has come. */
type BodyAllowance = () => { readonly bytes: number; readonly taken: number; readonly isOver: boolean };

/** Totals over all watched connections. */
interface Held {
  bytes: number;
  connections: number;
  readonly bytesMax: number;
}

class SurplusWatch extends ConnectionWatch {
  readonly #body: BodyAllowance;
  readonly #held: Held;
  /** Bytes of the total that this connection holds. */
  #heldBytes = 0;
  readonly #tell: () => void;
  readonly #judgedMs: number;
  readonly #surplusMax: number;
  readonly #beganMs = performance.now();
  /** Bytes read and acknowledged of the connection when the watch began; null: the connection was not found yet. */
  #from: { read: number; sent: number } | null = null;
  #isBodyOver = false;

  constructor(
    ends: { readonly peer: Deno.NetAddr; readonly port: number | null },
    body: BodyAllowance,
    held: Held,
    { judgedMs, surplusMax }: { readonly judgedMs: number; readonly surplusMax: number },
    tell: () => void,
  ) {
    super(ends.peer, ends.port);
    this.#body = body;
    this.#held = held;
    held.connections++;
    this.#judgedMs = this.#beganMs + judgedMs;
    this.#surplusMax = surplusMax;
    this.#tell = tell;
  }

  override lost(): void {
    this.#from = null;
    this.#holds(0);
  }

  end(): void {
    this.#holds(0);
    this.#held.connections--;
    descriptors.end(this);
  }

  #holds(bytes: number): void {
    this.#held.bytes += bytes - this.#heldBytes;
    this.#heldBytes = bytes;
  }

  looked(read: number, nowMs: number, sent: number): void {
    const from = this.#from ??= { read, sent };
    if (read < from.read || sent < from.sent) return descriptors.lose(this);
    if (nowMs < this.#judgedMs) return; // SU3
    const { bytes, taken, isOver } = this.#isBodyOver ? NO_BODY : this.#body();
    const besideBytes = updatesBytes(sent - from.sent) + PING_BYTES_PER_MS * (nowMs - this.#beganMs);
    const cameBytes = read - from.read - besideBytes, held = this.#held;
    if (cameBytes > bytes + this.#surplusMax) return this.#cut();
    this.#holds(Math.max(0, cameBytes - taken));
    if (held.bytes > held.bytesMax && this.#heldBytes >= held.bytes / held.connections) return this.#cut(); // SU5
    if (isOver && !this.#isBodyOver) this.#from = { read, sent }; // SU2
    this.#isBodyOver = isOver;
  }

  #cut(): void {
    if (!descriptors.isStill(this)) return descriptors.lose(this);
    descriptors.cut(this);
    this.#tell();
  }
}

/** Returns the bytes that window updates may take after so many bytes were sent (SU4). */
const updatesBytes = (sent: number): number =>
  Math.min(sent * UPDATES_FACTOR, UPDATES_BYTES_MAX) + sent / UPDATES_PART;

/** A request that is being answered. */
interface Answered {
  /** Allowance of the request's body; null: the request does not take a while, so far. */
  body: BodyAllowance | null;
  /** True where the request asks for a WebSocket (SU7). */
  isUpgrade: boolean;
  /** True when another request has begun on the connection since (SU3), or the connection was cut off. */
  isPast: boolean;
}

/** A connection with requests that take a while, or of HTTP/2 with any. */
interface Connection {
  readonly peer: Deno.NetAddr;
  readonly answered: Map<RequestClient, Answered>;
  watch: SurplusWatch | null;
}

export interface SurplusOptions {
  /** Called with the number of connections that were cut off since the last call, once in `noteMs`. */
  readonly note?: (cutOff: number) => void;
  readonly noteMs?: number;
  /** Returns the port at which requests come in; null: any. */
  readonly port?: () => number | null;
  /** Bytes of the longest body that is taken of anybody. */
  readonly bodyBytesMax?: number;
  /** Bytes that may be held over all connections (SU5). */
  readonly heldBytesMax?: number;
  readonly judgedMs?: number;
}

/** The watches of one gateway. */
export class Surplus {
  /** Connections by peer. */
  readonly #connections = new Map<string, Connection>();
  readonly #options: Required<SurplusOptions>;
  readonly #held: Held;
  #cutOff = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(options: SurplusOptions = {}) {
    const { note = () => {}, port = () => null, noteMs = NOTE_MS, judgedMs = JUDGED_MS } = options;
    const { bodyBytesMax = BODY_BYTES_MAX, heldBytesMax = HELD_BYTES_MAX } = options;
    this.#held = { bytes: 0, connections: 0, bytesMax: heldBytesMax };
    this.#options = {
      note,
      port,
      noteMs,
      judgedMs,
      heldBytesMax,
      bodyBytesMax: Math.max(bodyBytesMax, BODY_BYTES_MAX),
    };
  }

  /** Number of connections that are watched. */
  get size(): number {
    return this.#connections.values().reduce((size, { watch }) => watch === null ? size : size + 1, 0);
  }

  /** Reports whether a request of that peer takes a while. */
  has(peer: Deno.NetAddr): boolean {
    return this.#connections.has(peerOf(peer));
  }

  /**
   * Notes that a request begins (SU3).
   *
   * @param host host that the request's headers name.
   */
  asked(client: RequestClient, host: string | null): void {
    if (this.#connections.size === 0 && host !== null) return;
    const { remoteAddr: peer } = client;
    if (peer.transport !== "tcp") return;
    const connection = this.#connections.get(peerOf(peer));
    if (connection !== undefined) pass(connection);
    if (host === null) this.#answered(client, peer);
  }

  /**
   * Begins to watch the connection of a request that is being answered, which is no WebSocket yet.
   *
   * @param gone tells that the client has gone while there is no answer yet, which `completed` does not.
   */
  begin(request: Request, client: RequestClient, content: ArrivalContent, gone?: GoneSignal): void {
    const { remoteAddr: peer } = client;
    if (peer.transport !== "tcp" || gone?.aborted === true) return;
    const begun = this.#answered(client, peer);
    if (begun === null) return;
    const { connection, answered, over } = begun;
    answered.body ??= this.#bodyAllowance(request, content);
    answered.isUpgrade = isUpgrade(request);
    gone?.addEventListener("abort", over, { once: true });
    this.#consider(connection);
  }

  /** Registers a request until it is answered; null where that can't be known. */
  #answered(client: RequestClient, peer: Deno.NetAddr) {
    const { completed } = client, key = peerOf(peer);
    if (this.#isClosed || completed === undefined) return null;
    const connection = this.#connections.get(key) ?? { peer, answered: new Map(), watch: null };
    this.#connections.set(key, connection);
    const over = () => {
      if (!connection.answered.delete(client)) return;
      this.#consider(connection);
      if (connection.answered.size > 0 || this.#connections.get(key) !== connection) return;
      this.#connections.delete(key);
    };
    let answered = connection.answered.get(client);
    if (answered === undefined) {
      connection.answered.set(client, answered = { body: null, isUpgrade: false, isPast: false });
      completed.then(over, over);
    }
    return { connection, answered, over };
  }

  /** Begins or ends the watch of a connection, by the requests that it has (SU3). */
  #consider(connection: Connection): void {
    const { answered, peer } = connection, [only] = answered.values();
    const body = answered.size === 1 && only?.isPast === false ? only.body : null;
    if (body === null || this.#isClosed) return end(connection);
    if (connection.watch !== null) return;
    const { port, judgedMs } = this.#options;
    const limits = only?.isUpgrade === true
      ? { judgedMs: 0, surplusMax: UPGRADE_BYTES_MAX } // SU7
      : { judgedMs, surplusMax: SURPLUS_BYTES_MAX };
    connection.watch = new SurplusWatch({ peer, port: port() }, body, this.#held, limits, () => {
      pass(connection);
      this.#cutOff++;
      this.#tell();
    });
    descriptors.watch(connection.watch);
  }

  /** Ends all watches, and begins no more. */
  close(): void {
    this.#isClosed = true;
    for (const connection of this.#connections.values()) end(connection);
    this.#connections.clear();
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

  /** Returns the allowance of a request's body (SU2). */
  #bodyAllowance(request: Request, content: ArrivalContent): BodyAllowance {
    const length = hasNoBody(request) ? 0 : Number.parseInt(request.headers.get("content-length") ?? "");
    const counted = content instanceof CountedContent ? content : null;
    if (counted !== null && Number.isNaN(length)) {
      return () => {
        const taken = counted.taken + framesOf(counted.taken);
        return { bytes: taken + AHEAD_BYTES, taken, isOver: counted.isOver };
      };
    }
    const body = Number.isNaN(length) ? 0 : Math.min(length, this.#options.bodyBytesMax);
    const frames = request.url.startsWith("https:") ? framesOf(body) + body / RECORDED_PART : 0;
    const taken = () => counted?.taken ?? (request.bodyUsed ? body : 0);
    return () => ({ bytes: body + frames, taken: taken() + frames, isOver: false });
  }
}

/** Returns the bytes that may frame the pieces of a body of so many bytes. */
const framesOf = (bytes: number): number => Math.min(bytes * FRAMED_FACTOR, FRAMED_BYTES_MAX);

/** Ends the watch of all requests that a connection has now. */
function pass(connection: Connection): void {
  for (const answered of connection.answered.values()) answered.isPast = true;
  end(connection);
}

function end(connection: Connection): void {
  connection.watch?.end();
  connection.watch = null;
}

const peerOf = ({ hostname, port }: Deno.NetAddr): string => `${hostname} ${port}`;

const NO_BODY = { bytes: 0, taken: 0, isOver: true };
