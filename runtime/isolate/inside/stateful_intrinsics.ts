/**
 * The language's own objects are the same for all sessions of an isolate: after the app's modules have run (they may
 * add to them, and do the same everywhere) they are frozen, so that no session can leave another something there.
 *
 * IN1  Frozen are the constructors, functions and prototypes that were there before the app: nothing of the app's own.
 * IN2  An object may still have a property of its own that a frozen prototype has too, by assignment as well
 *      (`error.name = …`, `Type.prototype.toString = …`, `map.set = …`): the prototype's property is an accessor whose
 *      setter defines the own one. All properties of prototypes that programs inherit from are such; of other
 *      prototypes those that the bundle assigns to: the language reads them faster as they are, lists above all, and
 *      what walks through them. Only assignment needs it; class fields and literals define.
 */

/** Names of the namespaces, which are found beside constructors. */
const NAMESPACES = ["JSON", "Math", "Reflect", "Intl", "Temporal", "WebAssembly", "Atomics"];
/**
 * Objects that are left as they are: Error.stackTraceLimit and prepareStackTrace are set by programs as they run, and
 * seen by nobody but stacks.
 */
const LEFT: ReadonlySet<unknown> = new Set([Error]);

const asyncGenerator = async function* () {};
const generator = function* () {};
/** Iterators and generators, one of each kind that no global leads to: their prototypes are reached by having one. */
const walking: readonly object[] = [
  ...[[].values(), new Map().values(), new Set().values(), ""[Symbol.iterator](), "".matchAll(/a/g)],
];
const made: readonly object[] = [
  ...[[].values().map((each) => each), Iterator.from({ next: () => ({ done: true, value: 0 }) })],
  ...[generator(), asyncGenerator(), new URLSearchParams().keys()],
];
const functions: readonly object[] = [async () => {}, generator, asyncGenerator]
  .map((each) => Object.getPrototypeOf(each));
const inherited = [...functions, ...made.flatMap((each) => inheritedOf(each))];
const walked = [
  Object.getPrototypeOf(Uint8Array),
  ...walking.flatMap((each) => inheritedOf(each)),
] as object[];
const hidden: ReadonlySet<object> = new Set([...inherited, ...walked]);

/** Returns the prototypes of an object, but for the one that all have. */
function inheritedOf(object: object): object[] {
  const found: object[] = [];
  for (let of = Object.getPrototypeOf(object); of !== null && of !== Object.prototype;) {
    found.push(of);
    of = Object.getPrototypeOf(of);
  }
  return found;
}

/** Prototypes that programs make subclasses and objects of, which assign to their methods (IN2). */
const INHERITED: ReadonlySet<unknown> = new Set(
  [
    ...[Object, Function, Promise, Date, Map, Set, WeakMap, WeakSet],
    ...[Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError, AggregateError],
  ].map(({ prototype }): unknown => prototype).concat(inherited),
);

/** Prototypes that are fast as they are, and of which a bundle that says nothing may assign any property (IN2). */
const LISTS: ReadonlySet<unknown> = new Set([Array.prototype, ...walked]);

/** Returns the objects that are to be frozen, before any code of an app runs. */
export function collectIntrinsics(): ReadonlySet<object> {
  const found = new Set<object>();
  const visit = (value: unknown): void => {
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return;
    if (found.has(value) || value === globalThis) return;
    found.add(value);
    visit(Object.getPrototypeOf(value));
    for (const [name, { value: held, get, set }] of Object.entries(Object.getOwnPropertyDescriptors(value))) {
      // A value that is no function may be somebody's state.
      if (typeof held === "function" || name === "prototype") visit(held);
      visit(get);
      visit(set);
    }
  };
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    // Values that are only loaded when they are used (fetch and its classes) have a getter, and stay as they are.
    const held: unknown = Reflect.getOwnPropertyDescriptor(globalThis, name)?.value;
    if (typeof held === "function" || NAMESPACES.includes(name)) visit(held);
  }
  for (const each of hidden) visit(each);
  return found;
}

/**
 * Freezes the language's objects (IN1).
 *
 * @param assigned names of properties that the bundle assigns to anywhere; null where it does not say
 */
export function freezeIntrinsics(
  intrinsics: ReadonlySet<object>,
  assigned: ReadonlySet<string> | null,
): void {
  freezeSegments();
  for (const each of intrinsics) {
    if (typeof each === "function" && each !== Function.prototype) continue;
    permitOverrides(each, assigned ?? (LISTS.has(each) ? "all" : new Set()));
  }
  for (const each of intrinsics) if (!LEFT.has(each)) Object.freeze(each);
}

/**
 * Has the results of segmenters frozen where one is used: they are hidden, too, and the first one takes 20 ms to make.
 */
function freezeSegments(): void {
  const { prototype } = Intl.Segmenter;
  const { segment } = prototype;
  Reflect.defineProperty(prototype, "segment", {
    writable: true,
    configurable: true,
    value: {
      segment(this: Intl.Segmenter, text: string): Intl.Segments {
        const segments = Reflect.apply(segment, this, [text]);
        for (const each of [segments, segments[Symbol.iterator]()]) inheritedOf(each).forEach(Object.freeze);
        return segments;
      },
    }.segment,
  });
}

/** Makes properties of a prototype accessors (IN2): those of these names, or all. */
export function permitOverrides(prototype: object, assigned: ReadonlySet<string> | "all"): void {
  const isInherited = assigned === "all" || INHERITED.has(prototype);
  for (const name of Reflect.ownKeys(prototype)) {
    if (isInherited || (typeof name === "string" && assigned.has(name))) permitOverride(prototype, name);
  }
}

function permitOverride(prototype: object, name: PropertyKey): void {
  const found = Reflect.getOwnPropertyDescriptor(prototype, name);
  if (found?.writable !== true || found.configurable !== true) return;
  const { value, enumerable = false } = found;
  const get = () => value;
  // By this libraries that take methods from descriptors know that the property stands for a value (as SES has it).
  Reflect.defineProperty(get, "originalValue", { value });
  Reflect.defineProperty(prototype, name, {
    enumerable,
    configurable: true,
    get,
    set(this: object, given: unknown) {
      if (this === prototype) {
        throw new TypeError(
          `a stateful session can't change ${String(name)} of a prototype that all sessions share`,
        );
      }
      const isDefined = Reflect.defineProperty(
        this,
        name,
        Object.hasOwn(this, name)
          ? { value: given }
          : { value: given, writable: true, enumerable: true, configurable: true },
      );
      if (!isDefined) {
        throw new TypeError(`Cannot add property ${String(name)}, object is not extensible`);
      }
    },
  });
}
