/**
 * Random programs for tracked structures and for what they are modelled on: Map, Array, Uint8Array and objects. An
 * operation is plain data and is carried out on either by the same code, so that whatever it answers can be compared.
 */
import fc from "fast-check";
import { BytesPart } from "../../../functions/tracked/bytes.ts";
import { GridPart } from "../../../functions/tracked/grid.ts";
import { ListPart } from "../../../functions/tracked/list.ts";
import { MapPart } from "../../../functions/tracked/map.ts";
import {
  bytes,
  type CellType,
  grid,
  isPart,
  list,
  map,
  nested,
  value,
} from "../../../functions/tracked/mod.ts";
import { ValuePart } from "../../../functions/tracked/value.ts";

/** Bytes that can be resized, as a plain array of them. */
export class PlainBytes {
  content: Uint8Array;
  constructor(length: number) {
    this.content = new Uint8Array(length);
  }
}

/** A plain grid. */
export class PlainGrid {
  readonly rows: number[][];
  constructor(width: number, height: number, readonly type: CellType) {
    this.rows = Array.from({ length: height }, () => new Array<number>(width).fill(0));
  }
}

/** A plain value. */
export class PlainValue {
  constructor(public value: unknown) {}
}

/** A plain record of structures. */
export class PlainNested {
  constructor(readonly parts: Record<string, unknown>) {}
}

const ARRAYS = {
  uint8: Uint8Array,
  int16: Int16Array,
  float32: Float32Array,
  float64: Float64Array,
} as const;
const TYPES = ["uint8", "int16", "float32", "float64"] as const;

/** Draws a step of a program makes its choices by. */
export interface Step {
  /** Which structure, from the top down. */
  readonly way: readonly number[];
  readonly operation: number;
  readonly a: number;
  readonly b: number;
  readonly content: unknown;
  readonly items: readonly unknown[];
  readonly key: string | number | bigint | boolean;
}

/** Values that structured clone keeps. */
export const anyContent: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: fc.jsonValue() },
  { weight: 1, arbitrary: fc.oneof(fc.bigInt(), fc.constantFrom(undefined, NaN, -0, Infinity, "\ud800")) },
  {
    weight: 1,
    arbitrary: fc.anything({
      withDate: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
      withBigInt: true,
      withSparseArray: true,
      maxDepth: 2,
    }),
  },
);

const anyKey: fc.Arbitrary<Step["key"]> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("a", "b", "c", "d", "__proto__", "") },
  { weight: 1, arbitrary: fc.oneof(fc.string(), fc.double(), fc.bigInt(), fc.boolean()) },
);

export const anyStep: fc.Arbitrary<Step> = fc.record({
  way: fc.array(fc.nat(20), { maxLength: 4 }),
  operation: fc.nat(1000),
  a: fc.nat(2000),
  b: fc.nat(2000),
  content: anyContent,
  items: fc.array(anyContent, { maxLength: 3 }),
  key: anyKey,
});

/** A new structure of a kind, plain or tracked. */
function make(kind: number, isTracked: boolean, content: unknown): unknown {
  switch (kind % 6) {
    case 0:
      return isTracked ? map() : new Map();
    case 1:
      return isTracked ? list() : [];
    case 2:
      return isTracked ? bytes(kind) : new PlainBytes(kind);
    case 3: {
      const [width, height, type] = [1 + kind % 40, kind % 7, TYPES[kind % TYPES.length] ?? "uint8"];
      return isTracked ? grid({ width, height, type }) : new PlainGrid(width, height, type);
    }
    case 4:
      return isTracked ? value(content) : new PlainValue(structuredClone(content));
    default:
      return isTracked
        ? nested({ left: map(), right: list() })
        : new PlainNested({ left: new Map(), right: [] });
  }
}

const isStructure = (each: unknown): boolean =>
  isPart(each) || each instanceof PlainBytes || each instanceof PlainGrid || each instanceof PlainValue ||
  each instanceof PlainNested || (each !== null && typeof each === "object" && PLAIN.has(each));

/** The Maps and arrays that are structures of a model, and no content. */
const PLAIN = new WeakSet<object>();

/** A structure to be put in, or content; every fourth is a structure. */
function put(step: Step, isTracked: boolean): unknown {
  // Often what is there already: that is a change, too, in all of them.
  if (step.b % 4 === 1) return step.a % 2;
  if (step.b % 4 !== 0) return isTracked ? step.content : structuredClone(step.content);
  const made = make(step.a, isTracked, step.content);
  if (!isTracked) enlist(made);
  return made;
}

function enlist(made: unknown): void {
  if (made instanceof PlainNested) { for (const part of Object.values(made.parts)) enlist(part); }
  else if (typeof made === "object" && made !== null) PLAIN.add(made);
}

