/**
 * Requests over one connection, both directions. An exchange: open (kind, head) and a body one way, answer (head)
 * and a body the other way, at the same time if they like; it is over when both bodies have ended or one side
 * resets it.
 *
 * EX1  Every request ends: with an answer, or with a LinkError.
 * EX2  After a reset or the connection's end nothing of the exchange is held: sources are cancelled, readers fail, the
 *      handler's signal is aborted.
 */
import { encodeBodyHead, LinkBodyReceiver, LinkBodySender } from "./body.ts";
import type { LinkCounters } from "./counters.ts";
import { encodeFrame, expectLength, FLAG_BODILESS, LINK_FRAME, readU32 } from "./frame.ts";
import { type LinkLimits, WAY_KINDS } from "./limits.ts";
import { errorByte, errorText, LinkError, type LinkErrorCode, linkErrorCode } from "./link_error.ts";
import type { LinkOutbox } from "./outbox.ts";
import { ProtocolViolation } from "./record.ts";

/** A request as its handler sees it. */
export interface IncomingRequest {
  readonly kind: string;
  readonly head: Uint8Array;
  /** Body; null when the request has none. Cancelling it refuses the rest of it. */
  readonly body: ReadableStream<Uint8Array> | null;
  /** Aborted when the other side gives the request up or the link is lost. */
  readonly signal: AbortSignal;
}

export interface LinkAnswer {
  readonly head: Uint8Array;
  readonly body?: ReadableStream<Uint8Array> | null;
}

export interface RequestOptions {
  readonly body?: ReadableStream<Uint8Array> | null;
  readonly signal?: AbortSignal | undefined;
}

/** Answer to a request. */
export interface ReceivedAnswer {
  readonly head: Uint8Array;
  /** Body; null when the answer has none. Cancelling it gives the whole request up. */
  readonly body: ReadableStream<Uint8Array> | null;
}

interface Exchange {
  readonly id: number;
  readonly mine: boolean;
  /** True where the exchange stays open for as long as somebody is attached (limits.ts). */
  readonly isWay: boolean;
  readonly sender: LinkBodySender;
  receiver: LinkBodyReceiver | null;
  sent: boolean;
  received: boolean;
  /** Promise of the answer, for an exchange of this side that has none yet. */
  answer: PromiseWithResolvers<ReceivedAnswer> | null;
  /** Signal for the handler, for an exchange of the other side. */
  readonly abort: AbortController | null;
  release: (() => void) | null;
}

export interface ExchangePorts {
  readonly handle: (request: IncomingRequest) => Promise<LinkAnswer>;
  /** Called when something is in the outbox. */
  readonly wake: () => void;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });
const KIND_BYTES_MAX = 64;

/**
 * Numbers of open exchanges. Ways have places of their own: they stay, and requests that come and go are not to wait
 * for them.
 */
interface Counts {
  ways: number;
  requests: number;
}

export class Exchanges {
  readonly #open = new Map<number, Exchange>();
  readonly #outbox: LinkOutbox;
  readonly #limits: LinkLimits;
  readonly #counters: LinkCounters;
  readonly #ports: ExchangePorts;
  readonly #dialer: boolean;
  #idNext: number;
  /** Open exchanges, by the side that opened them. */
  readonly #mine: Counts = { ways: 0, requests: 0 };
  readonly #theirs: Counts = { ways: 0, requests: 0 };
  #closed = false;

  constructor(options: {
    dialer: boolean;
    outbox: LinkOutbox;
    limits: LinkLimits;
    counters: LinkCounters;
    ports: ExchangePorts;
  }) {
    this.#dialer = options.dialer;
    // The dialer's requests have odd ids, so that both sides can open at once.
    this.#idNext = options.dialer ? 1 : 2;
    this.#outbox = options.outbox;
    this.#limits = options.limits;
    this.#counters = options.counters;
    this.#ports = options.ports;
  }

  get count(): number {
    return this.#open.size;
  }

