/**
 * The walk through the plain fields of a session at the end of each handler: what no checkpoint could hold is found
 * before the handler's answer leaves.
 *
 * FW1  No code of an app runs: getters are not asked, and what is a Proxy is not looked into.
 * FW2  What passes here passes `checkField` (owned.ts), which names what does not; what does not pass here may.
 * FW3  An object whose properties are known is not asked for each of them again: assignment only adds values, and names
 *      that are symbols. Code that defines properties in another way says so (`forget`). Names beside the places of a
 *      large array are looked for when it is first seen, and at each checkpoint; of a large view at each checkpoint.
 *
 * A field costs some 10 ns, an object 100. The first few objects of a walk that contain no others are not remembered:
 * handlers make such objects anew each time, and remembering them costs more than looking again. They can be part of no
 * circle.
 */
import { isHalfFixed, isProxy } from "./owned.ts";
import { isPart, type Part } from "./part.ts";

/** Levels of values that are walked through, as in owned.ts, which looks at what lies deeper. */
const DEPTH_MAX = 100;
/** Length up to which an array is searched for names beside its places each time: it takes 25 ns a place. */
const ARRAY_NAMES_MAX = 32;
/** Length up to which an array's places are searched for getters; in a longer one they come by `forget` only. */
const ARRAY_SHAPE_MAX = 1024;
const VIEW_NAMES_MAX = 256;

/** Walk that last met each object whose properties are known; ODD: the object is to be asked again each time. */
let known = new WeakMap<object, number>();
const ODD = -1;
let walk = 0;
/** Number of objects of this walk that contain no others. */
let leaves = 0;
const LEAVES_MAX = 16;

/**
 * Forgets what is known of an object, on which something other than a plain property was defined (FW3). For a Proxy,
 * whose target is not known, all objects are forgotten.
 */
export function forget(object: object): void {
  if (isProxy(object)) known = new WeakMap();
  known.set(object, ODD);
}

/**
 * Reports whether each field can be kept: where not, `checkField` says why. A tracked structure passes where it is in
 * its place: the one that the field had when it was last written or read.
 */
export function fieldsPass(instance: object, placed: ReadonlyMap<string, { readonly part: Part }>): boolean {
  walk++;
  leaves = 0;
  const before = known.get(instance);
  if (before === ODD || !Object.isExtensible(instance)) return false;
  if (before === undefined && !hasPlainShape(instance, true)) return false;
  // Walks are told apart for the values in fields; of the instance it only matters that it is known.
  if (before === undefined) known.set(instance, walk);
  if (Object.getOwnPropertySymbols(instance).length > 0) return false;
  const fields = instance as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    if (typeof value === "object" && value !== null && placed.get(name)?.part === value) continue;
    if (!passes(value, 0)) return false;
  }
  return true;
}

function passes(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "object":
      return value === null || objectPasses(value, depth);
    case "function":
    case "symbol":
      return false;
    default:
      return true;
  }
}

function objectPasses(value: object, depth: number): boolean {
  const before = known.get(value);
  if (before === walk) return true;
  const isNew = before === undefined;
  if (depth > DEPTH_MAX || before === ODD || (isNew && isProxy(value))) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Array.prototype && Array.isArray(value)) return arrayPasses(value, isNew, depth);
  if (prototype === null && !Object.isExtensible(value)) return false; // owned.ts knows what these may be
  if (prototype !== Object.prototype && prototype !== null) {
    return otherPasses(value, prototype, isNew, depth);
  }
  if (!(isNew ? hasPlainShape(value, false) : hasNoSymbols(value)) || isPart(value)) return false;
  const named = value as Readonly<Record<string, unknown>>;
  let isLeaf = true;
  for (const name of Object.keys(named)) {
    const each = named[name];
    if (isLeaf && typeof each === "object" && each !== null) {
      isLeaf = false;
      known.set(value, walk);
    }
    if (!passes(each, depth + 1)) return false;
  }
  if (isLeaf && isNew) learnLeaf(value);
  return true;
}

function arrayPasses(value: readonly unknown[], isNew: boolean, depth: number): boolean {
  const { length } = value;
  // Holes and names are for `checkField`.
  if ((isNew || length <= ARRAY_NAMES_MAX) && Object.keys(value).length !== length) return false;
  if (!hasNoSymbols(value) || (isNew && length <= ARRAY_SHAPE_MAX && !isPlainArray(value))) return false;
  let isLeaf = true;
  for (let i = 0; i < length; i++) {
    const each = value[i];
    if (isLeaf && typeof each === "object" && each !== null) {
      isLeaf = false;
      known.set(value, walk);
    }
    if (!passes(each, depth + 1)) return false;
  }
  if (isLeaf && isNew) learnLeaf(value);
  return true;
}

