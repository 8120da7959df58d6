/**
 * Guards what the modules and classes of an app with stateful sessions hold, once they have loaded: all sessions of an
 * isolate share it, and no log has it. So no session may change it, and what tries fails with its name.
 *
 * Life: `asked` stands as a global while the bundle runs, which tells what there is (`made`, `hold`;
 * runtime/bundle/module_state.ts) → `freeze` → `turnOf` before and behind each turn, `changed` at its end. A bundle
 * that was made without those questions never says `hold`: nothing is frozen then, and its logs are replayed as they
 * were written.
 *
 * MF1  Plain objects, arrays, functions, classes and their instances are frozen, to the last that can be reached from
 *      variables, closures and private fields; collections and other objects with a state of their own refuse the calls
 *      that change it.
 * MF2  A regular expression with the flag g or y, and bytes, can't be made to refuse: they are compared at the end of
 *      each turn and put back, before anything of it leaves.
 * MF3  An object that a package made (an instance of one of its classes) is left as it is: libraries make on first use
 *      what they need. Of what a package has in variables each session has its own (package_state.ts). But for
 *      collections (a cache, a queue, a sorted map): an object that can be added to, taken from, and says how much is
 *      in it refuses the calls that change it, as a Map does.
 * MF4  State that is shared and not watched is named in the log when the app loads.
 * MF5  A promise that modules made and left open is settled by no session.
 * MF6  A session that is told that the stack is full, or that there is no memory, and goes on fails: how far it came is
 *      in no log, and differs at a replay (used_up.ts).
 * MF7  An object that a module holds and a session keeps in a field is the module's own again where its checkpoint is
 *      read by the same code, or by other code that holds the same under the same name: `this.level === LEVELS[1]`
 *      stays so.
 * MF8  No object that a checkpoint may hold, or that all share, gets private fields: those of a class are on its own
 *      objects.
 */
import { types } from "node:util";
import { AppError, type AppErrorCode } from "../../../functions/vocabulary/errors.ts";
import { SESSION_BASE } from "../../../functions/class/session_slot.ts";
import { isPart } from "../../../functions/tracked/part.ts";
import { recognizeModules } from "../../../functions/tracked/content.ts";
import type { Program } from "../../../functions/sessions/turn/program.ts";
import { Bytes, type PutBack, Setting } from "./put_back.ts";
import { FrozenRealm } from "./frozen_realm.ts";
import { isGuarded } from "./guarded.ts";
import { LateGlobals } from "./late_globals.ts";
import { HeldByName, ModuleWalk, type PlacedObject } from "./module_walk.ts";
import { refusal } from "./module_refusal.ts";
import { PackageState, type PackageThunks, type Slot } from "./package_state.ts";
import { freezeIntrinsics } from "./stateful_intrinsics.ts";
import { type UsedUp, usedUp } from "./used_up.ts";

/** Variables by their names, with functions that return what they hold; for one that was not reached it throws. */
type Thunks = readonly (readonly [name: string, value: () => unknown])[];

/** The bundle's account of its modules. */
interface Held {
  readonly own: Thunks;
  readonly packages: Thunks;
  /** Values that it imports of the platform. */
  readonly builtins?: Thunks;
  /** Values that it brings of the platform's own modules. */
  readonly platform?: Thunks;
  /** Classes and functions that the app's own modules declare. */
  readonly declared?: Thunks;
  /** Names of methods that are assigned to somewhere. */
  readonly assigned: readonly string[];
  /**
   * Variables of packages, with the package's name, and names of properties that packages assign to (`touched`);
   * older bundles have neither.
   */
  readonly from?: PackageThunks;
  readonly touched?: readonly string[];
  /** Properties that packages only count up. */
  readonly counted?: readonly (readonly [of: string, name: string])[];
  /** Names of properties that the app's own modules assign to. */
  readonly changed?: readonly string[];
  /** The object that `import.meta` is to the bundle. */
  readonly meta?: object;
}

/** The owner of a variable or object: 0 stands for the modules, undefined for nobody that is known. */
type Owner = Program | 0 | undefined;

/** Bytes that are compared at the end of each turn, so that it takes some µs at most. */
const BYTES_MAX = 64 * 1024;
/** Number of calls of functions, while modules load, whose variables are noted because they outlive the call. */
const MADE_MAX = 200_000;
/** Number of objects that an error names: the language does not say which one it was that can't be changed. */
const NAMED_MAX = 5;
/** Levels to which classes are looked for behind what packages export. */
const PACKAGE_DEPTH = 3;

const USED_UP: Readonly<Record<UsedUp, readonly [code: AppErrorCode, message: string]>> = {
  stack: [
    "stack_full",
    "a stateful session can't go on where its stack was full: how deep it went is in no log, and differs at a replay. " +
    "Bound the depth of what calls itself",
  ],
  memory: [
    "memory_full",
    "a stateful session can't go on where there was no memory: how much there was is in no log, and differs at a " +
    "replay. Bound what it takes",
  ],
};

