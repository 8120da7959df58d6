/**
 * A tracked list: a checkpoint holds the items that changed, and how those that stayed have moved.
 *
 * A segment: a list of runs (varint: count × 2, + 1 for items that were kept; then varint: the place of the first of
 * them in the list before); pages of the items of the other runs, in order; varint number and the places of items that
 * were replaced within kept runs, each as the distance from the one before, and pages of these items; a list of
 * structures that changed inside: varint place, sized segment. The whole list is one run that is not kept.
 */
import { Reader, Writer } from "../../store/model/codec.ts";
import { Container, readThrough } from "./container.ts";
import type { Held } from "./owned.ts";
import { Origins, type Run } from "./origins.ts";
import type { Put, TrackedList } from "./structures.ts";
import { type Cell, EncodedPage, PageWriter, readEncodedPage } from "./pages.ts";
import { corrupt, isPart, KIND, type Part, PATH_OF, READ, register, WRITE } from "./part.ts";

/** Tracked list, as its holder and an app see it. */
export class ListPart<T> extends Container implements TrackedList<T> {
  override get [KIND](): "list" {
    return "list";
  }
  #cells: Cell[] = [];
  /** True while some cells may be pages: no item has moved since they were read. */
  #hasPages = false;
  readonly #origins = new Origins();

  get length(): number {
    return this.#cells.length;
  }

  at(index: number): Held<T> | undefined {
    const place = Math.trunc(index) || 0;
    const from = place < 0 ? place + this.#cells.length : place;
    return from < 0 || from >= this.#cells.length ? undefined : this.#read(from);
  }

