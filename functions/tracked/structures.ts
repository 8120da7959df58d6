/**
 * The tracked structures as an app knows them. A value that is read from one is frozen, or a copy where it can't be
 * frozen; a value that is put in is copied, but for structures (owned.ts).
 */
import type { Held } from "./owned.ts";
import type { Tracked } from "./part.ts";

/** Value that may be put where a `T` is: a structure itself, or a value, also one that was read from a structure. */
export type Put<T> = T | Held<T>;

/** Value whose changes are tracked: for what is large and changes seldom. */
export interface TrackedValue<T> extends Tracked {
  /** Returns the value. */
  get(): Held<T>;
  /** Puts another value in its place. @throws AppError `value_invalid` for a value that no checkpoint can hold. */
  set(value: Put<T>): void;
  /** Replaces the value by what `change` makes of it. @throws AppError `value_invalid`, as `set`. */
  update(change: (value: Held<T>) => Put<T>): void;
  /** Returns the value, for JSON.stringify. */
  toJSON(): Held<T>;
}

/** Key of a map. Objects can't be keys: they would be other ones after they were loaded. */
export type TrackedKey = string | number | bigint | boolean;

/** Map whose changes are tracked one by one: a checkpoint holds what changed, not the whole map. */
export interface TrackedMap<K extends TrackedKey, V> extends Tracked, Iterable<[K, Held<V>]> {
  /** Number of entries. */
  readonly size: number;
  /** Returns the value of a key; undefined where there is none. */
  get(key: K): Held<V> | undefined;
  /** Reports whether a key has a value. */
  has(key: K): boolean;
  /** Gives a key a value. @throws AppError `value_invalid` for a key or a value that no checkpoint can hold. */
  set(key: K, value: Put<V>): this;
  /** Gives a key what `change` makes of its value. @throws AppError `value_invalid`, as `set`. */
  update(key: K, change: (value: Held<V> | undefined) => Put<V>): this;
  /** Takes a key out, and reports whether it was there. */
  delete(key: K): boolean;
  /** Takes all keys out. */
  clear(): void;
  /** Returns the keys, in order of insertion. */
  keys(): IterableIterator<K>;
  /** Returns the values, in order of insertion. */
  values(): IterableIterator<Held<V>>;
  /** Returns keys and values, in order of insertion. */
  entries(): IterableIterator<[K, Held<V>]>;
  /** Calls a function for each entry, in order of insertion. */
  forEach(each: (value: Held<V>, key: K, map: this) => void): void;
  /** Returns an object of the entries, for JSON.stringify. (Of a Map that makes `{}`.) */
  toJSON(): Record<string, Held<V>>;
}

/** List whose changes are tracked: an array, but that places are read by `at` and written by `set`. */
export interface TrackedList<T> extends Tracked, Iterable<Held<T>> {
  /** Number of items. */
  readonly length: number;
  /** Returns the item in a place, from the end where it is negative; undefined where there is none. */
  at(index: number): Held<T> | undefined;
  /**
   * Replaces the item in a place, or adds one in the place after the last.
   *
   * @throws RangeError for a place further on: a list has no holes. AppError `value_invalid` for an item that no
   *     checkpoint can hold.
   */
  set(index: number, item: Put<T>): void;
  /** Adds items at the end, and returns the new length. @throws AppError `value_invalid`, as `set`. */
  push(...items: readonly Put<T>[]): number;
  /** Takes the last item out, and returns it; undefined where there is none. */
  pop(): Held<T> | undefined;
  /** Takes the first item out, and returns it; undefined where there is none. */
  shift(): Held<T> | undefined;
  /** Adds items at the beginning, and returns the new length. @throws AppError `value_invalid`, as `set`. */
  unshift(...items: readonly Put<T>[]): number;
  /**
   * Takes items out and puts others in their place, as an array does; returns those that were taken.
   *
   * @throws AppError `value_invalid`, as `set`.
   */
  splice(start: number, deleteCount?: number, ...items: readonly Put<T>[]): Held<T>[];
  /** Takes all items out. */
  clear(): void;
  /** Sorts the list in place, as an array does. */
  sort(compare?: (a: Held<T>, b: Held<T>) => number): this;
  /** Reverses the list in place. */
  reverse(): this;
  /** Returns the items of a part of the list, as an array. */
  slice(start?: number, end?: number): Held<T>[];
  /** Returns all items as an array, which has the methods that a list does not. */
  toArray(): Held<T>[];
  /** Returns the first place of an item, or −1. Objects are found by what `at` gives, not by what was put in. */
  indexOf(item: Held<T>, from?: number): number;
  /** Reports whether the list has an item. */
  includes(item: Held<T>): boolean;
  /** Returns the first item that fulfils a condition; undefined where there is none. */
  find(condition: (item: Held<T>, index: number) => unknown): Held<T> | undefined;
  /** Returns the place of the first item that fulfils a condition, or −1. */
  findIndex(condition: (item: Held<T>, index: number) => unknown): number;
  /** Returns the items that fulfil a condition, as an array. */
  filter(condition: (item: Held<T>, index: number) => unknown): Held<T>[];
  /** Returns what a function makes of each item, as an array. */
  map<U>(change: (item: Held<T>, index: number) => U): U[];
  /** Calls a function for each item. */
  forEach(each: (item: Held<T>, index: number) => void): void;
  /** Returns places and items, in order. */
  entries(): IterableIterator<[number, Held<T>]>;
  /** Returns the items, in order. */
  values(): IterableIterator<Held<T>>;
  /** Returns an array of the items, for JSON.stringify. */
  toJSON(): Held<T>[];
}

