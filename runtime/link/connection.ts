/**
 * An authenticated connection between two sites: records in and out, store messages, requests, heartbeat.
 *
 * Life: made with the keys of a handshake → `run` reads until the end → closed, by either side's goodbye
 * (planned), by silence, by a broken protocol, or by the byte connection (unplanned).
 *
 * CX1  Frames go out in batches: frames that are queued within one turn of the event loop leave as one record, one
 *      write.
 * CX2  Whatever the other side sends, this side's memory stays within the limits; a breach of the protocol closes the
 *      connection and nothing else.
 * CX3  `run` resolves exactly once, and nothing is delivered after it has.
 * CX4  Bytes that have come in one piece are handled in slices, and outgoing ones are written in slices: after SLICE_MS
 *      everything else that is ready has its turn.
 */
import { clearTimeout, setImmediate, setTimeout } from "node:timers";
import { nextTurn } from "../loop/next_turn.ts";
import type { LinkCounters } from "./counters.ts";
import {
  type ExchangePorts,
  Exchanges,
  type IncomingRequest,
  type LinkAnswer,
  type ReceivedAnswer,
  type RequestOptions,
} from "./exchanges.ts";
import { eachFrame, encodeFrame, expectLength, LINK_FRAME, readU32 } from "./frame.ts";
import type { Acquaintance } from "./handshake.ts";
import type { LinkLimits } from "./limits.ts";
import { errorText, LinkError } from "./link_error.ts";
import { MessageReceiver, MessageSender } from "./messages.ts";
import { LinkOutbox } from "./outbox.ts";
import { ProtocolViolation, RecordReader, RecordWriter } from "./record.ts";
import type { Wire } from "./wire.ts";

/** Milliseconds that a goodbye waits for queued frames to go out and for the other side to close. */
const FAREWELL_MS = 1_000;
/** Milliseconds of a slice, as for the store's own (CX4; store/model/lock.ts). */
const SLICE_MS = 1;

/** Reason for a connection's end. */
export interface ConnectionEnd {
  /** True where one of the two sides said goodbye. */
  readonly planned: boolean;
  /** True where the other side broke the protocol: worth a warning. */
  readonly violation: boolean;
  readonly reason: string;
}

export interface ConnectionHandlers {
  readonly message: (bytes: Uint8Array) => void | Promise<void>;
  readonly request: (request: IncomingRequest) => Promise<LinkAnswer>;
}

export class Connection {
  readonly acquaintance: Acquaintance;
  /** True where this side dialled. */
  readonly dialer: boolean;
  readonly madeMs: number;
  readonly #wire: Wire;
  readonly #limits: LinkLimits;
  readonly #counters: LinkCounters;
  readonly #reader: RecordReader;
  readonly #record: RecordWriter;
  readonly #outbox: LinkOutbox;
  readonly #sender: MessageSender;
  readonly #receiver: MessageReceiver;
  readonly #exchanges: Exchanges;
  readonly #nowMs: () => number;
  #writing = false;
  #scheduled = false;
  #ending: ConnectionEnd | null = null;
  /** True when a goodbye is coming: nothing new is sent. */
  #parting = false;
  /** True when this side has said goodbye: what comes in is discarded until the other side closes. */
  #leaving = false;
  #onDrained: (() => void) | null = null;
  #ended = Promise.withResolvers<void>();
  #heardMs: number;
  /** Time at which something other than heartbeats last went over the connection. */
  #usedMs: number;
  #ping: { readonly id: number; readonly sentMs: number } | null = null;
  #pingNext = 1;
  #pingSentMs = 0;
  #rttMs: number | null = null;

