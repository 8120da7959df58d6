/**
 * The rows and the journal of one site: those on disk, and over these the rows that are applied but not yet committed.
 *
 * A change is *applied* (visible to reads, has its position), then *frozen* into a commit together with all changes
 * that were applied meanwhile, then *committed* (on disk). Only committed state leaves the site; a session's answer
 * waits for it (`durable`).
 *
 * W1  Positions rise by one with each applied row, and a restart continues above the last committed one, by a jump
 *     (gaps.ts): a position that left the site is never used again.
 * W2  All code that changes rows runs under `lock`, and makes changes that belong together without an await in between,
 *     so that a freeze, which takes no lock, finds only heads (PROTOCOL I1).
 * W3  A read of several rows runs under `lock`: no change comes between its parts.
 */
import type { HybridClock } from "../model/clock.ts";
import type { Key } from "../model/key.ts";
import { Lock } from "../model/lock.ts";
import { isMerge, joinRows, resolve } from "../model/merge.ts";
import type { DiskCommit, SiteId, Storage } from "../model/ports.ts";
import { STEP_BYTES, STEP_ROWS } from "../model/limits.ts";
import { holds, keyAfter, type Range } from "../model/range.ts";
import { RowCache } from "./row_cache.ts";
import { compareVersions, type Position, type Row, rowBytes } from "../model/row.ts";

/** Row as it comes from a writer, a neighbour or a carry. */
export type Incoming = Omit<Row, "position">;

export interface Frozen {
  readonly head: Position;
  /** Rows by key; null: the row is dropped. */
  readonly changes: ReadonlyMap<Key, Row | null>;
  /** Child that each row came from; rows from elsewhere are not in it. */
  readonly sources: ReadonlyMap<Key, SiteId>;
  readonly commit: DiskCommit;
}

export interface ListResult {
  /** Live rows, with their values resolved. */
  readonly rows: Row[];
  /** All rows that were looked at, tombstones included. */
  readonly seen: readonly Row[];
  /** Interval that was read. */
  readonly range: Range;
  /** True where the read ended at a bound, and the interval may hold more. */
  readonly full: boolean;
  /** True where the read ended since it had looked at `lookMax` rows. */
  readonly isCut: boolean;
}

export class Rows {
  readonly lock: Lock;
  readonly #storage: Storage;
  readonly #clock: HybridClock;
  readonly #nowMs: () => number;
  readonly #turn: () => Promise<void>;
  readonly #stepRows: number;
  readonly #applied: (row: Row) => void;
  readonly #isStale: (row: Row) => boolean;
  readonly #gone: (row: Pick<Row, "clock">) => void;
  #head: Position = 0;
  #committedHead: Position = 0;
  #active = new Map<Key, Row | null>();
  #sources = new Map<Key, SiteId>();
  #committing: ReadonlyMap<Key, Row | null> = new Map();
  #records = new Map<string, Uint8Array | null>();
  /** Changes that were committed last, until the neighbours were told of them. */
  #recent: ReadonlyMap<Key, Row | null> = new Map();
  readonly #cache = new RowCache();
  /** Number of times that rows went with the disk. */
  #heals = 0;
  /**
   * Number of commits that settled, by which a read sees whether the rows that it found may be old (row_cache.ts C1).
   */
  #settled = 0;

  constructor(
    o: {
      storage: Storage;
      clock: HybridClock;
      turns: ConstructorParameters<typeof Lock>[0];
      nowMs: () => number;
      /** Rows that a read of several looks at before everything else that is ready is handled. */
      stepRows?: number;
      applied: (row: Row) => void;
      /** Reports whether a row counts for nothing (stale.ts). */
      isStale?: (row: Row) => boolean;
      /** Notes a row that stood here and does so no more, where no row that it is a part of took its place. */
      gone?: (row: Pick<Row, "clock">) => void;
    },
  ) {
    this.#storage = o.storage;
    this.#clock = o.clock;
    this.lock = new Lock(o.turns);
    this.#turn = () => o.turns.turn();
    this.#stepRows = o.stepRows ?? STEP_ROWS;
    this.#nowMs = o.nowMs;
    this.#applied = o.applied;
    this.#isStale = o.isStale ?? (() => false);
    this.#gone = o.gone ?? (() => {});
  }

  get head(): Position {
    return this.#head;
  }

  get committedHead(): Position {
    return this.#committedHead;
  }

  /** Continues from a journal's head after a restart. */
  resumeAt(head: Position): void {
    this.#head = this.#committedHead = head; // W1
  }

