/**
 * Values inside tracked structures. What goes in is copied, what comes out can't change what is inside:
 *
 * V1  Plain data (null, undefined, booleans, numbers, strings, bigints, and plain objects and arrays of such) is kept as
 *     one frozen copy, which every read hands out: changing it is a TypeError at that line.
 * V2  What can't be frozen (Date, Map, Set, RegExp, errors, ArrayBuffer and views) and what holds it is copied again at
 *     each read: changing it changes the copy.
 * V3  What structured clone refuses, or would silently take for something else (an instance of an app's class), is
 *     refused when it is put in, with its path.
 */
import { AppError } from "../errors.ts";
import { isPart, type Tracked } from "./part.ts";

/** A value as a tracked structure hands it out: readonly all the way down. */
export type Held<T> = unknown extends T ? T
  : T extends
    | (string | number | bigint | boolean | null | undefined)
    | (Date | RegExp | Error | ArrayBuffer | ArrayBufferView)
    | Tracked ? T
  : T extends ReadonlyMap<infer K, infer V> ? ReadonlyMap<Held<K>, Held<V>>
  : T extends ReadonlySet<infer V> ? ReadonlySet<Held<V>>
  : { readonly [P in keyof T]: Held<T[P]> };

/** Deeper trees are refused: whoever reads them recurses. */
const DEPTH_MAX = 100;

/** A value of V2. */
export class Unshared {
  readonly #value: unknown;
  constructor(value: unknown) {
    this.#value = value;
  }
  /** For encoding only: never handed out. */
  get original(): unknown {
    return this.#value;
  }
  /** A copy whose plain parts are frozen. */
  copy(): unknown {
    const copy = structuredClone(this.#value);
    freezePlain(copy, 0);
    return copy;
  }
}

/** How a value is kept: itself where it is plain (V1), else {@link Unshared}. */
export type Kept = unknown;

/** Takes a value in. @throws AppError `value_invalid` (V3). */
export function takeIn(value: unknown, pathOf: () => string): Kept {
  if (typeof value !== "object" || value === null) {
    const why = refusal(value);
    if (why !== undefined) throw unfit(pathOf(), why);
    return value;
  }
  const copy = copyPlain(value, 0, new Set());
  if (copy !== NOT_PLAIN) return copy;
  check(value, pathOf, [], new Set());
  return new Unshared(structuredClone(value));
}

/** The form of a value that was just decoded, and belongs to nobody else. */
export function takeOver(value: unknown): Kept {
  return freezePlain(value, 0) ? value : new Unshared(value);
}

/** What a read hands out. */
export const handOut = (kept: Kept): unknown => kept instanceof Unshared ? kept.copy() : kept;

/** What is encoded. */
export const originalOf = (kept: Kept): unknown => kept instanceof Unshared ? kept.original : kept;

/** Throws for what a plain field can't hold either. @throws AppError `value_invalid` (V3). */
export function checkValue(value: unknown, pathOf: () => string): void {
  check(value, pathOf, [], new Set());
}

const NOT_PLAIN: unique symbol = Symbol("not plain");

/** A frozen copy of plain data, or NOT_PLAIN for all else: no trees with an object twice, no holes, no accessors. */
function copyPlain(value: object, depth: number, seen: Set<object>): unknown {
  if (depth > DEPTH_MAX || seen.has(value)) return NOT_PLAIN;
  seen.add(value);
  if (Array.isArray(value)) return copyArray(value, depth, seen);
  const prototype: unknown = Object.getPrototypeOf(value);
  if ((prototype !== Object.prototype && prototype !== null) || Object.hasOwn(value, "__proto__")) {
    return NOT_PLAIN;
  }
  const out: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const inner = copyInner((value as Record<string, unknown>)[name], depth, seen);
    if (inner === NOT_PLAIN) return NOT_PLAIN;
    out[name] = inner;
  }
  return Object.freeze(out);
}

function copyArray(value: readonly unknown[], depth: number, seen: Set<object>): unknown {
  if (Object.getPrototypeOf(value) !== Array.prototype) return NOT_PLAIN;
  if (!isDense(value)) return NOT_PLAIN;
  const out: unknown[] = new Array(value.length);
  for (let i = 0; i < value.length; i++) {
    const inner = copyInner(value[i], depth, seen);
    if (inner === NOT_PLAIN) return NOT_PLAIN;
    out[i] = inner;
  }
  return Object.freeze(out);
}

/** Whether an array has no holes, and no named properties: its keys are its places, which come first. */
export const isDense = (array: readonly unknown[], keys: readonly string[] = Object.keys(array)): boolean =>
  keys.length === array.length && (keys.length === 0 || keys[keys.length - 1] === String(keys.length - 1));

function copyInner(value: unknown, depth: number, seen: Set<object>): unknown {
  if (typeof value === "object" && value !== null) return copyPlain(value, depth + 1, seen);
  return typeof value === "function" || typeof value === "symbol" ? NOT_PLAIN : value;
}

