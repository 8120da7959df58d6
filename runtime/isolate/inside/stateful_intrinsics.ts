/**
 * What the language itself brings is the same object for all sessions of an isolate: after the app's modules have run
 * (they may add to it, and do the same everywhere) it is frozen, so that no session can leave another something there.
 *
 * IN1  Frozen are the constructors, functions and prototypes that were there before the app: nothing of the app's own.
 * IN2  An object may still have a property of its own that a frozen prototype has too, by assignment as well
 *      (`error.name = …`, `Type.prototype.toString = …`): where programs do that, the prototype's property is an accessor
 *      whose setter defines the own one. Only assignment needs it; class fields and literals define.
 */

/** Constructors, and what is found beside them. */
const NAMESPACES = ["JSON", "Math", "Reflect", "Intl", "Temporal", "WebAssembly", "Atomics"];
/** Error.stackTraceLimit and prepareStackTrace are set by programs as they run, and seen by nobody but stacks. */
const LEFT: ReadonlySet<unknown> = new Set([Error]);

const asyncGenerator = async function* () {};
const generator = function* () {};
const hidden: readonly unknown[] = [
  Object.getPrototypeOf(async () => {}),
  Object.getPrototypeOf(generator),
  Object.getPrototypeOf(asyncGenerator),
  Object.getPrototypeOf(generator.prototype),
  Object.getPrototypeOf(asyncGenerator.prototype),
  ...[[].values(), new Map().values(), new Set().values(), ""[Symbol.iterator](), "".matchAll(/a/g)]
    .map((iterator) => Object.getPrototypeOf(iterator)),
  Object.getPrototypeOf(Uint8Array),
];

/** IN2: names by prototype; all of Object's, which everything has. */
const OVERRIDDEN: readonly (readonly [prototype: object, names: readonly string[]])[] = [
  [Object.prototype, Object.getOwnPropertyNames(Object.prototype)],
  [Function.prototype, ["constructor", "bind", "toString"]],
  [Array.prototype, ["constructor", "toString", "concat"]],
  [Promise.prototype, ["constructor", "then", "catch", "finally"]],
  [Date.prototype, ["constructor", "toString", "toJSON", "valueOf"]],
  ...[Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError, AggregateError]
    .map(({ prototype }) => [prototype, ["constructor", "name", "message", "toString"]] as const),
  ...hidden.map((prototype) => [prototype as object, ["constructor", "next", "toString"]] as const),
];

/** What is to be frozen: taken before any code of an app runs. */
export function collectIntrinsics(): ReadonlySet<object> {
  const found = new Set<object>();
  const visit = (value: unknown): void => {
    if ((typeof value !== "object" && typeof value !== "function") || value === null) return;
    if (found.has(value) || value === globalThis) return;
    found.add(value);
    visit(Object.getPrototypeOf(value));
    for (const [name, { value: held, get, set }] of Object.entries(Object.getOwnPropertyDescriptors(value))) {
      // What is no function may be somebody's state.
      if (typeof held === "function" || name === "prototype") visit(held);
      visit(get);
      visit(set);
    }
  };
  for (const name of Object.getOwnPropertyNames(globalThis)) {
    // Behind a getter is what is only loaded when it is used: that (fetch and its classes) stays as it is.
    const held: unknown = Reflect.getOwnPropertyDescriptor(globalThis, name)?.value;
    if (typeof held === "function" || NAMESPACES.includes(name)) visit(held);
  }
  for (const each of hidden) visit(each);
  return found;
}

/** Freezes them (IN1). */
export function freezeIntrinsics(intrinsics: ReadonlySet<object>): void {
  for (const [prototype, names] of OVERRIDDEN) for (const name of names) permitOverride(prototype, name);
  for (const each of intrinsics) if (!LEFT.has(each)) Object.freeze(each);
}

/** IN2 */
function permitOverride(prototype: object, name: string): void {
  const found = Reflect.getOwnPropertyDescriptor(prototype, name);
  if (found === undefined || !("value" in found) || found.configurable !== true) return;
  const { value, enumerable = false } = found;
  Reflect.defineProperty(prototype, name, {
    enumerable,
    configurable: true,
    get: () => value,
    set(this: object, given: unknown) {
      if (this === prototype) {
        throw new TypeError(`a stateful session can't change ${name} of a prototype that all sessions share`);
      }
      Reflect.defineProperty(this, name, {
        value: given,
        writable: true,
        enumerable: true,
        configurable: true,
      });
    },
  });
}
