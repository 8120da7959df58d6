/**
 * The merge values: those of rows written by `sum`, `min` and `max`, whose concurrent writes at several sites join
 * instead of replacing one another.
 *
 * A merge value is a base (the last plain value, with its version: the *epoch*) and one cumulative part a writer. Two
 * merge values of one epoch join part by part (each replica's newer part wins); of two epochs the newer wins whole, so
 * that a plain `set` ends what was summed onto an older base. A plain row is a merge value without parts whose epoch is
 * its own version.
 *
 * G1  join is commutative, associative and idempotent.
 * G2  The joined row's version is the larger of the two; its content names every part of the winning epoch.
 * G3  A merge value is made here and nowhere else: a client writes plain values (value.ts), and a neighbour's value is
 *     refused where it is not formed as one. A row that can't be joined would stop each site that it reaches.
 */
import { CodecError, Reader, Writer } from "./codec.ts";
import { compareVersions, type Version } from "./row.ts";
import { isNumberValue, isPlainValue, VALUE_TAG } from "./value.ts";

export type MergeKind = "sum" | "min" | "max";
const KINDS: readonly MergeKind[] = ["sum", "min", "max"];

/** Error for a row's value that can't take part in a merge. */
export class MergeError extends Error {
  override readonly name = "MergeError";
  readonly code = "value_type";
}

interface Part extends Version {
  /** Number of the part: a plain number or u64 value, tagged. */
  readonly amount: Uint8Array;
}

interface MergeValue {
  readonly kind: MergeKind;
  readonly epoch: Version;
  /** Base that the parts add to; null: absent. */
  readonly base: Uint8Array | null;
  /** Parts of the writers by replica, ascending. */
  readonly parts: readonly Part[];
}

type Content = Version & { readonly value: Uint8Array | null; readonly expiresAtMs: number };

export const isMerge = (value: Uint8Array | null): value is Uint8Array => value?.[0] === VALUE_TAG.merge;

function decode(value: Uint8Array): MergeValue {
  const reader = new Reader(value.subarray(1));
  const kind = KINDS[reader.byte()];
  if (kind === undefined) throw new MergeError("a merge value has an unknown kind");
  const epoch = { clock: reader.uint(), replica: reader.uint() };
  const base = reader.flag() ? reader.bytes() : null;
  const parts = reader.list(() => ({ replica: reader.uint(), clock: reader.uint(), amount: reader.bytes() }));
  reader.end();
  return { kind, epoch, base, parts };
}

/** Checks the form of a merge value. @throws CodecError where it is not formed as one (G3). */
export function checkMerge(value: Uint8Array): void {
  const fault = faultOf(value);
  if (fault !== null) throw new CodecError(`a merge value that none can be: ${fault}`);
}

