/**
 * What code can reach without being given it: from the globals and the built-in modules that an app may import, every
 * function and every accessor, by a path. An object that is reached by several has the path of its global, else the first.
 *
 * Runs within an app, and within Deno as it is: it imports nothing.
 */

/** Of `Deno` an app has what tests/runtime/isolate/globals_test.ts says; our own symbols and what an app's bundle adds are not Deno's. */
const NOT_WALKED = ["Deno", "global", "globalThis", "self", "process"];
/** What each function has. */
const OF_FUNCTIONS = ["length", "name", "prototype", "arguments", "caller", "constructor"];

/** An accessor that lets objects have a property of their own by assignment (stateful_intrinsics.ts, IN2). */
const standsForValue = (get: object): boolean => Object.hasOwn(get, "originalValue");

const valueOf = (found: PropertyDescriptor | undefined): unknown =>
  found?.get === undefined ? found?.value : Reflect.get(found.get, "originalValue");

/** Paths, in order. */
export function walkRealm(globals: readonly string[], modules: Readonly<Record<string, unknown>>): string[] {
  const paths = new Set<string>();
  const names = new Map<object, string>();
  const waiting: (readonly [path: string, object: object])[] = [];
  const isObject = (value: unknown): value is object =>
    typeof value === "function" || (typeof value === "object" && value !== null);
  const meet = (path: string, value: unknown): void => {
    if (!isObject(value) || names.has(value) || value === globalThis) return;
    names.set(value, path);
    waiting.push([path, value]);
  };
  const read = (object: object, name: PropertyKey): unknown => {
    try {
      return Reflect.get(object, name);
    } catch {
      return undefined; // an accessor of instances
    }
  };
  const roots = globals.filter((name) => !NOT_WALKED.includes(name)).toSorted();
  for (const name of roots) {
    const value = read(globalThis, name);
    if (!(name in globalThis)) continue;
    paths.add(name);
    meet(name, value);
    if (typeof value === "function") meet(`${name}.prototype`, read(value, "prototype"));
  }
  for (const [name, module] of Object.entries(modules)) meet(name, module);
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const [path, object] = next;
    for (const key of Reflect.ownKeys(object)) {
      const name = typeof key === "string" ? key : key.description?.replace(/^Symbol\./, "@@") ?? "";
      if (typeof key === "symbol" && !name.startsWith("@@")) continue; // the platform's own
      if (OF_FUNCTIONS.includes(name) || /^\d+$/.test(name)) continue;
      const found = Reflect.getOwnPropertyDescriptor(object, key);
      const isAccessor = found?.get !== undefined && !standsForValue(found.get);
      const value: unknown = valueOf(found);
      if (!isAccessor && !isObject(value)) continue;
      if (isAccessor || typeof value === "function") paths.add(`${path}.${name}`);
      meet(`${path}.${name}`, value);
    }
    if (typeof object === "function") meet(`${path}.prototype`, read(object, "prototype"));
    meet(`${path}.__proto__`, Object.getPrototypeOf(object));
  }
  return [...paths].toSorted();
}

/** What a path leads to, and whose member it is. An accessor is the function that reads it, unless it stands for a value. */
export function memberAt(
  path: string,
  modules: Readonly<Record<string, unknown>>,
): { readonly owner: unknown; readonly value: unknown } {
  const module = Object.keys(modules).find((name) => path.startsWith(`${name}.`));
  const names = path.slice(module === undefined ? 0 : module.length + 1).split(".");
  let owner: unknown;
  let value: unknown = module === undefined ? globalThis : modules[module];
  for (const name of names) {
    owner = value;
    if (value === undefined) break;
    if (name === "__proto__") value = Object.getPrototypeOf(value);
    else {
      const key = name.startsWith("@@") ? Reflect.get(Symbol, name.slice(2)) as symbol : name;
      const found = Reflect.getOwnPropertyDescriptor(Object(value), key);
      // Globals are read: the platform makes some of them when they are used first.
      if (value === globalThis) value = Reflect.get(globalThis, key);
      else value = found?.get === undefined || standsForValue(found.get) ? valueOf(found) : found.get;
    }
  }
  return { owner, value };
}

/** Paths that lead to the same function. */
export function aliasesOf(paths: readonly string[], modules: Readonly<Record<string, unknown>>): string[][] {
  const groups = new Map<unknown, string[]>();
  for (const path of paths) {
    const { value } = memberAt(path, modules);
    if (typeof value !== "function") continue;
    const group = groups.get(value);
    if (group === undefined) groups.set(value, [path]);
    else group.push(path);
  }
  return [...groups.values()].filter(({ length }) => length > 1);
}

/** The source of what each leads to; "" of what is no function, or not there. */
export const sourcesOf = (paths: readonly string[], modules: Readonly<Record<string, unknown>>): string[] =>
  paths.map((path) => {
    const { value } = memberAt(path, modules);
    return typeof value === "function" ? Function.prototype.toString.call(value) : "";
  });
