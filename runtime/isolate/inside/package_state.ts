/**
 * What packages hold in variables of their modules, in variables of functions that were called while modules loaded, and in
 * the objects of these: a pool, a counter, a cache. Sessions of an isolate share packages, and nobody is to change one for
 * a library's sake. So each session has its own of it.
 *
 * Life: `variable` and `held` while modules load → `watch` when they have → `enter` and `leave` around each turn.
 *
 * PK1  When a turn begins, what packages hold is as it was loaded: no session sees what another has made of it. For a
 *      handler that goes on, it is as that handler left it.
 * PK2  What counts goes on with its session, in its checkpoints (Program.counts): a number or text of a variable that is
 *      only ever counted up, and any number or text where a turn changed nothing of that package but such and flags.
 *      A place in a pool goes with its pool: both begin anew in each turn.
 * PK3  Variables tell before they change (runtime/bundle/module_state.ts), objects are compared at the end of each turn:
 *      plain objects and statics by what is assigned to somewhere, small ones also by their keys; lists, Maps and Sets by
 *      how many they have, short lists and bytes by each. So is not: what a package's class made.
 * PK4  What is not compared because there is too much of it is said when the app loads.
 */
import { types } from "node:util";
import type { Count, Program } from "../../../functions/sessions/turn/program.ts";

/** Variables by their names, and what they hold; one that was not reached throws. */
type Thunks = readonly (readonly [name: string, value: () => unknown])[];
/** The same with the package's name. */
export type PackageThunks = readonly (readonly [of: string, name: string, value: () => unknown])[];

/** A variable, a property, or all that a list or collection has. */
export interface Slot {
  readonly of: string;
  /** The same in each isolate that loads the same code; undefined: made since, and kept for nobody. */
  readonly name: string | undefined;
  /** It gets no value but by counting up. */
  readonly isCounted: boolean;
  get(): unknown;
  set(value: unknown): void;
}

/** Something that is compared. */
interface Watch {
  /** Tells what differs, and what it was. */
  compare(differs: (slot: Slot, loaded: unknown) => void): void;
}

/** There was no such property. */
const ABSENT = Symbol("absent");
/** Between the place of an object and the name of its property. */
const MEMBER = "\u0000";
/** Comparisons at the end of each turn, of some 5 ns: 10 µs at most. */
const CHECKS_MAX = 2_000;
/** Bytes are compared by words: 16 KiB take 3 µs. Pools of numbers have 128 to 2,048. */
const WORD_BYTES = 4;
const BYTES_MAX = 4 * 1024;
const ALL_BYTES_MAX = 16 * 1024;
/** Objects with more keys are tables: new ones are not looked for. */
const KEYS_MAX = 16;
/** Lists with more are compared by their length alone. */
const PLACES_MAX = 32;
/** Variables of functions that were called while modules loaded: each holds what its function has. */
const NAMED_MAX = 20_000;
/** How far is looked behind a variable. */
const DEPTH = 3;
/** Longer texts are no counts. */
const TEXT_MAX = 1_024;

/** What packages hold in one isolate. */
export class PackageState {
  readonly #times = new Map<string, number>();
  readonly #variables = new Map<string, Slot>();
  readonly #objects = new Map<string, ObjectWatch>();
  #held: { readonly of: string; readonly values: Thunks }[] | undefined = [];
  readonly #watches: Watch[] = [];
  #checks = 0;
  #bytes = 0;
  /** What is not compared, by package (PK4). */
  readonly #left = new Map<string, string[]>();
  /** Of the turn that runs, by what they were before. */
  readonly #changes = new Map<Slot, unknown>();
  /** What handlers that wait have made of it. */
  readonly #waiting = new WeakMap<Program, readonly (readonly [Slot, unknown])[]>();