/** The state of the modules of one isolate. */
export class ModuleState {
  #held: Held | undefined;
  #made: { readonly file: string; readonly values: Thunks }[] | undefined = [];
  readonly #compared: PutBack[] = [];
  readonly #unwatched: string[] = [];
  /** Places in modules of the objects that were frozen. */
  readonly #frozen = new Map<object, string>();
  #intrinsics: ReadonlySet<object> = new Set();
  /** Proxies whose targets and handlers are known. */
  readonly #known = new WeakSet<object>();
  #isFrozen = false;
  #loaded = (): void => {};
  /** Reason why the turn that runs has used up its stack or its memory, where it has (MF6). */
  #usedUp: UsedUp | undefined;
  #stackTraceLimit = 10;
  #prepare: unknown;
  readonly #packages = new PackageState();
  readonly #late = new LateGlobals();
  /** The global that bundles ask. */
  readonly asked = Object.seal({
    owner: 0 as Owner,
    /** True: sessions share what the bundle loads. */
    isShared: true,
    made: (file: string, values: Thunks): 0 => {
      if (this.#made !== undefined && this.#made.length < MADE_MAX) this.#made.push({ file, values });
      return 0;
    },
    bound: (file: string, args: readonly unknown[]): readonly unknown[] => {
      this.asked.made(file, args.map((value, i) => [`argument ${i} of a bound function`, () => value]));
      return args;
    },
    proxy: (file: string): ProxyConstructor | undefined =>
      this.asked.owner === 0 ? this.#proxies(file) : undefined,
    hold: (held: Held): void => void (this.#held ??= held),
    refuse: (of: Owner, name: string, file: string): void => this.#refuse(of, name, file),
    /** Called before a package's variable changes; older bundles have made the slot themselves. */
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
    given: (object: object): void => this.#given(object),
    caught: (error: unknown): void => {
      const { owner } = this.asked;
      if (typeof owner !== "object") return;
      this.#usedUp ??= usedUp(error);
      if (isGivenTwice(error)) owner.fail(given());
    },
  });

  /**
   * Called before the app's modules run. Replaces the class of promises meanwhile: nobody else can see what settles
   * those that modules make.
   */
  load(): void {
    const { Promise: Made } = globalThis;
    Reflect.set(globalThis, "Promise", this.#settlingPromise(Made));
    this.#loaded = () => void Reflect.set(globalThis, "Promise", Made);
  }

  /** Returns the class of promises while modules load (MF5). */
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

  /** Returns the class of Proxies while modules load: a Proxy's target and handler are taken for the module's. */
  #proxies(file: string): ProxyConstructor {
    return new Proxy(Proxy, {
      construct: (_, [target, handler]: [object, ProxyHandler<object>]) => {
        const made = new Proxy(target, handler);
        this.#known.add(made);
        this.asked.made(file, [["what a Proxy stands for", () => target], ["its handler", () => handler]]);
        return made;
      },
    });
  }

  /** Begins a session's turn; undefined: the turn is over. */
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

  /** Refuses private fields for an object that a checkpoint may hold, or that all share (MF8). */
  #given(object: object): void {
    const { owner } = this.asked;
    if (typeof owner !== "object") return;
    const prototype: object | null = Object.getPrototypeOf(object);
    const isOwn = prototype !== null && !this.#intrinsics.has(prototype) && Object.isExtensible(object) &&
      !(SESSION_BASE in object) && !isPart(object);
    if (isOwn) return;
    const error = given();
    // Its private methods are there already: a session that went on could see that.
    owner.fail(error);
    throw error;
  }

  /**
   * Freezes what modules hold when they have run: nobody changes it from now on. Returns what is not watched, by name
   * (MF4).
   */
  async freeze(
    intrinsics: ReadonlySet<object>,
    before: ReadonlySet<PropertyKey>,
  ): Promise<readonly string[]> {
    this.#loaded();
    this.#intrinsics = intrinsics;
    const made = this.#made ?? [];
    this.#made = undefined;
    if (this.#held === undefined) {
      freezeIntrinsics(intrinsics, null);
      return [];
    }
    const { own, packages, builtins = [], platform = [], declared = [], assigned } = this.#held;
    const { from = [], touched = [], counted = [], changed = [], meta } = this.#held;
    // Node's own modules count on properties of their prototypes that are assigned to; objects of theirs are the app's.
    const left = new Set([...intrinsics, ...packagesClasses(held(builtins), intrinsics)]);
    const foreign = packagesClasses(held(packages), intrinsics, this.#packages.values());
    for (const each of held(declared)) for (const own of [each, Object(each).prototype]) foreign.delete(own);
    const ofPackages = new Set(touched.filter((name) => !changed.includes(name)));
    const names = { assigned: new Set(assigned), ofPackages };
    const walk = new ModuleWalk(left, foreign, names, (proxy) => this.#known.has(proxy));
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
    walk.finish();
    // The value of a promise is known later.
    for (let promise = walk.promises.shift(); promise !== undefined; promise = walk.promises.shift()) {
      const nothing = {};
      const value = await Promise.race([promise.value, nothing]).catch(() => nothing);
      if (value !== nothing) walk.visit(value, promise.path);
      walk.finish();
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
    const realm = new FrozenRealm(intrinsics, everywhere);
    for (const [name, value] of values(builtins)) realm.module(value, name);
    if (meta !== undefined) realm.module(meta, "import.meta");
    realm.globals(before);
    this.#compared.push(...realm.settings);
    this.#late.install();
    for (const [, value] of values(platform)) {
      if (typeof value === "function") realm.platform(value);
    }
    this.#unwatched.push(...this.#packages.watch([...from, ...walk.changed], {
      touched: new Set(touched),
      counted,
      skips: (object) => intrinsics.has(object) || object === globalThis || isGuarded(object),
      isMade: (object) => foreign.has(Object.getPrototypeOf(object)),
    }));
    this.#isFrozen = true;
    this.asked.owner = undefined;
    return this.#unwatched;
  }

  /**
   * Has regular expressions and bytes compared at the end of each turn; returns those of the bytes that are put back.
   */
  #watch({ regexps, buffers, unwatched }: ModuleWalk): PlacedObject<ArrayBuffer>[] {
    this.#unwatched.push(...unwatched);
    for (const [path, regexp] of regexps) {
      const set = (value: unknown) => void (regexp.lastIndex = value as number);
      this.#compared.push(new Setting(`lastIndex of ${path}`, () => regexp.lastIndex, set));
    }
    let room = BYTES_MAX;
    const putBack: PlacedObject<ArrayBuffer>[] = [];
    for (const [path, buffer] of buffers) {
      if (buffer.byteLength > room) {
        this.#unwatched.push(`${path}, ${buffer.byteLength} bytes`);
        continue;
      }
      room -= buffer.byteLength;
      this.#compared.push(new Bytes(path, buffer));
      putBack.push([path, buffer]);
    }
    return putBack;
  }

