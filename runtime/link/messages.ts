/**
 * The store's messages on one connection: opaque bytes, first in first out. A long message travels in parts,
 * so that other frames can come between; credits bound what the receiver holds and has not taken.
 *
 * LM1  Messages are delivered whole, once, in the order sent, the next only after the owner has taken the last.
 * LM2  The receiver holds at most one window, plus one message of the largest size that is being put together.
 */
import type { LinkCounters } from "./counters.ts";
import { FRAME_HEADER_BYTES, LINK_FRAME, readU32 } from "./frame.ts";
import { LINK_PART_BYTES_MAX, type LinkLimits } from "./limits.ts";
import { ProtocolViolation, type RecordWriter } from "./record.ts";

export class MessageSender {
  readonly #limits: LinkLimits;
  readonly #counters: LinkCounters;
  #queue: Uint8Array[] = [];
  #first = 0;
  /** Bytes of the first message that are sent already. */
  #sent = 0;
  #credit: number;
  #queuedBytes = 0;
  #room: PromiseWithResolvers<void> | null = null;

  constructor(limits: LinkLimits, counters: LinkCounters) {
    this.#limits = limits;
    this.#counters = counters;
    this.#credit = limits.messageWindowBytes;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** True where something could be sent now. */
  get ready(): boolean {
    const message = this.#queue[this.#first];
    if (message === undefined) return false;
    return this.#credit >=
      Math.min(message.length - this.#sent, LINK_PART_BYTES_MAX) + 2 * FRAME_HEADER_BYTES;
  }

  push(message: Uint8Array): void {
    this.#queue.push(message);
    this.#queuedBytes += message.length + FRAME_HEADER_BYTES;
  }

  /** Resolves when there is room for another message. */
  room(): Promise<void> {
    if (this.#queuedBytes <= this.#limits.roomBytes) return READY;
    this.#room ??= Promise.withResolvers();
    return this.#room.promise;
  }

  grant(bytes: number): void {
    this.#credit += bytes;
    if (this.#credit > this.#limits.messageWindowBytes) {
      throw new ProtocolViolation("credit beyond the window");
    }
  }

  /** Moves frames into the record, up to about `quantum` bytes. */
  fill(record: RecordWriter, quantum: number): void {
    const end = record.length + quantum;
    while (record.length < end && this.ready) {
      const message = this.#queue[this.#first];
      if (message === undefined) break;
      const before = record.length;
      const done = this.#sent === 0 && message.length <= LINK_PART_BYTES_MAX
        ? this.#whole(record, message)
        : this.#part(record, message);
      const used = record.length - before;
      this.#credit -= used;
      this.#counters.storeBytesOut += used;
      if (done) this.#shift(message);
    }
    if (this.#room && this.#queuedBytes <= this.#limits.roomBytes) this.close();
  }

  /** Releases those that wait for room: the connection is closed. */
  close(): void {
    this.#room?.resolve();
    this.#room = null;
  }

  #whole(record: RecordWriter, message: Uint8Array): boolean {
    record.frame(LINK_FRAME.message, message.length);
    record.append(message);
    return true;
  }

  #part(record: RecordWriter, message: Uint8Array): boolean {
    const part = message.subarray(this.#sent, this.#sent + LINK_PART_BYTES_MAX);
    if (this.#sent === 0) {
      record.frame(LINK_FRAME.messageBegin, 4 + part.length);
      record.u32(message.length);
    } else record.frame(LINK_FRAME.messagePart, part.length);
    record.append(part);
    this.#sent += part.length;
    return this.#sent === message.length;
  }

  #shift(message: Uint8Array): void {
    this.#counters.storeMessagesOut++;
    this.#queuedBytes -= message.length + FRAME_HEADER_BYTES;
    this.#sent = 0;
    this.#first++;
    if (this.#first === this.#queue.length) {
      this.#queue = [];
      this.#first = 0;
    } else if (this.#first >= 1024) {
      this.#queue.splice(0, this.#first);
      this.#first = 0;
    }
  }
}

const READY: Promise<void> = Promise.resolve();

export interface MessageReceiverPorts {
  /** Takes a message; the next follows when the promise, if any, has settled. */
  readonly deliver: (message: Uint8Array) => void | Promise<void>;
  readonly grant: (bytes: number) => void;
}

export class MessageReceiver {
  readonly #limits: LinkLimits;
  readonly #counters: LinkCounters;
  readonly #ports: MessageReceiverPorts;
  /** Messages that arrived whole, waiting for the owner to take the one before. */
  #waiting: { readonly message: Uint8Array; readonly charge: number }[] = [];
  #busy = false;
  #closed = false;
  #partial: Uint8Array | null = null;
  #partialBytes = 0;
  /** Charge of the partial message that was not given back yet. */
  #partialCharge = 0;
  /** Charge of everything received and not given back. */
  #held = 0;
  #owed = 0;

  constructor(limits: LinkLimits, counters: LinkCounters, ports: MessageReceiverPorts) {
    this.#limits = limits;
    this.#counters = counters;
    this.#ports = ports;
  }

  receive(type: number, body: Uint8Array): void {
    const charge = FRAME_HEADER_BYTES + body.length;
    this.#held += charge;
    this.#counters.storeBytesIn += charge;
    if (this.#held + this.#owed > this.#limits.messageWindowBytes) {
      throw new ProtocolViolation("store messages beyond the credit");
    }
    if (type === LINK_FRAME.message) return this.#whole(body, charge);
    this.#partialCharge += charge;
    if (type === LINK_FRAME.messageBegin) this.#begin(readU32(body, 0), body.subarray(4));
    else this.#append(body);
  }

  close(): void {
    this.#closed = true;
    this.#waiting = [];
    this.#partial = null;
  }

  #whole(body: Uint8Array, charge: number): void {
    if (this.#partial) throw new ProtocolViolation("a store message inside another");
    if (body.length > LINK_PART_BYTES_MAX) {
      throw new ProtocolViolation("a long store message that is not in parts");
    }
    this.#arrived(body.slice(), charge);
  }

  #begin(total: number, part: Uint8Array): void {
    if (this.#partial) throw new ProtocolViolation("a store message inside another");
    if (total <= LINK_PART_BYTES_MAX || total > this.#limits.messageBytesMax) {
      throw new ProtocolViolation(
        `a store message of ${total} bytes in parts; up to ${this.#limits.messageBytesMax} are accepted`,
      );
    }
    this.#partial = new Uint8Array(total);
    this.#partialBytes = 0;
    this.#append(part);
  }

  #append(part: Uint8Array): void {
    const message = this.#partial;
    if (!message) throw new ProtocolViolation("a part of no store message");
    if (
      part.length < 1 || part.length > LINK_PART_BYTES_MAX ||
      this.#partialBytes + part.length > message.length
    ) {
      throw new ProtocolViolation("a part of a store message has a wrong length");
    }
    message.set(part, this.#partialBytes);
    this.#partialBytes += part.length;
    if (this.#partialBytes < message.length) return this.#releasePartial();
    const charge = this.#partialCharge;
    this.#partial = null;
    this.#partialCharge = 0;
    this.#arrived(message, charge);
  }

  /**
   * Gives back the credit of a message's parts before it is whole: they must not wait for that, as the credit would run
   * out. They do wait while messages before it are not taken, so that LM2 holds.
   */
  #releasePartial(): void {
    if (this.#busy || this.#partialCharge === 0) return;
    const charge = this.#partialCharge;
    this.#partialCharge = 0;
    this.#release(charge);
  }

  #arrived(message: Uint8Array, charge: number): void {
    this.#counters.storeMessagesIn++;
    if (this.#busy) {
      this.#waiting.push({ message, charge });
      return;
    }
    const taken = this.#ports.deliver(message);
    if (taken) this.#deliverRest(taken, charge);
    else this.#release(charge);
  }

  async #deliverRest(taken: Promise<void>, charge: number): Promise<void> {
    this.#busy = true;
    await taken;
    this.#release(charge);
    for (;;) {
      const next = this.#closed ? undefined : this.#waiting.shift();
      if (!next) break;
      await this.#ports.deliver(next.message);
      this.#release(next.charge);
    }
    this.#busy = false;
    this.#releasePartial();
  }

  #release(charge: number): void {
    this.#held -= charge;
    this.#owed += charge;
    if (this.#closed || this.#owed < this.#limits.messageWindowBytes / 4) return;
    const owed = this.#owed;
    this.#owed = 0;
    this.#ports.grant(owed);
  }
}
