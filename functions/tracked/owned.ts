/**
 * The values inside tracked structures. A value that is put in is copied, and a value that is read can't change what is
 * inside:
 *
 * V1  Plain data (null, undefined, booleans, numbers, strings, bigints, and plain objects and arrays of such) is kept as
 *     one frozen copy, which every read hands out: changing it is a TypeError at that line.
 * V2  What can't be frozen (Date, Map, Set, RegExp, errors, ArrayBuffer and views) and what holds it is copied again at
 *     each read: changing it changes the copy.
 * V3  What structured clone refuses, would silently take for something else (an instance of an app's class), or would
 *     leave out (names that are symbols, properties that are not enumerable, a buffer's room to grow) is refused when it is
 *     put in, with its path.
 */
import { AppError } from "../vocabulary/errors.ts";
import { isPart, type Tracked } from "./part.ts";

/** Value as a tracked structure hands it out: readonly all the way down. */
export type Held<T> = unknown extends T ? T
  : T extends
    | (string | number | bigint | boolean | null | undefined)
    | (Date | RegExp | Error | ArrayBuffer | ArrayBufferView)
    | Tracked ? T
  : T extends ReadonlyMap<infer K, infer V> ? ReadonlyMap<Held<K>, Held<V>>
  : T extends ReadonlySet<infer V> ? ReadonlySet<Held<V>>
  : { readonly [P in keyof T]: Held<T[P]> };

/** Levels of a value; deeper trees are refused, as code that reads them recurses. */
const DEPTH_MAX = 100;

