/**
 * The log of a stateful session at one of its hosts, a client or an origin: sealed, so held and never read.
 *
 * Life: nothing → `take` a whole record, then more → (a recovery) `promise`, with what it holds as the answer → `take`
 * what the next home sends → … → `drop`, when its peer is over. It is a `HeldLog` (functions/sessions/attach) as it is.
 *
 * HG1  A promise and its answer are one step: from then on nothing of an earlier epoch is taken.
 * HG2  An output counts as received only with the record that came with it: `take` comes first, and says whether the
 *      record is of a home that may still be heard.
 * HG3  A whole record takes the place of all before it, in one step; nothing else drops a record before its peer is
 *      over.
 * HG4  The log is bounded, in bytes and records. A home that goes beyond breaks the protocol.
 */
import { CodecError, Reader, Writer } from "../../../store/model/codec.ts";
import { HOST_LOG_BYTES_MAX, HOST_RECORDS_MAX, TAG_BYTES } from "./limits.ts";
import { headOf, tagOf } from "./record.ts";

/** Result of `take`. */
export type Taken =
  | "held"
  /** The record is of a home that was followed by another: what came with it is to be ignored (HG1). */
  | "stale"
  /** The bytes are no record, or one that can't be held here: the channel is to be closed. */
  | "invalid";

/** Summary of a log, which its host says when it comes back. */
export interface HostLogSummary {
  /** Newest epoch that the host has promised; 0: none. */
  readonly promised: number;
  /** Tag of the host's last record, which says where its log ends; null: it has none. */
  readonly tag: Uint8Array | null;
}

/** Encodes a summary as a hello brings it: varint promised; flag, and the tag where there is one. */
export function encodeSummary({ promised, tag }: HostLogSummary): Uint8Array<ArrayBuffer> {
  const writer = new Writer(32).uint(promised).flag(tag !== null);
  return (tag === null ? writer : writer.raw(tag)).done();
}

/** Decodes a summary. @throws CodecError */
export function decodeSummary(bytes: Uint8Array): HostLogSummary {
  const reader = new Reader(bytes);
  const promised = reader.uint();
  const tag = reader.flag() ? reader.fixed(TAG_BYTES) : null;
  reader.end();
  return { promised, tag };
}

/** The log of one session at one host. */
export class HostLog {
  #promised = 0;
  #records: Uint8Array[] = [];
  #bytes = 0;

  get promised(): number {
    return this.#promised;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get length(): number {
    return this.#records.length;
  }

  /** Newest record of the log. */
  get last(): Uint8Array | undefined {
    return this.#records.at(-1);
  }

  summary(): Uint8Array<ArrayBuffer> {
    const { last } = this;
    return encodeSummary({ promised: this.#promised, tag: last === undefined ? null : tagOf(last) });
  }

  /** Promises an epoch, and returns all records, oldest first; null: a later epoch was promised (HG1). */
  promise(epoch: number): readonly Uint8Array[] | null {
    if (epoch < this.#promised) return null;
    this.#promised = epoch;
    return [...this.#records];
  }

  /** Takes a record of the home of an epoch. */
  take(epoch: number, record: Uint8Array): Taken {
    if (epoch < this.#promised) return "stale";
    let head;
    try {
      head = headOf(record);
    } catch {
      return "invalid";
    }
    const isBegun = head.kind === "whole" || this.#records.length > 0;
    if (!isBegun || (head.epoch !== null && head.epoch !== epoch)) return "invalid";
    const before = head.kind === "whole" ? { bytes: 0, records: 0 } : {
      bytes: this.#bytes,
      records: this.#records.length,
    };
    if (before.bytes + record.length > HOST_LOG_BYTES_MAX || before.records >= HOST_RECORDS_MAX) { // HG4
      return "invalid";
    }
    this.#promised = epoch;
    if (head.kind === "whole") this.#records = []; // HG3
    this.#records.push(record.slice()); // a view would keep its frame, which may be large
    this.#bytes = before.bytes + record.length;
    return "held";
  }

  /** Drops all records: their peer is over, or begins anew. */
  drop(): void {
    this.#promised = this.#bytes = 0;
    this.#records = [];
  }

  /**
   * Returns a log that has promised an epoch and holds these records: what was stored of it.
   *
   * @throws CodecError for records that no log ever held: then there is none, and its peer begins anew.
   */
  static restore(promised: number, records: readonly Uint8Array[]): HostLog {
    const log = new HostLog();
    for (const record of records) {
      const { epoch } = headOf(record);
      if (log.take(epoch ?? log.#promised, record) !== "held") {
        throw new CodecError("a stored log is not what was held");
      }
    }
    if (promised < log.#promised) throw new CodecError("a stored log is of a later epoch than was promised");
    log.#promised = promised;
    return log;
  }
}
