/**
 * The objects that the platform gives to all sessions of an isolate alike: globals, the members of these, and node's
 * modules. They are frozen to the last object that can be reached, when the app's modules have run.
 *
 * FR1  Nothing is added to any of them, and nothing replaced. An object that is only loaded when it is used is frozen
 *      then.
 * FR2  A setter that is no instance's (`util.inspect.defaultOptions`) throws, and what its getter returns is frozen. A
 *      setter that can't be replaced (`EventEmitter.defaultMaxListeners`), and what functions set, is compared at the
 *      end of each turn.
 * FR3  Classes of node make their instances by assigning what their prototypes have: these let it happen (IN2,
 *      stateful_intrinsics.ts).
 */
import { EventEmitter } from "node:events";
import { getSystemErrorMap, types } from "node:util";
import { Setting } from "./put_back.ts";
import { refusal, seal } from "./module_refusal.ts";
import { permitOverrides } from "./stateful_intrinsics.ts";

/** Freezes the platform's objects, but for the members that a bundle assigns to. */
export class FrozenRealm {
  /** Settings that can't be frozen, to be compared (FR2). */
  readonly settings: Setting[] = [];
  readonly #seen: Set<object>;
  readonly #assigned: ReadonlySet<string>;

  /**
   * @param intrinsics the language's own objects, which are frozen by themselves
   * @param assigned names of properties that the bundle assigns to anywhere
   */
  constructor(intrinsics: ReadonlySet<object>, assigned: ReadonlySet<string>) {
    this.#seen = new Set([...intrinsics, globalThis]);
    this.#assigned = assigned;
  }

  /**
   * Freezes all globals, and what is of node whatever a bundle imports.
   *
   * @param before names of the platform's globals; of others only the value that they have is fixed
   */
  globals(before: ReadonlySet<PropertyKey>): void {
    this.module(EventEmitter, "EventEmitter");
    const errors = getSystemErrorMap();
    for (const each of errors.values()) Object.freeze(each);
    seal(errors, "getSystemErrorMap()");
    for (const name of Reflect.ownKeys(globalThis)) {
      const found = Reflect.getOwnPropertyDescriptor(globalThis, name);
      if (found?.configurable !== true) continue;
      const { get, value } = found;
      if (get === undefined) {
        if (before.has(name)) this.#visit(value, { path: String(name), isNodes: false });
        if (found.writable === true) Reflect.defineProperty(globalThis, name, { writable: false });
        continue;
      }
      Reflect.defineProperty(globalThis, name, {
        ...found,
        get: () => {
          const held: unknown = Reflect.apply(get, globalThis, []);
          if (before.has(name)) this.#visit(held, { path: String(name), isNodes: false });
          return held;
        },
        set: () => {
          throw refusal(`globalThis.${String(name)}`);
        },
      });
    }
    for (const [name, of] of Object.entries({ globalThis, performance })) seal(of, name);
    Object.freeze(crypto.subtle);
    Object.preventExtensions(Error);
  }

  /** Freezes one of node's modules, or what was imported of it. */
  module(value: unknown, name: string): void {
    this.#visit(value, { path: name, isNodes: true });
  }

  /** Freezes a class of the platform that the bundle brings. */
  platform(made: object): void {
    this.#visit(made, { path: "", isNodes: false });
  }

  #visit(value: unknown, { path, isNodes }: Realm): void {
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return;
    // Programs set Error's own properties as they run, and its classes are the language's.
    if (this.#seen.has(value) || value === Error || types.isProxy(value)) return;
    this.#seen.add(value);
    if (types.isMap(value) || types.isSet(value)) return seal(value, path);
    const isPrototype = isPrototypeOf(value);
    for (const name of Reflect.ownKeys(value)) {
      // Symbols of the platform's own hold state that it changes.
      if (typeof name === "symbol" && !WELL_KNOWN.has(name)) continue;
      const found = Reflect.getOwnPropertyDescriptor(value, name);
      if (found === undefined) continue;
      const of = { path: `${path}.${String(name)}`, isNodes };
      for (const each of [found.value, found.get, found.set]) this.#visit(each, of);
      if (found.get === undefined || isPrototype || !isNodes) continue;
      this.#visit(got(value, found.get), of);
      if (found.set !== undefined) this.#keep(value, name, found, of.path);
    }
    this.#visit(Object.getPrototypeOf(value), { path: `${path}.__proto__`, isNodes });
    if (isPrototype) permitOverrides(value, isNodes ? "all" : this.#assigned); // FR3
    if (ArrayBuffer.isView(value) || types.isModuleNamespaceObject(value)) return;
    if (isPrototype && isNodes) fix(value);
    else Object.freeze(value);
  }

  /** Has a setter refuse, or its value compared (FR2). */
  #keep(of: object, name: PropertyKey, found: PropertyDescriptor, path: string): void {
    if (found.configurable === true) {
      Reflect.defineProperty(of, name, { ...found, set: () => refuse(path) });
      return;
    }
    const get = () => Reflect.get(of, name) as unknown;
    this.settings.push(new Setting(path, get, (value) => void Reflect.set(of, name, value)));
  }
}

/**
 * Fixes a prototype as freezing does, but leaves members that can't be made accessors: instances of node's classes get
 * them by assignment (FR3).
 */
function fix(prototype: object): void {
  Object.preventExtensions(prototype);
  for (const name of Reflect.ownKeys(prototype)) {
    const found = Reflect.getOwnPropertyDescriptor(prototype, name);
    if (found?.configurable !== true) continue;
    Reflect.defineProperty(prototype, name, {
      configurable: false,
      ...("value" in found && { writable: false }),
    });
  }
}

/** The place of an object, and whether it is of a module of node's. */
interface Realm {
  readonly path: string;
  readonly isNodes: boolean;
}

const WELL_KNOWN: ReadonlySet<symbol> = new Set(
  Reflect.ownKeys(Symbol).map((name) => Reflect.get(Symbol, name)).filter((each) => typeof each === "symbol"),
);

function refuse(path: string): never {
  throw refusal(path);
}

function got(of: object, get: () => unknown): unknown {
  try {
    return Reflect.apply(get, of, []);
  } catch {
    return undefined;
  }
}

function isPrototypeOf(value: object): boolean {
  const made: unknown = Reflect.getOwnPropertyDescriptor(value, "constructor")?.value;
  return typeof made === "function" && made.prototype === value;
}
