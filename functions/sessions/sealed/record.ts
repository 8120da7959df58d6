/**
 * The records of a sealed log, as far as those that hold them can read: clients and origins, which have no key.
 *
 *   whole    00, varint epoch, 16 bytes salt, sealed, 12 bytes tag    a log from its base on: what was held before can go
 *   further  01, varint epoch, 16 bytes salt, sealed, 12 bytes tag    goes on where the record before it ends
 *   pieces   02, sealed, 12 bytes tag                                 the next commits
 *
 * A whole or further record begins a *series*: its key is made of its epoch and salt, and the pieces after it are of it.
 * The file series.ts says what is sealed, and how. Bytes and vectors: docs/protocol/hosts.md.
 */
import { CodecError, Reader } from "../../../store/model/codec.ts";
import { SALT_BYTES, TAG_BYTES } from "./limits.ts";

export const KINDS = ["whole", "further", "pieces"] as const;
export type RecordKind = typeof KINDS[number];

/** Head of a record, which anybody can read. */
export interface RecordHead {
  readonly kind: RecordKind;
  /** Epoch of the record; null: that of its series. */
  readonly epoch: number | null;
  /** Number of its clear bytes, salt included. */
  readonly clear: number;
}

/** Reads the head of a record. @throws CodecError for bytes that can be no record. */
export function headOf(record: Uint8Array): RecordHead {
  const reader = new Reader(record);
  const kind = KINDS[reader.byte()];
  if (kind === undefined) throw new CodecError(`there is no record of kind ${record[0]}`);
  let epoch: number | null = null;
  if (kind !== "pieces") {
    epoch = reader.uint();
    if (epoch === 0) throw new CodecError("a record has no epoch");
    reader.fixed(SALT_BYTES);
  }
  const clear = reader.position;
  if (record.length < clear + TAG_BYTES) throw new CodecError("a record ends before its tag");
  return { kind, epoch, clear };
}

/** Returns the tag of a record, its last bytes: they are associated data of the next record. */
export const tagOf = (record: Uint8Array): Uint8Array => record.subarray(record.length - TAG_BYTES);
