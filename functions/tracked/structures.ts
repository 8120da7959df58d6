/**
 * Tracked structures as an app knows them. What is read of one is frozen, or a copy where it can't be frozen; what is put
 * in is copied, but for structures (owned.ts).
 */
import type { Held } from "./owned.ts";
import type { Tracked } from "./part.ts";

/** What may be put where a `T` is: a structure itself, or a value, also one that was read from a structure. */
export type Put<T> = T | Held<T>;

/** A value whose changes are tracked: for what is large and changes seldom. */
export interface TrackedValue<T> extends Tracked {
  /** The value. */
  get(): Held<T>;
  /** Puts another in its place. @throws AppError `value_invalid`. */
  set(value: Put<T>): void;
  /** Puts in its place what `change` makes of it. */
  update(change: (value: Held<T>) => Put<T>): void;
  /** The value, for JSON.stringify. */
  toJSON(): Held<T>;
}

/** What a key of a map can be: objects would be other ones after they were loaded. */
export type TrackedKey = string | number | bigint | boolean;

/** A map whose changes are tracked one by one: a checkpoint holds what changed, not the whole map. */
export interface TrackedMap<K extends TrackedKey, V> extends Tracked, Iterable<[K, Held<V>]> {
  /** How many entries it has. */
  readonly size: number;
  /** The value of a key. */
  get(key: K): Held<V> | undefined;
  /** Whether a key has a value. */
  has(key: K): boolean;
  /** Gives a key a value. @throws AppError `value_invalid`. */
  set(key: K, value: Put<V>): this;
  /** Gives a key what `change` makes of its value. */
  update(key: K, change: (value: Held<V> | undefined) => Put<V>): this;
  /** Takes a key out; whether it was there. */
  delete(key: K): boolean;
  /** Takes all keys out. */
  clear(): void;
  /** The keys, in order of insertion. */
  keys(): IterableIterator<K>;
  /** The values, in order of insertion. */
  values(): IterableIterator<Held<V>>;
  /** Keys and values, in order of insertion. */
  entries(): IterableIterator<[K, Held<V>]>;
  /** Calls a function for each entry, in order of insertion. */
  forEach(each: (value: Held<V>, key: K, map: this) => void): void;
  /** An object of its entries, for JSON.stringify. (Of a Map that makes `{}`.) */
  toJSON(): Record<string, Held<V>>;
}

/** A list whose changes are tracked: an array, but that places are read by `at` and written by `set`. */
export interface TrackedList<T> extends Tracked, Iterable<Held<T>> {
  /** How many items it has. */
  readonly length: number;
  /** The item in a place, from the end where it is negative; undefined where there is none. */
  at(index: number): Held<T> | undefined;
  /**
   * Replaces the item in a place, or adds one in the place after the last.
   *
   * @throws RangeError for a place further on: a list has no holes. AppError `value_invalid`.
   */
  set(index: number, item: Put<T>): void;
  /** Adds items at the end; the new length. */
  push(...items: readonly Put<T>[]): number;
  /** Takes the last item out. */
  pop(): Held<T> | undefined;
  /** Takes the first item out. */
  shift(): Held<T> | undefined;
  /** Adds items at the beginning; the new length. */
  unshift(...items: readonly Put<T>[]): number;
  /** Takes items out and puts others in their place, as an array does; those that were taken. */
  splice(start: number, deleteCount?: number, ...items: readonly Put<T>[]): Held<T>[];
  /** Takes all items out. */
  clear(): void;
  /** Sorts it in place, as an array does. */
  sort(compare?: (a: Held<T>, b: Held<T>) => number): this;
  /** Reverses it in place. */
  reverse(): this;
  /** The items of a part of it, as an array. */
  slice(start?: number, end?: number): Held<T>[];
  /** All items, as an array: for what else arrays can do. */
  toArray(): Held<T>[];
  /** The first place of an item, or −1. Objects are found by what `at` gives, not by what was put in. */
  indexOf(item: Held<T>, from?: number): number;
  /** Whether it has an item. */
  includes(item: Held<T>): boolean;
  /** The first item that fulfils a condition. */
  find(condition: (item: Held<T>, index: number) => unknown): Held<T> | undefined;
  /** The place of the first item that fulfils a condition, or −1. */
  findIndex(condition: (item: Held<T>, index: number) => unknown): number;
  /** The items that fulfil a condition, as an array. */
  filter(condition: (item: Held<T>, index: number) => unknown): Held<T>[];
  /** What a function makes of each item, as an array. */
  map<U>(change: (item: Held<T>, index: number) => U): U[];
  /** Calls a function for each item. */
  forEach(each: (item: Held<T>, index: number) => void): void;
  /** Places and items, in order. */
  entries(): IterableIterator<[number, Held<T>]>;
  /** Items, in order. */
  values(): IterableIterator<Held<T>>;
  /** An array of its items, for JSON.stringify. */
  toJSON(): Held<T>[];
}

