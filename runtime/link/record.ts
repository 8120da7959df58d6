/**
 * Records: the units that are written to the byte connection at once. length (4) · payload · MAC (16). The MAC also
 * covers the record's sequence number, which is not sent: a record that was changed, repeated, left out or put
 * elsewhere has a wrong one.
 *
 * RR1  A reader yields payloads in the order and in exactly the bytes in which they were sealed, then ends; at the
 *      first byte that does not belong it throws, and never yields again.
 * RR2  A payload that was yielded is valid until the next call: a reader that keeps bytes copies them.
 */
import { RECORD_BYTES_MAX } from "./limits.ts";
import { equalProof, MAC_BYTES, RecordMac } from "./proof.ts";

const SEQUENCE_BYTES = 8;
const LENGTH_BYTES = 4;
const HEADER_BYTES = SEQUENCE_BYTES + LENGTH_BYTES;
/**
 * Bytes of the first buffers, and of the largest: an idle link of a parent with a thousand children should cost little.
 */
const BUFFER_BYTES_MIN = 8 * 1024;
const BUFFER_BYTES_MAX = HEADER_BYTES + RECORD_BYTES_MAX + MAC_BYTES;
const TWO_32 = 2 ** 32;

/** Error for a breach of the protocol by the other side: the connection must close, with this reason in the log. */
export class ProtocolViolation extends Error {
  override readonly name = "ProtocolViolation";
}

/** Collects frames into one payload, then seals it. Reused from record to record. */
export class RecordWriter {
  readonly #mac: RecordMac;
  #sequence = 0;
  #bytes = new Uint8Array(BUFFER_BYTES_MIN);
  #view = new DataView(this.#bytes.buffer);
  #at = HEADER_BYTES;

  constructor(key: Uint8Array) {
    this.#mac = new RecordMac(key);
  }

  /** Bytes of payload so far. */
  get length(): number {
    return this.#at - HEADER_BYTES;
  }

  begin(): void {
    this.#at = HEADER_BYTES;
  }

  /** Appends a frame's header; `bodyBytes` of body must follow. */
  frame(type: number, bodyBytes: number): void {
    this.#ensure(4 + bodyBytes);
    this.#view.setUint32(this.#at, type * 0x1000000 + bodyBytes);
    this.#at += 4;
  }

  u32(value: number): void {
    this.#ensure(4);
    this.#view.setUint32(this.#at, value);
    this.#at += 4;
  }

  append(bytes: Uint8Array): void {
    this.#ensure(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  /** Returns the record as it goes out; valid until the next `begin`. */
  seal(): Uint8Array {
    this.#ensure(MAC_BYTES);
    this.#view.setUint32(0, Math.floor(this.#sequence / TWO_32));
    this.#view.setUint32(4, this.#sequence % TWO_32);
    this.#view.setUint32(SEQUENCE_BYTES, this.length);
    this.#sequence++;
    this.#bytes.set(this.#mac.of(this.#bytes.subarray(0, this.#at)), this.#at);
    return this.#bytes.subarray(SEQUENCE_BYTES, this.#at + MAC_BYTES);
  }

  #ensure(more: number): void {
    const needed = this.#at + more + MAC_BYTES;
    if (needed <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
    grown.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

/** Splits and verifies the bytes that arrive. */
export class RecordReader {
  readonly #mac: RecordMac;
  #sequence = 0;
  #bytes: Uint8Array;
  #view: DataView;
  /** Bounds of the unread bytes: [start, end). Before start there is always room for a sequence number. */
  #start = SEQUENCE_BYTES;
  #end = SEQUENCE_BYTES;

  /** @param leftover bytes that came with the handshake's last message. */
  constructor(key: Uint8Array, leftover: Uint8Array) {
    this.#mac = new RecordMac(key);
    this.#bytes = new Uint8Array(Math.max(BUFFER_BYTES_MIN, SEQUENCE_BYTES + leftover.length));
    this.#view = new DataView(this.#bytes.buffer);
    this.#bytes.set(leftover, this.#end);
    this.#end += leftover.length;
  }

  /**
   * Returns the next payload that is here whole, or undefined.
   * @throws ProtocolViolation
   */
  take(): Uint8Array | undefined {
    const available = this.#end - this.#start;
    if (available < LENGTH_BYTES) return undefined;
    const length = this.#view.getUint32(this.#start);
    if (length < 1 || length > RECORD_BYTES_MAX) {
      throw new ProtocolViolation(`a record of ${length} bytes; 1 to ${RECORD_BYTES_MAX} are accepted`);
    }
    if (available < LENGTH_BYTES + length + MAC_BYTES) return undefined;
    // The eight bytes before the length were read already: the sequence number goes there, so that the MAC is
    // taken over one piece of memory.
    this.#view.setUint32(this.#start - 8, Math.floor(this.#sequence / TWO_32));
    this.#view.setUint32(this.#start - 4, this.#sequence % TWO_32);
    const from = this.#start + LENGTH_BYTES;
    const to = from + length;
    const expected = this.#mac.of(this.#bytes.subarray(this.#start - SEQUENCE_BYTES, to));
    if (!equalProof(expected, this.#bytes.subarray(to, to + MAC_BYTES))) {
      throw new ProtocolViolation(`record ${this.#sequence} has a wrong MAC`);
    }
    this.#sequence++;
    this.#start = to + MAC_BYTES;
    return this.#bytes.subarray(from, to);
  }

  /**
   * Waits for more bytes; to be called when `take` has nothing.
   * @returns false at the end of the connection. @throws ProtocolViolation when it ends inside a record.
   */
  async fill(read: (into: Uint8Array) => Promise<number | null>): Promise<boolean> {
    const available = this.#end - this.#start;
    if (available === 0) this.#start = this.#end = SEQUENCE_BYTES;
    if (this.#end === this.#bytes.length) this.#makeRoom();
    const count = await read(this.#bytes.subarray(this.#end));
    if (count === null) {
      if (available > 0) throw new ProtocolViolation("the connection ended inside a record");
      return false;
    }
    this.#end += count;
    return true;
  }

  /**
   * Makes room for more bytes. A full buffer means a busy connection or a large record, so the buffer may grow as well.
   */
  #makeRoom(): void {
    const size = Math.min(BUFFER_BYTES_MAX, 4 * this.#bytes.length);
    const target = size > this.#bytes.length ? new Uint8Array(size) : this.#bytes;
    if (target === this.#bytes) target.copyWithin(SEQUENCE_BYTES, this.#start, this.#end);
    else target.set(this.#bytes.subarray(this.#start, this.#end), SEQUENCE_BYTES);
    this.#end = SEQUENCE_BYTES + this.#end - this.#start;
    this.#start = SEQUENCE_BYTES;
    this.#bytes = target;
    this.#view = new DataView(target.buffer);
  }
}
