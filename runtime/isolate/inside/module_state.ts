/**
 * What the modules and classes of an app with stateful sessions hold, once they have loaded: all sessions of an isolate
 * share it, and no log has it. So no session may change it, and what tries fails with its name.
 *
 * Life: `asked` stands as a global while the bundle runs, which tells what there is (`made`, `hold`;
 * runtime/bundle/module_state.ts) → `freeze` → `turnOf` before and behind each turn, `changed` at its end. A bundle that
 * was made without those questions never says `hold`: nothing is frozen then, and its logs are replayed as they were
 * written.
 *
 * MF1  Plain objects, arrays, functions, classes and their instances are frozen, to the last that can be reached from
 *      variables, closures and private fields; collections and what else has a state of its own refuse the calls that
 *      change it.
 * MF2  A regular expression with the flag g or y, and bytes, can't be made to refuse: they are compared at the end of each
 *      turn and put back, before anything of it leaves.
 * MF3  What a package made (an instance of one of its classes) is left as it is: libraries make on first use what they
 *      need. What it has in variables each session has for itself (package_state.ts).
 *      But for collections (a cache, a queue, a sorted map): what can be added to, taken from, and says how much is in it
 *      refuses the calls that change it, as a Map does.
 * MF4  What is shared and not watched is said when the app loads.
 * MF5  A promise that modules made and left open is settled by no session.
 * MF6  Who catches that the stack is full fails: how deep it went is in no log, and differs at a replay.
 * MF7  What a module holds and a session keeps in a field is the module's own again where its checkpoint is read by the
 *      same code, or by other code that holds the same under the same name: `this.level === LEVELS[1]` stays so.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { types } from "node:util";
import { AppError } from "../../../functions/vocabulary/errors.ts";
import { SESSION_BASE } from "../../../functions/class/session_slot.ts";
import { type ModuleObjects, recognizeModules } from "../../../functions/tracked/content.ts";
import type { Program } from "../../../functions/sessions/turn/program.ts";
import { Guarded, installGuards } from "./guarded.ts";
import { LateGlobals } from "./late_globals.ts";
import { PackageState, type PackageThunks, type Slot } from "./package_state.ts";
import { freezeIntrinsics, permitOverrides } from "./stateful_intrinsics.ts";

/** Variables by their names, and what they hold; one that was not reached throws. */
type Thunks = readonly (readonly [name: string, value: () => unknown])[];

/** What the bundle says of its modules. */
interface Held {
  readonly own: Thunks;
  readonly packages: Thunks;
  /** What it imports of the platform. */
  readonly builtins?: Thunks;
  /** What it brings of the platform's own modules. */
  readonly platform?: Thunks;
  /** Classes and functions that the app's own modules declare. */
  readonly declared?: Thunks;
  /** Names of methods that are assigned to somewhere. */
  readonly assigned: readonly string[];
  /** What packages hold, and which properties they assign to; bundles of before do not say. */
  readonly from?: PackageThunks;
  readonly touched?: readonly string[];
  /** Which of these packages only count up. */
  readonly counted?: readonly (readonly [of: string, name: string])[];
  /** Which properties the app's own modules assign to. */
  readonly changed?: readonly string[];
}

/** Whose something is: 0 is the modules', undefined nobody's that is known. */
type Owner = Program | 0 | undefined;

/** Compared at the end of each turn, so that it takes some µs at most. */
const BYTES_MAX = 64 * 1024;
/** Functions that modules call while they load, with variables that outlive them. */
const MADE_MAX = 200_000;
/** The language does not say which object it was that can't be changed: so many are named that it may have been. */
const NAMED_MAX = 5;
/** How far classes are looked for behind what packages export. */
const PACKAGE_DEPTH = 3;

const FIX = "all sessions of an isolate share it, and no log has it. Keep it in a field of the session; " +
  "what is costly to make and the same for all is read with this.cache.read(name, load)";

const refusal = (what: string): AppError =>
  new AppError(
    "module_state",
    `a stateful session can't change ${what}, which a module or class holds: ${FIX}`,
    {
      what,
    },
  );