  /** Sends a request. @throws LinkError */
  async request(kind: string, head: Uint8Array, options: RequestOptions = {}): Promise<ReceivedAnswer> {
    const refused = this.#refusal(kind, head, options);
    if (refused) {
      options.body?.cancel(refused).catch(() => {});
      throw refused;
    }
    const body = options.body ?? null;
    const exchange = this.#create(this.#nextId(), { mine: true, kind });
    const answer = Promise.withResolvers<ReceivedAnswer>();
    exchange.answer = answer;
    const { signal } = options;
    if (signal) {
      const onAbort = () => this.#reset(exchange, "cancelled", "The request was given up");
      signal.addEventListener("abort", onAbort, { once: true });
      exchange.release = () => signal.removeEventListener("abort", onAbort);
    }
    this.#counters.requestsOut++;
    const flags = body ? 0 : FLAG_BODILESS;
    const frame = encodeBodyHead({
      type: LINK_FRAME.open,
      id: exchange.id,
      flags,
      kind: encoder.encode(kind),
      head,
    });
    exchange.sender.start(frame, body, (error) => this.#reset(exchange, "failed", errorText(error)));
    return await answer.promise;
  }

  #refusal(kind: string, head: Uint8Array, options: RequestOptions): LinkError | null {
    if (this.#closed) return new LinkError("unreachable", "The link is closed");
    if (options.signal?.aborted) {
      return new LinkError("cancelled", "The request was given up before it was sent");
    }
    if (encoder.encode(kind).length > KIND_BYTES_MAX) {
      return new LinkError(
        "limit",
        `Cannot send a request of kind ${JSON.stringify(kind)}: up to ${KIND_BYTES_MAX} bytes`,
      );
    }
    if (head.length > this.#limits.headBytesMax) {
      return new LinkError(
        "limit",
        `Cannot send a head of ${head.length} bytes over a link: up to ${this.#limits.headBytesMax}`,
      );
    }
    const full = this.#full(this.#mine, kind);
    return full === null ? null : new LinkError("overloaded", `Cannot send: ${full} are open on this link`);
  }

  /**
   * Returns the text of the limit that is reached, so that one more exchange is not to be opened; null: there is room.
   */
  #full({ ways, requests }: Counts, kind: string): string | null {
    const { waysMax, requestsMax } = this.#limits;
    if (WAY_KINDS.has(kind)) return ways < waysMax ? null : `${ways} ways`;
    return requests < requestsMax ? null : `${requests} requests`;
  }

  #nextId(): number {
    // Ids are 32 bits and come round; one that is still open is passed over.
    while (this.#open.has(this.#idNext)) this.#advanceId();
    const id = this.#idNext;
    this.#advanceId();
    return id;
  }