  set(index: number, item: Put<T>): void {
    if (!Number.isInteger(index) || index < 0 || index > this.#cells.length) {
      throw new RangeError(
        `${this.path} has ${this.#cells.length} items: can't set the one in place ${index}`,
      );
    }
    const before = this.#cells[index];
    if (isPart(before) && before === item) return;
    const cell = this.admit(item, () => this.#pathAt(index));
    this.release(before);
    this.#cells[index] = cell;
    this.#origins.replaced(index);
    this.touch();
  }

  push(...items: readonly Put<T>[]): number {
    const length = this.#cells.length;
    const cells = this.#admitAll(items, length);
    for (const cell of cells) this.#cells.push(cell);
    this.#origins.spliced(length, 0, cells.length, length);
    if (cells.length > 0) this.touch();
    return this.#cells.length;
  }

  pop(): Held<T> | undefined {
    return this.splice(-1, 1)[0];
  }

  shift(): Held<T> | undefined {
    return this.splice(0, 1)[0];
  }

  unshift(...items: readonly Put<T>[]): number {
    this.splice(0, 0, ...items);
    return this.#cells.length;
  }

  splice(start: number, deleteCount = Infinity, ...items: readonly Put<T>[]): Held<T>[] {
    const length = this.#cells.length;
    const at = placeOf(start, length);
    const taken = Math.min(Math.max(Math.trunc(deleteCount) || 0, 0), length - at);
    if (taken === 0 && items.length === 0) return [];
    const cells = this.#admitAll(items, at);
    const out = Array.from({ length: taken }, (_, i) => this.#read(at + i));
    if (at + taken < length) this.#settle();
    for (const cell of this.#cells.splice(at, taken, ...cells)) this.release(cell);
    this.#origins.spliced(at, taken, cells.length, length);
    this.touch();
    return out;
  }

  /** Takes in all items, or none of them. */
  #admitAll(items: readonly Put<T>[], at: number): Cell[] {
    const cells: Cell[] = [];
    try {
      for (const item of items) cells.push(this.admit(item, () => this.#pathAt(at + cells.length)));
    } catch (error) {
      for (const cell of cells) this.release(cell);
      throw error;
    }
    return cells;
  }

  clear(): void {
    this.splice(0);
  }

  sort(compare?: (a: Held<T>, b: Held<T>) => number): this {
    const items = this.toArray();
    const order = items.map((_, i) => i);
    const by = compare ?? ascending;
    // Undefined items come last in an array, whatever the comparison says.
    order.sort((a, b) => {
      const [one, other] = [items[a] as Held<T>, items[b] as Held<T>];
      if (one === undefined || other === undefined) {
        return Number(one === undefined) - Number(other === undefined);
      }
      return by(one, other);
    });
    return this.#permute(order);
  }

  reverse(): this {
    return this.#permute(this.#cells.map((_, i) => this.#cells.length - 1 - i));
  }

  #permute(order: readonly number[]): this {
    if (order.every((from, i) => from === i)) return this;
    this.#settle();
    this.#cells = order.map((from) => this.#cells[from]);
    this.#origins.permuted(order);
    this.touch();
    return this;
  }

  slice(start = 0, end = this.#cells.length): Held<T>[] {
    const from = placeOf(start, this.#cells.length);
    const to = placeOf(end, this.#cells.length);
    return Array.from({ length: Math.max(0, to - from) }, (_, i) => this.#read(from + i));
  }

  toArray(): Held<T>[] {
    return this.slice();
  }

  indexOf(item: Held<T>, from = 0): number {
    for (let i = placeOf(from, this.#cells.length); i < this.#cells.length; i++) {
      if (this.#read(i) === item) return i;
    }
    return -1;
  }

  includes(item: Held<T>): boolean {
    for (const each of this) if (Object.is(each, item) || each === item) return true;
    return false;
  }

  find(condition: (item: Held<T>, index: number) => unknown): Held<T> | undefined {
    return this.at(this.#placeWhere(condition) ?? this.#cells.length);
  }

  findIndex(condition: (item: Held<T>, index: number) => unknown): number {
    return this.#placeWhere(condition) ?? -1;
  }

  #placeWhere(condition: (item: Held<T>, index: number) => unknown): number | undefined {
    for (let i = 0; i < this.#cells.length; i++) if (condition(this.#read(i), i)) return i;
    return undefined;
  }

  filter(condition: (item: Held<T>, index: number) => unknown): Held<T>[] {
    return this.toArray().filter((item, i) => condition(item, i));
  }

  map<U>(change: (item: Held<T>, index: number) => U): U[] {
    return this.toArray().map((item, i) => change(item, i));
  }

  forEach(each: (item: Held<T>, index: number) => void): void {
    for (let i = 0; i < this.#cells.length; i++) each(this.#read(i), i);
  }

  *entries(): IterableIterator<[number, Held<T>]> {
    for (let i = 0; i < this.#cells.length; i++) yield [i, this.#read(i)];
  }

  *values(): IterableIterator<Held<T>> {
    for (let i = 0; i < this.#cells.length; i++) yield this.#read(i);
  }

  [Symbol.iterator](): IterableIterator<Held<T>> {
    return this.values();
  }

  toJSON(): Held<T>[] {
    return this.toArray();
  }

  override [PATH_OF](part: Part): string {
    return this.#pathAt(this.#cells.indexOf(part));
  }

  #pathAt(index: number): string {
    return `${this.path}[${index}]`;
  }

  #cell(index: number): Cell {
    return cellAt(this.#cells, index);
  }

  /** Replaces pages by their values. To be called before any item moves: a page knows its values by their places. */
  #settle(): void {
    if (!this.#hasPages) return;
    this.#hasPages = false;
    for (let i = 0; i < this.#cells.length; i++) this.#cells[i] = this.#cell(i);
  }

  #read(index: number): Held<T> {
    return readThrough(this.#cell(index), (cell) => this.#cells[index] = cell) as Held<T>;
  }

  protected override write(isWhole: boolean): Uint8Array {
    const w = new Writer(256);
    const length = this.#cells.length;
    const runs = isWhole ? (length === 0 ? [] : [{ from: -1, count: length }]) : this.#origins.runs(length);
    w.list(runs, ({ from, count }) => {
      w.uint(count * 2 + (from < 0 ? 0 : 1));
      if (from >= 0) w.uint(from);
    });
    writePages(w, this.#newCells(runs));
    const inPlace = isWhole ? [] : this.#origins.inPlace;
    let last = 0;
    w.list(inPlace, (place) => {
      w.uint(place - last);
      last = place;
    });
    writePages(w, inPlace.map((place) => this.#cell(place)));
    const inside: [number, Part][] = [];
    if (!isWhole && this.changedParts.size > 0) {
      for (const [i, cell] of this.#cells.entries()) {
        if (isPart(cell) && this.changedParts.has(cell) && this.#origins.isKept(i)) inside.push([i, cell]);
      }
    }
    w.list(inside, ([place, part]) => w.uint(place).bytes(part[WRITE](false)));
    this.#origins.allKept(length);
    this.allWritten();
    return w.done();
  }

  #newCells(runs: readonly Run[]): Cell[] {
    const cells: Cell[] = [];
    let at = 0;
    for (const { from, count } of runs) {
      if (from < 0) { for (let i = at; i < at + count; i++) cells.push(this.#cell(i)); }
      at += count;
    }
    return cells;
  }

  protected override read(segment: Uint8Array): void {
    const r = new Reader(segment);
    const before = this.#cells;
    this.#hasPages = true;
    const runs = r.list(() => {
      const head = r.uint();
      return { from: head % 2 === 1 ? r.uint() : -1, count: Math.floor(head / 2) };
    });
    this.#cells = lengthKept(runs, before.length) === null
      ? this.#permutedBy(runs, before, this.#readPages(r, []))
      : this.#grown(runs, r);
    this.#readInPlace(r);
    for (const [place, segment] of r.list((): [number, Uint8Array] => [r.uint(), r.view()])) {
      const part = this.#cells[place];
      if (!isPart(part)) throw corrupt(`what is in place ${place} is no structure, and changed inside`);
      part[READ](segment);
    }
    r.end();
    this.#origins.allKept(this.#cells.length);
    this.allWritten();
  }

  /** Applies runs that only cut items off the end and add others there: the items before are not gone through. */
  #grown(runs: readonly Run[], r: Reader): Cell[] {
    const cells = this.#cells;
    const kept = lengthKept(runs, cells.length) ?? 0;
    for (let i = kept; i < cells.length; i++) this.release(cells[i]);
    cells.length = kept;
    this.#readPages(r, cells);
    const length = runs.reduce((sum, { count }) => sum + count, 0);
    if (cells.length !== length) throw corrupt(`a list has ${cells.length} items, and says ${length}`);
    return cells;
  }

  #permutedBy(runs: readonly Run[], before: readonly Cell[], fresh: readonly Cell[]): Cell[] {
    const cells: Cell[] = [];
    const kept = new Uint8Array(before.length);
    let next = 0;
    for (const { from, count } of runs) {
      const source = from < 0 ? fresh : before;
      const begin = from < 0 ? next : from;
      if (begin + count > source.length) throw corrupt(`a list has no ${count} items from ${begin} on`);
      for (let i = begin; i < begin + count; i++) {
        if (from >= 0 && kept[i] === 1) throw corrupt("an item is kept twice");
        if (from >= 0) kept[i] = 1;
        cells.push(cellAt(source, i));
      }
      if (from < 0) next += count;
    }
    if (next !== fresh.length) throw corrupt("a list has items left over");
    for (let i = 0; i < before.length; i++) if (kept[i] === 0) this.release(before[i]);
    return cells;
  }

  /** Adds the cells of pages to other cells. */
  #readPages(r: Reader, cells: Cell[]): Cell[] {
    for (let pages = r.uint(); pages > 0; pages--) {
      const { page, slots, parts } = readEncodedPage(r);
      const begin = cells.length;
      page.begin = begin;
      for (let slot = 0; slot < slots; slot++) cells.push(page);
      for (const [slot, part] of parts) cells[begin + slot] = this.adopt(part);
    }
    return cells;
  }

  #readInPlace(r: Reader): void {
    let place = 0;
    const places = r.list(() => place += r.uint());
    const cells = this.#readPages(r, []);
    if (cells.length !== places.length) throw corrupt(`${cells.length} items for ${places.length} places`);
    for (const [i, at] of places.entries()) {
      if (at >= this.#cells.length) throw corrupt(`a list has no place ${at}`);
      this.release(this.#cells[at]);
      this.#cells[at] = cellAt(cells, i);
    }
  }
}

function writePages(w: Writer, cells: readonly Cell[]): void {
  const pages = new Writer(256);
  const page = new PageWriter(pages);
  let count = 0;
  for (let at = 0; at < cells.length; count++) {
    const slots = page.slots;
    page.write(cells.slice(at, at + slots));
    at += slots;
  }
  w.uint(count).raw(pages.done());
}

/** Returns the cell in a place, in a form that can be put into another place. */
function cellAt(cells: readonly Cell[], place: number): Cell {
  const cell = cells[place];
  return cell instanceof EncodedPage ? cell.ofPlace(place) : cell;
}

/**
 * Returns how many items of a list of that length stay at its beginning, where all others are new ones behind them;
 * null where the runs are not such.
 */
function lengthKept([first, ...others]: readonly Run[], length: number): number | null {
  const kept = first === undefined || first.from < 0 ? 0 : first.count;
  const isGrown = (first?.from ?? -1) <= 0 && others.every(({ from }) => from < 0);
  return isGrown && kept <= length ? kept : null;
}

/** Returns the place for a relative index, as arrays take them. */
function placeOf(index: number, length: number): number {
  const place = Math.trunc(index) || 0;
  return place < 0 ? Math.max(0, length + place) : Math.min(place, length);
}

/** Compares items as arrays do by themselves: by their texts. */
function ascending(a: unknown, b: unknown): number {
  const [one, other] = [String(a), String(b)];
  return one < other ? -1 : one > other ? 1 : 0;
}

register("list", () => new ListPart<unknown>());

/**
 * Declares a tracked list as a field of a Session class. Items are copied in and read frozen; an item can be a tracked
 * structure as well, which is tracked by itself.
 *
 * ```ts
 * import { list } from "sojourn";
 *
 * const lines = list<{ article: string; count: number }>();
 * lines.push({ article: "beans", count: 2 });
 * ```
 */
export function list<T>(items: Iterable<Put<T>> = []): TrackedList<T> {
  const made = new ListPart<T>();
  for (const item of items) made.push(item);
  return made;
}
