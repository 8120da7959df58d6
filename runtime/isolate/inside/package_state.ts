/**
 * Keeps what packages hold apart for each session: in variables of their modules, in variables of functions that were
 * called while modules loaded, and in the objects of these: a pool, a counter, a cache. Sessions of an isolate share
 * packages, and nobody is to change one for a library's sake. So each session has its own of it.
 *
 * Life: `variable` and `held` while modules load → `watch` when they have → `enter` and `leave` around each turn.
 *
 * PK1  When a session at rest gets a turn, what packages hold is as it was loaded: no session sees what another has
 *      made of it. While a session is not at rest (a handler, a call, a closure timer is open) it is as its last turn
 *      left it.
 * PK2  Counts go on with their session, in its checkpoints (Program.counts): a number or text of a variable or property
 *      that is only ever counted up, and any number or text where a turn changed nothing near it but such and flags. A
 *      place in a pool goes with its pool: both begin anew. A count is known by its place in the package: other code
 *      that has something of another kind there leaves it alone.
 * PK3  Variables tell before they change (runtime/bundle/module_state.ts), and collections (guarded.ts), however many.
 *      Compared at the end of each turn are plain objects, statics and what a package's class made and the package
 *      holds by what is assigned to somewhere, small ones also by their keys; lists and bytes by each.
 * PK4  What is not compared in each turn, because there is too much of it, is named when the app loads.
 * PK5  A package is put back as a whole: where a variable, an object or a collection of it has changed, what there is
 *      too much of is compared, too. Half of it would be what it never was.
 */
import { types } from "node:util";
import type { Count, Program } from "../../../functions/sessions/turn/program.ts";
import { guard } from "./guarded.ts";

/** Variables by their names, with functions that return what they hold; for one that was not reached it throws. */
type Thunks = readonly (readonly [name: string, value: () => unknown])[];
/** Variables by their packages and names, likewise. */
export type PackageThunks = readonly (readonly [of: string, name: string, value: () => unknown])[];

/** A place that is put back: a variable, a property, or all that a list or collection has. */
export interface Slot {
  readonly of: string;
  /**
   * Name that is the same in each isolate that loads the same code; undefined for a place that was made since, and is
   * kept for nobody.
   */
  readonly name: string | undefined;
  /** True where the place gets no value but by counting up. */
  readonly isCounted: boolean;
  /** True where a package would keep a pool, beside what counts in it. */
  readonly isNear: boolean;
  get(): unknown;
  set(value: unknown): void;
}

/** Called with a place that differs, and with what it held. */
type Differs = (slot: Slot, loaded: unknown) => void;

/** A thing that is compared. */
interface Watch {
  compare(differs: Differs): void;
}

/** Rules that tell packages' objects from others. */
export interface Rules {
  /** Names of properties that packages assign to. */
  readonly touched: ReadonlySet<string>;
  /** Properties that a package only counts up. */
  readonly counted: readonly (readonly [of: string, name: string])[];
  /** Reports whether an object is none of a package's, and leads to none: it is the language's, or it asks already. */
  skips(object: object): boolean;
  /** Reports whether a package's class made an object. */
  isMade(object: object): boolean;
}

/** The place where an object was found. */
interface Place {
  readonly of: string;
  readonly path: string;
  readonly depth: number;
  /** True behind a variable by names of properties alone, and not far. */
  readonly isNear: boolean;
}

/** Value of a property that is not there. */
const ABSENT = Symbol("absent");
/** Separator of the place of an object and the name of its property. */
const MEMBER = "\u0000";
/** Number of properties that are compared at the end of each turn, at some 5 ns: 10 µs at most. */
const CHECKS_MAX = 2_000;
/** Number of list places that are compared, at some 1 ns. Generators of random numbers have 256 to 624. */
const PLACES_MAX = 8_192;
/** Bytes of a word, by which bytes are compared: 16 KiB take 3 µs. Pools of numbers have 128 to 2,048. */
const WORD_BYTES = 4;
const BYTES_MAX = 4 * 1024;
const ALL_BYTES_MAX = 16 * 1024;
/** Number of keys above which an object is a table: new keys are not looked for. */
const KEYS_MAX = 16;
/** Number of variables of functions that were called while modules loaded: each holds what its function has. */
const NAMED_MAX = 20_000;
/** Levels behind a variable within which a package keeps a pool beside what counts in it. */
const NEAR = 3;
/**
 * Levels that are looked at behind a variable; with the number of objects of all packages, some 50 ms of loading at
 * most.
 */