  /** A variable of a package is there. */
  variable(
    of: string,
    name: string,
    isCounted: boolean,
    access: { readonly get: () => unknown; readonly set: (value: unknown) => void },
  ): Slot {
    const isLoading = this.#held !== undefined && this.#variables.size < NAMED_MAX;
    const slot = { of, name: isLoading ? this.#named(`${of}: ${name}`) : undefined, isCounted, ...access };
    if (slot.name !== undefined) this.#variables.set(slot.name, slot);
    return slot;
  }

  /** Variables of a function that holds objects in them. */
  held(of: string, values: Thunks): void {
    if (this.#held !== undefined && this.#held.length < NAMED_MAX) this.#held.push({ of, values });
  }

  /** Modules have run. `skips`: whether an object is none of a package's, or is frozen. What is not watched, by name. */
  watch(from: PackageThunks, touched: readonly string[], skips: (object: object) => boolean): string[] {
    const held = this.#held ?? [];
    this.#held = undefined;
    const seen = new Set<object>();
    const names = new Set(touched);
    const visit = (value: unknown, of: string, path: string, depth: number): void => {
      if ((typeof value !== "object" && typeof value !== "function") || value === null) return;
      if (seen.has(value) || types.isProxy(value) || skips(value)) return;
      seen.add(value);
      if (typeof value === "object" && !isPlain(value)) return this.#watchOther(value, of, path);
      this.#watchObject(value, { of, path, names });
      if (depth === 0) return;
      for (const [name, each] of valuesOf(value)) visit(each, of, `${path}.${name}`, depth - 1);
    };
    const had = (of: string, name: string, value: () => unknown, depth: number): void => {
      let found: unknown;
      try {
        found = value();
      } catch {
        return; // It was not reached.
      }
      visit(found, of, name, depth);
    };
    for (const [of, name, value] of from) had(of, name, value, DEPTH);
    for (const { of, values } of held) for (const [name, value] of values) had(of, name, value, DEPTH);
    return [...this.#left].map(([of, [first = "", ...others]]) => {
      const more = others.length === 0 ? "" : ` and ${others.length} more of what it holds`;
      return `${first} of ${of}${more}`;
    });
  }

  /** Whose turn begins. */
  enter(program: Program): void {
    for (const [name, value] of program.counts) {
      const slot = this.#slotOf(name);
      // Other code may hold something else there.
      if (slot === undefined || isObject(slot.get())) continue;
      this.change(slot);
      slot.set(value);
    }
    const waiting = this.#waiting.get(program);
    if (waiting === undefined) return;
    this.#waiting.delete(program);
    for (const [slot, value] of waiting) {
      this.change(slot);
      slot.set(value);
    }
  }

  /** A variable is about to change. */
  change(slot: Slot): void {
    if (!this.#changes.has(slot)) this.#changes.set(slot, slot.get());
  }

  /** Its turn is over: all is as it was loaded (PK1), and what counts is the session's (PK2). */
  leave(program: Program): void {
    const differs = (slot: Slot, loaded: unknown): void => {
      if (!this.#changes.has(slot)) this.#changes.set(slot, loaded);
    };
    for (const each of this.#watches) each.compare(differs);
    if (this.#changes.size === 0) return;
    const left = [...this.#changes].map(([slot, loaded]) => ({ slot, loaded, value: slot.get() }));
    this.#changes.clear();
    const changed = left.filter(({ value, loaded }) => !Object.is(value, loaded));
    const mixed = new Set(
      changed.filter(({ value, loaded }) => isObject(value) || isObject(loaded)).map(({ slot }) => slot.of),
    );
    for (const { slot, loaded, value } of left) {
      const { name, of, isCounted } = slot;
      if (name !== undefined) {
        if (Object.is(value, loaded) || !isCount(value)) program.counts.delete(name);
        else {
          const isAlone = !mixed.has(of) && !this.#left.has(of);
          if (isCounted || isAlone || program.counts.has(name)) program.counts.set(name, value);
        }
      }
      if (!Object.is(value, loaded)) slot.set(loaded);
    }
    if (program.handler !== null && changed.length > 0) {
      this.#waiting.set(program, changed.map(({ slot, value }) => [slot, value]));
    }
  }

  #slotOf(name: string): Slot | undefined {
    const at = name.lastIndexOf(MEMBER);
    if (at < 0) return this.#variables.get(name);
    return this.#objects.get(name.slice(0, at))?.slotOf(name.slice(at + MEMBER.length));
  }

  #named(name: string): string {
    const time = (this.#times.get(name) ?? 0) + 1;
    this.#times.set(name, time);
    return time === 1 ? name : `${name} (${time})`;
  }

  /** Whether there is room for so many comparisons more. */
  #hasRoom(of: string, path: string, checks: number): boolean {
    if (this.#checks + checks > CHECKS_MAX) {
      this.#leave(of, path);
      return false;
    }
    this.#checks += checks;
    return true;
  }

  #leave(of: string, path: string): void {
    const left = this.#left.get(of);
    if (left === undefined) this.#left.set(of, [path]);
    else left.push(path);
  }

  #watchObject(
    object: object,
    { of, path, names }: { readonly of: string; readonly path: string; readonly names: ReadonlySet<string> },
  ): void {
    if (!Object.isExtensible(object)) return;
    const isFunction = typeof object === "function";
    const keys = Object.keys(object);
    const isSmall = !isFunction && keys.length <= KEYS_MAX;
    const watched = keys.filter((name) => {
      const found = Reflect.getOwnPropertyDescriptor(object, name);
      return names.has(name) && found?.writable === true && typeof found.value !== "function";
    });
    if (!isSmall && watched.length === 0) return;
    if (!this.#hasRoom(of, path, watched.length + Number(isSmall))) return;
    const watch = new ObjectWatch(object, { of, name: this.#named(`${of}: ${path}`), watched, isSmall });
    this.#objects.set(watch.name, watch);
    this.#watches.push(watch);
  }

  #watchOther(value: object, of: string, path: string): void {
    const slot = { of, name: undefined, isCounted: false };
    if (Array.isArray(value)) {
      const isShort = value.length <= PLACES_MAX;
      if (this.#hasRoom(of, path, isShort ? 1 + value.length : 1)) {
        this.#watches.push(new ListWatch(slot, value));
      }
    } else if (types.isMap(value) || types.isSet(value)) {
      if (this.#hasRoom(of, path, 1)) this.#watches.push(collectionWatch(slot, value));
    } else if (ArrayBuffer.isView(value) && types.isArrayBuffer(value.buffer)) {
      const { byteLength } = value;
      if (byteLength > BYTES_MAX || this.#bytes + byteLength > ALL_BYTES_MAX) {
        return this.#leave(of, `${path}, ${byteLength} bytes,`);
      }
      this.#bytes += byteLength;
      this.#watches.push(new BytesWatch(slot, value));
    }
  }
}

type Unnamed = Pick<Slot, "of" | "name" | "isCounted">;

/** A plain object, or a function with its own properties. */
class ObjectWatch implements Watch {
  readonly name: string;
  readonly #of: string;
  readonly #object: Record<string, unknown>;
  readonly #names: readonly string[];
  readonly #loaded: readonly unknown[];
  /** All that a small one had. */
  readonly #all: ReadonlyMap<string, unknown> | null;
  readonly #slots = new Map<string, Slot>();

  constructor(
    object: object,
    { of, name, watched, isSmall }: {
      readonly of: string;
      readonly name: string;
      readonly watched: readonly string[];
      readonly isSmall: boolean;
    },
  ) {
    this.name = name;
    this.#of = of;
    this.#object = object as Record<string, unknown>;
    this.#names = watched;
    this.#loaded = watched.map((each) => this.#object[each]);
    this.#all = isSmall ? new Map(valuesOf(object, true)) : null;
  }

  compare(differs: (slot: Slot, loaded: unknown) => void): void {
    for (let i = 0; i < this.#names.length; i++) {
      const name = this.#names[i] ?? "";
      const loaded = this.#loaded[i];
      if (!Object.is(this.#object[name], loaded)) differs(this.slotOf(name), loaded);
    }
    if (this.#all === null) return;
    let keys = 0;
    for (const _ in this.#object) keys++;
    if (keys !== this.#all.size) this.#compareKeys(this.#all, differs);
  }

  #compareKeys(all: ReadonlyMap<string, unknown>, differs: (slot: Slot, loaded: unknown) => void): void {
    for (const name of Object.keys(this.#object)) {
      if (!all.has(name)) differs(this.slotOf(name), ABSENT);
    }
    for (const [name, loaded] of all) {
      if (!Object.hasOwn(this.#object, name)) differs(this.slotOf(name), loaded);
    }
  }

  slotOf(name: string): Slot {
    const known = this.#slots.get(name);
    if (known !== undefined) return known;
    const slot: Slot = {
      of: this.#of,
      name: name.includes(MEMBER) ? undefined : `${this.name}${MEMBER}${name}`,
      isCounted: false,
      get: () => Object.hasOwn(this.#object, name) ? this.#object[name] : ABSENT,
      set: (value) => {
        if (value === ABSENT) Reflect.deleteProperty(this.#object, name);
        else Reflect.set(this.#object, name, value);
      },
    };
    this.#slots.set(name, slot);
    return slot;
  }
}

/** A list: all of a short one, and how many a long one has. */
class ListWatch implements Watch {
  readonly #list: unknown[];
  readonly #loaded: readonly unknown[];
  readonly #slot: Slot;

  constructor(of: Unnamed, list: unknown[]) {
    this.#list = list;
    this.#loaded = [...list];
    this.#slot = {
      ...of,
      get: () => [...list],
      set: (value) => void list.splice(0, list.length, ...value as unknown[]),
    };
  }

  compare(differs: (slot: Slot, loaded: unknown) => void): void {
    const { length } = this.#loaded;
    if (this.#list.length !== length) return differs(this.#slot, this.#loaded);
    if (length > PLACES_MAX) return;
    for (let i = 0; i < length; i++) {
      if (!Object.is(this.#list[i], this.#loaded[i])) return differs(this.#slot, this.#loaded);
    }
  }
}

/** A Map or a Set, by how many it has. */
function collectionWatch(of: Unnamed, held: Map<unknown, unknown> | Set<unknown>): Watch {
  const loaded = [...held];
  const slot: Slot = {
    ...of,
    get: () => [...held],
    set: (value) => {
      held.clear();
      if (types.isMap(held)) { for (const [key, each] of value as [unknown, unknown][]) held.set(key, each); }
      else for (const each of value as unknown[]) held.add(each);
    },
  };
  return {
    compare: (differs) => {
      if (held.size !== loaded.length) differs(slot, loaded);
    },
  };
}

/** Bytes, each of them: by words where they lie so. */
class BytesWatch implements Watch {
  readonly #bytes: Uint8Array;
  readonly #loaded: Uint8Array;
  readonly #words: Int32Array;
  readonly #loadedWords: Int32Array;
  readonly #slot: Slot;

  constructor(of: Unnamed, view: ArrayBufferView) {
    const { buffer, byteOffset, byteLength } = view;
    const bytes = this.#bytes = new Uint8Array(buffer, byteOffset, byteLength);
    this.#loaded = bytes.slice();
    const words = byteOffset % WORD_BYTES === 0 ? Math.floor(byteLength / WORD_BYTES) : 0;
    this.#words = new Int32Array(buffer, words === 0 ? 0 : byteOffset, words);
    this.#loadedWords = new Int32Array(this.#loaded.buffer, 0, words);
    this.#slot = {
      ...of,
      get: () => bytes.slice(),
      set: (value) => {
        if (bytes.length === this.#loaded.length) bytes.set(value as Uint8Array);
      },
    };
  }

  compare(differs: (slot: Slot, loaded: unknown) => void): void {
    if (this.#bytes.length === this.#loaded.length && !this.#isSame()) differs(this.#slot, this.#loaded);
  }

  #isSame(): boolean {
    const { length } = this.#loadedWords;
    for (let i = 0; i < length; i++) if (this.#words[i] !== this.#loadedWords[i]) return false;
    for (let i = length * WORD_BYTES; i < this.#loaded.length; i++) {
      if (this.#bytes[i] !== this.#loaded[i]) return false;
    }
    return true;
  }
}

const isObject = (value: unknown): boolean =>
  (typeof value === "object" && value !== null) || typeof value === "function";

const isCount = (value: unknown): value is Count =>
  typeof value === "number" || typeof value === "bigint" ||
  (typeof value === "string" && value.length <= TEXT_MAX);

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** The values of an object's own properties: also those that a bundler gives a getter, unless only values are asked for. */
function* valuesOf(object: object, onlyValues = false): Generator<readonly [string, unknown]> {
  for (const name of Object.keys(object)) {
    const found = Reflect.getOwnPropertyDescriptor(object, name);
    if (found === undefined) continue;
    if (found.get === undefined || onlyValues) yield [name, found.value];
    else {
      try {
        yield [name, Reflect.apply(found.get, object, [])];
      } catch {
        // It has no value yet.
      }
    }
  }
}