function faultOf(value: Uint8Array): string | null {
  let merge: MergeValue;
  try {
    merge = decode(value);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  const { base, parts } = merge;
  if (base !== null && !isPlainValue(base)) return "its base is no value";
  if (!parts.every(({ amount }) => isNumberValue(amount))) return "one of its parts is no number";
  if (parts.some(({ replica }, i) => replica <= (parts[i - 1]?.replica ?? -1))) {
    return "its parts have no order";
  }
  return null;
}

function encode(merge: MergeValue): Uint8Array {
  const writer = new Writer(64).byte(VALUE_TAG.merge).byte(KINDS.indexOf(merge.kind));
  writer.uint(merge.epoch.clock).uint(merge.epoch.replica).flag(merge.base !== null);
  if (merge.base !== null) writer.bytes(merge.base);
  writer.list(merge.parts, (part) => writer.uint(part.replica).uint(part.clock).bytes(part.amount));
  return writer.done();
}

/** Returns a row's content as a merge value; a plain one has no parts, and any kind will do. */
const contentOf = (row: Content, kind: MergeKind): MergeValue =>
  isMerge(row.value)
    ? decode(row.value)
    : { kind, epoch: { clock: row.clock, replica: row.replica }, base: row.value, parts: [] };

/** Returns the join of two rows of one key of which at least one is a merge row. */
export function joinRows<R extends Content>(a: R, b: R): R {
  const newer = compareVersions(a, b) >= 0 ? a : b;
  const older = newer === a ? b : a;
  const kind = decode(isMerge(a.value) ? a.value : b.value ?? new Uint8Array()).kind;
  const left = contentOf(newer, kind), right = contentOf(older, kind);
  const order = compareVersions(left.epoch, right.epoch);
  const joined = order !== 0 ? (order > 0 ? left : right) : { ...left, parts: joinParts(left, right) };
  const value = joined === left ? newer.value : encode(joined);
  return equalBytes(value, newer.value) ? newer : { ...newer, value };
}

/** Returns the newer of two rows of a key, or the row that they join to. */
export function newerRow<R extends Content>(a: R, b: R): R {
  if (isMerge(a.value) || isMerge(b.value)) return joinRows<R>(a, b);
  return compareVersions(a, b) >= 0 ? a : b;
}

function joinParts(a: MergeValue, b: MergeValue): Part[] {
  const byReplica = new Map<number, Part>();
  for (const part of [...a.parts, ...b.parts]) {
    const other = byReplica.get(part.replica);
    if (other === undefined || compareVersions(part, other) > 0) byReplica.set(part.replica, part);
  }
  return [...byReplica.values()].sort((x, y) => x.replica - y.replica);
}

/** Reports whether two values are the same bytes. */
export function equalBytes(a: Uint8Array | null, b: Uint8Array | null): boolean {
  if (a === null || b === null || a.length !== b.length) return a === b;
  return a.every((byte, i) => byte === b[i]);
}

/**
 * Returns the value after one more contribution by a writer.
 *
 * @throws MergeError where the row's value, or the contribution, is not a number of the same type.
 */
export function contribute(
  row: Content | undefined,
  kind: MergeKind,
  amount: Uint8Array,
  by: Version,
): Uint8Array {
  const none = { clock: 0, replica: 0, value: null, expiresAtMs: 0 };
  let merge = contentOf(row ?? none, kind);
  if (merge.kind !== kind && row !== undefined) {
    // Another kind of merge on top of this one starts from its result.
    merge = { kind, epoch: { clock: row.clock, replica: row.replica }, base: resolve(row.value), parts: [] };
  }
  const mine = merge.parts.find((part) => part.replica === by.replica);
  const total = mine === undefined ? amount : combine(kind, mine.amount, amount);
  if (merge.base !== null) combine(kind, merge.base, amount);
  const rest = merge.parts.filter((part) => part.replica !== by.replica);
  const parts = [...rest, { ...by, amount: total }].sort((x, y) => x.replica - y.replica);
  return encode({ ...merge, parts });
}

/** Returns the plain value that a stored value stands for; null where it reads as absent. */
export function resolve(value: Uint8Array | null): Uint8Array | null {
  if (!isMerge(value)) return value;
  const merge = decode(value);
  return merge.parts.reduce<Uint8Array | null>(
    (total, part) => total === null ? part.amount : combine(merge.kind, total, part.amount),
    merge.base,
  );
}

/** Combines two tagged numbers of one type. Sums of u64 wrap, as in Deno KV. */
function combine(kind: MergeKind, a: Uint8Array, b: Uint8Array): Uint8Array {
  if (a[0] !== b[0] || a.length !== 9 || b.length !== 9) {
    throw new MergeError(`'${kind}' needs values of one number type on both sides`);
  }
  const left = new DataView(a.buffer, a.byteOffset + 1, 8),
    right = new DataView(b.buffer, b.byteOffset + 1, 8);
  const out = new Uint8Array(9);
  const view = new DataView(out.buffer, 1, 8);
  out[0] = a[0] ?? 0;
  if (out[0] === VALUE_TAG.u64) {
    view.setBigUint64(0, pick(kind, left.getBigUint64(0, true), right.getBigUint64(0, true)), true);
  } else if (out[0] === VALUE_TAG.number) {
    view.setFloat64(0, pick(kind, left.getFloat64(0, true), right.getFloat64(0, true)), true);
  } else throw new MergeError(`'${kind}' needs a number or a KvU64`);
  return out;
}

function pick<N extends number | bigint>(kind: MergeKind, a: N, b: N): N {
  if (kind === "sum") return (a as number) + (b as number) as N;
  return (kind === "min") === (a < b) ? a : b;
}