  /** Has the next row come after a position that no row has; what depends on it waits for a commit. */
  jumpTo(head: Position): void {
    if (head < this.#head) throw new Error(`the journal would go back from ${this.#head} to ${head} (W1)`);
    this.#head = head;
  }

  /** Puts a named record into the next commit. */
  record(name: string, value: Uint8Array | null): void {
    this.#records.set(name, value);
  }

  /** True where a freeze would have something to commit. */
  get dirty(): boolean {
    return this.#active.size > 0 || this.#records.size > 0;
  }

  // ── Changes (under the lock, W2) ──

  /**
   * Applies one row if it wins over `old` (row.ts R1); true where the row changed.
   *
   * @param old the row that `lookup` gave for the key in this hold of the lock.
   */
  apply(old: Row | undefined, incoming: Incoming, source?: SiteId): boolean {
    const found = this.#over(incoming.key, old);
    const before = found !== undefined && this.#isStale(found) ? undefined : found; // stale.ts T2
    if (found !== before && found !== undefined) this.#gone(found);
    const winner = before === undefined ? incoming : this.#winner(before, incoming);
    this.#clock.merge(incoming.clock);
    if (winner === before) return false;
    const row: Row = { ...winner, position: ++this.#head };
    this.#active.set(row.key, row);
    if (source !== undefined && winner === incoming) this.#sources.set(row.key, source);
    else this.#sources.delete(row.key);
    this.#applied(row);
    return true;
  }

  /** Applies a row that is newer than all this site has seen. */
  put(incoming: Incoming): void {
    const row: Row = { ...incoming, position: ++this.#head };
    this.#active.set(row.key, row);
    this.#sources.delete(row.key);
    this.#applied(row);
  }

  /** Returns the newest row of a key, of which `lookup` gave `found` in this hold of the lock. */
  newest(key: Key, found: Row | undefined): Row | undefined {
    return this.#over(key, found);
  }

  /** Puts a row again, as it is but for its position: this journal begins anew. */
  replant(row: Row): void {
    const planted = { ...row, position: ++this.#head };
    this.#active.set(row.key, planted);
    this.#applied(planted);
  }

  /** Returns the row that wins; `before` itself where it stays. */
  #winner(before: Row, incoming: Incoming): Row | Incoming {
    if (!isMerge(before.value) && !isMerge(incoming.value)) {
      return compareVersions(incoming, before) > 0 ? incoming : before;
    }
    const joined = joinRows<Incoming>(incoming, before);
    if (joined === incoming && compareVersions(incoming, before) === 0) {
      return sameContent(incoming, before) ? before : incoming;
    }
    if (joined === incoming || joined === before) return joined as Row | Incoming;
    // A true join is news to every site: it is known only here.
    return { ...joined, known: Math.max(joined.known, before.known, incoming.known) };
  }

  /** Returns a row as it was committed last, where memory has it. */
  remembered(key: Key): Row | undefined {
    return this.#cache.get(key) ?? undefined;
  }

  /** Returns the row of this key that a commit to come puts, or one that waits for its turn. */
  changed(key: Key): Row | undefined {
    return this.#active.get(key) ?? this.#committing.get(key) ?? undefined;
  }

  /** Notes that rows went with the disk (damage.ts): reads that were under way may have met holes. */
  healed(): void {
    this.#heals++;
  }

  /** Removes a row without trace. */
  drop(row: Pick<Row, "key" | "clock">): void {
    this.#active.set(row.key, null);
    this.#sources.delete(row.key);
    this.#gone(row);
  }

  #over(key: Key, stored: Row | undefined): Row | undefined {
    const row = this.#active.get(key) ?? (this.#active.has(key) ? null : this.#committing.get(key));
    if (row === undefined) return this.#committing.has(key) ? undefined : stored;
    return row ?? undefined;
  }

  // ── Reads ──

  /**
   * Returns the newest rows, applied ones included; values as stored. Returns at once where none is read from the disk.
   *
   * @param bytesMax bytes after which the answer ends: it has the first keys only, up to about the row that reaches
   *     them.
   */
  lookup(
    keys: readonly Key[],
    bytesMax = Infinity,
  ): (Row | undefined)[] | Promise<(Row | undefined)[]> {
    const found: (Row | undefined)[] = [];
    const missing: Key[] = [], places: number[] = [];
    for (let i = 0, bytes = 0; i < keys.length && bytes < bytesMax; i++) {
      const key = keys[i] as Key;
      const row = this.#known(key);
      found.push(row ?? undefined);
      if (row !== undefined) {
        if (row !== null) bytes += rowBytes(row);
        continue;
      }
      missing.push(key);
      places.push(i);
    }
    return missing.length === 0 ? found : this.#fill(found, missing, places, bytesMax);
  }

  /** Returns the row of one key as {@link lookup} does; undefined where only the disk can tell. */
  inMemory(key: Key): [Row | undefined] | undefined {
    const row = this.#known(key);
    return row === undefined ? undefined : [row ?? undefined];
  }

  /** Returns what is known of a key without a look at the disk; null: it has no row. */
  #known(key: Key): Row | null | undefined {
    const active = this.#active.get(key);
    if (active !== undefined) return active;
    const committing = this.#committing.get(key);
    return committing !== undefined ? committing : this.#cache.get(key);
  }

  /**
   * Reads rows from the disk into their places, in steps as {@link heads}. The rows in the other places were taken
   * before: a commit that ends meanwhile must not hide those that it held.
   */
  async #fill(
    found: (Row | undefined)[],
    missing: readonly Key[],
    places: readonly number[],
    bytesMax: number,
  ): Promise<(Row | undefined)[]> {
    let bytes = 0;
    for (let at = 0; at < missing.length;) {
      if (at > 0) await this.#turn();
      const settled = this.#settled, heals = this.#heals;
      const step = missing.length <= STEP_ROWS ? missing : missing.slice(at, at + STEP_ROWS);
      const stored = await this.#storage.getMany(step, bytesMax - bytes);
      for (let i = 0; i < stored.length; i++) {
        // A row that was applied while the stored one went stands for it: a moment ago neither was there.
        const known = heals === this.#heals ? undefined : this.#known(step[i] as Key);
        const row = known === undefined ? stored[i] : known ?? undefined;
        found[places[at + i] ?? 0] = row;
        if (row !== undefined) bytes += rowBytes(row);
        // row_cache.ts C1
        if (settled === this.#settled && known === undefined) this.#cache.put(step[i] as Key, row ?? null);
      }
      at += stored.length;
      // Rows behind the first that was not read are no part of the answer.
      if (stored.length === step.length && (at >= missing.length || bytes < bytesMax)) continue;
      found.length = places[at] ?? 0;
      break;
    }
    return found;
  }

  /**
   * Returns rows as {@link lookup} does, for callers that need versions and values that merge: of a long value that
   * does not merge only the first byte is left. Rows are read in steps, between which everything else that is ready is
   * handled.
   *
   * @param bytesMax bytes after which the answer ends: it has the first keys only, up to about the row that reaches
   *     them.
   */
  async heads(keys: readonly Key[], bytesMax = Infinity): Promise<(Row | undefined)[]> {
    const found: (Row | undefined)[] = [];
    for (let bytes = 0; found.length < keys.length && bytes < bytesMax;) {
      if (bytes > 0) await this.#turn();
      const rest = found.length === 0 ? keys : keys.slice(found.length);
      for (const row of await this.lookup(rest, Math.min(bytesMax - bytes, STEP_BYTES))) {
        if (row !== undefined) bytes += rowBytes(row);
        found.push(row === undefined ? undefined : headOf(row));
      }
    }
    return found;
  }

  /** Returns rows of a range as committed; only between commits. */
  committedScan(range: Range, limit: number, reverse: boolean): Promise<ListResult> {
    return this.#scanLive(range, limit, reverse, []);
  }

  /** Returns rows as committed; only between commits. Reads in steps, as {@link heads}. */
  async committed(keys: readonly Key[]): Promise<Row[]> {
    const out: Row[] = [], missing: Key[] = [];
    for (const key of keys) {
      const row = this.#recent.get(key) ?? (this.#recent.has(key) ? null : this.#cache.get(key));
      if (row === undefined) missing.push(key);
      else if (row !== null) out.push(row);
    }
    for (let at = 0; at < missing.length;) {
      if (at > 0) await this.#turn();
      const found = await this.#storage.getMany(missing.slice(at, at + STEP_ROWS), STEP_BYTES);
      for (const row of found) if (row !== undefined) out.push(row);
      at += found.length;
    }
    return out;
  }

  /**
   * Returns up to `limit` live rows of a range (0: all), applied ones included; under the lock (W3). With a limit the
   * list also ends at the row that brings the bytes to `bytesMax`. Reads in steps, as {@link heads}.
   *
   * @param lookMax number of rows, roughly, that are looked at, dead ones included.
   */
  list(
    range: Range,
    limit: number,
    reverse: boolean,
    bytesMax = Infinity,
    lookMax = Infinity,
  ): Promise<ListResult> {
    const over = [...this.#committing, ...this.#active].filter(([key]) => holds(range, key));
    return this.#scanLive(range, limit, reverse, over, bytesMax, lookMax);
  }

  async #scanLive(
    range: Range,
    limit: number,
    reverse: boolean,
    over: readonly (readonly [Key, Row | null])[],
    bytesMax = Infinity,
    lookMax = Infinity,
  ): Promise<ListResult> {
    const overlay = new Map(over);
    const overKeys = [...overlay.keys()].sort();
    const rows: Row[] = [], seen: Row[] = [];
    let rest = range;
    let bytes = 0;
    for (let isFirst = true; rest.start < rest.end; isFirst = false) {
      if (!isFirst) await this.#turn();
      const wanted = limit === 0 ? Infinity : limit - rows.length + 16;
      const want = Math.min(wanted, lookMax - seen.length, this.#stepRows);
      const bytesLeft = Math.min(bytesMax - bytes, STEP_BYTES);
      const stored = await this.#storage.scan(rest, { limit: want, bytesMax: bytesLeft, reverse });
      const read = stored.reduce((sum, row) => sum + rowBytes(row), 0);
      const complete = stored.length < want && read < bytesLeft;
      const last = stored.at(-1);
      const part = complete || last === undefined
        ? rest
        : reverse
        ? { start: last.key, end: rest.end }
        : { start: rest.start, end: keyAfter(last.key) };
      for (const row of merged(stored, overlay, overKeys, part, reverse)) {
        seen.push(row);
        const live = this.liveRow(row);
        if (live === undefined) continue;
        rows.push(live);
        bytes += rowBytes(live);
        if (limit > 0 && (rows.length === limit || bytes >= bytesMax)) {
          const range2 = reverse ? { ...range, start: row.key } : { ...range, end: keyAfter(row.key) };
          return { rows, seen, range: range2, full: true, isCut: false };
        }
      }
      rest = reverse ? { start: rest.start, end: part.start } : { start: part.end, end: rest.end };
      if (seen.length < lookMax || rest.start >= rest.end) continue;
      const looked = reverse ? { ...range, start: rest.end } : { ...range, end: rest.start };
      return { rows, seen, range: looked, full: false, isCut: true };
    }
    return { rows, seen, range, full: false, isCut: false };
  }

  /** Returns the row with its value resolved, if it reads as present. */
  liveRow(row: Row | undefined): Row | undefined {
    if (row === undefined || (row.expiresAtMs !== 0 && row.expiresAtMs <= this.#nowMs())) return undefined;
    if (row.value === null) return undefined;
    if (!isMerge(row.value)) return row;
    const value = resolve(row.value);
    return value === null ? undefined : { ...row, value };
  }

  // ── Commits ──

  /** Takes all changes applied so far, and the records, for one commit. */
  freeze(): Frozen {
    const changes = this.#active, sources = this.#sources, records = this.#records;
    this.#active = new Map();
    this.#sources = new Map();
    this.#records = new Map();
    this.#committing = changes;
    const rows: Row[] = [], drop: Key[] = [];
    for (const [key, row] of changes) {
      if (row === null) drop.push(key);
      else rows.push(row);
    }
    return { head: this.#head, changes, sources, commit: { rows, drop, records } };
  }

  /** Notes that the frozen commit is on disk. */
  settle(frozen: Frozen): void {
    this.#settled++; // row_cache.ts C1
    for (const [key, row] of frozen.changes) this.#cache.put(key, row);
    this.#committing = new Map();
    this.#recent = frozen.changes;
    this.#committedHead = frozen.head;
  }

  /** Forgets the changes that were committed last: all neighbours were told of them. */
  told(): void {
    this.#recent = new Map();
  }
}

/** Bytes of a value beyond which it is not kept where only its row's version is asked for. */
const HEAD_VALUE_BYTES = 4 * 1024;

function headOf(row: Row): Row {
  const { value } = row;
  if (value === null || value.length <= HEAD_VALUE_BYTES) return row;
  const merges: boolean = isMerge(value);
  return merges ? row : { ...row, value: value.slice(0, 1) };
}

const sameContent = (a: Incoming, b: Incoming): boolean =>
  a.value === b.value ||
  (a.value !== null && b.value !== null && a.value.length === b.value.length &&
    a.value.every((byte, i) => byte === b.value?.[i]));

/** Yields stored rows with the overlay's over them, in order. */
function* merged(
  stored: readonly Row[],
  overlay: ReadonlyMap<Key, Row | null>,
  overKeys: readonly Key[],
  range: Range,
  reverse: boolean,
): Generator<Row> {
  if (overKeys.length === 0) return yield* stored;
  const keys = new Set<Key>(stored.map((row) => row.key));
  for (const key of overKeys) if (holds(range, key)) keys.add(key);
  const byKey = new Map(stored.map((row) => [row.key, row]));
  const sorted = [...keys].sort();
  if (reverse) sorted.reverse();
  for (const key of sorted) {
    const row = overlay.has(key) ? overlay.get(key) : byKey.get(key);
    if (row) yield row;
  }
}
