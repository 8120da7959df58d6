/**
 * What one flush reads for the children. Those that are told the same have it read, and encoded, once: of a
 * change that thousands cover (a site's row, a deployment), and of the system rows when many join together.
 *
 * R1  It lives for one flush: everything is as committed at the mark's head, and no commit comes between.
 * R2  What is shared is never changed.
 */
import type { Core, Mark } from "./core.ts";
import type { Key } from "./key.ts";
import { MESSAGE_BYTES_TARGET, SHARED_RANGES_MAX } from "./limits.ts";
import { chunks, shareRows, type WireRow } from "./message.ts";
import type { Range } from "./range.ts";
import type { Position, Row } from "./row.ts";

/** Rows read at once when a returning child is brought up to date. */
const SCAN_ROWS = 2_000;

type Chunk = ReturnType<typeof chunks> extends Generator<infer C> ? C : never;

interface RangeRead {
  /** The interval that was read. */
  readonly range: Range;
  readonly chunks: readonly Chunk[];
  /** Live rows in it. */
  readonly live: number;
}

/** See the file's header. */
export class FlushReads {
  readonly mark: Mark;
  readonly #core: Core;
  readonly #changes = new Map<string, readonly Chunk[]>();
  readonly #ranges = new Map<string, RangeRead>();

  constructor(core: Core, mark: Mark) {
    this.#core = core;
    this.mark = mark;
  }

  /** The rows of some keys in journal order. */
  async changes(keys: readonly Key[]): Promise<readonly Chunk[]> {
    if (keys.length === 0) return NOTHING;
    // No key holds a character beyond a byte.
    const name = keys.join("\u0100");
    const known = this.#changes.get(name);
    if (known !== undefined) return shared(known);
    const read = this.#chunks(await this.#core.rows.committed(keys));
    this.#changes.set(name, read);
    return read;
  }

  /** The same, and every row past a position that `has` holds of. */
  async changesSince(
    keys: readonly Key[],
    after: Position,
    has: (key: Key) => boolean,
  ): Promise<readonly Chunk[]> {
    const rows = new Map<Key, Row>();
    for (const row of await this.#core.rows.committed(keys)) rows.set(row.key, row);
    for (;;) {
      const page = await this.#core.ports.storage.journal(after, this.mark.head, SCAN_ROWS);
      for (const row of page) if (has(row.key)) rows.set(row.key, row);
      const last = page.at(-1);
      if (last === undefined || page.length < SCAN_ROWS) return this.#chunks([...rows.values()]);
      after = last.position;
    }
  }

  #chunks(rows: readonly Row[]): readonly Chunk[] {
    return this.#cut([...rows].sort((a, b) => a.position - b.position));
  }

  #cut(rows: readonly Row[]): readonly Chunk[] {
    const { reach } = this.mark;
    const wire = rows.map((row): WireRow => ({ ...row, known: this.#core.knownDepth(row, reach) }));
    return [...chunks(wire, MESSAGE_BYTES_TARGET)];
  }

  /** A range, or what of it holds `limit` live rows. */
  async range(range: Range, limit: number, reverse: boolean): Promise<RangeRead> {
    const name = `${range.start}\u0100${range.end}\u0100${limit}${reverse}`;
    const known = this.#ranges.get(name);
    if (known !== undefined) {
      shared(known.chunks);
      return known;
    }
    const { rows, seen, range: whole } = await this.#core.rows.committedScan(range, limit, reverse);
    const read = { range: whole, chunks: this.#cut(seen), live: rows.length };
    if (this.#ranges.size >= SHARED_RANGES_MAX) this.#ranges.delete([...this.#ranges.keys()][0] ?? "");
    this.#ranges.set(name, read);
    return read;
  }
}

const NOTHING: readonly Chunk[] = [{ rows: [], more: false }];

function shared(chunks: readonly Chunk[]): readonly Chunk[] {
  for (const { rows } of chunks) shareRows(rows);
  return chunks;
}
