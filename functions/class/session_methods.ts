/**
 * The methods of a class of stateful sessions that can be called from outside.
 *
 * SM1  Methods of the base class and of Object, and those that the platform calls (handlers of events, `migrate`), are
 *      not among them.
 */
import { SESSION_BASE } from "./session_slot.ts";

/** Names of members that can't be called from outside. */
const HANDLERS: ReadonlySet<string> = new Set([
  "constructor",
  "onOpen",
  "onMessage",
  "onClose",
  "onTimer",
  "fetch",
  "migrate",
]);

/** Returns a method of an object, by its name. */
export function methodOf(object: object, name: string): ((...args: unknown[]) => unknown) | undefined {
  if (HANDLERS.has(name)) return undefined;
  // No generator is used here, as this runs for each message.
  for (
    let prototype: object | null = Object.getPrototypeOf(object);
    prototype !== null && !Object.hasOwn(prototype, SESSION_BASE);
    prototype = Object.getPrototypeOf(prototype)
  ) {
    const found = Reflect.getOwnPropertyDescriptor(prototype, name);
    if (found !== undefined) return typeof found.value === "function" ? found.value : undefined;
  }
  return undefined;
}

/** Returns the names of all methods that objects with this prototype have. */
export function methodNames(prototype: object): string[] {
  const names = new Set<string>();
  for (const each of prototypesOf(prototype)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(each))) {
      if (typeof value === "function" && !HANDLERS.has(name)) names.add(name);
    }
  }
  return [...names];
}

/** Yields the prototypes that are the app's: up to the base class. */
function* prototypesOf(first: object | null): Generator<object> {
  for (
    let each = first;
    each !== null && !Object.hasOwn(each, SESSION_BASE);
    each = Object.getPrototypeOf(each)
  ) {
    yield each;
  }
}
