/**
 * Refusals in place of what Deno has and a function has not: a use of it says so. Some programs swallow the error
 * (Hono's `serveStatic` makes a 404 of it), so the first use of each is a line in the log too.
 */

const INSTEAD: readonly (readonly [names: RegExp, instead: string])[] = [
  [
    /^(open|create|read|write|stat|lstat|readDir|mkdir|remove|rename|copyFile|truncate|realPath|cwd|chdir|makeTemp)/,
    "import files into the bundle, or serve them as assets",
  ],
  [/^(connect|listen|resolveDns|createHttpClient)/, "use fetch"],
  [/^(exit|kill|addSignalListener)/, "a function cannot end its isolate"],
];

/** Names of members behind a getter that are no functions. */
const DATA: ReadonlySet<string> = new Set(["exitCode", "jupyter", "mainModule", "pid", "ppid", "telemetry"]);

/** Returns the error for a member that is not there. */
const absent = (what: string, instead: string | undefined): TypeError =>
  new TypeError(`${what} is not available in a function${instead === undefined ? "" : `: ${instead}`}`);

/** Makes a function that refuses. */
export function refusingFunction(what: string, instead?: string): () => never {
  // A function, no arrow, so that `new` on it refuses too.
  return function () {
    throw absent(what, instead);
  };
}

/** Puts refusals in the place of an object's functions, and takes away the rest, but for the members in `kept`. */
export function cutMembers(target: object, name: string, kept: ReadonlySet<string>): void {
  for (const key of Reflect.ownKeys(target)) {
    if (typeof key === "string" && kept.has(key)) continue;
    const found = Reflect.getOwnPropertyDescriptor(target, key);
    Reflect.deleteProperty(target, key);
    if (typeof key !== "string" || found === undefined) continue;
    // A getter is not asked: some load what only they need.
    if (found.get === undefined ? typeof found.value !== "function" : DATA.has(key)) continue;
    const what = `${name}.${key}`;
    const instead = INSTEAD.find(([names]) => names.test(key))?.[1];
    // As the function in whose place it stands would fail.
    const refuse = found.value?.constructor?.name === "AsyncFunction"
      ? () => Promise.reject(absent(what, instead))
      : refusingFunction(what, instead);
    Reflect.defineProperty(target, key, {
      value: told(refuse, what),
      writable: true,
      configurable: true,
      enumerable: found.enumerable ?? true,
    });
  }
}

function told(refuse: () => unknown, what: string): () => unknown {
  let isTold = false;
  return function () {
    if (!isTold) console.warn(`${what} was used: it is not available in a function`);
    isTold = true;
    return refuse();
  };
}
