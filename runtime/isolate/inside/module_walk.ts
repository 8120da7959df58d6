/**
 * Goes through what modules and classes hold, once they have loaded: objects that can be frozen are, and those that
 * have a state of their own refuse to be changed (module_state.ts, MF1 to MF3).
 *
 * MW1  An object that nobody can look into is looked for where something else leads to it: the values of a WeakMap by
 *      the keys that modules hold, the target of a WeakRef, and what the platform's own objects hold by their getters.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { types } from "node:util";
import { SESSION_BASE } from "../../../functions/class/session_slot.ts";
import type { ModuleObjects } from "../../../functions/tracked/content.ts";
import { isStateful } from "./guarded.ts";
import { refusal, seal } from "./module_refusal.ts";

/** An object and its place in modules, which is no name yet: two keys of a Map have one path. */
export type PlacedObject<T extends object> = readonly [path: string, object: T];

/** Names of the objects that modules hold (MF7). Modules load in one order: the same code gives the same names. */
export class HeldByName implements ModuleObjects {
  readonly #names = new Map<object, string>();
  readonly #objects = new Map<string, object>();

  constructor(held: readonly PlacedObject<object>[]) {
    const times = new Map<string, number>();
    for (const [path, object] of held) {
      if (typeof object === "function" || this.#names.has(object)) continue;
      const time = (times.get(path) ?? 0) + 1;
      times.set(path, time);
      const name = time === 1 ? path : `${path} (${time})`;
      this.#names.set(object, name);
      this.#objects.set(name, object);
    }
  }

  nameOf(object: object): string | undefined {
    return this.#names.get(object);
  }

  named(name: string): object | undefined {
    return this.#objects.get(name);
  }
}

/** Freezes what it can reach (MF1), and gathers what it can't freeze. */
export class ModuleWalk {
  readonly regexps: (readonly [path: string, regexp: RegExp])[] = [];
  readonly buffers: PlacedObject<ArrayBuffer>[] = [];
  readonly views: PlacedObject<ArrayBufferView>[] = [];
  readonly promises: { readonly path: string; readonly value: Promise<unknown> }[] = [];
  readonly frozen: PlacedObject<object>[] = [];
  readonly unwatched: string[] = [];
  /** Objects that packages have made, and change: each session has them for itself (package_state.ts). */
  readonly changed: (readonly [of: string, name: string, value: () => unknown])[] = [];
  readonly #seen = new Set<object>();
  readonly #weak: PlacedObject<WeakMap<object, unknown>>[] = [];

  constructor(
    readonly intrinsics: ReadonlySet<object>,
    readonly foreign: ReadonlySet<object>,
    readonly names: {
      /** Names of methods that are assigned to somewhere (IN2). */
      readonly assigned: ReadonlySet<string>;
      /** Names of properties that packages assign to, and the app's own modules do not. */
      readonly ofPackages: ReadonlySet<string>;
    },
    /** Reports whether a Proxy's target and handler are known, and gone through by themselves. */
    readonly isKnown: (proxy: object) => boolean = () => false,
  ) {}

  visit(value: unknown, path: string): void {
    const todo: (readonly [unknown, string])[] = [[value, path]];
    for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
      for (const each of this.#one(...next)) todo.push(each);
    }
  }

