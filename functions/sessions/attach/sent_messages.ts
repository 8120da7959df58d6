/**
 * Messages that a host side has sent: those that are in the session's log are dropped, the others are kept.
 *
 *   acknowledged < on their way ≤ taken < waiting ≤ last
 */
import { PEER_WINDOW_BYTES, WINDOW_MESSAGES } from "./limits.ts";

/** Messages that were sent (see the file's header). */
export class SentMessages {
  /** Messages from `#first` on; the first `#gone` of them are empty. */
  #messages: Uint8Array[];
  #gone = 0;
  #first: number;
  #bytes = 0;
  #taken: number;
  #takenBytes = 0;

  constructor(first: number, messages: readonly Uint8Array[]) {
    this.#messages = [...messages];
    this.#first = first;
    this.#taken = first - 1;
    for (const { length } of messages) this.#bytes += length;
  }

  /** Sequence of the last message. */
  get last(): number {
    return this.#first + this.#messages.length - 1;
  }

  /** Sequence up to which all messages are in the log. */
  get acknowledged(): number {
    return this.#first + this.#gone - 1;
  }

  /** Sequence up to which all messages were sent on this channel, or are in the log. */
  get taken(): number {
    return this.#taken;
  }

  get onTheirWay(): number {
    return this.#taken - this.acknowledged;
  }

  get isAllOnTheWay(): boolean {
    return this.#taken === this.last;
  }

  /** Bytes of the messages that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  kept(): Uint8Array[] {
    return this.#messages.slice(this.#gone);
  }

  push(tagged: Uint8Array): void {
    this.#messages.push(tagged);
    this.#bytes += tagged.length;
  }

  /** Begins a channel: messages that are not in the log are to go. */
  begin(acknowledged: number): void {
    this.#taken = this.acknowledged;
    this.#takenBytes = 0;
    this.acknowledge(acknowledged);
  }

  /** Takes the next message that may go; null where none may, or there is none. */
  take(): { readonly sequence: number; readonly tagged: Uint8Array } | null {
    const tagged = this.#messages[this.#taken + 1 - this.#first];
    if (tagged === undefined || this.onTheirWay >= WINDOW_MESSAGES) return null;
    if (this.#takenBytes > 0 && this.#takenBytes + tagged.length - 1 > PEER_WINDOW_BYTES) return null;
    this.#takenBytes += tagged.length - 1;
    return { sequence: ++this.#taken, tagged };
  }

  acknowledge(count: number): void {
    for (let sequence = this.acknowledged + 1; sequence <= count; sequence++) {
      const { length } = this.#messages[this.#gone] ?? NONE;
      this.#messages[this.#gone++] = NONE;
      this.#bytes -= length;
      if (sequence <= this.#taken) this.#takenBytes -= length - 1;
    }
    this.#taken = Math.max(this.#taken, count);
    if (this.#gone < COMPACT_AT && this.#gone < this.#messages.length) return;
    this.#messages = this.#messages.slice(this.#gone);
    this.#first += this.#gone;
    this.#gone = 0;
  }

  clear(): void {
    this.#messages = [];
    this.#gone = this.#bytes = 0;
  }
}

const NONE = new Uint8Array(0);
/** Number of empty places that are not worth a copy of the rest. */
const COMPACT_AT = 256;