const DEPTH = 6;
const OBJECTS_MAX = 50_000;
/** Characters of the longest text that may be a count. */
const TEXT_MAX = 1_024;

/** The state of packages in one isolate. */
export class PackageState {
  readonly #times = new Map<string, number>();
  readonly #variables = new Map<string, Slot>();
  readonly #objects = new Map<string, ObjectWatch>();
  #held: { readonly of: string; readonly values: Thunks }[] | undefined = [];
  readonly #watches: Watch[] = [];
  readonly #counted = new Set<string>();
  /** Watches for what there is too much of, by package (PK5), and the places of it (PK4). */
  readonly #others = new Map<string, Watch[]>();
  readonly #left = new Map<string, string[]>();
  /** Packages of which something is never compared. */
  readonly #unseen = new Set<string>();
  #checks = 0;
  #places = 0;
  #bytes = 0;
  /** Collections that changed in the turn that runs. */
  readonly #dirty = new Set<NotedCollection>();
  /** Places that changed in the turn that runs, with what they held before. */
  readonly #changes = new Map<Slot, unknown>();
  /** Values that sessions which are not at rest have left in places. */
  readonly #waiting = new WeakMap<Program, readonly (readonly [Slot, unknown])[]>();

  /** Notes a variable of a package; returns its place. */
  variable(
    of: string,
    name: string,
    isCounted: boolean,
    access: { readonly get: () => unknown; readonly set: (value: unknown) => void },
  ): Slot {
    const isLoading = this.#held !== undefined && this.#variables.size < NAMED_MAX;
    const slotName = isLoading ? this.#named(`${of}: ${name}`) : undefined;
    const slot = { of, name: slotName, isCounted, isNear: true, ...access };
    if (slot.name !== undefined) this.#variables.set(slot.name, slot);
    return slot;
  }

  /** Notes variables of a function that holds objects in them. */
  held(of: string, values: Thunks): void {
    if (this.#held !== undefined && this.#held.length < NAMED_MAX) this.#held.push({ of, values });
  }

  /** Yields the values that functions of packages hold, as they are while modules load. */
  *values(): Generator<unknown> {
    for (const { values } of this.#held ?? []) {
      for (const [, value] of values) {
        const found = reached(value);
        if (found !== undefined) yield found;
      }
    }
  }

  /** Begins to watch, when modules have run. Returns what is not compared in each turn, by name (PK4). */
  watch(from: PackageThunks, rules: Rules): string[] {
    for (const [of, name] of rules.counted) this.#counted.add(`${of}${MEMBER}${name}`);
    const held = this.#held ?? [];
    this.#held = undefined;
    const seen = new Set<object>();
    // The nearest first: what is left out is far from where packages keep what they change.
    let found: (readonly [object: object, place: Place])[] = [];
    let next: typeof found = [];
    const objects: typeof found = [];
    const meet = (value: unknown, place: Place): void => {
      if ((typeof value !== "object" && typeof value !== "function") || value === null) return;
      if (seen.has(value) || types.isProxy(value) || rules.skips(value)) return;
      seen.add(value);
      if (seen.size <= OBJECTS_MAX) next.push([value, place]);
      else this.#overlook(place.of, place.path);
    };
    const begin = { depth: 0, isNear: true };
    for (const [of, path, value] of from) meet(reached(value), { of, path, ...begin });
    for (const { of, values } of held) {
      for (const [path, value] of values) meet(reached(value), { of, path, ...begin });
    }
    while (next.length > 0) {
      [found, next] = [next, []];
      // The shortest lists first: long ones are mostly tables that nobody changes.
      const lists: [unknown[], Place][] = [];
      for (const [object, place] of found) {
        if (Array.isArray(object)) lists.push([object, place]);
        else if (
          types.isMap(object) || types.isSet(object) || types.isWeakMap(object) || types.isWeakSet(object)
        ) {
          this.#note(object, place);
        } else if (ArrayBuffer.isView(object)) {
          if (types.isArrayBuffer(object.buffer)) this.#watchBytes(object, place);
        } else if (!Object.isFrozen(object)) objects.push([object, place]);
        if (place.depth === DEPTH) continue;
        const depth = place.depth + 1;
        const isNear = place.isNear && depth <= NEAR && isOpen(object);
        for (const [name, value] of within(object, rules)) {
          meet(value, { of: place.of, path: `${place.path}${name}`, depth, isNear });
        }
      }
      for (const [list, place] of lists.sort(([a], [b]) => a.length - b.length)) {
        if (!Object.isFrozen(list)) this.#watchList(list, place);
      }
    }
    this.#place(objects, rules);
    return [...this.#left].map(([of, [first = "", ...others]]) => {
      const more = others.length === 0 ? "" : ` and ${others.length} more of what it holds`;
      return `${first} of ${of}${more}`;
    });
  }

