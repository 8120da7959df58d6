/**
 * Queue of the frames that wait to go out on one connection, in the order in which they go: urgent frames first, then
 * store messages and bodies take turns, a part each, so that neither a long message nor a long body holds up the
 * others.
 */
import type { LinkBodySender } from "./body.ts";
import type { LinkCounters } from "./counters.ts";
import { LINK_FRAME } from "./frame.ts";
import { LINK_PART_BYTES_MAX, RECORD_BYTES_SOFT } from "./limits.ts";
import type { MessageSender } from "./messages.ts";
import { ProtocolViolation, type RecordWriter } from "./record.ts";

/**
 * Bytes of waiting urgent frames (credits, resets, pongs): a connection that owes more is being flooded with frames
 * that ask for them.
 */
const URGENT_BYTES_MAX = 1024 * 1024;

export class LinkOutbox {
  readonly #messages: MessageSender;
  readonly #counters: LinkCounters;
  #urgent: Uint8Array[] = [];
  #urgentBytes = 0;
  /** Senders with something to send, in turn. */
  #bodies: LinkBodySender[] = [];

  constructor(messages: MessageSender, counters: LinkCounters) {
    this.#messages = messages;
    this.#counters = counters;
  }

  get ready(): boolean {
    return this.#urgent.length > 0 || this.#bodies.length > 0 || this.#messages.ready;
  }

  /** Queues an urgent frame. @throws ProtocolViolation when the other side makes us owe it too much. */
  urgent(frame: Uint8Array): void {
    this.#urgentBytes += frame.length;
    if (this.#urgentBytes > URGENT_BYTES_MAX) {
      throw new ProtocolViolation("a flood of frames that ask for an answer");
    }
    this.#urgent.push(frame);
  }

  /** Lists a body sender that has something to send. */
  list(sender: LinkBodySender): void {
    if (sender.listed || !sender.ready) return;
    sender.listed = true;
    this.#bodies.push(sender);
  }

  /** Fills a record up to about `recordBytes` of payload. */
  fill(record: RecordWriter, recordBytes: number): void {
    for (const frame of this.#urgent) {
      record.append(frame);
      const type = frame[0] ?? 0;
      if (type >= LINK_FRAME.open && type <= LINK_FRAME.credit) {
        this.#counters.requestBytesOut += frame.length;
      }
    }
    this.#urgent = [];
    this.#urgentBytes = 0;
    const soft = Math.min(recordBytes, RECORD_BYTES_SOFT);
    const part = Math.min(soft, LINK_PART_BYTES_MAX);
    while (record.length < soft) {
      const before = record.length;
      if (this.#messages.ready) this.#messages.fill(record, part);
      this.#fillBody(record, part);
      if (record.length === before) break;
    }
  }

  /** Moves one part of the next body that can move; those that were reset meanwhile drop out. */
  #fillBody(record: RecordWriter, part: number): void {
    const before = record.length;
    for (let sender = this.#bodies.shift(); sender; sender = this.#bodies.shift()) {
      sender.listed = false;
      if (!sender.ready) continue;
      sender.fill(record, part);
      this.list(sender);
      break;
    }
    this.#counters.requestBytesOut += record.length - before;
  }
}