  /** Returns the error for what the turn that is over has changed, and puts it back (MF2). */
  changed(): AppError | undefined {
    if (!this.#isFrozen) return undefined;
    // Libraries that look at stacks set these, and mostly put them back themselves.
    if (Error.stackTraceLimit !== this.#stackTraceLimit) Error.stackTraceLimit = this.#stackTraceLimit;
    if (prepareOf() !== this.#prepare) Reflect.set(Error, "prepareStackTrace", this.#prepare);
    let found: AppError | undefined;
    const late = this.#late.left();
    if (late !== undefined) found = refusal(`globalThis.${late}`);
    for (const each of this.#compared) if (each.changed()) found ??= refusal(each.path);
    if (this.#usedUp !== undefined) {
      found ??= new AppError(...USED_UP[this.#usedUp]);
      this.#usedUp = undefined;
    }
    return found;
  }

  /** Returns an error that was thrown, with a name where it was by something frozen. */
  told(error: unknown): unknown {
    if (!this.#isFrozen || !(error instanceof TypeError)) return error;
    if (isGivenTwice(error)) return given();
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

/** Returns the error for private fields on an object that must not have any (MF8). */
const given = (): AppError =>
  new AppError(
    "state_invalid",
    "can't give an object of another class private fields or methods, which no checkpoint could hold: keep it in a " +
      "field of the session",
  );

/**
 * Reports whether an error says that an object has private methods already, because another session has tried that
 * before: they are there before anybody is asked.
 */
const isGivenTwice = (error: unknown): boolean =>
  error instanceof TypeError &&
  /^Cannot initialize (?:private methods of class .*|#\S+) twice on the same object$/.test(error.message);

const prepareOf = (): unknown => Reflect.get(Error, "prepareStackTrace");

const stackBelow = ({ stack }: Error): string => {
  const at = (stack ?? "").indexOf("\n    at ");
  return at < 0 ? "" : (stack ?? "").slice(at);
};

/** Yields the values that can be had: not those of variables that were not reached. */
function* held(thunks: Thunks): Generator<unknown> {
  for (const [, value] of values(thunks)) yield value;
}

function* values(thunks: Thunks): Generator<readonly [name: string, value: unknown]> {
  for (const [name, value] of thunks) {
    try {
      yield [name, value()];
    } catch {
      // The variable was not reached.
    }
  }
}

/** Returns the functions of packages, and the prototypes of what they make (MF3). */
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
        // The export has no value yet.
      }
    }
  };
  for (const value of held) visit(value, PACKAGE_DEPTH);
  // Objects that functions hold may be anybody's: only classes and functions among them count.
  for (const value of within) if (typeof value === "function") visit(value, 0);
  return found;
}

/**
 * Reports whether an object is what a bundler makes of a CommonJS module for those that import it: it inherits from
 * what the module exports.
 */
const isInterop = (value: object): boolean => typeof Object.getPrototypeOf(value) === "function";

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}