  #advanceId(): void {
    this.#idNext = this.#idNext + 2 > 0xffffffff ? (this.#dialer ? 1 : 2) : this.#idNext + 2;
  }

  #create(id: number, { mine, kind }: { readonly mine: boolean; readonly kind: string }): Exchange {
    const exchange: Exchange = {
      id,
      mine,
      isWay: WAY_KINDS.has(kind),
      sender: new LinkBodySender({
        id,
        window: this.#limits.bodyWindowBytes,
        wake: (sender) => {
          this.#outbox.list(sender);
          this.#ports.wake();
        },
        sent: () => {
          exchange.sent = true;
          this.#settle(exchange);
          // A request's body that the handler had not begun to read when the answer was complete is not wanted.
          const { stream } = exchange.receiver ?? {};
          if (!mine && stream && !exchange.received && !stream.locked) stream.cancel().catch(() => {});
        },
      }),
      receiver: null,
      sent: false,
      received: false,
      answer: null,
      abort: mine ? null : new AbortController(),
      release: null,
    };
    this.#open.set(id, exchange);
    this.#counted(exchange, 1);
    return exchange;
  }

  #receiver(exchange: Exchange): LinkBodyReceiver {
    return new LinkBodyReceiver(this.#limits.bodyWindowBytes, {
      grant: (bytes) => {
        if (this.#open.get(exchange.id) === exchange) {
          this.#urgent(encodeFrame(LINK_FRAME.credit, [exchange.id, bytes]));
        }
      },
      cancelled: () => {
        if (exchange.mine) this.#reset(exchange, "cancelled", "The answer was given up");
        else this.#urgent(encodeFrame(LINK_FRAME.stop, [exchange.id]));
      },
    });
  }

  #urgent(frame: Uint8Array): void {
    if (this.#closed) return;
    this.#outbox.urgent(frame);
    this.#ports.wake();
  }

  /** Takes a frame of a request. @throws ProtocolViolation */
  receive(type: number, body: Uint8Array): void {
    const id = readU32(body, 0);
    this.#counters.requestBytesIn += 4 + body.length;
    if (type === LINK_FRAME.open) return this.#onOpen(id, body);
    const exchange = this.#open.get(id);
    // Frames that were under way when their exchange was reset.
    if (!exchange) return;
    switch (type) {
      case LINK_FRAME.answer:
        return this.#onAnswer(exchange, body);
      case LINK_FRAME.data:
      case LINK_FRAME.dataLast:
        return this.#onData(exchange, body.subarray(4), type === LINK_FRAME.dataLast);
      case LINK_FRAME.stop:
        expectLength(body, 4);
        return exchange.sender.stop();
      case LINK_FRAME.credit:
        expectLength(body, 8);
        return exchange.sender.grant(readU32(body, 4));
      case LINK_FRAME.reset:
        return this.#onReset(exchange, body);
    }
  }

  #onOpen(id: number, body: Uint8Array): void {
    if (id === 0 || (id % 2 === 1) === this.#dialer || this.#open.has(id)) {
      throw new ProtocolViolation(`a request with id ${id}, which is not the other side's to open`);
    }
    const kindLength = body[5];
    if (kindLength === undefined || kindLength > KIND_BYTES_MAX || 6 + kindLength > body.length) {
      throw new ProtocolViolation("a request's head is cut");
    }
    if (body.length - 6 - kindLength > this.#limits.headBytesMax) {
      throw new ProtocolViolation("a request's head is too long");
    }
    const bodiless = readFlags(body);
    const kind = readText(body.subarray(6, 6 + kindLength));
    const full = this.#full(this.#theirs, kind);
    if (full !== null) {
      return this.#urgent(resetFrame(id, "overloaded", `${full} of yours are open on this link`));
    }
    const head = body.slice(6 + kindLength);
    const exchange = this.#create(id, { mine: false, kind });
    this.#counters.requestsIn++;
    if (bodiless) exchange.received = true;
    else exchange.receiver = this.#receiver(exchange);
    this.#answer(exchange, kind, head);
  }

  async #answer(exchange: Exchange, kind: string, head: Uint8Array): Promise<void> {
    const signal = (exchange.abort ?? new AbortController()).signal;
    const body = exchange.receiver?.stream ?? null;
    try {
      const answer = await this.#ports.handle({ kind, head, body, signal });
      const source = answer.body ?? null;
      if (this.#open.get(exchange.id) !== exchange) {
        source?.cancel(signal.reason).catch(() => {});
        return;
      }
      if (answer.head.length > this.#limits.headBytesMax) {
        source?.cancel().catch(() => {});
        return this.#reset(exchange, "limit", `The answer's head has ${answer.head.length} bytes`);
      }
      const flags = source ? 0 : FLAG_BODILESS;
      const frame = encodeBodyHead({ type: LINK_FRAME.answer, id: exchange.id, flags, head: answer.head });
      exchange.sender.start(frame, source, (error) => this.#reset(exchange, "failed", errorText(error)));
    } catch (error) {
      this.#reset(exchange, error instanceof LinkError ? error.code : "failed", errorText(error));
    }
  }

  #onAnswer(exchange: Exchange, body: Uint8Array): void {
    const { answer } = exchange;
    if (!answer || body.length < 5) {
      throw new ProtocolViolation("an answer that nobody waits for, or that is cut");
    }
    if (body.length - 5 > this.#limits.headBytesMax) {
      throw new ProtocolViolation("an answer's head is too long");
    }
    const bodiless = readFlags(body);
    exchange.answer = null;
    if (bodiless) exchange.received = true;
    else exchange.receiver = this.#receiver(exchange);
    answer.resolve({ head: body.slice(5), body: exchange.receiver?.stream ?? null });
    this.#settle(exchange);
  }

  #onData(exchange: Exchange, bytes: Uint8Array, last: boolean): void {
    if (!exchange.receiver || exchange.received) {
      throw new ProtocolViolation("bytes of a body that does not exist");
    }
    exchange.receiver.receive(bytes, last);
    if (!last) return;
    exchange.received = true;
    this.#settle(exchange);
  }

  #onReset(exchange: Exchange, body: Uint8Array): void {
    const code = linkErrorCode(body[4] ?? 255);
    if (code === undefined) throw new ProtocolViolation(`a reset with the unknown code ${body[4]}`);
    this.#end(exchange, new LinkError(code, readText(body.subarray(5))));
  }

  #settle(exchange: Exchange): void {
    if (!exchange.sent || !exchange.received) return;
    this.#forget(exchange);
  }

  #counted({ mine, isWay }: Exchange, by: 1 | -1): void {
    (mine ? this.#mine : this.#theirs)[isWay ? "ways" : "requests"] += by;
  }

  #forget(exchange: Exchange): boolean {
    if (this.#open.get(exchange.id) !== exchange) return false;
    this.#open.delete(exchange.id);
    this.#counted(exchange, -1);
    exchange.release?.();
    return true;
  }

  /** Ends an exchange from this side. */
  #reset(exchange: Exchange, code: LinkErrorCode, message: string): void {
    if (!this.#end(exchange, new LinkError(code, message))) return;
    this.#urgent(resetFrame(exchange.id, code, message));
  }

  #end(exchange: Exchange, error: LinkError): boolean {
    if (!this.#forget(exchange)) return false;
    exchange.sender.close(error);
    exchange.receiver?.fail(error);
    exchange.answer?.reject(error);
    exchange.answer = null;
    exchange.abort?.abort(error);
    return true;
  }

  /** Ends all exchanges: the connection is gone. */
  close(reason: string): void {
    this.#closed = true;
    const error = new LinkError("closed", `The link was lost: ${reason}`);
    for (const exchange of [...this.#open.values()]) this.#end(exchange, error);
  }
}

/** Reports whether the frame's exchange has no body in its direction. @throws ProtocolViolation for unknown flags. */
function readFlags(body: Uint8Array): boolean {
  const flags = body[4] ?? 0;
  if ((flags & ~FLAG_BODILESS) !== 0) throw new ProtocolViolation(`the unknown flags ${flags}`);
  return flags === FLAG_BODILESS;
}

function readText(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new ProtocolViolation("a text that is not UTF-8");
  }
}

function resetFrame(id: number, code: LinkErrorCode, message: string): Uint8Array {
  const text = encoder.encode(message.slice(0, 500).toWellFormed());
  return encodeFrame(LINK_FRAME.reset, [id], new Uint8Array([errorByte(code), ...text]));
}
