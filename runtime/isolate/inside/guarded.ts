/**
 * Guards for objects that have a state of their own behind their methods (a Map, a body, an address), which nobody
 * could freeze: their methods ask first. Objects that are not guarded hardly notice: a change of a Map takes some 20 ns
 * more. A WeakMap is asked, which answers at once for an object that was never a key; a private member would take 100.
 *
 * GD1  Methods ask from before the first module runs: a module that takes one from its prototype while it loads has the
 *      one that asks.
 * GD2  Of a class that has such a state all methods and setters ask but those that only read: one that a later Deno
 *      brings asks.
 */

/** Called before a method or setter changes an object: takes note, or throws. */
export type Guard = (name: PropertyKey, args: readonly unknown[]) => void;

type Method = (this: object, ...args: unknown[]) => unknown;

const guards = new WeakMap<object, Guard>();
// These methods as they are before they ask themselves.
const guardOf = WeakMap.prototype.get.bind(guards) as (object: object) => Guard | undefined;
const guarded = WeakMap.prototype.set.bind(guards) as (object: object, guard: Guard) => unknown;

/** Has an object's methods ask from now on. */
export const guard = (object: object, ask: Guard): void => void guarded(object, ask);

export const isGuarded = (object: object): boolean => guardOf(object) !== undefined;

/** Asks for an object that something else than its own methods is about to change. */
export const ask = (object: unknown, name: PropertyKey): void => {
  if (typeof object === "object" && object !== null) guardOf(object)?.(name, []);
};

/**
 * Makes a method that asks, like the one that it stands for: it can't be called with `new`. Of few arguments no list is
 * made.
 */
function asking(original: Method, name: PropertyKey): Method {
  const methods = {
    none(this: object) {
      guardOf(this)?.(name, []);
      return Reflect.apply(original, this, []);
    },
    one(this: object, first: unknown) {
      guardOf(this)?.(name, [first]);
      return Reflect.apply(original, this, [first]);
    },
    two(this: object, first: unknown, second: unknown) {
      guardOf(this)?.(name, [first, second]);
      return Reflect.apply(original, this, [first, second]);
    },
    more(this: object, ...args: unknown[]) {
      guardOf(this)?.(name, args);
      return Reflect.apply(original, this, args);
    },
  };
  if (!FEW.has(original)) return methods.more;
  return [methods.none, methods.one, methods.two][original.length] ?? methods.more;
}

/** Methods that take no more arguments than their `length` says. */
const FEW: ReadonlySet<unknown> = new Set(
  [Map, Set, WeakMap, WeakSet].flatMap(({ prototype }) =>
    Reflect.ownKeys(prototype).map((name) => Reflect.getOwnPropertyDescriptor(prototype, name)?.value)
  ),
);

/** Methods that ask, by those that they stand for: two names of one method are one method. */
const asked = new Map<Method, Method>();

/** Puts an asking one in the place of a method, a setter, or a getter that changes something. */
function install(prototype: object, name: PropertyKey, make: (original: Method) => Method): void {
  const found = Reflect.getOwnPropertyDescriptor(prototype, name);
  if (found === undefined || found.configurable !== true) return;
  const asks = (original: Method): Method => {
    const known = asked.get(original);
    if (known !== undefined) return known;
    const made = make(original);
    Reflect.defineProperty(made, "name", { value: original.name, configurable: true });
    Reflect.defineProperty(made, "length", { value: original.length, configurable: true });
    asked.set(original, made);
    return made;
  };
  const { value, get, set } = found;
  if (typeof value === "function") Reflect.defineProperty(prototype, name, { ...found, value: asks(value) });
  else if (set !== undefined) Reflect.defineProperty(prototype, name, { ...found, set: asks(set) });
  else if (get !== undefined) Reflect.defineProperty(prototype, name, { ...found, get: asks(get) });
}

const ENTRIES = ["get", "getAll", "has", "entries", "keys", "values", "forEach", Symbol.iterator];
const OF_SETS = ["difference", "intersection", "isDisjointFrom", "isSubsetOf", "isSupersetOf"];

