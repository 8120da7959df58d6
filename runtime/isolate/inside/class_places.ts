/**
 * Places in a bundle at which the methods of an app's Session classes begin. A method's answer is given out when it is
 * over, by code of the platform: without its place a report about it could name no line of the app.
 */
import { methodNames } from "../../../functions/class/session_methods.ts";
import { BUNDLE_URL } from "./stateful_imports.ts";

/** Places, as a stack frame has them, by class (its name in the app) and method. */
export type ClassPlaces = ReadonlyMap<string, string>;

/** Returns the place of a method, or of a handler such as `fetch`; "" where it is not known. */
export const placeIn = (places: ClassPlaces, className: string, method: string): string =>
  places.get(`${className}.${method}`) ?? "";

/** Finds the places of all methods by their text, which functions know. */
export function classPlaces(source: string, sessions: unknown): ClassPlaces {
  const places = new Map<string, string>();
  for (const [name, Class] of Object.entries(Object(sessions) as Record<string, unknown>)) {
    if (typeof Class !== "function") continue;
    for (const method of [...methodNames(Class.prototype), "fetch"]) {
      const at = placeOf(source, Class.prototype, method);
      if (at !== null) places.set(`${name}.${method}`, at);
    }
  }
  return places;
}

function placeOf(source: string, prototype: unknown, method: string): string | null {
  for (let each = prototype; each !== null && each !== Object.prototype; each = Object.getPrototypeOf(each)) {
    const found = Object.getOwnPropertyDescriptor(each, method);
    if (found === undefined) continue;
    const Class = Object(each).constructor as unknown;
    if (typeof found.value !== "function" || typeof Class !== "function") return null;
    const classAt = source.indexOf(textOf(Class));
    const at = classAt < 0 ? -1 : source.indexOf(textOf(found.value), classAt);
    return at < 0 ? null : `at ${Class.name}.${method} (${BUNDLE_URL}:${positionOf(source, at)})`;
  }
  return null;
}

/** Returns a function's text in the source, whatever a class says of itself (a `static toString`). */
const textOf = (of: unknown): string => Function.prototype.toString.call(of);

/** Returns line and column of an offset, from 1. */
function positionOf(source: string, at: number): string {
  let line = 1, begin = 0;
  for (let end = source.indexOf("\n"); end >= 0 && end < at; end = source.indexOf("\n", begin)) {
    line++;
    begin = end + 1;
  }
  return `${line}:${at - begin + 1}`;
}