/** Bytes whose changes are tracked: a Uint8Array, but that places are read by `at` and written by `set` and `put`. */
export interface TrackedBytes extends Tracked, Iterable<number> {
  /** Number of bytes. */
  readonly length: number;
  /** Returns the byte in a place, from the end where it is negative; undefined where there is none. */
  at(index: number): number | undefined;
  /** Writes one byte. @throws RangeError for a place that does not exist. */
  put(index: number, byte: number): void;
  /** Writes bytes from a place on. @throws RangeError where they don't fit. */
  set(source: ArrayLike<number>, offset?: number): void;
  /** Fills a part with one byte, as a Uint8Array does. */
  fill(byte: number, start?: number, end?: number): this;
  /** Copies a part to another place, as a Uint8Array does. */
  copyWithin(target: number, start: number, end?: number): this;
  /**
   * Makes the bytes more, with zeros, or fewer.
   *
   * @throws AppError `limit_value` where there would be more than a structure may hold (256 MiB).
   */
  resize(length: number): void;
  /** Returns a copy of a part. */
  slice(start?: number, end?: number): Uint8Array<ArrayBuffer>;
  /**
   * Hands a part to a function to read and write at full speed, and counts all of it as written. What the function keeps
   * of it is not tracked once it has returned.
   */
  edit(start: number, end: number, change: (part: Uint8Array<ArrayBuffer>) => void): void;
  /** Returns the first place of a byte, or −1. */
  indexOf(byte: number, from?: number): number;
}

/** Type of a grid's cells. */
export type CellType = "uint8" | "int8" | "uint16" | "int16" | "uint32" | "int32" | "float32" | "float64";

/** Row of a grid. */
export type GridRow =
  | Uint8Array<ArrayBuffer>
  | Int8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Int16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Float32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>;

/** Grid of numbers whose changes are tracked. */
export interface TrackedGrid extends Tracked {
  /** Number of cells in a row. */
  readonly width: number;
  /** Number of rows. */
  readonly height: number;
  /** Type of the cells. */
  readonly type: CellType;
  /** Returns the number in a cell. @throws RangeError for a cell that does not exist. */
  get(x: number, y: number): number;
  /**
   * Writes a number into a cell, as an array of the grid's type takes it.
   *
   * @throws RangeError for a cell that does not exist.
   */
  set(x: number, y: number, value: number): void;
  /** Fills all cells with a number. */
  fill(value: number): this;
  /** Returns a copy of a row. @throws RangeError for a row that does not exist. */
  row(y: number): GridRow;
  /** Writes numbers into a row, from a cell on. @throws RangeError where they don't fit. */
  setRow(y: number, values: ArrayLike<number>, x?: number): void;
  /**
   * Hands rows to a function, to read and write at full speed, and counts all of them as written. What the function keeps
   * of them is not tracked once it has returned.
   *
   * @throws RangeError for rows that do not exist.
   */
  edit(fromRow: number, toRow: number, change: (rows: GridRow) => void): void;
}

/** Structures by name, as members of one structure. */
export type TrackedNested<T extends Readonly<Record<string, Tracked>>> = Tracked & Readonly<T>;