/** Value that can't be frozen and is copied at each read (V2). */
export class Unshared {
  readonly #value: unknown;
  constructor(value: unknown) {
    this.#value = value;
  }
  /** The value itself: for encoding only, never to be handed out. */
  get original(): unknown {
    return this.#value;
  }
  /** Returns a copy whose plain parts are frozen. */
  copy(): unknown {
    const copy = structuredClone(this.#value);
    freezePlain(copy, 0);
    return copy;
  }
}

/** Form in which a value is kept: itself where it is plain (V1), else {@link Unshared}. */
export type KeptValue = unknown;

/** Returns the form of a value that an app puts in. @throws AppError `value_invalid` (V3). */
export function takeIn(value: unknown, pathOf: () => string): KeptValue {
  if (typeof value !== "object" || value === null) {
    const why = refusal(value);
    if (why !== undefined) throw unfit(pathOf(), why);
    return value;
  }
  const copy = copyPlain(value, 0, new Set());
  if (copy !== NOT_PLAIN) return copy;
  check(value, { pathOf, steps: [], above: new Set(), isField: false });
  return new Unshared(structuredClone(value));
}

/** Returns the form of a value that was just decoded, and that no other code refers to. */
export function takeOver(value: unknown): KeptValue {
  return freezePlain(value, 0) ? value : new Unshared(value);
}

/** Returns what a read hands out. */
export const handOut = (kept: KeptValue): unknown => kept instanceof Unshared ? kept.copy() : kept;

/** Returns what is encoded. */
export const originalOf = (kept: KeptValue): unknown => kept instanceof Unshared ? kept.original : kept;

/**
 * Checks that a plain field can hold a value: it can't hold what V3 refuses, nor getters, which a copy has as values.
 * (A value in a structure is a copy from the beginning.) No code of an app runs: only a Proxy has a handler for being
 * looked at, and it is refused before.
 *
 * @throws AppError `value_invalid`
 */
export function checkField(value: unknown, name: string): void {
  check(value, { pathOf: () => name, steps: [], above: new Set(), isField: true });
}

/**
 * Reports whether an object is a Proxy: the language does not say, the trusted side asks V8 (turns/logged_program.ts).
 */
export let isProxy: (value: object) => boolean = () => false;

/** Sets how proxies are told from their targets. */
export function recognizeProxies(is: (value: object) => boolean): void {
  isProxy = is;
}

const NOT_PLAIN: unique symbol = Symbol("not plain");

/**
 * Returns a frozen copy of plain data, or NOT_PLAIN for all else: for an object that is in it twice, holes, accessors.
 */
function copyPlain(value: object, depth: number, seen: Set<object>): unknown {
  if (depth > DEPTH_MAX || seen.has(value)) return NOT_PLAIN;
  seen.add(value);
  if (Array.isArray(value)) return copyArray(value, depth, seen);
  const prototype: unknown = Object.getPrototypeOf(value);
  if ((prototype !== Object.prototype && prototype !== null) || Object.hasOwn(value, "__proto__")) {
    return NOT_PLAIN;
  }
  const names = Object.keys(value);
  if (hasMore(value, names) || (prototype === null && isRawJson(value))) return NOT_PLAIN;
  const out: Record<string, unknown> = {};
  for (const name of names) {
    const inner = copyInner((value as Record<string, unknown>)[name], depth, seen);
    if (inner === NOT_PLAIN) return NOT_PLAIN;
    out[name] = inner;
  }
  return Object.freeze(out);
}

/** Reports whether an object has names that are symbols, or properties that are not enumerable. */
const hasMore = (value: object, names: readonly string[]): boolean =>
  Object.getOwnPropertySymbols(value).length > 0 || Object.getOwnPropertyNames(value).length !== names.length;

function copyArray(value: readonly unknown[], depth: number, seen: Set<object>): unknown {
  if (Object.getPrototypeOf(value) !== Array.prototype) return NOT_PLAIN;
  if (!isDense(value) || Object.getOwnPropertySymbols(value).length > 0) return NOT_PLAIN;
  const out: unknown[] = new Array(value.length);
  for (let i = 0; i < value.length; i++) {
    const inner = copyInner(value[i], depth, seen);
    if (inner === NOT_PLAIN) return NOT_PLAIN;
    out[i] = inner;
  }
  return Object.freeze(out);
}

/** Reports whether an array has no holes, and no named properties: its keys are its places, which come first. */
export const isDense = (array: readonly unknown[], keys: readonly string[] = Object.keys(array)): boolean =>
  keys.length === array.length && (keys.length === 0 || keys[keys.length - 1] === String(keys.length - 1));

function copyInner(value: unknown, depth: number, seen: Set<object>): unknown {
  if (typeof value === "object" && value !== null) return copyPlain(value, depth + 1, seen);
  return typeof value === "function" || typeof value === "symbol" ? NOT_PLAIN : value;
}

/**
 * Freezes a value that was just decoded, and reports whether it is what copyPlain would have made, and not
 * {@link NOT_PLAIN}.
 */
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

/** Returns the reason for which a value that is no object can't be kept; undefined where it can be. */
function refusal(value: unknown): string | undefined {
  if (typeof value === "symbol") return "a symbol, which would be another one: use a text";
  if (typeof value !== "function") return undefined;
  const name = value.name === "" ? "a function" : `a function (${value.name})`;
  return `${name}, which no checkpoint can hold: make it a method, and keep what it needs in fields`;
}

/** Prototypes of errors that structured clone keeps as they are, with message, stack and cause. */
const ERRORS: readonly unknown[] = [
  Error,
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
].map(({ prototype }) => prototype);
const KEPT_OF_ERRORS: readonly PropertyKey[] = ["message", "stack", "cause"];
/** Length up to which a view is searched for names beside its places: that takes a text for each place. */
const NAMED_VIEW_MAX = 4096;

/** State of a walk through a value: the names on the way to the current part, and the objects that were met. */
interface Walk {
  readonly pathOf: () => string;
  readonly steps: string[];
  readonly above: Set<object>;
  /** True where the value stays in a field as it is, not as a copy. */
  readonly isField: boolean;
}

const refuse = ({ pathOf, steps }: Walk, why: string): AppError => unfit(pathOf() + steps.join(""), why);

/** Walks through a value that is not plain throughout; throws at the first part that can't be kept. */
function check(value: unknown, walk: Walk): void {
  if (typeof value !== "object" || value === null) {
    const why = refusal(value);
    if (why !== undefined) throw refuse(walk, why);
    return;
  }
  if (walk.above.has(value)) return;
  if (isProxy(value) && !isProxyOfPart(value)) {
    throw refuse(walk, "a Proxy, which would come back as what it stands for: keep that");
  }
  if (isPart(value)) {
    throw refuse(
      walk,
      "a tracked structure inside a plain value: it can be a field, or lie directly in another structure",
    );
  }
  if (walk.steps.length >= DEPTH_MAX) throw refuse(walk, `more than ${DEPTH_MAX} levels deep`);
  walk.above.add(value);
  checkInside(value, walk);
}

/** Reports whether a Proxy stands for a tracked structure. A Proxy that was revoked can't be asked. */
function isProxyOfPart(value: object): boolean {
  try {
    return isPart(value);
  } catch {
    return false;
  }
}

function checkInner(walk: Walk, name: string, value: unknown): void {
  walk.steps.push(name);
  check(value, walk);
  walk.steps.pop();
}

function checkInside(value: object, walk: Walk): void {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (Array.isArray(value)) {
    if (prototype !== Array.prototype) throw refuse(walk, instanceOf(value));
    const length = Reflect.getOwnPropertyDescriptor(value, "length");
    if (walk.isField && length?.writable !== true && !Object.isFrozen(value)) throw fixed(walk, ".length");
    return checkNamed(value, walk, (name) => name === "length");
  }
  if (prototype === Object.prototype || prototype === null) {
    if (isRawJson(value)) throw refuse(walk, "what JSON.rawJSON made, which would come back as an object");
    return checkNamed(value, walk, () => false);
  }
  if (prototype === Map.prototype) {
    for (const [key, each] of itemsOf(walk, value, Map.prototype.entries) as Iterable<[unknown, unknown]>) {
      checkInner(walk, ".keys()", key);
      checkInner(walk, `.get(${shownField(key)})`, each);
    }
    return checkBare(value, walk, []);
  }
  if (prototype === Set.prototype) {
    for (const each of itemsOf(walk, value, Set.prototype.values)) checkInner(walk, ".values()", each);
    return checkBare(value, walk, []);
  }
  if (ArrayBuffer.isView(value)) return checkView(value, prototype, walk);
  checkNative(value, prototype, walk);
}

/** JSON.isRawJSON, which is newer than the types of the language that are used here. */
const { isRawJSON } = JSON as { isRawJSON?(value: unknown): boolean };
const isRawJson = (value: object): boolean => isRawJSON?.(value) === true;

/** Returns the items of a Map or a Set; an object that only inherits from these has none, and is refused. */
function itemsOf(walk: Walk, value: object, items: () => Iterable<unknown>): Iterable<unknown> {
  try {
    return Reflect.apply(items, value, []);
  } catch {
    throw refuse(walk, instanceOf(value));
  }
}

/** Checks the named properties of an object or array. */
function checkNamed(value: object, walk: Walk, isOwn: (name: PropertyKey) => boolean): void {
  const isArray = Array.isArray(value);
  for (const name of Reflect.ownKeys(value)) {
    if (isOwn(name)) continue;
    if (typeof name === "symbol") throw symbolName(walk, name);
    const found = Reflect.getOwnPropertyDescriptor(value, name);
    const place = isArray ? `[${name}]` : step(name);
    if (found === undefined) continue;
    if (!found.enumerable) throw hidden(walk, place);
    if (walk.isField && !("value" in found)) throw accessor(walk, place);
    if (walk.isField && isHalfFixed(value, found)) throw fixed(walk, place);
    checkInner(walk, place, "value" in found ? found.value : (value as Record<string, unknown>)[name]);
  }
}

const symbolName = (walk: Walk, name: symbol): AppError =>
  refuse(walk, `a property whose name is a symbol (${String(name)}), which would be gone: use a text`);

const hidden = (walk: Walk, place: string): AppError =>
  refuse(
    { ...walk, steps: [...walk.steps, place] },
    "a property that is not enumerable, and would be gone: assign it",
  );

/**
 * Reports whether a single property is kept from changes. A checkpoint only knows whether a whole object is frozen,
 * sealed, or not extensible.
 */
export const isHalfFixed = (of: object, { writable, configurable }: PropertyDescriptor): boolean =>
  (writable !== true && !Object.isFrozen(of)) || (configurable !== true && !Object.isSealed(of));

const fixed = (walk: Walk, place: string): AppError =>
  refuse(
    { ...walk, steps: [...walk.steps, place] },
    "a property that can't be written or deleted, and could be again: freeze the whole object, or assign it",
  );

const accessor = (walk: Walk, place: string): AppError =>
  refuse(
    { ...walk, steps: [...walk.steps, place] },
    "a getter or setter, which would come back as a value: make it a method",
  );

/** Checks that an object has no properties beside those of its kind. */
function checkBare(value: object, walk: Walk, kept: readonly PropertyKey[]): void {
  for (const name of Reflect.ownKeys(value)) {
    if (kept.includes(name)) continue;
    if (typeof name === "symbol") throw symbolName(walk, name);
    const hint = value instanceof Error ? "keep name, message and what else there is in a plain object" : "";
    throw refuse(
      { ...walk, steps: [...walk.steps, step(name)] },
      `a property of its own of ${nameOf(value)}, which would be gone${hint && `: ${hint}`}`,
    );
  }
}

function checkView(value: ArrayBufferView, prototype: unknown, walk: Walk): void {
  const isOwn = prototype === DataView.prototype || Object.getPrototypeOf(prototype) === TYPED_ARRAY;
  if (!isOwn) throw refuse(walk, instanceOf(value));
  checkBuffer(value.buffer, walk);
  if (value instanceof DataView) return checkBare(value, walk, []);
  const { length } = value as Uint8Array;
  if (length > NAMED_VIEW_MAX) return;
  const names = Reflect.ownKeys(value);
  const more = names[length];
  if (more === undefined) return;
  if (typeof more === "symbol") throw symbolName(walk, more);
  throw refuse(
    { ...walk, steps: [...walk.steps, step(more)] },
    `a property of its own of ${nameOf(value)}, which would be gone`,
  );
}

function checkBuffer(buffer: ArrayBufferLike, walk: Walk): void {
  if (Object.getPrototypeOf(buffer) !== ArrayBuffer.prototype) throw refuse(walk, instanceOf(buffer));
  const { resizable, detached } = buffer as ArrayBuffer;
  if (resizable) {
    throw refuse(
      walk,
      "a buffer that can be resized, and would come back with a fixed length: keep a Uint8Array of what is in it, or a " +
        "field made by bytes()",
    );
  }
  if (detached) throw refuse(walk, "a buffer that was handed on, and has nothing left");
}

/** Checks an object that is no array, plain object, Map, Set or view. */
function checkNative(value: object, prototype: unknown, walk: Walk): void {
  if (ERRORS.includes(prototype) && value instanceof Error && isError(value)) {
    return checkError(value, walk);
  }
  const tag = Object.prototype.toString.call(value);
  if (tag === "[object Date]" && prototype === Date.prototype) return checkBare(value, walk, []);
  if (tag === "[object ArrayBuffer]" && prototype === ArrayBuffer.prototype) {
    checkBuffer(value as ArrayBuffer, walk);
    return checkBare(value, walk, []);
  }
  if (tag === "[object RegExp]" && prototype === RegExp.prototype) {
    const { lastIndex } = value as RegExp;
    const isPlace = typeof lastIndex === "number" && Number.isSafeInteger(lastIndex) && lastIndex >= 0;
    if (!isPlace) throw refuse(walk, "a regular expression whose lastIndex is no place in a text");
    const place = Reflect.getOwnPropertyDescriptor(value, "lastIndex");
    if (walk.isField && place?.writable !== true && !Object.isFrozen(value)) throw fixed(walk, ".lastIndex");
    return checkBare(value, walk, ["lastIndex"]);
  }
  throw refuse(walk, instanceOf(value));
}

function checkError(value: Error, walk: Walk): void {
  checkBare(value, walk, KEPT_OF_ERRORS);
  for (const name of ["message", "cause"] as const) {
    const found = Reflect.getOwnPropertyDescriptor(value, name);
    if (found === undefined) continue;
    if (walk.isField && !("value" in found)) throw accessor(walk, `.${name}`);
    const isListed = found.enumerable === true && name === "message";
    if (isListed || (walk.isField && isHalfFixed(value, found))) {
      throw fixed(walk, `.${name}`);
    }
  }
  if (Object.hasOwn(value, "message") && typeof value.message !== "string") {
    throw refuse(walk, "an error whose message is no text");
  }
  if (Object.hasOwn(value, "stack") && typeof value.stack !== "string") {
    throw refuse(walk, "an error whose stack is no text");
  }
  if (Object.hasOwn(value, "cause")) checkInner(walk, ".cause", value.cause);
}

/** Reports whether an object is an error for V8, which tells errors by what they are, not by their prototype. */
const isError = (value: object): boolean => Object.prototype.toString.call(value) === "[object Error]";

const TYPED_ARRAY: unknown = Object.getPrototypeOf(Uint8Array.prototype);

/** Advice for objects that can't be kept: what to keep in their place. */
const INSTEAD: Readonly<Record<string, string>> = {
  Buffer: "use a Uint8Array: new Uint8Array(buffer)",
  URL: "keep its href",
  Headers: "keep [...headers]",
  URLSearchParams: "keep its text",
  FormData: "keep [...form]",
  Blob: "keep await blob.bytes()",
  File: "keep its name, and await file.bytes()",
  Promise: "keep what it comes to",
  CryptoKey: "keep what exportKey gives",
};

function instanceOf(value: object): string {
  const name = nameOf(value);
  const instead = Object.hasOwn(INSTEAD, name) ? INSTEAD[name] : "keep its fields in one";
  return `an instance of ${name}, which would come back as ${
    name === "Buffer" ? "another" : "a plain object"
  }: ${instead}`;
}

function nameOf(value: object): string {
  const name: unknown = (Object.getPrototypeOf(value) as { constructor?: { name?: unknown } } | null)
    ?.constructor?.name;
  return typeof name === "string" && name !== "" ? name : "a class";
}

/** Returns the part of a path that leads to a property. */
export const step = (name: string): string =>
  /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;

/** Returns a key as a path shows it. */
export function shownField(key: unknown): string {
  if (typeof key === "string") return JSON.stringify(key);
  return typeof key === "object" && key !== null ? nameOf(key) : String(key);
}

/** Makes the error for a value that can't be kept. */
export const unfit = (path: string, why: string): AppError =>
  new AppError("value_invalid", `can't keep ${path}: ${why}`, { path });
