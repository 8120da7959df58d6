/**
 * The records of a sealed log, as far as those that hold them can read: clients and origins, which have no key.
 *
 *   whole    00, varint epoch, 16 bytes salt, sealed, 12 bytes tag    a log from its base on: what was held before can go
 *   further  01, varint epoch, 16 bytes salt, sealed, 12 bytes tag    goes on where the record before it ends
 *   pieces   02, sealed, 12 bytes tag                                 the next commits
 *
 * A whole or further record begins a *series*: its key is made of its epoch and salt, and the pieces after it are of it.
 * What is sealed, and how: series.ts. Bytes and vectors: docs/protocol/hosts.md.
 */
import { CodecError, Reader } from "../../../store/model/codec.ts";
import { SALT_BYTES, TAG_BYTES } from "./limits.ts";

export const KINDS = ["whole", "further", "pieces"] as const;
export type RecordKind = typeof KINDS[number];

/** What anybody can read of a record. */
export interface RecordHead {
  readonly kind: RecordKind;
  /** null: that of the series. */
  readonly epoch: number | null;
  /** Its clear bytes, salt included. */
  readonly clear: number;
}

/** @throws CodecError for bytes that can be no record. */
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

/** The last bytes of a record: the next one's associated data. */
export const tagOf = (record: Uint8Array): Uint8Array => record.subarray(record.length - TAG_BYTES);