/** The first structure of a program. */
export function begin(isTracked: boolean): unknown {
  const made = make(5, isTracked, null);
  if (!isTracked) enlist(made);
  return made;
}

function inside(structure: unknown): unknown[] {
  if (structure instanceof Map || structure instanceof MapPart) {
    return [...structure.values()].filter(isStructure);
  }
  if (Array.isArray(structure)) return structure.filter(isStructure);
  if (structure instanceof ListPart) return structure.toArray().filter(isStructure);
  if (structure instanceof ValuePart) return [structure.get()].filter(isStructure);
  if (structure instanceof PlainValue) return [structure.value].filter(isStructure);
  if (structure instanceof PlainNested) return [structure.parts.left, structure.parts.right];
  if (isPart(structure) && "left" in structure && "right" in structure) {
    return [structure.left, structure.right];
  }
  return [];
}

/** Carries a step out; what an app would see of it. */
export function carryOut(top: unknown, step: Step, isTracked: boolean): unknown {
  let structure = top;
  for (const choice of step.way) {
    const parts = inside(structure);
    if (parts.length === 0) break;
    structure = parts[choice % parts.length];
  }
  if (structure instanceof Map || structure instanceof MapPart) {
    return onMap(structure as Map<unknown, unknown>, step, isTracked);
  }
  if (Array.isArray(structure)) return onArray(structure, step);
  if (structure instanceof ListPart) return onList(structure, step);
  if (structure instanceof PlainBytes) return onPlainBytes(structure, step);
  if (structure instanceof BytesPart) return onBytes(structure, step);
  if (structure instanceof PlainGrid || structure instanceof GridPart) return onGrid(structure, step);
  if (structure instanceof PlainValue) return void (structure.value = put(step, false));
  if (structure instanceof ValuePart) return void structure.set(put(step, true));
  return undefined;
}

function onMap(of: Map<unknown, unknown>, step: Step, isTracked: boolean): unknown {
  switch (step.operation % 9) {
    case 0:
      return snapshot(of.get(step.key));
    case 1:
      return of.has(step.key);
    case 2:
      return of.delete(step.key);
    case 3:
      return step.a % 10 === 0 ? of.clear() : of.size;
    case 4:
      return [...of.keys()];
    default:
      of.set(step.key, put(step, isTracked));
      return of.size;
  }
}

/** In both: structures never go in by more than one at a time, as `put` makes one. */
function onArray(of: unknown[], step: Step): unknown {
  const [a, b] = [step.a % 12, step.b % 5];
  switch (step.operation % 12) {
    case 0:
      return of.push(put(step, false));
    case 1:
      return snapshot(of.pop());
    case 2:
      return snapshot(of.shift());
    case 3:
      return of.unshift(...structuredClone(step.items));
    case 4:
      return snapshot(of.splice(a - 6, b, ...structuredClone(step.items)));
    case 5:
      if (a < of.length) of[a] = put(step, false);
      return null;
    case 6:
      return void of.reverse();
    case 7:
      return void of.sort((one, other) => rank(one) - rank(other));
    case 8:
      return snapshot(of.slice(a - 6, b - 2));
    case 9:
      return snapshot(of.at(a - 6));
    case 10:
      return step.a % 10 === 0 ? void (of.length = 0) : of.length;
    default:
      return of.push(...structuredClone(step.items));
  }
}

function onList(of: ListPart<unknown>, step: Step): unknown {
  const [a, b] = [step.a % 12, step.b % 5];
  switch (step.operation % 12) {
    case 0:
      return of.push(put(step, true));
    case 1:
      return snapshot(of.pop());
    case 2:
      return snapshot(of.shift());
    case 3:
      return of.unshift(...step.items);
    case 4:
      return snapshot(of.splice(a - 6, b, ...step.items));
    case 5:
      if (a < of.length) of.set(a, put(step, true));
      return null;
    case 6:
      return void of.reverse();
    case 7:
      return void of.sort((one, other) => rank(one) - rank(other));
    case 8:
      return snapshot(of.slice(a - 6, b - 2));
    case 9:
      return snapshot(of.at(a - 6));
    case 10:
      return step.a % 10 === 0 ? of.clear() : of.length;
    default:
      return of.push(...step.items);
  }
}

/** Some order, with many that are equal. */
const rank = (item: unknown): number =>
  typeof item === "number" ? Math.sign(item) || 0 : (typeof item).length;

