/**
 * A tracked map: a checkpoint holds the entries that changed.
 *
 * M1  It iterates as a JavaScript Map with the same operations does, also after it was loaded: a key that was deleted
 *     and set again comes last.
 * M2  The cost of a segment goes with the number of keys that differ from the last segment, not with the number of
 *     operations.
 *
 * A segment: flag, whether it begins with an empty map; sized bytes: the keys that were deleted, encoded as an array
 * (none: no bytes); a list of pages, each sized bytes: its keys, and a page of their cells; sized bytes: the keys of
 * structures that changed inside, and for each the sized segment.
 */
import { Reader, Writer } from "../../store/model/codec.ts";
import { Container, readThrough } from "./container.ts";
import { decodeContent, encodeContent } from "./content.ts";
import { type Held, shownField, unfit } from "./owned.ts";
import type { Put, TrackedKey, TrackedMap } from "./structures.ts";
import { type Cell, EncodedPage, PageWriter, readEncodedPage } from "./pages.ts";
import { corrupt, isPart, KIND, type Part, PATH_OF, READ, register, WRITE } from "./part.ts";

/** Tracked map, as its holder and an app see it. */
export class MapPart<K extends TrackedKey, V> extends Container implements TrackedMap<K, V> {
  override get [KIND](): "map" {
    return "map";
  }
  readonly #cells = new Map<K, Cell>();
  /**
   * Keys that were set since the last write, in the order of their last insertion, with whether the last write had
   * them.
   */
  #set: Map<K, boolean> | undefined;
  /** Keys of the last write that were deleted since, whether set again or not. */
  #deleted: Set<K> | undefined;
  #isCleared = false;

  get size(): number {
    return this.#cells.size;
  }

  get(key: K): Held<V> | undefined {
    const cell = this.#cells.get(key);
    return cell === undefined ? undefined : this.#read(key, cell);
  }

  has(key: K): boolean {
    return this.#cells.has(key);
  }