  /** Begins a session's turn: puts back its counts, and what it left while not at rest. */
  enter(program: Program): void {
    for (const [name, value] of program.counts) {
      const slot = this.#slotOf(name);
      // Other code may hold something else there (PK2).
      if (slot === undefined || !mayBe(value, slot.get())) continue;
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

  /** Notes a place that is about to change. */
  change(slot: Slot): void {
    if (!this.#changes.has(slot)) this.#changes.set(slot, slot.get());
  }

  /** Ends a session's turn: all is as it was loaded (PK1), and counts are kept with the session (PK2). */
  leave(program: Program): void {
    const changes = this.#changes;
    const differs = (slot: Slot, loaded: unknown): void => {
      if (!changes.has(slot)) changes.set(slot, loaded);
    };
    for (const each of this.#watches) each.compare(differs);
    // A collection that was changed reports itself what it held before.
    for (const each of this.#dirty) each.compare((slot, loaded) => changes.set(slot, loaded));
    if (changes.size === 0) return;
    // PK5
    for (const of of new Set([...changes.keys()].map((slot) => slot.of))) {
      for (const each of this.#others.get(of) ?? []) each.compare(differs);
    }
    const left = [...changes].map(([slot, loaded]) => ({ slot, loaded, value: slot.get() }));
    changes.clear();
    const changed = left.filter(({ value, loaded }) => !Object.is(value, loaded));
    const mixed = new Set(
      changed.filter(({ slot, value, loaded }) => slot.isNear && (isObject(value) || isObject(loaded)))
        .map(({ slot }) => slot.of),
    );
    for (const { slot, loaded, value } of left) {
      const { name, of, isCounted } = slot;
      if (name !== undefined) {
        if (Object.is(value, loaded) || !isCount(value)) program.counts.delete(name);
        else {
          const isAlone = !mixed.has(of) && !this.#unseen.has(of);
          if (isCounted || isAlone || program.counts.has(name)) program.counts.set(name, value);
        }
      }
      if (!Object.is(value, loaded)) slot.set(loaded);
    }
    for (const each of this.#dirty) each.settled();
    this.#dirty.clear();
    if (!program.isQuiescent && changed.length > 0) {
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

  /** Watches objects: those that are most likely changed first. */
  #place(objects: readonly (readonly [object: object, place: Place])[], { touched, isMade }: Rules): void {
    const open = objects.filter(([object]) => isOpen(object));
    for (const [object, place] of open) {
      const isSmall = typeof object !== "function" && Object.keys(object).length <= KEYS_MAX;
      this.#watchObject(object, place, { names: changingIn(object, touched), isSmall });
    }
    for (const [object, place] of objects) {
      if (isOpen(object) || !isMade(object)) continue;
      this.#watchObject(object, { ...place, isNear: false }, { names: changingIn(object, touched) });
    }
    // These are not named (PK4): programs hardly ever put another function there.
    for (const [object, { of, depth, path }] of open) {
      const place = { of, depth, path: `methods of ${path}`, isNear: false };
      this.#watchObject(object, place, { names: changingIn(object, touched, true), isTold: false });
    }
  }

  #watchObject(
    object: object,
    { of, path, isNear }: Place,
    { names, isSmall = false, isTold = true }: {
      readonly names: readonly string[];
      readonly isSmall?: boolean;
      readonly isTold?: boolean;
    },
  ): void {
    const checks = names.length + Number(isSmall);
    if (checks === 0) return;
    const name = this.#named(`${of}: ${path}`);
    const watch = new ObjectWatch(object, { of, name, names, isSmall, isNear, counted: this.#counted });
    this.#objects.set(watch.name, watch);
    const hasRoom = this.#checks + checks <= CHECKS_MAX;
    if (hasRoom) this.#checks += checks;
    else if (isTold) this.#leave(of, path);
    (hasRoom ? this.#watches : this.#alsoOf(of)).push(watch);
  }

  #watchList(list: unknown[], { of, path, isNear }: Place): void {
    const hasRoom = this.#places + list.length <= PLACES_MAX;
    if (hasRoom) this.#places += list.length + 1;
    else this.#leave(of, path);
    (hasRoom ? this.#watches : this.#alsoOf(of)).push(new ListWatch({ of, isNear }, list));
  }

  #alsoOf(of: string): Watch[] {
    let others = this.#others.get(of);
    if (others === undefined) this.#others.set(of, others = []);
    return others;
  }

  #overlook(of: string, path: string): void {
    this.#unseen.add(of);
    this.#leave(of, path);
  }

  #leave(of: string, path: string): void {
    const left = this.#left.get(of);
    if (left === undefined) this.#left.set(of, [path]);
    else left.push(path);
  }

  #watchBytes(view: ArrayBufferView, { of, path, isNear }: Place): void {
    const { byteLength } = view;
    if (byteLength > BYTES_MAX || this.#bytes + byteLength > ALL_BYTES_MAX) {
      return this.#overlook(of, `${path}, ${byteLength} bytes,`);
    }
    this.#bytes += byteLength;
    this.#watches.push(new BytesWatch({ of, isNear }, view));
  }

  #note(object: object, of: Pick<Place, "of" | "isNear">): void {
    const noted = types.isMap(object) || types.isSet(object)
      ? new NotedEntries(of, object)
      : new NotedKeys(of, object as WeakMap<object, unknown> | WeakSet<object>, (it) => this.#dirty.add(it));
    guard(object, (_, args) => {
      noted.changes(args);
      this.#dirty.add(noted);
    });
  }
}

/** Watches a plain object, a function with its own properties, or what a class made. */
class ObjectWatch implements Watch {
  readonly name: string;
  readonly #of: string;
  readonly #isNear: boolean;
  readonly #counted: ReadonlySet<string>;
  readonly #object: Record<string, unknown>;
  readonly #names: readonly string[];
  readonly #loaded: readonly unknown[];
  /** All properties that a small object had. */
  readonly #all: ReadonlyMap<string, unknown> | null;
  readonly #slots = new Map<string, Slot>();

  constructor(
    object: object,
    { of, isNear, name, names, isSmall, counted }: {
      readonly of: string;
      readonly isNear: boolean;
      readonly name: string;
      readonly names: readonly string[];
      readonly isSmall: boolean;
      readonly counted: ReadonlySet<string>;
    },
  ) {
    this.name = name;
    this.#of = of;
    this.#isNear = isNear;
    this.#counted = counted;
    this.#object = object as Record<string, unknown>;
    this.#names = names;
    this.#loaded = names.map((each) => this.#object[each]);
    this.#all = isSmall ? new Map(propertiesOf(object)) : null;
  }

  compare(differs: Differs): void {
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

  #compareKeys(all: ReadonlyMap<string, unknown>, differs: Differs): void {
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
    const isCounted = this.#counted.has(`${this.#of}${MEMBER}${name}`);
    const isKept = (this.#isNear || isCounted) && !name.includes(MEMBER);
    const slot: Slot = {
      of: this.#of,
      name: isKept ? `${this.name}${MEMBER}${name}` : undefined,
      isCounted,
      isNear: this.#isNear,
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

type Whose = Pick<Slot, "of" | "isNear">;

/** Makes a place whose values are told apart by content: each read returns a copy. */
const contentSlot = ({ of, isNear }: Whose, get: () => unknown, set: (value: unknown) => void): Slot => ({
  ...{ of, isNear, name: undefined, isCounted: false },
  get,
  set,
});

/** Watches a list, by each of its places. */
class ListWatch implements Watch {
  readonly #list: unknown[];
  readonly #loaded: readonly unknown[];
  readonly #slot: Slot;

  constructor(of: Whose, list: unknown[]) {
    this.#list = list;
    this.#loaded = list.slice();
    this.#slot = contentSlot(of, () => list.slice(), (value) => {
      const held = value as unknown[];
      list.length = held.length;
      // Not all at once as arguments, of which there may not be that many.
      for (let i = 0; i < held.length; i++) list[i] = held[i];
    });
  }

  compare(differs: Differs): void {
    const list = this.#list, loaded = this.#loaded;
    const { length } = loaded;
    if (list.length !== length) return differs(this.#slot, loaded);
    for (let i = 0; i < length; i++) {
      const value = list[i];
      // NaN is no change.
      if (value !== loaded[i] && (value === value || loaded[i] === loaded[i])) {
        return differs(this.#slot, loaded);
      }
    }
  }
}

/** A collection that tells when it changes. */
interface NotedCollection extends Watch {
  /** Called before a method changes it. */
  changes(args: readonly unknown[]): void;
  /** Called when its turn is over, and it was put back. */
  settled(): void;
}

/** Keeps all that a Map or a Set had. */
class NotedEntries implements NotedCollection {
  readonly #loaded: readonly Entry[];
  readonly #slot: Slot;

  constructor(of: Whose, held: Map<unknown, unknown> | Set<unknown>) {
    const entries = (): Entry[] =>
      types.isMap(held) ? [...mapEntries(held)] : Array.from(setValues(held as never), (key) => [key, key]);
    const remove = types.isMap(held) ? mapDelete : setDelete;
    const put = types.isMap(held) ? mapSet : setAdd;
    this.#loaded = entries();
    this.#slot = contentSlot(of, entries, (value) => {
      const wanted = value as readonly Entry[];
      const found = entries();
      let same = 0;
      while (same < found.length && same < wanted.length && Object.is(found[same]?.[0], wanted[same]?.[0])) {
        same++;
      }
      // An entry that is in its place stays there: code that waits may be going through the collection.
      for (const [key] of found.slice(same)) remove(held as never, key);
      for (const [i, [key, each]] of wanted.entries()) {
        if (i >= same || !Object.is(found[i]?.[1], each)) put(held as never, key, each);
      }
    });
  }

  changes(): void {}
  settled(): void {}

  compare(differs: Differs): void {
    differs(this.#slot, this.#loaded);
  }
}

type Entry = readonly [key: unknown, value: unknown];

/** Keeps what was done in this turn to a WeakMap or a WeakSet, which shows nobody what it has. */
class NotedKeys implements NotedCollection {
  readonly #held: WeakMap<object, unknown> | WeakSet<object>;
  readonly #before = new Map<object, unknown>();
  readonly #slot: Slot;

  constructor(
    of: Whose,
    held: WeakMap<object, unknown> | WeakSet<object>,
    changed: (noted: NotedKeys) => void,
  ) {
    this.#held = held;
    const before = this.#before;
    this.#slot = contentSlot(
      of,
      () => new Map([...before.keys()].map((key) => [key, this.#valueOf(key)])),
      (value) => {
        changed(this);
        for (const [key, each] of value as Map<object, unknown>) {
          this.changes([key]);
          this.#put(key, each);
        }
      },
    );
  }

  changes([key]: readonly unknown[]): void {
    if ((typeof key !== "object" && typeof key !== "function") || key === null) return;
    if (!this.#before.has(key)) this.#before.set(key, this.#valueOf(key));
  }

  settled(): void {
    this.#before.clear();
  }

  compare(differs: Differs): void {
    differs(this.#slot, new Map(this.#before));
  }

  #valueOf(key: object): unknown {
    if (!types.isWeakMap(this.#held)) return weakSetHas(this.#held as never, key) ? true : ABSENT;
    return weakMapHas(this.#held, key) ? weakMapGet(this.#held, key) : ABSENT;
  }

  #put(key: object, value: unknown): void {
    const isMap = types.isWeakMap(this.#held);
    if (value === ABSENT) (isMap ? weakMapDelete : weakSetDelete)(this.#held as never, key);
    else if (isMap) weakMapSet(this.#held as never, key, value);
    else weakSetAdd(this.#held as never, key);
  }
}

/** Watches bytes, each of them: by words where they are aligned. */
class BytesWatch implements Watch {
  readonly #bytes: Uint8Array;
  readonly #loaded: Uint8Array;
  readonly #words: Int32Array;
  readonly #loadedWords: Int32Array;
  readonly #slot: Slot;

  constructor(of: Whose, view: ArrayBufferView) {
    const { buffer, byteOffset, byteLength } = view;
    const bytes = this.#bytes = new Uint8Array(buffer, byteOffset, byteLength);
    this.#loaded = bytes.slice();
    const words = byteOffset % WORD_BYTES === 0 ? Math.floor(byteLength / WORD_BYTES) : 0;
    this.#words = new Int32Array(buffer, words === 0 ? 0 : byteOffset, words);
    this.#loadedWords = new Int32Array(this.#loaded.buffer, 0, words);
    this.#slot = contentSlot(of, () => bytes.slice(), (value) => bytes.set(value as Uint8Array));
  }

  compare(differs: Differs): void {
    if (!this.#isSame()) differs(this.#slot, this.#loaded);
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

/** Makes a function of a method as it is before it asks: what is put back here is nobody's change. */
const uncurried = <F>(method: unknown): F =>
  ((of: unknown, ...args: unknown[]) => Reflect.apply(method as never, of, args)) as F;
type Of<T, R> = (of: T, ...args: unknown[]) => R;
const mapEntries = uncurried<Of<Map<unknown, unknown>, Iterable<Entry>>>(Map.prototype.entries);
const mapSet = uncurried<Of<Map<unknown, unknown>, void>>(Map.prototype.set);
const mapDelete = uncurried<Of<Map<unknown, unknown>, void>>(Map.prototype.delete);
const setValues = uncurried<Of<Set<unknown>, Iterable<unknown>>>(Set.prototype.values);
const setAdd = uncurried<Of<Set<unknown>, void>>(Set.prototype.add);
const setDelete = uncurried<Of<Set<unknown>, void>>(Set.prototype.delete);
const weakMapHas = uncurried<Of<WeakMap<object, unknown>, boolean>>(WeakMap.prototype.has);
const weakMapGet = uncurried<Of<WeakMap<object, unknown>, unknown>>(WeakMap.prototype.get);
const weakMapSet = uncurried<Of<WeakMap<object, unknown>, void>>(WeakMap.prototype.set);
const weakMapDelete = uncurried<Of<WeakMap<object, unknown>, void>>(WeakMap.prototype.delete);
const weakSetHas = uncurried<Of<WeakSet<object>, boolean>>(WeakSet.prototype.has);
const weakSetAdd = uncurried<Of<WeakSet<object>, void>>(WeakSet.prototype.add);
const weakSetDelete = uncurried<Of<WeakSet<object>, void>>(WeakSet.prototype.delete);

const isObject = (value: unknown): boolean =>
  (typeof value === "object" && value !== null) || typeof value === "function";

const isCount = (value: unknown): value is Count =>
  typeof value === "number" || typeof value === "bigint" ||
  (typeof value === "string" && value.length <= TEXT_MAX);

/** Reports whether a count may have come from what is there now: nothing yet, or a value of its kind. */
const mayBe = (count: Count, loaded: unknown): boolean =>
  loaded === undefined || loaded === null || loaded === ABSENT || typeof loaded === typeof count;

/** Reports whether an object has nothing but properties. */
const isOpen = (value: object): boolean => typeof value === "function" || isPlain(value);

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** Returns the properties of an object that packages assign to somewhere: those that hold functions, or all others. */
const changingIn = (object: object, touched: ReadonlySet<string>, areMethods = false): string[] =>
  Object.keys(object).filter((name) => {
    if (!touched.has(name)) return false;
    const found = Reflect.getOwnPropertyDescriptor(object, name);
    return found?.writable === true && (typeof found.value === "function") === areMethods;
  });

/** Returns what a variable holds; undefined where it was not reached. */
function reached(value: () => unknown): unknown {
  try {
    return value();
  } catch {
    return undefined;
  }
}

/** Yields what lies in an object, with the text that is added to its path. */
function* within(object: object, { isMade }: Rules): Generator<readonly [name: string, value: unknown]> {
  if (Array.isArray(object)) { for (let i = 0; i < object.length; i++) yield [`[${i}]`, object[i]]; }
  else if (types.isMap(object)) {
    for (const [key, value] of mapEntries(object)) {
      yield [".key", key];
      yield [`.get(${typeof key === "string" ? key : "…"})`, value];
    }
  } else if (types.isSet(object)) { for (const value of setValues(object)) yield [".value", value]; }
  else if (isOpen(object)) {
    for (const [name, value] of valuesOf(object)) yield [`.${name}`, value];
  } else if (isMade(object)) {
    for (const [name, value] of propertiesOf(object)) yield [`.${name}`, value];
  }
}

/** Yields the values of an object's own properties, without those that have a getter. */
function* propertiesOf(object: object): Generator<readonly [string, unknown]> {
  for (const name of Object.keys(object)) {
    const found = Reflect.getOwnPropertyDescriptor(object, name);
    if (found !== undefined) yield [name, found.value];
  }
}

/** Yields the values of an object's own properties, with those that a bundler gives a getter. */
function* valuesOf(object: object): Generator<readonly [string, unknown]> {
  for (const name of Object.keys(object)) {
    const found = Reflect.getOwnPropertyDescriptor(object, name);
    if (found === undefined) continue;
    yield [
      name,
      found.get === undefined ? found.value : reached(() => Reflect.apply(found.get as never, object, [])),
    ];
  }
}