  /** Goes through what WeakMaps hold, when all else has been visited (MW1). */
  finish(): void {
    for (let known = -1; known < this.#seen.size;) {
      known = this.#seen.size;
      for (const [path, held] of [...this.#weak]) {
        for (const key of [...this.#seen]) if (held.has(key)) this.visit(held.get(key), `${path}.get(…)`);
      }
    }
  }

  /** Visits one object; returns what it leads to. */
  #one(value: unknown, path: string): (readonly [unknown, string])[] {
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return [];
    if (this.#seen.has(value) || this.intrinsics.has(value) || value === globalThis) return [];
    this.#seen.add(value);
    // The platform's own classes are frozen by themselves (frozen_realm.ts).
    if (this.foreign.has(value) || isStateful(value)) return [];
    if (types.isProxy(value)) {
      if (!this.isKnown(value)) this.unwatched.push(`${path}, a Proxy`);
      return [];
    }
    if (!isPrototype(value) && typeof value !== "function" && this.#isPackages(value)) {
      this.#refuseChanges(value, path);
      return [];
    }
    if (ArrayBuffer.isView(value)) {
      this.views.push([path, value]);
      return [[value.buffer, path]];
    }
    if (types.isArrayBuffer(value)) {
      seal(value, path);
      this.buffers.push([path, value as ArrayBuffer]);
      return [];
    }
    if (types.isModuleNamespaceObject(value)) return [];
    if (typeof value === "function" && Object.keys(value).some((name) => this.names.ofPackages.has(name))) {
      this.changed.push(["a package", path, () => value]);
      return [];
    }
    return [...this.#within(value, path), ...this.#freeze(value, path)];
  }

  #isPackages(value: object): boolean {
    const prototype: unknown = Object.getPrototypeOf(value);
    return typeof prototype === "object" && prototype !== null && this.foreign.has(prototype);
  }

  /** Has the collections of a package refuse changes (MF3). */
  #refuseChanges(value: object, path: string): void {
    const isBuiltin = types.isMap(value) || types.isSet(value) || types.isWeakMap(value) ||
      types.isWeakSet(value);
    if (isBuiltin) seal(value, path);
    const members = membersOf(value);
    if (!isCollection(members)) return;
    for (const name of CHANGING) {
      if (!members.has(name)) continue;
      const refuses = () => {
        throw refusal(`${path} by ${name}`);
      };
      if (Reflect.defineProperty(value, name, { value: refuses, configurable: true })) continue;
      this.unwatched.push(`${path}, which can be changed by ${name}`);
    }
  }

  /** Guards the state that an object has beside its properties; returns what it leads to. */
  #within(value: object, path: string): (readonly [unknown, string])[] {
    if (types.isPromise(value)) {
      this.promises.push({ path, value });
      return [];
    }
    if (isIterator(value, this.intrinsics)) {
      refuseCalls(value, path, ["next", "return", "throw"]);
      end(value);
      seal(value, path);
      return [];
    }
    if (isPrototype(value)) return [];
    if (types.isRegExp(value) && (value.global || value.sticky)) {
      this.regexps.push([`${path} (${value})`, value]);
    }
    if (value instanceof AsyncLocalStorage) refuseCalls(value, path, ["disable"]);
    if (isOfCrypto(value)) refuseCalls(value, path, ["update", "digest", "final", "sign", "verify"]);
    if (isOfWasm(value)) this.unwatched.push(`${path}, of WebAssembly`);
    if (value instanceof WeakRef) return [[value.deref(), `${path}.deref()`]];
    const platforms = this.#platformsOf(value);
    const found = platforms.flatMap((prototype) => [...gotFrom(value, prototype, path)]);
    if (platforms.some(isStateful)) seal(value, path);
    if (types.isWeakMap(value)) this.#weak.push([path, value as WeakMap<object, unknown>]);
    if (types.isMap(value)) {
      return [...value].flatMap(([key, held]) =>
        [[key, `a key of ${path}`], [held, `${path}.get(…)`]] as const
      );
    }
    if (types.isSet(value)) return [...value].map((held) => [held, `a value of ${path}`] as const);
    return found;
  }

  /** Returns those of an object's prototypes that are the platform's. */
  #platformsOf(value: object): object[] {
    const found: object[] = [];
    let of: unknown = Object.getPrototypeOf(value);
    while (typeof of === "object" && of !== null && of !== Object.prototype) {
      if (this.intrinsics.has(of) || isStateful(of)) found.push(of);
      of = Object.getPrototypeOf(of);
    }
    return found;
  }