  set(key: K, value: Put<V>): this {
    if (!isKey(key)) {
      throw unfit(
        `${this.path}.get(${shownField(key)})`,
        "a key is a string, number, bigint or boolean: an object would be another one after it was loaded",
      );
    }
    const before = this.#cells.get(key);
    if (isPart(before) && value === before) return this;
    const cell = this.admit(value, () => this.#pathAt(key));
    this.release(before);
    const isNew = before === undefined && !this.#cells.has(key);
    this.#cells.set(key, cell);
    const set = this.#set ??= new Map();
    if (isNew) {
      const wasWritten = this.#deleted?.has(key) ?? false;
      set.delete(key); // it comes last
      set.set(key, wasWritten);
    } else if (!set.has(key)) set.set(key, true);
    this.touch();
    return this;
  }

  update(key: K, change: (value: Held<V> | undefined) => Put<V>): this {
    return this.set(key, change(this.get(key)));
  }

  delete(key: K): boolean {
    const cell = this.#cells.get(key);
    if (!this.#cells.delete(key)) return false;
    this.release(cell);
    const wasWritten = this.#set?.get(key) ?? true;
    this.#set?.delete(key);
    if (wasWritten && !this.#isCleared) (this.#deleted ??= new Set()).add(key);
    this.touch();
    return true;
  }

  clear(): void {
    if (this.#cells.size === 0) return;
    for (const cell of this.#cells.values()) this.release(cell);
    this.#cells.clear();
    this.#isCleared = true;
    this.#set = this.#deleted = undefined;
    this.touch();
  }

  keys(): IterableIterator<K> {
    return this.#cells.keys();
  }

  *values(): IterableIterator<Held<V>> {
    for (const [key, cell] of this.#cells) yield this.#read(key, cell);
  }

  *entries(): IterableIterator<[K, Held<V>]> {
    for (const [key, cell] of this.#cells) yield [key, this.#read(key, cell)];
  }

  [Symbol.iterator](): IterableIterator<[K, Held<V>]> {
    return this.entries();
  }

  forEach(each: (value: Held<V>, key: K, map: this) => void): void {
    for (const [key, cell] of this.#cells) each(this.#read(key, cell), key, this);
  }

  toJSON(): Record<string, Held<V>> {
    return Object.fromEntries(this) as Record<string, Held<V>>;
  }

  override [PATH_OF](part: Part): string {
    for (const [key, cell] of this.#cells) if (cell === part) return this.#pathAt(key);
    return this.path;
  }

  #pathAt(key: K): string {
    return `${this.path}.get(${shownField(key)})`;
  }

  #read(key: K, cell: Cell): Held<V> {
    return readThrough(
      cell instanceof EncodedPage ? cell.ofKey(key) : cell,
      (taken) => this.#cells.set(key, taken),
    ) as Held<V>;
  }

  protected override write(isWhole: boolean): Uint8Array {
    const w = new Writer(256).flag(isWhole || this.#isCleared);
    const deleted = isWhole ? undefined : this.#deleted;
    w.bytes(deleted === undefined ? NOTHING : encodeContent([...deleted]));
    const keys = isWhole ? this.#cells.keys() : this.#set?.keys() ?? [];
    const pages = new Writer(1024);
    const page = new PageWriter(pages);
    let run: K[] = [];
    let count = 0;
    const flush = () => {
      if (run.length === 0) return;
      pages.bytes(encodeContent(run, true));
      page.write(run.map((key) => {
        const cell = this.#cells.get(key);
        return cell instanceof EncodedPage ? cell.ofKey(key) : cell;
      }));
      run = [];
      count++;
    };
    for (const key of keys) if (run.push(key) >= page.slots) flush();
    flush();
    w.uint(count).raw(pages.done());
    this.#writeInside(w, isWhole);
    this.#set = this.#deleted = undefined;
    this.#isCleared = false;
    this.allWritten();
    return w.done();
  }

  /** Writes the structures inside that changed by themselves, and are not in the pages. */
  #writeInside(w: Writer, isWhole: boolean): void {
    const inside: [K, Part][] = [];
    if (!isWhole && this.changedParts.size > 0) {
      for (const [key, cell] of this.#cells) {
        if (isPart(cell) && this.changedParts.has(cell) && !this.#set?.has(key)) inside.push([key, cell]);
      }
    }
    w.bytes(inside.length === 0 ? NOTHING : encodeContent(inside.map(([key]) => key)));
    for (const [, part] of inside) w.bytes(part[WRITE](false));
  }

  protected override read(segment: Uint8Array): void {
    const r = new Reader(segment);
    if (r.flag()) {
      for (const cell of this.#cells.values()) this.release(cell);
      this.#cells.clear();
    }
    for (const key of keysOf<K>(r.view())) {
      this.release(this.#cells.get(key));
      this.#cells.delete(key);
    }
    const mayReplace = this.#cells.size > 0;
    for (let pages = r.uint(); pages > 0; pages--) {
      const keys = keysOf<K>(r.view());
      const { page, slots, parts } = readEncodedPage(r);
      if (slots !== keys.length) throw corrupt(`a page has ${slots} values for ${keys.length} keys`);
      page.keys = keys;
      for (let slot = 0; slot < slots; slot++) {
        const key = keys[slot] as K;
        if (mayReplace) this.release(this.#cells.get(key));
        this.#cells.set(key, page);
      }
      for (const [slot, part] of parts) this.#cells.set(keys[slot] as K, this.adopt(part));
    }
    for (const key of keysOf<K>(r.view())) {
      const part = this.#cells.get(key);
      if (!isPart(part)) throw corrupt(`what ${shownField(key)} has is no structure, and changed inside`);
      part[READ](r.view());
    }
    r.end();
    this.#set = this.#deleted = undefined;
    this.#isCleared = false;
    this.allWritten();
  }
}

const NOTHING = new Uint8Array(0);

function isKey(key: unknown): key is TrackedKey {
  const type = typeof key;
  return type === "string" || type === "number" || type === "bigint" || type === "boolean";
}

function keysOf<K>(bytes: Uint8Array): K[] {
  if (bytes.length === 0) return [];
  const keys = decodeContent(bytes);
  if (!Array.isArray(keys) || !keys.every(isKey)) throw corrupt("a map has a key that none can be");
  return keys as K[];
}

register("map", () => new MapPart<TrackedKey, unknown>());

/**
 * Declares a tracked map as a field of a Session class. Values are copied in and read frozen; a value can be a tracked
 * structure as well, which is tracked by itself.
 *
 * ```ts
 * import { map } from "sojourn";
 *
 * const stamps = map<string, number>();
 * stamps.set("espresso", 1);
 * ```
 */
export function map<K extends TrackedKey, V>(entries: Iterable<readonly [K, Put<V>]> = []): TrackedMap<K, V> {
  const made = new MapPart<K, V>();
  for (const [key, each] of entries) made.set(key, each);
  return made;
}