/** MF1: an object with a state of its own that refuses to be changed, by where modules have it. */
function seal(object: object, path: string): void {
  if (Guarded.has(object)) return;
  new Guarded(object, (name) => {
    throw refusal(`${path} by ${String(name)}`);
  });
}

const STACK_FULL = "Maximum call stack size exceeded";

/** One that MF2 compares. */
interface Watched {
  readonly path: string;
  /** Whether it is another than when it was loaded; it is put back. */
  changed(): boolean;
}

/** The state of the modules of one isolate. */
export class ModuleState {
  #held: Held | undefined;
  #made: { readonly file: string; readonly values: Thunks }[] | undefined = [];
  readonly #watched: Watched[] = [];
  readonly #unwatched: string[] = [];
  /** Where modules have what was frozen. */
  readonly #frozen = new Map<object, string>();
  #isFrozen = false;
  #loaded = (): void => {};
  /** MF6: in the turn that runs. */
  #wasStackFull = false;
  #stackTraceLimit = 10;
  #prepare: unknown;
  readonly #packages = new PackageState();
  readonly #late = new LateGlobals();
  /** The global that bundles ask. */
  readonly asked = Object.seal({
    owner: 0 as Owner,
    /** Sessions share what it loads. */
    isShared: true,
    made: (file: string, values: Thunks): 0 => {
      if (this.#made !== undefined && this.#made.length < MADE_MAX) this.#made.push({ file, values });
      return 0;
    },
    bound: (file: string, args: readonly unknown[]): readonly unknown[] => {
      this.asked.made(file, args.map((value, i) => [`argument ${i} of a bound function`, () => value]));
      return args;
    },
    hold: (held: Held): void => void (this.#held ??= held),
    refuse: (of: Owner, name: string, file: string): void => this.#refuse(of, name, file),
    /** Bundles of before have made the slot themselves. */
    change: (slot: Slot): void => {
      if (this.#isFrozen) this.#packages.change(slot);
    },
    variable: (
      of: string,
      name: string,
      isCounted: boolean,
      get: () => unknown,
      set: (value: unknown) => void,
    ): Slot => this.#packages.variable(of, name, isCounted, { get, set }),
    held: (of: string, values: Thunks): void => this.#packages.held(of, values),
    caught: (error: unknown): void => {
      const isFull = error instanceof RangeError && error.message === STACK_FULL;
      if (isFull && typeof this.asked.owner === "object") this.#wasStackFull = true;
    },
  });

  /** The app's modules are about to run. What settles promises that they make meanwhile nobody else can see. */
  load(): void {
    installGuards();
    const { Promise: Made } = globalThis;
    Reflect.set(globalThis, "Promise", this.#settlingPromise(Made));
    this.#loaded = () => void Reflect.set(globalThis, "Promise", Made);
  }

  /** MF5: the class of promises while modules load. */
  #settlingPromise(Made: PromiseConstructor): PromiseConstructor {
    const settling: PromiseConstructor = new Proxy(Made, {
      construct: (_, args: unknown[], newTarget) => {
        const Class = newTarget === settling ? Made : newTarget;
        const [executor] = args;
        // A package may keep the class for later.
        if (this.asked.owner !== 0 || typeof executor !== "function") {
          return Reflect.construct(Made, args, Class);
        }
        let isSettled = false;
        const asking = (settle: (value: unknown) => void) => (value: unknown): void => {
          if (!isSettled && typeof this.asked.owner === "object") throw refusal("a promise that was open");
          isSettled = true;
          settle(value);
        };
        const asks = (resolve: (value: unknown) => void, reject: (error: unknown) => void): unknown =>
          executor(asking(resolve), asking(reject));
        return Reflect.construct(Made, [asks], Class);
      },
    });
    return settling;
  }

  /** Whose turn begins; undefined: it is over. */
  turnOf(program: Program | undefined): void {
    if (!this.#isFrozen) return;
    const before = this.asked.owner;
    this.asked.owner = program;
    if (program !== undefined) this.#packages.enter(program);
    else if (typeof before === "object") this.#packages.leave(before);
  }

  #refuse(of: Owner, name: string, file: string): void {
    const { owner } = this.asked;
    // Between turns nobody's code is known to run; and modules may change what is their own while they load.
    if (owner === undefined || owner === 0) return;
    if (of === 0) throw refusal(`${name} of ${file}`);
    if (of === undefined || (of.className === owner.className && of.id === owner.id)) return;
    throw new AppError(
      "session_shared",
      `code of the stateful session ${of.className}/${of.id} changes its variable ${name} (${file}) in a turn of ` +
        `${owner.className}/${owner.id}, which no log has: sessions can't share functions`,
    );
  }

  /** Modules have run: from now on nobody changes what they hold. What is not watched, by name (MF4). */
  async freeze(
    intrinsics: ReadonlySet<object>,
    before: ReadonlySet<PropertyKey>,
  ): Promise<readonly string[]> {
    this.#loaded();
    const made = this.#made ?? [];
    this.#made = undefined;
    if (this.#held === undefined) {
      freezeIntrinsics(intrinsics, new Set());
      return [];
    }
    const { own, packages, builtins = [], platform = [], declared = [], assigned } = this.#held;
    const { from = [], touched = [], counted = [], changed = [] } = this.#held;
    // Node's own modules count on properties of their prototypes that are assigned to; objects of theirs are the app's.
    const left = new Set([...intrinsics, ...packagesClasses(held(builtins), intrinsics)]);
    const foreign = packagesClasses(held(packages), intrinsics, this.#packages.values());
    for (const each of held(declared)) for (const own of [each, Object(each).prototype]) foreign.delete(own);
    const ofPackages = new Set(touched.filter((name) => !changed.includes(name)));
    const walk = new Walk(left, foreign, { assigned: new Set(assigned), ofPackages });
    for (const [, value] of values(builtins)) {
      if (typeof value === "object" && value !== null && !types.isModuleNamespaceObject(value)) {
        Object.freeze(value);
      }
    }
    for (const [name, value] of values(own)) walk.visit(value, name);
    for (const each of made) {
      for (const [name, value] of values(each.values)) walk.visit(value, `${name} of ${each.file}`);
    }
    // MF3: what packages keep there, so as to be one where they are bundled twice, is theirs all the same.
    const packagesOwn = new Set([...values(packages)].map(([, value]) => value));
    for (const name of Reflect.ownKeys(globalThis)) {
      const value: unknown = Reflect.getOwnPropertyDescriptor(globalThis, name)?.value;
      if (before.has(name) || packagesOwn.has(value)) continue;
      const path = `globalThis.${String(name)}`;
      if (typeof name === "string" && ofPackages.has(name)) {
        walk.changed.push(["a package", path, () => value]);
      } else walk.visit(value, path);
    }
    // What a promise holds is told later.
    for (let promise = walk.promises.shift(); promise !== undefined; promise = walk.promises.shift()) {
      const nothing = {};
      const value = await Promise.race([promise.value, nothing]).catch(() => nothing);
      if (value !== nothing) walk.visit(value, promise.path);
    }
    if (made.length >= MADE_MAX) {
      walk.unwatched.push("functions that modules called while they loaded, beyond 200,000");
    }
    for (const [path, of] of walk.frozen) this.#frozen.set(of, path);
    const putBack = this.#watch(walk);
    const views = walk.views.filter(([, { buffer }]) => putBack.some(([, each]) => each === buffer));
    recognizeModules(new HeldByName([...walk.frozen, ...putBack, ...views]));
    this.#stackTraceLimit = Error.stackTraceLimit;
    this.#prepare = prepareOf();
    // The prototypes of globals are among them: once they are frozen nothing on them can be made to allow anything.
    const everywhere = new Set([...touched, ...changed]);
    freezeIntrinsics(intrinsics, everywhere);
    freezeGlobal(everywhere);
    this.#late.install();
    for (const [, value] of values(platform)) {
      if (typeof value === "function") freezeClass(value, everywhere);
    }
    this.#unwatched.push(...this.#packages.watch([...from, ...walk.changed], {
      touched: new Set(touched),
      counted,
      skips: (object) => intrinsics.has(object) || object === globalThis || Guarded.has(object),
      isMade: (object) => foreign.has(Object.getPrototypeOf(object)),
    }));
    this.#isFrozen = true;
    this.asked.owner = undefined;
    return this.#unwatched;
  }

  /** Of bytes, those that are put back. */
  #watch({ regexps, buffers, unwatched }: Walk): Named<ArrayBuffer>[] {
    this.#unwatched.push(...unwatched);
    for (const [path, regexp] of regexps) {
      const { lastIndex } = regexp;
      this.#watched.push({
        path: `lastIndex of ${path}`,
        changed: () => regexp.lastIndex !== lastIndex && (regexp.lastIndex = lastIndex, true),
      });
    }
    let room = BYTES_MAX;
    const putBack: Named<ArrayBuffer>[] = [];
    for (const [path, buffer] of buffers) {
      if (buffer.byteLength > room) {
        this.#unwatched.push(`${path}, ${buffer.byteLength} bytes`);
        continue;
      }
      room -= buffer.byteLength;
      const bytes = new Uint8Array(buffer), kept = bytes.slice();
      const differs = differing(bytes, kept);
      this.#watched.push({ path, changed: () => differs() && (bytes.set(kept), true) });
      putBack.push([path, buffer]);
    }
    return putBack;
  }

  /** MF2: what the turn that is over has changed; it is as it was again. */
  changed(): AppError | undefined {
    if (!this.#isFrozen) return undefined;
    // Libraries that look at stacks set these, and mostly put them back themselves.
    if (Error.stackTraceLimit !== this.#stackTraceLimit) Error.stackTraceLimit = this.#stackTraceLimit;
    if (prepareOf() !== this.#prepare) Reflect.set(Error, "prepareStackTrace", this.#prepare);
    let found: AppError | undefined;
    const late = this.#late.left();
    if (late !== undefined) found = refusal(`globalThis.${late}`);
    for (const each of this.#watched) if (each.changed()) found ??= refusal(each.path);
    if (this.#wasStackFull) {
      this.#wasStackFull = false;
      found ??= new AppError(
        "stack_full",
        "a stateful session can't go on where its stack was full: how deep it went is in no log, and differs at a " +
          "replay. Bound the depth of what calls itself",
      );
    }
    return found;
  }

  /** What was thrown, with a name where it was by something frozen. */
  told(error: unknown): unknown {
    if (!this.#isFrozen || !(error instanceof TypeError)) return error;
    const { message } = error;
    const [, name] =
      /^Cannot (?:assign to read only property|add property|delete property|define property) '?(.*?)'?(?:, | of )/
        .exec(message) ?? /^Cannot (?:assign to|redefine) (?:.*?)property:? '?(\w+)/.exec(message) ?? [];
    if (name === undefined) return error;
    const paths: string[] = [];
    for (const [object, path] of this.#frozen) {
      const isIt = message.startsWith("Cannot add property")
        ? Array.isArray(object) ? String(object.length) === name : false
        : Object.hasOwn(object, name);
      if (isIt) paths.push(Array.isArray(object) ? path : `${path}.${name}`);
    }
    const others = paths.length > NAMED_MAX ? " or another" : "";
    const what = paths.length === 0
      ? `"${name}" of what is frozen`
      : `${paths.slice(0, NAMED_MAX).join(", or ")}${others}`;
    const named = refusal(what);
    named.stack = `${named.name}: ${named.message} (${message.slice(0, 200)})${stackBelow(error)}`;
    return named;
  }
}

const prepareOf = (): unknown => Reflect.get(Error, "prepareStackTrace");

const stackBelow = ({ stack }: Error): string => {
  const at = (stack ?? "").indexOf("\n    at ");
  return at < 0 ? "" : (stack ?? "").slice(at);
};

/** Values that can be had: not those of variables that were not reached. */
function* held(thunks: Thunks): Generator<unknown> {
  for (const [, value] of values(thunks)) yield value;
}

function* values(thunks: Thunks): Generator<readonly [name: string, value: unknown]> {
  for (const [name, value] of thunks) {
    try {
      yield [name, value()];
    } catch {
      // Nothing is there.
    }
  }
}

/** Tells whether bytes are others than those kept: by words where they lie so. */
function differing(bytes: Uint8Array, kept: Uint8Array): () => boolean {
  const length = bytes.length;
  const words = length >> 2;
  const [a, b] = [new Int32Array(bytes.buffer, 0, words), new Int32Array(kept.buffer, 0, words)];
  return () => {
    if (bytes.length !== length) return false;
    for (let i = 0; i < words; i++) if (a[i] !== b[i]) return true;
    for (let i = words << 2; i < length; i++) if (bytes[i] !== kept[i]) return true;
    return false;
  };
}

/** MF3: the functions of packages, and the prototypes of what they make. */
function packagesClasses(
  held: Iterable<unknown>,
  intrinsics: ReadonlySet<object>,
  within: Iterable<unknown> = [],
): Set<object> {
  const found = new Set<object>();
  const visit = (value: unknown, depth: number): void => {
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return;
    if (found.has(value) || intrinsics.has(value) || types.isProxy(value)) return;
    if (typeof value === "function") {
      found.add(value);
      const prototype: unknown = Reflect.getOwnPropertyDescriptor(value, "prototype")?.value;
      if (typeof prototype === "object" && prototype !== null) found.add(prototype);
    } else if (!isPlain(value) && !(depth === PACKAGE_DEPTH && isInterop(value))) return;
    if (depth === 0) return;
    for (const name of Reflect.ownKeys(value)) {
      const each = Reflect.getOwnPropertyDescriptor(value, name);
      try {
        // What a bundler makes of a module's exports has getters.
        visit(each?.get === undefined ? each?.value : Reflect.apply(each.get, value, []), depth - 1);
      } catch {
        // It has no value yet.
      }
    }
  };
  for (const value of held) visit(value, PACKAGE_DEPTH);
  // What functions hold may be anybody's, but for what is a class or function itself.
  for (const value of within) if (typeof value === "function") visit(value, 0);
  return found;
}

/** What a bundler makes of a CommonJS module for those that import it inherits from what the module exports. */
const isInterop = (value: object): boolean => typeof Object.getPrototypeOf(value) === "function";

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** Where modules have an object, which is no name yet: two keys of a Map have one path. */
type Named<T extends object> = readonly [path: string, object: T];

/** MF7. Modules load in one order: the same code gives the same names. */
class HeldByName implements ModuleObjects {
  readonly #names = new Map<object, string>();
  readonly #objects = new Map<string, object>();

  constructor(held: readonly Named<object>[]) {
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
class Walk {
  readonly regexps: (readonly [path: string, regexp: RegExp])[] = [];
  readonly buffers: Named<ArrayBuffer>[] = [];
  readonly views: Named<ArrayBufferView>[] = [];
  readonly promises: { readonly path: string; readonly value: Promise<unknown> }[] = [];
  readonly frozen: Named<object>[] = [];
  readonly unwatched: string[] = [];
  /** What packages have made, and change: each session has it for itself (package_state.ts). */
  readonly changed: (readonly [of: string, name: string, value: () => unknown])[] = [];
  readonly #seen = new Set<object>();

  constructor(
    readonly intrinsics: ReadonlySet<object>,
    readonly foreign: ReadonlySet<object>,
    readonly names: {
      /** IN2: of methods that are assigned to somewhere. */
      readonly assigned: ReadonlySet<string>;
      /** Of properties that packages assign to, and the app's own modules do not. */
      readonly ofPackages: ReadonlySet<string>;
    },
  ) {}

  visit(value: unknown, path: string): void {
    const todo: (readonly [unknown, string])[] = [[value, path]];
    for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
      for (const each of this.#one(...next)) todo.push(each);
    }
  }

  /** One object; what it leads to. */
  #one(value: unknown, path: string): (readonly [unknown, string])[] {
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return [];
    if (this.#seen.has(value) || this.intrinsics.has(value) || value === globalThis) return [];
    this.#seen.add(value);
    if (this.foreign.has(value)) return [];
    if (types.isProxy(value)) {
      this.unwatched.push(`${path}, a Proxy`);
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

  /** MF3 */
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

  /** What has a state beside its properties. */
  #within(value: object, path: string): (readonly [unknown, string])[] {
    if (types.isRegExp(value)) {
      if (value.global || value.sticky) this.regexps.push([`${path} (${value})`, value]);
      return [];
    }
    if (types.isPromise(value)) {
      this.promises.push({ path, value });
      return [];
    }
    if (
      types.isGeneratorObject(value) || this.intrinsics.has(Object(Reflect.get(value, "next"))) ||
      Symbol.toStringTag in value && /\biterator$/i.test(String(value[Symbol.toStringTag]))
    ) {
      refuseCalls(value, path, ["next", "return", "throw"]);
      return [];
    }
    if (isPrototype(value)) return [];
    if (value instanceof AsyncLocalStorage) refuseCalls(value, path, ["disable"]);
    if (isOfCrypto(value)) refuseCalls(value, path, ["update", "digest", "final", "sign", "verify"]);
    if (isTransform(value)) {
      for (const [name, end] of Object.entries({ readable: value.readable, writable: value.writable })) {
        seal(end, `${path}.${name}`);
      }
    }
    if (hasOwnState(value)) seal(value, path);
    if (value instanceof URL) seal(value.searchParams, `${path}.searchParams`);
    if (value instanceof Event || value instanceof AbortSignal) {
      return HELD_BY_EVENTS.map((name) => [Reflect.get(value, name, value), `${path}.${name}`] as const);
    }
    if (isOfWasm(value)) this.unwatched.push(`${path}, of WebAssembly`);
    if (types.isMap(value)) {
      return [...value].flatMap(([key, held]) =>
        [[key, `a key of ${path}`], [held, `${path}.get(…)`]] as const
      );
    }
    if (types.isSet(value)) return [...value].map((held) => [held, `a value of ${path}`] as const);
    return [];
  }

  #freeze(value: object, path: string): (readonly [unknown, string])[] {
    const found: (readonly [unknown, string])[] = [[
      Object.getPrototypeOf(value),
      `the prototype of ${path}`,
    ]];
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
    if (isPlatformsOwn) return found.slice(1);
    if (types.isRegExp(value) && (value.global || value.sticky)) Object.preventExtensions(value);
    else Object.freeze(value);
    this.frozen.push([path, value]);
    return found;
  }
}

const ADDING = ["set", "add", "put", "push", "enqueue", "insert", "append"];
const TAKING = ["delete", "remove", "del", "clear", "pop", "shift", "dequeue"];
const READING = ["get", "has", "peek", "peekAt", "at", "values", "first", "front", "toArray"];
const COUNTING: readonly PropertyKey[] = ["size", "length", Symbol.iterator];
/** MF3: by what methods collections are changed. */
const CHANGING = [...ADDING, ...TAKING, "unshift", "reset", "update"];
/** Those of which each change is another one. */
const PERSISTENT = ["asMutable", "withMutations"];

/** MF3: clients of stores elsewhere don't count, dates can't be taken from. */
function isCollection(members: ReadonlySet<PropertyKey>): boolean {
  const hasOne = (names: readonly PropertyKey[]) => names.some((name) => members.has(name));
  return [ADDING, TAKING, READING, COUNTING].every(hasOne) && !hasOne(PERSISTENT);
}

/** Names of what an object and its classes have, without asking any of it. */
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

const isPlatforms = (value: object): boolean =>
  value instanceof EventTarget || value instanceof URL || value instanceof URLSearchParams ||
  value instanceof AsyncLocalStorage ||
  /^\[object (Headers|FormData|Request|Response|ReadableStream|WritableStream|TransformStream|Blob|File)\]$/
    .test(Object.prototype.toString.call(value));

const hasOwnState = (value: object): boolean =>
  types.isMap(value) || types.isSet(value) || types.isWeakMap(value) || types.isWeakSet(value) ||
  types.isDate(value) ||
  value instanceof EventTarget || value instanceof URLSearchParams || value instanceof AbortController ||
  value instanceof URL || value instanceof TextDecoder || value instanceof DisposableStack ||
  value instanceof AsyncDisposableStack ||
  /^\[object (Headers|FormData|Request|Response|ReadableStream|WritableStream)\]$/
    .test(Object.prototype.toString.call(value));

/** What events and signals hand on of what they were made with. */
const HELD_BY_EVENTS = ["detail", "data", "error", "reason"];

/** Has calls of an object refused. */
function refuseCalls(value: object, path: string, names: readonly string[]): void {
  for (const name of names) {
    Reflect.defineProperty(value, name, {
      value: () => {
        throw refusal(`${path} by ${name}`);
      },
    });
  }
}

/** Hashes, ciphers and signatures of node's, which take in piece by piece. */
const isOfCrypto = (value: object): boolean =>
  /^(?:Hash|Hmac|Cipher|Decipher|Sign|Verify)/.test(value.constructor?.name ?? "") &&
  ["digest", "final", "sign", "verify"].some((name) => typeof Reflect.get(value, name) === "function") &&
  typeof Reflect.get(value, "update") === "function";

const isTransform = (value: object): value is { readonly readable: object; readonly writable: object } =>
  /^\[object (?:Transform|TextDecoder|TextEncoder|Compression|Decompression)Stream\]$/
    .test(Object.prototype.toString.call(value));

const isOfWasm = (value: object): boolean =>
  /^\[object WebAssembly\.(Instance|Memory|Table|Global)\]$/.test(Object.prototype.toString.call(value));

/** Whether it is what objects of a class, or of a function that makes some, have in common. */
function isPrototype(value: object): boolean {
  const made: unknown = Reflect.getOwnPropertyDescriptor(value, "constructor")?.value;
  return typeof made === "function" && made.prototype === value;
}

/** What is derived from `of` may have one of its own, by assignment as well; `of` itself says no by name. */
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

/**
 * Nothing is added to the globals and to what they hold, and none that holds a value is replaced. What is only loaded
 * when it is used is frozen then.
 */
function freezeGlobal(assigned: ReadonlySet<string>): void {
  for (const name of Reflect.ownKeys(globalThis)) {
    const found = Reflect.getOwnPropertyDescriptor(globalThis, name);
    if (found?.configurable !== true) continue;
    const { get, value } = found;
    if (get === undefined) {
      if (OBJECTS.has(String(name))) Object.freeze(value);
      if (typeof value === "function") freezeClass(value, assigned);
      if (found.writable === true) Reflect.defineProperty(globalThis, name, { writable: false });
      continue;
    }
    Reflect.defineProperty(globalThis, name, {
      ...found,
      get: () => {
        const held: unknown = Reflect.apply(get, globalThis, []);
        return typeof held === "function"
          ? freezeClass(held, assigned)
          : OBJECTS.has(String(name))
          ? Object.freeze(held)
          : held;
      },
      set: () => {
        throw refusal(`globalThis.${String(name)}`);
      },
    });
  }
  Object.freeze(Reflect.get(Object(Reflect.get(globalThis, "process")), "env"));
  Object.freeze(crypto.subtle);
  Object.preventExtensions(Error);
}

/** Globals that are objects, which nobody but the platform has properties on. */
const OBJECTS: ReadonlySet<string> = new Set(["console", "Deno", "crypto", "performance", "process"]);

/** Programs set Error's own properties as they run. */
function freezeClass(made: object, assigned: ReadonlySet<string>): object {
  if (made === Error || Object.isFrozen(made)) return made;
  Object.freeze(made);
  const prototype: unknown = Reflect.getOwnPropertyDescriptor(made, "prototype")?.value;
  if (typeof prototype === "object" && prototype !== null) {
    permitOverrides(prototype, assigned);
    Object.freeze(prototype);
  }
  return made;
}
