/**
 * What owners say to each other about tuples, in one packet: new tuples, changed owners, tuples that are gone, receipts
 * for packets before. Bytes and vectors: docs/protocol/owners.md.
 */
import { CodecError, Reader, Writer } from "../model/codec.ts";
import { F_MAX, TUPLE_BYTES_MAX, TUPLE_ID_BYTES_MAX } from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";

export type TupleId = string;

/** A tuple as its teller has it. */
export interface Entry {
  readonly id: TupleId;
  /** Counts the changes of its owners. */
  readonly version: number;
  readonly owners: readonly SiteId[];
  /** It was removed: no owner may have it any more. */
  readonly gone: boolean;
  /** null: the other has it, or says that it is missing. */
  readonly payload: Uint8Array | null;
}

export interface Receipt {
  readonly seq: number;
  /** There was no room for what was new in that packet. */
  readonly full: boolean;
}

export interface TuplePacket {
  /** Drawn when the sender's process began. */
  readonly boot: number;
  /** The receiver's, as the sender knows it; 0: not yet. What refers to another one is void. */
  readonly to: number;
  /** Asks for a receipt; 0: not. */
  readonly seq: number;
  /** Asks for all that the other knows of tuples that the two share, under this number; 0: not. */
  readonly greeting: number;
  /** The entries are of the answer to that greeting; 0: not. */
  readonly list: number;
  /** And the answer ends here. */
  readonly isListEnd: boolean;
  /** All entries of these packets are on disk here, but for those said to be missing or answered by an entry. */
  readonly receipts: readonly Receipt[];
  readonly missing: readonly TupleId[];
  readonly entries: readonly Entry[];
  /** Tuples whose end everybody knows. */
  readonly forget: readonly TupleId[];
}

const KIND = { light: 0, full: 1, gone: 2 } as const;

export function encodeTuplePacket(packet: TuplePacket): Uint8Array<ArrayBuffer> {
  const w = new Writer(256).uint(packet.boot).uint(packet.to).uint(packet.seq);
  w.uint(packet.greeting).uint(packet.list).flag(packet.isListEnd);
  w.list(packet.receipts, ({ seq, full }) => w.uint(seq).flag(full));
  w.list(packet.missing, (id) => w.text(id));
  const sites = new Map<SiteId, number>();
  for (const { owners } of packet.entries) {
    for (const site of owners) if (!sites.has(site)) sites.set(site, sites.size);
  }
  w.list([...sites.keys()], (site) => w.text(site));
  w.list(packet.entries, ({ id, version, owners, gone, payload }) => {
    w.text(id).uint(version).list(owners, (site) => w.uint(sites.get(site) ?? 0));
    if (gone) w.byte(KIND.gone);
    else if (payload === null) w.byte(KIND.light);
    else w.byte(KIND.full).bytes(payload);
  });
  return w.list(packet.forget, (id) => w.text(id)).done();
}

/** @throws CodecError for anything that encodeTuplePacket does not produce, and for tuples beyond their limits. */
export function decodeTuplePacket(bytes: Uint8Array): TuplePacket {
  const r = new Reader(bytes);
  const head = {
    boot: r.uint(),
    to: r.uint(),
    seq: r.uint(),
    greeting: r.uint(),
    list: r.uint(),
    isListEnd: r.flag(),
    receipts: r.list(() => ({ seq: r.uint(), full: r.flag() })),
    missing: r.list(() => readId(r)),
  };
  const sites = r.list(() => r.text());
  if (new Set(sites).size !== sites.length) throw new CodecError("a packet names a site twice");
  let named = 0;
  const entries = r.list(() => {
    const id = readId(r), version = r.uint();
    const owners = r.list(() => {
      const index = r.uint();
      const site = sites[index];
      if (site === undefined || index > named) throw new CodecError("an owner is not in the packet's list");
      named = Math.max(named, index + 1);
      return site;
    });
    if (owners.length === 0 || owners.length > F_MAX + 1 || new Set(owners).size !== owners.length) {
      throw new CodecError(`a tuple has ${owners.length} owners: expected up to ${F_MAX + 1}, each once`);
    }
    return { id, version, owners, ...readKind(r) };
  });
  if (named !== sites.length) throw new CodecError("a packet names a site that owns nothing");
  const forget = r.list(() => readId(r));
  r.end();
  return { ...head, entries, forget };
}

function readId(r: Reader): TupleId {
  const id = r.text();
  if (!isTupleId(id)) throw new CodecError("a tuple has a bad id");
  return id;
}

function readKind(r: Reader): Pick<Entry, "gone" | "payload"> {
  const kind = r.byte();
  if (kind === KIND.light) return { gone: false, payload: null };
  if (kind === KIND.gone) return { gone: true, payload: null };
  if (kind !== KIND.full) throw new CodecError("an entry is of an unknown kind");
  const payload = r.bytes();
  if (payload.length > TUPLE_BYTES_MAX) {
    throw new CodecError(`a tuple has ${payload.length} bytes, more than ${TUPLE_BYTES_MAX}`);
  }
  return { gone: false, payload };
}

const utf8 = new TextEncoder();
/** Whether a text can be a tuple's id. */
export const isTupleId = (id: string): boolean =>
  id.length > 0 && id.length <= TUPLE_ID_BYTES_MAX && id.isWellFormed() &&
  (id.length * 3 <= TUPLE_ID_BYTES_MAX || utf8.encode(id).length <= TUPLE_ID_BYTES_MAX);

/** Bytes that an entry takes in a packet, within a few. */
export const entryBytes = ({ id, owners, payload }: Entry): number =>
  id.length + owners.length + (payload?.length ?? 0) + 6;
