/**
 * The check for objects of which a structured clone would silently lose content: objects of a class whose content lies
 * where a clone does not look (private fields, a platform's own slots: Blob, File, CryptoKey, URL, Headers, Response …)
 * would be stored as `{}`. They are refused, with the path to the place.
 *
 * CL1  An object of a class is refused where a clone keeps nothing of it. An object of a class with own fields is kept
 *      as a plain object with those, as in Deno KV. A value that has no clone at all (a function, a promise) is refused
 *      by V8.
 * CL2  No value is too deep or too wide: the walk keeps its own stack, and looks at each object once.
 */
import { types } from "node:util";
import { KvTypeError } from "../vocabulary/errors.ts";

/** Value that is still to be looked at, with the path to it. */
interface Place {
  readonly value: unknown;
  readonly name: string;
  readonly above: Place | null;
}

const PATH_PARTS_MAX = 20;

/** Checks that a clone keeps the content of a value. @throws KvTypeError `value_invalid` (CL1). */
export function assertCloneable(top: unknown): void {
  const seen = new Set<object>();
  const places: Place[] = [{ value: top, name: "", above: null }];
  for (let place = places.pop(); place !== undefined; place = places.pop()) {
    const { value } = place;
    if (typeof value !== "object" || value === null || seen.has(value)) continue;
    seen.add(value);
    push(places, place, value);
  }
}

/** Adds the values inside an object to those to be looked at. @throws KvTypeError */
function push(places: Place[], above: Place, value: object): void {
  if (isLeaf(value)) return;
  if (types.isMap(value)) {
    for (const [key, one] of Map.prototype.entries.call(value)) {
      places.push({ value: key, name: " (a key)", above }, {
        value: one,
        name: `.get(${shown(key)})`,
        above,
      });
    }
    return;
  }
  if (types.isSet(value)) {
    for (const one of Set.prototype.values.call(value)) {
      places.push({ value: one, name: " (an item)", above });
    }
    return;
  }
  const names = Object.keys(value);
  if (names.length === 0 && !Array.isArray(value) && !isPlain(value)) throw refused(above, nameOf(value));
  for (const name of names) {
    places.push({ value: (value as Record<string, unknown>)[name], name: step(value, name), above });
  }
}

/** Reports whether an object is of a kind that a clone keeps whole, or that V8 refuses. */
const isLeaf = (value: object): boolean =>
  ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value) || types.isDate(value) ||
  types.isRegExp(value) ||
  types.isBoxedPrimitive(value) || types.isNativeError(value) || isRefusedByV8(value);

const isRefusedByV8 = (value: object): boolean =>
  types.isPromise(value) || types.isWeakMap(value) || types.isWeakSet(value) ||
  types.isGeneratorObject(value) ||
  types.isProxy(value);

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function nameOf(value: object): string {
  const made = (value as { constructor?: { name?: unknown } }).constructor?.name;
  return typeof made === "string" && made !== "" ? `an object of the class ${made}` : "an object of a class";
}

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;
const step = (value: object, name: string): string =>
  Array.isArray(value) ? `[${name}]` : IDENTIFIER.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
const shown = (key: unknown): string =>
  typeof key === "string" ? JSON.stringify(key.slice(0, 40)) : String(typeof key);

function refused(place: Place, what: string): KvTypeError {
  const parts: string[] = [];
  for (let at: Place | null = place; at !== null; at = at.above) if (at.name !== "") parts.unshift(at.name);
  const path = parts.length > PATH_PARTS_MAX ? [...parts.slice(0, PATH_PARTS_MAX), " …"] : parts;
  const where = parts.length === 0 ? "The value" : `value${path.join("")}`;
  return new KvTypeError(
    "value_invalid",
    `${where} is ${what}, which can't be stored: nothing of it could be read back. Store what is in it ` +
      `(bytes, a text, a plain object)`,
  );
}
