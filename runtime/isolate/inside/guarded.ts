/**
 * Objects that have a state of their own behind their methods (a Map, a body, an address), which nobody could freeze: their
 * methods ask first.
 *
 * GD1  Methods ask from before the first module runs: who takes one from its prototype while it loads has the one that
 *      asks.
 */

/** Before a method or setter changes an object: takes note, or throws. */
export type Guard = (name: PropertyKey, args: readonly unknown[]) => void;

type Method = (...args: unknown[]) => unknown;

/** Marks an object, whatever it is. */
const Given = function (object: object) {
  return object;
} as unknown as new (object: object) => object;

/** An object whose methods ask, and whom. */
export class Guarded extends Given {
  static readonly #asking = new WeakMap<Method, Method>();
  readonly #guard: Guard;

  constructor(object: object, guard: Guard) {
    super(object);
    this.#guard = guard;
  }

  static has(object: object): boolean {
    return #guard in object;
  }

  /** Asks for an object that something else than its own methods is about to change. */
  static ask(object: object, name: PropertyKey): void {
    if (#guard in object) object.#guard(name, []);
  }

  /** Has a method, or a setter, ask first. */
  static install(
    prototype: object,
    name: PropertyKey,
    when: (args: readonly unknown[]) => boolean = () => true,
  ): void {
    const found = Reflect.getOwnPropertyDescriptor(prototype, name);
    if (found === undefined || found.configurable !== true) return;
    const asking = (original: Method): Method => {
      // Two names of one method are one method.
      const known = Guarded.#asking.get(original);
      if (known !== undefined) return known;
      // A method, as what it stands for: nothing is made with `new`.
      const { asks } = {
        asks(this: object, ...args: unknown[]) {
          if (#guard in this && when(args)) this.#guard(name, args);
          return Reflect.apply(original, this, args);
        },
      };
      Reflect.defineProperty(asks, "name", { value: original.name, configurable: true });
      Reflect.defineProperty(asks, "length", { value: original.length, configurable: true });
      Guarded.#asking.set(original, asks);
      return asks;
    };
    const { value, set } = found;
    if (typeof value === "function") {
      Reflect.defineProperty(prototype, name, { ...found, value: asking(value) });
    } else if (set !== undefined) {
      Reflect.defineProperty(prototype, name, { ...found, set: asking(set) });
    }
  }
}

/** What takes a body's bytes away. */
const READS = ["text", "json", "arrayBuffer", "blob", "bytes", "formData"];
const STREAMED = ["getReader", "cancel", "tee", "pipeTo", "pipeThrough", "values", Symbol.asyncIterator];
const DISPOSED = ["use", "adopt", "defer", "move"];
const ADDRESSED = ["href", "protocol", "username", "password", "host", "hostname", "port", "pathname"];
/** What only reads a collection: all other methods change it, also those that a later Deno brings. */
const READING: ReadonlySet<PropertyKey> = new Set<PropertyKey>([
  ...["constructor", "get", "getAll", "getSetCookie", "has", "entries", "forEach", "keys", "values", "size"],
  ...["difference", "intersection", "isDisjointFrom", "isSubsetOf", "isSupersetOf", "symmetricDifference"],
  ...["union", "toString", Symbol.iterator],
]);
const COLLECTIONS = ["Map", "Set", "WeakMap", "WeakSet", "URLSearchParams", "Headers", "FormData"];
/** What changes objects of other kinds. */
const CHANGES: readonly (readonly [name: string, methods: readonly PropertyKey[]])[] = [
  ["Date", Object.getOwnPropertyNames(Date.prototype).filter((name) => name.startsWith("set"))],
  ["ArrayBuffer", ["resize", "transfer", "transferToFixedLength"]],
  ["EventTarget", ["addEventListener", "removeEventListener"]],
  ["AbortController", ["abort"]],
  ["DisposableStack", [...DISPOSED, "dispose", Symbol.dispose]],
  ["AsyncDisposableStack", [...DISPOSED, "disposeAsync", Symbol.asyncDispose]],
  ["URL", [...ADDRESSED, "search", "hash"]],
  ["Request", READS],
  ["Response", READS],
  ["ReadableStream", STREAMED],
  ["WritableStream", ["getWriter", "abort", "close"]],
];

/** What takes a buffer away from whoever has it, by its first argument. */
export const TRANSFERS = [
  ["ReadableByteStreamController", "enqueue"],
  ["ReadableStreamBYOBReader", "read"],
  ["ReadableStreamBYOBRequest", "respondWithNewView"],
] as const;

const prototypeOf = (name: string): object => Object(Reflect.get(globalThis, name)).prototype;

/** The methods and setters that ask, by the globals whose prototypes have them. */
export function guardedMembers(): (readonly [name: string, members: readonly PropertyKey[]])[] {
  const changing = (name: string) => Reflect.ownKeys(prototypeOf(name)).filter((each) => !READING.has(each));
  return [...COLLECTIONS.map((name) => [name, changing(name)] as const), ...CHANGES];
}

/** Has all of them ask (GD1). */
export function installGuards(): void {
  for (const [name, members] of guardedMembers()) {
    for (const each of members) Guarded.install(prototypeOf(name), each);
  }
  // Only what a decoder keeps for the next piece is a state.
  Guarded.install(TextDecoder.prototype, "decode", ([, options]) => Object(options).stream === true);
  guardTransfers();
}

/** Has what takes buffers away ask. */
function guardTransfers(): void {
  const ask = (given: unknown): void => {
    const buffer: unknown = ArrayBuffer.isView(given) ? given.buffer : given;
    if (typeof buffer === "object" && buffer !== null) Guarded.ask(buffer, "transfer");
  };
  const { structuredClone: clone } = globalThis;
  const asking = {
    structuredClone: (value: unknown, options?: StructuredSerializeOptions): unknown => {
      for (const each of options?.transfer ?? []) ask(each);
      return clone(value, options);
    },
  };
  Reflect.defineProperty(asking.structuredClone, "length", { value: clone.length, configurable: true });
  Reflect.set(globalThis, "structuredClone", asking.structuredClone);
  for (const [name, method] of TRANSFERS) {
    const prototype = prototypeOf(name) as Record<string, (...args: unknown[]) => unknown>;
    const original = prototype[method];
    if (original === undefined) continue;
    const { asks } = {
      asks(this: unknown, ...args: unknown[]) {
        ask(args[0]);
        return Reflect.apply(original, this, args);
      },
    };
    Reflect.defineProperty(asks, "name", { value: method, configurable: true });
    Reflect.defineProperty(asks, "length", { value: original.length, configurable: true });
    Reflect.defineProperty(prototype, method, { value: asks, writable: true, configurable: true });
  }
}