  #freeze(value: object, path: string): (readonly [unknown, string])[] {
    const found: (readonly [unknown, string])[] = [[
      Object.getPrototypeOf(value),
      `the prototype of ${path}`,
    ]];
    // V8 lets the stack of a frozen error be set.
    if (types.isNativeError(value)) Reflect.defineProperty(value, "stack", { value: value.stack });
    const isFunction = typeof value === "function", isPlatformsOwn = isPlatforms(value);
    for (const name of Reflect.ownKeys(value)) {
      // What the platform made keeps a state in properties of its own.
      if (isPlatformsOwn && typeof name === "symbol") continue;
      const each = Reflect.getOwnPropertyDescriptor(value, name);
      if (each === undefined) continue;
      const at = `${path}${
        typeof name === "string" && /^\d+$/.test(name) ? `[${name}]` : `.${String(name)}`
      }`;
      found.push([each.value, at], [each.get, at], [each.set, at]);
      if (each.writable !== true || each.configurable !== true) continue;
      // IN2 (stateful_intrinsics.ts) for the app's own, but for methods that are called by their name from outside; and a
      // static field says its name.
      const isField = isFunction && typeof each.value !== "function" && name !== "length" && name !== "name";
      const isHidden = isPrototype(value) && !(SESSION_BASE in value) && name !== "constructor" &&
        (typeof each.value !== "function" || (typeof name === "string" && this.names.assigned.has(name)));
      if (isField || isHidden) askForProperty(value, name, each, at);
    }
    if (isPlatformsOwn || (types.isRegExp(value) && (value.global || value.sticky))) {
      Object.preventExtensions(value);
    } else Object.freeze(value);
    this.frozen.push([path, value]);
    return found;
  }
}

const ADDING = ["set", "add", "put", "push", "enqueue", "insert", "append"];
const TAKING = ["delete", "remove", "del", "clear", "pop", "shift", "dequeue"];
const READING = ["get", "has", "peek", "peekAt", "at", "values", "first", "front", "toArray"];
const COUNTING: readonly PropertyKey[] = ["size", "length", Symbol.iterator];
/** Names of methods by which collections are changed (MF3). */
const CHANGING = [...ADDING, ...TAKING, "unshift", "reset", "update"];
/** Names of methods of collections of which each change makes another one. */
const PERSISTENT = ["asMutable", "withMutations"];

/**
 * Reports whether an object with these members is a collection (MF3): clients of stores elsewhere don't count, dates
 * can't be taken from.
 */
function isCollection(members: ReadonlySet<PropertyKey>): boolean {
  const hasOne = (names: readonly PropertyKey[]) => names.some((name) => members.has(name));
  return [ADDING, TAKING, READING, COUNTING].every(hasOne) && !hasOne(PERSISTENT);
}

/** Returns the names of all members of an object and its classes, without a call of any of it. */
function membersOf(value: object): Set<PropertyKey> {
  const members = new Set<PropertyKey>();
  for (
    let of: object | null = value;
    of !== null && of !== Object.prototype;
    of = Object.getPrototypeOf(of)
  ) {
    for (const name of Reflect.ownKeys(of)) members.add(name);
  }
  return members;
}

/** Reports whether the platform made an object: it keeps a state in properties of its own then. */
const isPlatforms = (value: object): boolean =>
  value instanceof EventTarget || value instanceof URL || value instanceof URLSearchParams ||
  value instanceof AsyncLocalStorage ||
  /^\[object (Headers|FormData|Request|Response|ReadableStream|WritableStream|TransformStream|Blob|File)\]$/
    .test(Object.prototype.toString.call(value));

/**
 * Reports whether an object is an iterator of the platform's, which each call takes on. One that a program has made is
 * an object as any other.
 */
const isIterator = (value: object, intrinsics: ReadonlySet<object>): boolean =>
  !Object.hasOwn(value, "next") &&
  (types.isGeneratorObject(value) || intrinsics.has(Object(Reflect.get(value, "next"))) ||
    (Symbol.toStringTag in value && /\biterator$/i.test(String(value[Symbol.toStringTag]))));