/** Methods that only read, of the classes that have a state, by the classes' paths (GD2). */
const READING: Readonly<Record<string, readonly PropertyKey[]>> = {
  AbortController: [],
  AbortSignal: ["throwIfAborted"],
  ArrayBuffer: ["slice"],
  AsyncDisposableStack: [],
  CompressionStream: [],
  DOMMatrix: [],
  DOMPoint: [],
  DOMRect: [],
  Date: Reflect.ownKeys(Date.prototype).filter((name) => !/^set/.test(String(name))),
  DecompressionStream: [],
  DisposableStack: [],
  EventTarget: ["dispatchEvent", "getParent"],
  FormData: ENTRIES,
  Headers: [...ENTRIES, "getSetCookie"],
  ImageBitmap: [],
  ImageData: [],
  Map: ENTRIES,
  ReadableByteStreamController: [],
  ReadableStream: [],
  ReadableStreamBYOBReader: [],
  ReadableStreamBYOBRequest: [],
  ReadableStreamDefaultController: [],
  ReadableStreamDefaultReader: [],
  RegExp: Reflect.ownKeys(RegExp.prototype).filter((name) => name !== "compile"),
  Request: ["clone"],
  Response: ["clone"],
  Set: [...ENTRIES, ...OF_SETS, "symmetricDifference", "union"],
  TextDecoderStream: [],
  TextEncoderStream: [],
  TransformStream: [],
  TransformStreamDefaultController: [],
  URL: ["toString", "toJSON"],
  URLSearchParams: [...ENTRIES, "toString"],
  WeakMap: ENTRIES,
  WeakSet: ENTRIES,
  "WebAssembly.Global": ["valueOf"],
  "WebAssembly.Memory": [],
  "WebAssembly.Table": ["get"],
  WritableStream: [],
  WritableStreamDefaultController: [],
  WritableStreamDefaultWriter: [],
};
/** Getters that change the object that they are read from: a body becomes a stream. */
const CHANGING_GETTERS: readonly (readonly [path: string, name: string])[] = [
  ["Request", "body"],
  ["Response", "body"],
];
/** Methods that take a buffer away from its owner, by their first argument. */
export const TRANSFERS = [
  ["ReadableByteStreamController", "enqueue"],
  ["ReadableStreamBYOBReader", "read"],
  ["ReadableStreamBYOBRequest", "respondWithNewView"],
] as const;

function prototypeAt(path: string): object {
  let of: unknown = globalThis;
  for (const name of path.split(".")) of = Reflect.get(Object(of), name);
  return Reflect.get(Object(of), "prototype") as object;
}

/** Reports whether a name is a member of a class; the platform's own on its prototypes are under symbols. */
const isMember = (name: PropertyKey): boolean =>
  name !== "constructor" &&
  (typeof name === "string" || name === Symbol.iterator || name === Symbol.asyncIterator ||
    name === Symbol.dispose || name === Symbol.asyncDispose);

function isChanging(prototype: object, name: PropertyKey): boolean {
  const found = Reflect.getOwnPropertyDescriptor(prototype, name);
  return typeof found?.value === "function" || found?.set !== undefined;
}

/** Returns the methods and setters that ask, by the paths of the classes. */
export function guardedMembers(): (readonly [path: string, members: readonly PropertyKey[]])[] {
  const found = Object.entries(READING).map(([path, reading]) => {
    const prototype = prototypeAt(path);
    const members = Reflect.ownKeys(prototype).filter((name) =>
      isMember(name) && !reading.includes(name) && isChanging(prototype, name)
    );
    return [path, members] as const;
  });
  return [...found, ...CHANGING_GETTERS.map(([path, name]) => [path, [name]] as const)];
}

/** Prototypes of classes that have a state: those of which {@link guard} makes sense. */
const stateful = new Set<object>();

/** Reports whether objects that inherit from this have a state that asks. */
export const isStateful = (prototype: object): boolean => stateful.has(prototype);

/** Has all methods ask that change a state (GD1). */
export function installGuards(): void {
  for (const path of Object.keys(READING)) stateful.add(prototypeAt(path));
  stateful.add(TextDecoder.prototype);
  // A buffer is asked for first: behind its stream's own methods.
  for (const [path, name] of TRANSFERS) {
    install(prototypeAt(path), name, (original) => ({
      asks(this: object, ...args: unknown[]) {
        askForBuffer(args[0]);
        return Reflect.apply(original, this, args);
      },
    }.asks));
  }
  for (const [path, members] of guardedMembers()) {
    for (const name of members) install(prototypeAt(path), name, (original) => asking(original, name));
  }
  // What stands for an iterator of a program's own is taken on with it.
  const wrap: object = Object.getPrototypeOf(Iterator.from({ next: () => ({ done: true, value: 0 }) }));
  stateful.add(wrap);
  for (const name of ["next", "return"]) install(wrap, name, (original) => asking(original, name));
  // Only what a decoder keeps for the next piece is a state.
  install(TextDecoder.prototype, "decode", (original) => ({
    asks(this: object, input: unknown, options: unknown) {
      const stream = Boolean(Object(options).stream);
      if (stream) ask(this, "decode");
      return Reflect.apply(original, this, [input, { stream }]);
    },
  }.asks));
  guardClones();
}

function askForBuffer(given: unknown): void {
  ask(ArrayBuffer.isView(given) ? given.buffer : given, "transfer");
}

function guardClones(): void {
  const { structuredClone: clone } = globalThis;
  const asks = {
    structuredClone: (value: unknown, options?: StructuredSerializeOptions): unknown => {
      const transfer = options?.transfer === undefined ? [] : [...options.transfer];
      for (const each of transfer) askForBuffer(each);
      return clone(value, { transfer });
    },
  }.structuredClone;
  Reflect.defineProperty(asks, "length", { value: clone.length, configurable: true });
  Reflect.set(globalThis, "structuredClone", asks);
}
