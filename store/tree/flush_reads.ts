/**
 * The reads that one flush makes for the children. What several are told alike is read, and encoded, once: a change
 * that thousands cover (a site's row, a deployment), the system rows when many join together, and the journal when many
 * come back.
 *
 * It lives for one flush: everything is as committed at the mark's head, and no commit comes between.
 *
 * What is shared is never changed.
 *
 * R3  It reads in steps, between which everything else that is ready is handled: a child that was away for an hour
 *     would stop the site for as long as its journal takes to read.
 */
import type { Child } from "../core/child.ts";
import type { Core, Mark } from "../core/core.ts";
import type { Key } from "../model/key.ts";
import { type RangeDigest, RangeDigester } from "../model/digest.ts";
import {
  LOOK_BACK_BYTES_MAX,
  MESSAGE_BYTES_TARGET,
  SHARED_RANGES_MAX,
  STEP_BYTES,
  STEP_ROWS,
} from "../model/limits.ts";
import { chunks, shareRows, type WireRow } from "../wire/message.ts";
import { keyAfter, type Range } from "../model/range.ts";
import { type Position, type Row, rowBytes } from "../model/row.ts";

type Chunk = ReturnType<typeof chunks> extends Generator<infer C> ? C : never;

interface RangeRead {
  /** The interval that was read. */
  readonly range: Range;
  readonly chunks: readonly Chunk[];
  /** Number of live rows in the interval. */
  readonly live: number;
}

interface Missed {
  readonly after: Position;
  readonly connection: number;
  readonly rows: Row[];
  bytes: number;
}

/** Reads that one flush makes for the children, each of them once. */
export class FlushReads {
  readonly mark: Mark;
  readonly #core: Core;
  readonly #changes = new Map<string, readonly Chunk[]>();
  readonly #ranges = new Map<string, RangeRead>();
  readonly #digests = new Map<string, RangeDigest>();
  readonly #missed = new Map<Child, Missed>();

  constructor(core: Core, mark: Mark) {
    this.#core = core;
    this.mark = mark;
  }

  /** Reads the rows of some keys in journal order. */
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

  /**
   * Looks for the rows that each of several children that came back has missed, in one walk over the journal: a walk
   * for each would cost all changes as often as there are children, whatever they cover. Children that missed most are
   * left to a walk of their own where all of it together would take too much memory.
   */
  async lookBack(
    children: readonly Child[],
    subscribers: (key: Key) => readonly Child[],
    bytesMax = LOOK_BACK_BYTES_MAX,
  ): Promise<void> {
    for (const child of children) {
      const { scanFrom: after, connection } = child;
      if (after !== null) this.#missed.set(child, { after, connection, rows: [], bytes: 0 });
    }
    if (this.#missed.size < 2) return this.#missed.clear();
    let bytes = 0;
    for await (const page of this.#journal(Math.min(...this.#missed.values().map(({ after }) => after)))) {
      for (const row of page) for (const child of subscribers(row.key)) bytes += this.#note(child, row);
      while (bytes > bytesMax) bytes -= this.#leaveOne();
    }
  }

  /** Notes a row that a child missed; returns the bytes that it takes. */
  #note(child: Child, row: Row): number {
    const missed = this.#missed.get(child);
    if (missed === undefined || row.position <= missed.after) return 0;
    const bytes = rowBytes(row);
    missed.rows.push(row);
    missed.bytes += bytes;
    return bytes;
  }

  /** Leaves out the child that missed most; returns the bytes of its rows. */
  #leaveOne(): number {
    const most = [...this.#missed].reduce((a, b) => b[1].bytes > a[1].bytes ? b : a);
    this.#missed.delete(most[0]);
    return most[1].bytes;
  }

  async *#journal(after: Position): AsyncGenerator<readonly Row[]> {
    const { storage, clock } = this.#core.ports;
    for (;;) {
      const page = await storage.journal(after, this.mark.head, STEP_ROWS, STEP_BYTES);
      yield page;
      const last = page.at(-1);
      if (last === undefined) return;
      after = last.position;
      if (isWholeStep(page)) await clock.turn(); // R3
    }
  }

  /**
   * Reads the rows of some keys, and every row past a position for which `has` holds: what a child that came back
   * lacks.
   */
  async changesSince(
    child: Child,
    after: Position,
    { keys, has }: { keys: readonly Key[]; has: (key: Key) => boolean },
  ): Promise<readonly Chunk[]> {
    const { connection } = child, missed = this.#missed.get(child);
    const isSame = missed?.after === after && missed.connection === connection;
    const rows = new Map<Key, Row>();
    for (const row of await this.#core.rows.committed(keys)) rows.set(row.key, row);
    if (isSame) { for (const row of missed.rows) rows.set(row.key, row); }
    else {
      for await (const page of this.#journal(after)) {
        for (const row of page) if (has(row.key)) rows.set(row.key, row);
      }
    }
    this.#missed.delete(child);
    return this.#chunks([...rows.values()]);
  }

  #chunks(rows: readonly Row[]): readonly Chunk[] {
    return this.#cut([...rows].sort((a, b) => a.position - b.position));
  }

  #cut(rows: readonly Row[]): readonly Chunk[] {
    const { reach } = this.mark;
    const wire = rows.map((row): WireRow => ({ ...row, known: this.#core.knownDepth(row, reach) }));
    return [...chunks(wire, MESSAGE_BYTES_TARGET)];
  }

  /** Reads a range, or the part of it that holds `limit` live rows. */
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

  /** Makes the digest of a range, which many children ask for at once where their parent lost what it knew of them. */
  async digest(range: Range): Promise<RangeDigest> {
    const name = `${range.start}\u0100${range.end}`;
    const known = this.#digests.get(name);
    if (known !== undefined) return known;
    const digester = new RangeDigester(), { storage, clock } = this.#core.ports;
    for (let start = range.start; start < range.end;) {
      const page = await storage.scan({ start, end: range.end }, { limit: STEP_ROWS, bytesMax: STEP_BYTES });
      for (const row of page) digester.add(row);
      const last = page.at(-1);
      start = last === undefined || !isWholeStep(page) ? range.end : keyAfter(last.key);
      if (start < range.end) await clock.turn(); // R3
    }
    const digest = digester.done(range);
    this.#digests.set(name, digest);
    return digest;
  }
}

/** Reports whether a read ended because it had as much as one step reads: there may be more (R3). */
const isWholeStep = (page: readonly Row[]): boolean =>
  page.length === STEP_ROWS || page.reduce((sum, row) => sum + rowBytes(row), 0) >= STEP_BYTES;

const NOTHING: readonly Chunk[] = [{ rows: [], more: false }];

function shared(chunks: readonly Chunk[]): readonly Chunk[] {
  for (const { rows } of chunks) shareRows(rows);
  return chunks;
}