/** Bytes whose changes are tracked: a Uint8Array, but that places are read by `at` and written by `set` and `put`. */
export interface TrackedBytes extends Tracked, Iterable<number> {
  /** How many there are. */
  readonly length: number;
  /** The byte in a place, from the end where it is negative; undefined where there is none. */
  at(index: number): number | undefined;
  /** Writes one byte. @throws RangeError for a place that there is not. */
  put(index: number, byte: number): void;
  /** Writes bytes from a place on. @throws RangeError where they don't fit. */
  set(source: ArrayLike<number>, offset?: number): void;
  /** Fills a part with one byte, as a Uint8Array does. */
  fill(byte: number, start?: number, end?: number): this;
  /** Copies a part to another place, as a Uint8Array does. */
  copyWithin(target: number, start: number, end?: number): this;
  /** Makes it longer, with zeros, or shorter. @throws AppError `limit_value`. */
  resize(length: number): void;
  /** A copy of a part. */
  slice(start?: number, end?: number): Uint8Array<ArrayBuffer>;
  /**
   * Hands a part to a function to read and write at full speed, and counts all of it as written. What the function keeps
   * of it is not tracked once it has returned.
   */
  edit(start: number, end: number, change: (part: Uint8Array<ArrayBuffer>) => void): void;
  /** The first place of a byte, or −1. */
  indexOf(byte: number, from?: number): number;
}

/** What a cell of a grid holds. */
export type CellType = "uint8" | "int8" | "uint16" | "int16" | "uint32" | "int32" | "float32" | "float64";

/** A row of a grid. */
export type GridRow =
  | Uint8Array<ArrayBuffer>
  | Int8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Int16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Float32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>;

/** A grid of numbers whose changes are tracked. */
export interface TrackedGrid extends Tracked {
  /** Cells of a row. */
  readonly width: number;
  /** How many rows there are. */
  readonly height: number;
  /** What a cell holds. */
  readonly type: CellType;
  /** The number in a cell. @throws RangeError for one that there is not. */
  get(x: number, y: number): number;
  /** Writes a number into a cell, as an array of the grid's type takes it. @throws RangeError. */
  set(x: number, y: number, value: number): void;
  /** Fills all cells with a number. */
  fill(value: number): this;
  /** A copy of a row. @throws RangeError. */
  row(y: number): GridRow;
  /** Writes numbers into a row, from a cell on. @throws RangeError where they don't fit. */
  setRow(y: number, values: ArrayLike<number>, x?: number): void;
  /**
   * Hands rows to a function, to read and write at full speed, and counts all of them as written. What the function keeps
   * of them is not tracked once it has returned.
   *
   * @throws RangeError.
   */
  edit(fromRow: number, toRow: number, change: (rows: GridRow) => void): void;
}

/** Structures by name: its members are its structures. */
export type TrackedNested<T extends Readonly<Record<string, Tracked>>> = Tracked & Readonly<T>;
