/** The rows as messages carry them. */
import { type Reader, Writer } from "../model/codec.ts";
import { checkMerge, isMerge } from "../model/merge.ts";
import type { Row } from "../model/row.ts";

/** Row on the wire. `known` is as in row.ts, as the sender sees it; the receiver gives the row its position. */
export type WireRow = Omit<Row, "position">;

/** Bytes of rows that go to several sites, kept when they are encoded first; null: not encoded yet. */
const encoded = new WeakMap<readonly WireRow[], Uint8Array | null>();

/** Notes that rows go to several sites. */
export function shareRows(rows: readonly WireRow[]): void {
  if (!encoded.has(rows)) encoded.set(rows, null);
}

export function writeWireRows(w: Writer, rows: readonly WireRow[]): Writer {
  const known = encoded.get(rows);
  if (known === undefined) return writeEach(w, rows);
  const bytes = known ?? writeEach(new Writer(4_096), rows).done();
  encoded.set(rows, bytes);
  return w.raw(bytes);
}

function writeEach(w: Writer, rows: readonly WireRow[]): Writer {
  return w.list(rows, (row) => {
    w.key(row.key).uint(row.clock).uint(row.replica).uint(row.known).uint(row.expiresAtMs);
    if (row.value === null) w.byte(0);
    else w.byte(1).bytes(row.value);
  });
}

export function readWireRows(r: Reader): WireRow[] {
  return r.list(() => ({
    key: r.key(),
    clock: r.uint(),
    replica: r.uint(),
    known: r.uint(),
    expiresAtMs: r.uint(),
    value: r.flag() ? readValue(r) : null,
  }));
}

/**
 * Reads a value. What an app's values mean is the app's business; a merge value means something to each site (merge.ts,
 * G3).
 */
function readValue(r: Reader): Uint8Array {
  const value = r.bytes();
  if (isMerge(value)) checkMerge(value);
  return value;
}

/** Returns the bytes that a row takes in a message, within a few. */
export const wireBytes = (row: WireRow): number => row.key.length + (row.value?.length ?? 0) + ROW_BYTES;
/** Bytes that a row takes beside its key and value. */
export const ROW_BYTES = 24;

/** Yields rows in groups of about `bytes`, at least one group, with the last marked. */
export function* chunks<R extends WireRow>(
  rows: readonly R[],
  bytes: number,
): Generator<{ rows: R[]; more: boolean }> {
  let group: R[] = [], size = 0;
  for (const row of rows) {
    if (size > 0 && size + wireBytes(row) > bytes) {
      yield { rows: group, more: true };
      group = [];
      size = 0;
    }
    group.push(row);
    size += wireBytes(row);
  }
  yield { rows: group, more: false };
}