  constructor(options: {
    wire: Wire;
    acquaintance: Acquaintance;
    dialer: boolean;
    limits: LinkLimits;
    counters: LinkCounters;
    handlers: ConnectionHandlers;
    nowMs: () => number;
  }) {
    const { limits, counters, handlers } = options;
    this.acquaintance = options.acquaintance;
    this.dialer = options.dialer;
    this.#wire = options.wire;
    this.#limits = limits;
    this.#counters = counters;
    this.#nowMs = options.nowMs;
    this.madeMs = this.#heardMs = this.#usedMs = this.#nowMs();
    this.#reader = new RecordReader(options.acquaintance.receiveKey, options.acquaintance.leftover);
    this.#record = new RecordWriter(options.acquaintance.sendKey);
    this.#sender = new MessageSender(limits, counters);
    this.#outbox = new LinkOutbox(this.#sender, counters);
    this.#receiver = new MessageReceiver(limits, counters, {
      deliver: (message) => this.#deliver(handlers, message),
      grant: (bytes) => this.#urgent(encodeFrame(LINK_FRAME.messageCredit, [bytes])),
    });
    const ports: ExchangePorts = { handle: handlers.request, wake: () => this.#wake() };
    this.#exchanges = new Exchanges({
      dialer: options.dialer,
      outbox: this.#outbox,
      limits,
      counters,
      ports,
    });
  }

  get open(): boolean {
    return this.#ending === null && !this.#parting;
  }

  /** Round trip of the last ping; null before the first. */
  get rttMs(): number | null {
    return this.#rttMs;
  }

  get queuedBytes(): number {
    return this.#sender.queuedBytes;
  }

  get requests(): number {
    return this.#exchanges.count;
  }

  /** Sends a store message; resolves when there is room for another. Dropped once the connection is closing. */
  send(message: Uint8Array): Promise<void> {
    if (!this.open) return Promise.resolve();
    this.#sender.push(message);
    this.#usedMs = this.#heardMs;
    if (this.#sender.queuedBytes > this.#limits.queueBytesMax) {
      this.abort(`${this.#sender.queuedBytes} bytes are queued for it`);
      return Promise.resolve();
    }
    this.#wake();
    return this.#sender.room();
  }

  /** Sends a request. @throws LinkError */
  request(kind: string, head: Uint8Array, options?: RequestOptions): Promise<ReceivedAnswer> {
    if (!this.open) {
      options?.body?.cancel().catch(() => {});
      return Promise.reject(new LinkError("unreachable", "The link is being closed"));
    }
    this.#usedMs = this.#nowMs();
    return this.#exchanges.request(kind, head, options);
  }

  /** Reads until the connection ends. Called once. */
  async run(): Promise<ConnectionEnd> {
    // The first ping measures the round trip; afterwards they only fill silence.
    this.#sendPing();
    try {
      do {
        let sinceMs = this.#nowMs();
        for (let payload = this.#reader.take(); payload; payload = this.#reader.take()) {
          this.#dispatch(payload);
          if (this.#nowMs() - sinceMs < SLICE_MS) continue;
          await nextTurn();
          sinceMs = this.#nowMs();
        }
      } while (this.#ending === null && await this.#fill());
      this.#end({ planned: this.#leaving, violation: false, reason: "the other side closed" });
    } catch (error) {
      const violation = error instanceof ProtocolViolation && !this.#leaving;
      this.#end({ planned: this.#leaving, violation, reason: errorText(error) });
    }
    return this.#ending ?? { planned: false, violation: false, reason: "" };
  }

  async #fill(): Promise<boolean> {
    return await this.#reader.fill(async (into) => {
      const count = await this.#wire.read(into);
      if (count === null) return null;
      this.#counters.bytesIn += count;
      this.#heardMs = this.#nowMs();
      return count;
    });
  }

  /** Says goodbye, waits until queued frames have gone, and closes. */
  async goodbye(reason: string): Promise<void> {
    if (!this.open) return;
    this.#parting = true;
    const timer = setTimeout(() => this.#end({ planned: true, violation: false, reason }), FAREWELL_MS);
    await this.#drained();
    this.#urgent(encodeFrame(LINK_FRAME.goodbye, [], new TextEncoder().encode(reason.slice(0, 200))));
    this.#leaving = true;
    await this.#ended.promise;
    clearTimeout(timer);
  }

  /** Closes at once. */
  abort(reason: string): void {
    this.#end({ planned: false, violation: false, reason });
  }

  /**
   * Checks the heartbeat; called several times per ping interval. `lateMs`: how much later than it should be this call
   * is.
   */
  tick(nowMs: number, lateMs: number): void {
    if (!this.open) return;
    // This process stood still, so silence tells nothing of the other side.
    if (lateMs > this.#limits.pingMs) this.#heardMs = Math.max(this.#heardMs, nowMs - this.#limits.pingMs);
    const silentMs = nowMs - this.#heardMs;
    if (silentMs > this.#limits.deadMs) return this.abort(`nothing heard for ${Math.round(silentMs)} ms`);
    const sinceMs = nowMs - this.#pingSentMs;
    const due = silentMs >= this.#limits.pingMs ? this.#limits.pingMs : 10 * this.#limits.pingMs;
    if (sinceMs >= due) this.#sendPing();
  }

  /** Returns the milliseconds for which only heartbeats went over the connection. */
  unusedMs(nowMs: number): number {
    return this.#exchanges.count > 0 || this.#sender.queuedBytes > 0 ? 0 : nowMs - this.#usedMs;
  }

  #sendPing(): void {
    this.#ping = { id: this.#pingNext, sentMs: this.#nowMs() };
    this.#pingSentMs = this.#ping.sentMs;
    this.#pingNext = (this.#pingNext + 1) >>> 0;
    this.#urgent(encodeFrame(LINK_FRAME.ping, [this.#ping.id]));
  }

  #deliver(handlers: ConnectionHandlers, message: Uint8Array): void | Promise<void> {
    this.#usedMs = this.#heardMs;
    // Messages are a stream: after one that was not taken, the next must not come.
    const failed = (error: unknown) => this.abort(`a store message could not be taken: ${errorText(error)}`);
    try {
      return handlers.message(message)?.catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  #dispatch(payload: Uint8Array): void {
    eachFrame(payload, (type, body) => {
      if (this.#ending || (this.#leaving && type !== LINK_FRAME.goodbye)) return;
      if (type <= LINK_FRAME.messagePart && type >= LINK_FRAME.message) {
        return this.#receiver.receive(type, body);
      }
      if (type >= LINK_FRAME.open && type <= LINK_FRAME.credit) {
        this.#usedMs = this.#heardMs;
        return this.#exchanges.receive(type, body);
      }
      if (type !== LINK_FRAME.goodbye) expectLength(body, 4);
      switch (type) {
        case LINK_FRAME.messageCredit:
          this.#sender.grant(readU32(body, 0));
          return this.#wake();
        case LINK_FRAME.ping:
          return this.#urgent(encodeFrame(LINK_FRAME.pong, [readU32(body, 0)]));
        case LINK_FRAME.pong:
          return this.#onPong(readU32(body, 0));
        case LINK_FRAME.goodbye:
          return this.#end({ planned: true, violation: false, reason: new TextDecoder().decode(body) });
        default:
          throw new ProtocolViolation(`a frame of the unknown type ${type}`);
      }
    });
  }

  #onPong(id: number): void {
    if (this.#ping?.id !== id) return;
    this.#rttMs = this.#nowMs() - this.#ping.sentMs;
    this.#ping = null;
  }

  #urgent(frame: Uint8Array): void {
    if (this.#ending || this.#leaving) return;
    this.#outbox.urgent(frame);
    this.#wake();
  }

  #wake(): void {
    if (this.#writing || this.#scheduled || this.#ending || !this.#outbox.ready) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  async #flush(): Promise<void> {
    if (this.#writing || this.#ending) return;
    this.#writing = true;
    try {
      let sinceMs = this.#nowMs();
      while (this.#outbox.ready && !this.#ending) {
        this.#record.begin();
        this.#outbox.fill(this.#record, this.#wire.recordBytes);
        if (this.#record.length === 0) break;
        const bytes = this.#record.seal();
        this.#counters.bytesOut += bytes.length;
        await this.#wire.write(bytes); // a socket that has room takes them at once
        if (this.#nowMs() - sinceMs < SLICE_MS) continue;
        await nextTurn();
        sinceMs = this.#nowMs();
      }
    } catch (error) {
      this.#end({
        planned: this.#leaving,
        violation: error instanceof ProtocolViolation,
        reason: errorText(error),
      });
    }
    this.#writing = false;
    this.#onDrained?.();
  }

  /** Resolves when the queue has been written, or cannot be. */
  async #drained(): Promise<void> {
    while (!this.#ending && (this.#writing || this.#scheduled || this.#outbox.ready)) {
      await new Promise<void>((resolve) => this.#onDrained = resolve);
    }
  }

  #end(ending: ConnectionEnd): void {
    if (this.#ending) return;
    this.#ending = ending;
    this.#sender.close();
    this.#receiver.close();
    this.#exchanges.close(ending.reason);
    this.#wire.close();
    this.#onDrained?.();
    this.#ended.resolve();
  }
}