/** Freezes what was just decoded; whether it is what copyPlain would have made, and not {@link NOT_PLAIN}. */
function freezePlain(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  // Frozen by this walk already: it is in two places, or holds itself.
  if (depth > DEPTH_MAX || Object.isFrozen(value)) return false;
  const isArray = Array.isArray(value);
  if (!isArray && Object.getPrototypeOf(value) !== Object.prototype) return false;
  Object.freeze(value);
  const names = Object.keys(value);
  let isPlain = isArray ? isDense(value, names) : !Object.hasOwn(value, "__proto__");
  for (const name of names) {
    isPlain = freezePlain((value as Record<string, unknown>)[name], depth + 1) && isPlain;
  }
  return isPlain;
}

/** Why a value that is no object can't be kept. */
function refusal(value: unknown): string | undefined {
  if (typeof value === "function") return value.name === "" ? "a function" : `a function (${value.name})`;
  if (typeof value === "symbol") return "a symbol";
  return undefined;
}

const NATIVE: readonly (readonly [string, new (...args: never[]) => object])[] = [
  ["[object Date]", Date],
  ["[object RegExp]", RegExp],
  ["[object ArrayBuffer]", ArrayBuffer],
];
/** What structured clone keeps of errors: these, with name, message, stack and cause. */
const ERRORS = new Set([
  "Error",
  "EvalError",
  "RangeError",
  "ReferenceError",
  "SyntaxError",
  "TypeError",
  "URIError",
]);

/** Walks a value that is not plain throughout; throws at the first part that can't be kept. */
function check(value: unknown, pathOf: () => string, steps: string[], above: Set<object>): void {
  const refuse = (why: string) => unfit(pathOf() + steps.join(""), why);
  if (typeof value !== "object" || value === null) {
    const why = refusal(value);
    if (why !== undefined) throw refuse(why);
    return;
  }
  if (isPart(value)) {
    throw refuse(
      "a tracked structure inside a plain value: it can be a field, or lie directly in another structure",
    );
  }
  if (above.has(value)) return;
  if (steps.length >= DEPTH_MAX) throw refuse(`more than ${DEPTH_MAX} levels deep`);
  above.add(value);
  const inner = (name: string, each: unknown) => {
    steps.push(name);
    check(each, pathOf, steps, above);
    steps.pop();
  };
  checkInside(value, inner, refuse);
}

function checkInside(
  value: object,
  inner: (step: string, value: unknown) => void,
  refuse: (why: string) => AppError,
): void {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (
    Array.isArray(value)
      ? prototype === Array.prototype
      : prototype === Object.prototype || prototype === null
  ) {
    for (const name of Object.keys(value)) {
      inner(Array.isArray(value) ? `[${name}]` : step(name), (value as Record<string, unknown>)[name]);
    }
    return;
  }
  if (value instanceof Map && prototype === Map.prototype) {
    for (const [key, each] of value) {
      inner(".keys()", key);
      inner(`.get(${shown(key)})`, each);
    }
    return;
  }
  if (value instanceof Set && prototype === Set.prototype) {
    for (const each of value) inner(".values()", each);
    return;
  }
  if (isNative(value, prototype)) {
    if (value instanceof Error && Object.hasOwn(value, "cause")) inner(".cause", value.cause);
    return;
  }
  throw refuse(
    `an instance of ${nameOf(value)}, which would come back as a plain object: keep its fields in one`,
  );
}

function isNative(value: object, prototype: unknown): boolean {
  if (ArrayBuffer.isView(value)) {
    const isPlain = prototype === DataView.prototype || Object.getPrototypeOf(prototype) === TYPED_ARRAY;
    return isPlain && value.buffer instanceof ArrayBuffer;
  }
  if (value instanceof Error) return ERRORS.has(nameOf(value));
  const tag = Object.prototype.toString.call(value);
  return NATIVE.some(([name, native]) => tag === name && prototype === native.prototype) ||
    (value instanceof Date && tag === "[object Date]");
}

const TYPED_ARRAY: unknown = Object.getPrototypeOf(Uint8Array.prototype);

function nameOf(value: object): string {
  const name: unknown = (Object.getPrototypeOf(value) as { constructor?: { name?: unknown } } | null)
    ?.constructor?.name;
  return typeof name === "string" && name !== "" ? name : "a class";
}

/** How a path goes on to a property. */
export const step = (name: string): string =>
  /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;

/** A key in a path. */
export function shown(key: unknown): string {
  if (typeof key === "string") return JSON.stringify(key);
  return typeof key === "object" && key !== null ? nameOf(key) : String(key);
}

/** The error for a value that can't be kept. */
export const unfit = (path: string, why: string): AppError =>
  new AppError("value_invalid", `can't keep ${path}: ${why}`, { path });