/** Remembers an object that contains no others, unless it is one of the first few. */
function learnLeaf(value: object): void {
  if (++leaves > LEAVES_MAX) known.set(value, walk);
}

const hasNoSymbols = (value: object): boolean => Object.getOwnPropertySymbols(value).length === 0;

/** Reports whether a session's class has a member of that name: a load would set that instead of a field. */
export function isOfClass(prototype: object | null, name: string): boolean {
  for (let of = prototype; of !== null && of !== Object.prototype; of = Object.getPrototypeOf(of)) {
    if (Object.hasOwn(of, name)) return true;
  }
  return false;
}

/**
 * Reports whether all own properties of an object are values, and enumerable; those of an instance also have to be
 * writable, as a load writes them.
 */
function hasPlainShape(value: object, isInstance: boolean): boolean {
  const names = Object.keys(value);
  // Each of these costs a tenth of asking for all names and what they are.
  if (Object.getOwnPropertyNames(value).length !== names.length || !hasNoSymbols(value)) return false;
  const prototype: object | null = isInstance ? Object.getPrototypeOf(value) : null;
  for (const name of names) {
    const found = Object.getOwnPropertyDescriptor(value, name);
    if (found === undefined || !("value" in found)) return false;
    if (isInstance && (found.writable !== true || isOfClass(prototype, name))) return false;
    if (isHalfFixed(value, found)) return false;
  }
  return true;
}

/** Reports whether an array has no names but its places and `length`, all of them plain values. */
function isPlainArray(value: readonly unknown[]): boolean {
  for (const name of Object.getOwnPropertyNames(value)) {
    const found = Object.getOwnPropertyDescriptor(value, name);
    if (found === undefined || !("value" in found)) return false;
    if (name === "length") {
      if (found.writable !== true && !Object.isFrozen(value)) return false;
    } else if (found.enumerable !== true || isHalfFixed(value, found)) return false;
  }
  return true;
}

const TYPED_ARRAY: unknown = Object.getPrototypeOf(Uint8Array.prototype);
const sizeOfMap = Object.getOwnPropertyDescriptor(Map.prototype, "size")?.get;
const sizeOfSet = Object.getOwnPropertyDescriptor(Set.prototype, "size")?.get;

/** Reports whether a Map, Set, view or Date passes; all others are for `checkField`. */
function otherPasses(value: object, prototype: unknown, isNew: boolean, depth: number): boolean {
  if (ArrayBuffer.isView(value)) return viewPasses(value, prototype, isNew);
  if (prototype === Date.prototype) return isBare(value) && isReal(Date.prototype.getTime, value);
  const isMap = prototype === Map.prototype;
  if (!isMap && prototype !== Set.prototype) return false;
  if (!isBare(value) || !isReal(isMap ? sizeOfMap : sizeOfSet, value)) return false;
  known.set(value, walk);
  if (isMap) {
    for (const [key, each] of value as ReadonlyMap<unknown, unknown>) {
      if (!passes(key, depth + 1) || !passes(each, depth + 1)) return false;
    }
    return true;
  }
  for (const each of value as ReadonlySet<unknown>) if (!passes(each, depth + 1)) return false;
  return true;
}

function viewPasses(value: ArrayBufferView, prototype: unknown, isNew: boolean): boolean {
  const { buffer } = value;
  const isOwn = prototype === DataView.prototype || Object.getPrototypeOf(prototype) === TYPED_ARRAY;
  if (!isOwn || !(buffer instanceof ArrayBuffer) || buffer.resizable || buffer.detached) return false;
  const length = value instanceof DataView ? 0 : (value as Uint8Array).length;
  if (isNew && length <= VIEW_NAMES_MAX && Reflect.ownKeys(value).length !== length) return false;
  known.set(value, walk);
  return Object.getOwnPropertySymbols(value).length === 0;
}

/** Reports whether an object is what its prototype says: `ask`, a method of that prototype, has an answer for it. */
function isReal(ask: (() => unknown) | undefined, value: object): boolean {
  try {
    return ask !== undefined && Reflect.apply(ask, value, []) !== undefined;
  } catch {
    return false;
  }
}

const isBare = (value: object): boolean => Reflect.ownKeys(value).length === 0;