function onPlainBytes(of: PlainBytes, step: Step): unknown {
  const { content } = of;
  const [a, b] = [step.a % (content.length + 1), step.b % (content.length + 1)];
  switch (step.operation % 7) {
    case 0:
      if (a < content.length) content[a] = step.b;
      return null;
    case 1:
      return void content.fill(step.b, a - 300, b);
    case 2:
      return void content.copyWithin(a, b - 200, b);
    case 3: {
      const before = content;
      of.content = new Uint8Array(step.a);
      of.content.set(before.subarray(0, step.a));
      return null;
    }
    case 4:
      content.set(Uint8Array.from({ length: content.length - a }, (_, i) => i + step.b), a);
      return null;
    case 5:
      return [...content.slice(a - 500, b)];
    default:
      return content.at(a - 1);
  }
}

function onBytes(of: BytesPart, step: Step): unknown {
  const [a, b] = [step.a % (of.length + 1), step.b % (of.length + 1)];
  switch (step.operation % 7) {
    case 0:
      if (a < of.length) of.put(a, step.b);
      return null;
    case 1:
      return void of.fill(step.b, a - 300, b);
    case 2:
      return void of.copyWithin(a, b - 200, b);
    case 3:
      of.resize(step.a);
      return null;
    case 4:
      if (step.b % 2 === 0) of.set(Uint8Array.from({ length: of.length - a }, (_, i) => i + step.b), a);
      else of.edit(a, of.length, (part) => part.set(part.map((_, i) => i + step.b)));
      return null;
    case 5:
      return [...of.slice(a - 500, b)];
    default:
      return of.at(a - 1);
  }
}

function onGrid(of: PlainGrid | GridPart, step: Step): unknown {
  const height = of instanceof PlainGrid ? of.rows.length : of.height;
  if (height === 0) return null;
  const width = of instanceof PlainGrid ? of.rows[0]?.length ?? 0 : of.width;
  const [x, y] = [step.a % width, step.b % height];
  const number = (step.a - 1000) / 8;
  const row = Array.from({ length: width - x }, (_, i) => number + i);
  const round = (each: number): number => ARRAYS[of.type as keyof typeof ARRAYS].of(each)[0] ?? 0;
  switch (step.operation % 4) {
    case 0:
      if (of instanceof GridPart) of.set(x, y, number);
      else (of.rows[y] ?? [])[x] = round(number);
      return null;
    case 1:
      if (of instanceof GridPart) of.setRow(y, row, x);
      else of.rows[y]?.splice(x, row.length, ...row.map(round));
      return null;
    case 2:
      if (of instanceof GridPart) of.edit(0, y, (rows) => void rows.fill(number));
      else for (const each of of.rows.slice(0, y)) each.fill(round(number));
      return null;
    default:
      return of instanceof GridPart ? of.get(x, y) : of.rows[y]?.[x];
  }
}

/** All of a structure, in its order, in a form that is the same for tracked and plain ones. */
export function snapshot(structure: unknown): unknown {
  if (structure instanceof MapPart || (structure instanceof Map && PLAIN.has(structure))) {
    return { map: [...structure.entries()].map(([key, each]) => [key, snapshot(each)]) };
  }
  if (structure instanceof ListPart || (Array.isArray(structure) && PLAIN.has(structure))) {
    return { list: [...structure].map(snapshot) };
  }
  if (structure instanceof BytesPart) return { bytes: [...structure] };
  if (structure instanceof PlainBytes) return { bytes: [...structure.content] };
  if (structure instanceof GridPart) {
    return { grid: Array.from({ length: structure.height }, (_, y) => [...structure.row(y)]) };
  }
  if (structure instanceof PlainGrid) return { grid: structure.rows };
  if (structure instanceof ValuePart) return { value: snapshot(structure.get()) };
  if (structure instanceof PlainValue) return { value: snapshot(structure.value) };
  if (structure instanceof PlainNested) {
    return { left: snapshot(structure.parts.left), right: snapshot(structure.parts.right) };
  }
  if (isPart(structure) && "left" in structure && "right" in structure) {
    return { left: snapshot(structure.left), right: snapshot(structure.right) };
  }
  return Array.isArray(structure)
    ? structure.map((each) => isStructure(each) ? snapshot(each) : each)
    : structure;
}

/** Of each value inside whether it is the same object when it is read again: a program can see that. */
export function identities(structure: unknown): unknown {
  if (structure instanceof MapPart) {
    return [...structure.keys()].map((key) => same(() => structure.get(key)));
  }
  if (structure instanceof ListPart) return structure.toArray().map((_, i) => same(() => structure.at(i)));
  if (structure instanceof ValuePart) return same(() => structure.get());
  if (isPart(structure) && "left" in structure && "right" in structure) {
    return [identities(structure.left), identities(structure.right)];
  }
  return true;
}

function same(read: () => unknown): unknown {
  const each = read();
  return isPart(each) ? identities(each) : Object.is(each, read());
}