/** Number of steps that an iterator without an end of its own is taken on at most. */
const STEPS_MAX = 1_000_000;

/**
 * Has an iterator be over, whoever calls what its prototype has: a generator or a helper at once, another one by its
 * steps.
 */
function end(iterator: object): void {
  const { return: over, next } = Object.getPrototypeOf(iterator) as Partial<Generator>;
  try {
    if (typeof over === "function") {
      const ended: unknown = Reflect.apply(over, iterator, [undefined]);
      if (types.isPromise(ended)) ended.catch(() => {});
    } else if (typeof next === "function") {
      for (let i = 0; i < STEPS_MAX && Reflect.apply(next, iterator, []).done !== true; i++);
    }
  } catch {
    // Its own `finally` has thrown.
  }
}

/** Getters of prototypes, by name. Those of the language's own classes return nothing that could be changed. */
const getters = new Map<object, readonly (readonly [name: string, get: () => unknown])[]>(
  [Function, Array, RegExp, Map, Set, ArrayBuffer].map(({ prototype }) => [prototype, []]),
);
/**
 * Names of getters that are not called: a body would become a stream; and what is in the memory of an instance nobody
 * watches (MF4).
 */
const NOT_ASKED = ["body", "buffer"];

/** Yields what an object's getters return (MW1). */
function* gotFrom(value: object, prototype: object, path: string): Generator<readonly [unknown, string]> {
  let all = getters.get(prototype);
  if (all === undefined) {
    all = Object.getOwnPropertyNames(prototype).flatMap((name) => {
      const get = Reflect.getOwnPropertyDescriptor(prototype, name)?.get;
      return get === undefined || NOT_ASKED.includes(name) ? [] : [[name, get] as const];
    });
    getters.set(prototype, all);
  }
  for (const [name, get] of all) {
    try {
      yield [Reflect.apply(get, value, []), `${path}.${name}`];
    } catch {
      // It is not what its prototype says.
    }
  }
}

/** Has an object refuse calls of these methods. */
function refuseCalls(value: object, path: string, names: readonly string[]): void {
  for (const name of names) {
    Reflect.defineProperty(value, name, {
      value: () => {
        throw refusal(`${path} by ${name}`);
      },
    });
  }
}

/** Reports whether an object is a hash, cipher or signature of node's, which take in piece by piece. */
const isOfCrypto = (value: object): boolean =>
  /^(?:Hash|Hmac|Cipher|Decipher|Sign|Verify)/.test(value.constructor?.name ?? "") &&
  ["digest", "final", "sign", "verify"].some((name) => typeof Reflect.get(value, name) === "function") &&
  typeof Reflect.get(value, "update") === "function";

const isOfWasm = (value: object): boolean =>
  /^\[object WebAssembly\.(Instance|Memory|Table|Global)\]$/.test(Object.prototype.toString.call(value));

/** Reports whether an object is the prototype of a class, or of a function that makes objects. */
function isPrototype(value: object): boolean {
  const made: unknown = Reflect.getOwnPropertyDescriptor(value, "constructor")?.value;
  return typeof made === "function" && made.prototype === value;
}

/**
 * Makes a property an accessor: an object that is derived from `of` may get one of its own, by assignment as well; `of`
 * itself refuses by name.
 */
function askForProperty(
  of: object,
  name: PropertyKey,
  { value, enumerable = false }: PropertyDescriptor,
  path: string,
): void {
  Reflect.defineProperty(of, name, {
    enumerable,
    configurable: false,
    get: () => value,
    set(this: object, given: unknown) {
      if (this === of) throw refusal(path);
      Reflect.defineProperty(this, name, {
        value: given,
        writable: true,
        enumerable: true,
        configurable: true,
      });
    },
  });
}
