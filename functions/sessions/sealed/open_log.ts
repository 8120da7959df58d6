/**
 * Opening of a log that a host gives back: everything that it says is checked. The host can do nothing to it unseen but
 * leave out the end.
 *
 * OL1  Opening never throws, whatever the records are; its work is bounded by HOST_LOG_BYTES_MAX and HOST_RECORDS_MAX.
 * OL2  A log that opens was sealed by homes of this stateful session for this host, in this order, without a gap.
 */
import { createDecipheriv } from "node:crypto";
import type { Buffer } from "node:buffer";
import { CodecError, Reader } from "../../../store/model/codec.ts";
import type { LogCopy, LogPiece } from "../log/asks.ts";
import { CommitForm } from "./commits.ts";
import { type SealedFor, seriesKey } from "./keys.ts";
import { HOST_LOG_BYTES_MAX, HOST_RECORDS_MAX, SALT_BYTES, TAG_BYTES } from "./limits.ts";
import { headOf, type RecordHead, tagOf } from "./record.ts";
import { associated, countUp, NO_TAG, NONCE_BYTES } from "./series.ts";
import { type LogStart, readStart } from "./whole_log.ts";

/** A host's log, opened. */
export interface HostCopy {
  readonly log: LogCopy;
  /** Last entry of the log; 0: it has none. */
  readonly through: number;
  /** Epoch of the home that sealed the log's last series. */
  readonly epoch: number;
  /** Tag of its last record: a further series goes on from there. */
  readonly tag: Uint8Array;
  /** Bytes of all its records, and their number. */
  readonly bytes: number;
  readonly records: number;
}

export type OpenedHostLog =
  | { readonly ok: true; readonly copy: HostCopy }
  | { readonly ok: false; readonly code: "log_forged" | "limit_log"; readonly message: string };

/** Opens a host's log. @param secrets of the cluster, newest first. */
export function openHostLog(
  secrets: readonly Uint8Array[],
  of: SealedFor,
  records: readonly Uint8Array[],
): OpenedHostLog {
  const bytes = records.reduce((sum, { length }) => sum + length, 0);
  if (bytes > HOST_LOG_BYTES_MAX || records.length > HOST_RECORDS_MAX) {
    return {
      ok: false,
      code: "limit_log",
      message: `cannot take a log of ${bytes} bytes in ${records.length} records: expected up to ` +
        `${HOST_LOG_BYTES_MAX} bytes in up to ${HOST_RECORDS_MAX}`,
    };
  }
  const opening = new Opening(secrets, of);
  for (const [at, record] of records.entries()) {
    try {
      opening.add(record);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      return {
        ok: false,
        code: "log_forged",
        message:
          `cannot take the log that ${of.receiver} holds: its record ${at + 1} of ${records.length} was ` +
          `not sealed for it, or not behind the one before it (${error.message})`,
      };
    }
  }
  const copy = opening.done();
  if (copy !== null) return { ok: true, copy: { ...copy, bytes, records: records.length } };
  return {
    ok: false,
    code: "log_forged",
    message: `cannot take the log that ${of.receiver} holds: it is empty`,
  };
}

class Opening {
  readonly #secrets: readonly Uint8Array[];
  readonly #of: SealedFor;
  #key: Buffer | null = null;
  #nonce = new Uint8Array(NONCE_BYTES);
  #tag: Uint8Array = NO_TAG;
  #epoch = 0;
  #form: CommitForm;
  #start: LogStart | null = null;
  readonly #pieces: LogPiece[] = [];
  #through = 0;

  constructor(secrets: readonly Uint8Array[], of: SealedFor) {
    this.#secrets = secrets;
    this.#of = of;
    this.#form = new CommitForm(0, of.receiver);
  }

  /** Opens the next record. @throws CodecError */
  add(record: Uint8Array): void {
    const head = headOf(record);
    const isFirst = this.#start === null;
    if (isFirst !== (head.kind === "whole")) throw new CodecError("a log begins with one whole record");
    const plain = head.epoch === null ? this.#unsealed(this.#key, record, head) : this.#begin(record, head);
    this.#tag = tagOf(record);
    countUp(this.#nonce);
    const reader = new Reader(plain);
    if (head.kind === "whole") {
      this.#start = readStart(reader);
      this.#through = this.#start.base?.at ?? 0;
    } else if (head.kind === "further" && reader.uint() !== this.#through) {
      throw new CodecError("it goes on from another entry");
    }
    while (!reader.isAtEnd) this.#pieces.push(this.#piece(reader, plain));
  }

  done(): Omit<HostCopy, "bytes" | "records"> | null {
    if (this.#start === null) return null;
    const log = { ...this.#start, pieces: this.#pieces };
    return { log, through: this.#through, epoch: this.#epoch, tag: this.#tag };
  }

  /** Opens the first record of a series, under whichever of the secrets sealed it. */
  #begin(record: Uint8Array, head: RecordHead): Uint8Array {
    const epoch = head.epoch ?? 0;
    if (epoch < this.#epoch) throw new CodecError("epochs fall");
    this.#nonce = new Uint8Array(NONCE_BYTES);
    const salt = record.subarray(head.clear - SALT_BYTES, head.clear);
    for (const secret of this.#secrets) {
      const key = seriesKey(secret, this.#of, epoch, salt);
      const plain = tryUnsealed(key, this.#nonce, this.#tag, record, head.clear);
      if (plain === null) continue;
      this.#key = key;
      this.#epoch = epoch;
      this.#form = new CommitForm(epoch, this.#of.receiver);
      return plain;
    }
    throw new CodecError("it does not open");
  }

  #unsealed(key: Buffer | null, record: Uint8Array, { clear }: RecordHead): Uint8Array {
    const plain = key === null ? null : tryUnsealed(key, this.#nonce, this.#tag, record, clear);
    if (plain === null) throw new CodecError("it does not open");
    return plain;
  }

  #piece(reader: Reader, plain: Uint8Array): LogPiece {
    const piece = this.#form.read(reader, plain, this.#through + 1);
    this.#through += piece.count;
    if (!Number.isSafeInteger(this.#through)) throw new CodecError("a number is beyond 53 bits");
    return piece;
  }
}

/** Returns the bytes that a record seals; null: this key did not seal it, or not in this place. */
function tryUnsealed(
  key: Buffer,
  nonce: Uint8Array,
  before: Uint8Array,
  record: Uint8Array,
  clear: number,
): Uint8Array | null {
  const decipher = createDecipheriv("aes-128-gcm", key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(associated(before, record.subarray(0, clear)));
  decipher.setAuthTag(tagOf(record));
  const plain = decipher.update(record.subarray(clear, record.length - TAG_BYTES));
  try {
    decipher.final();
    // A Buffer's slices are views: bytes that are read would keep the whole record.
    return new Uint8Array(plain.buffer, plain.byteOffset, plain.length);
  } catch {
    return null;
  }
}
