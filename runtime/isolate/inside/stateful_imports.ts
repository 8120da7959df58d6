/**
 * Imports of an app in an isolate of stateful sessions: its bundle, under an address that is the same at each load
 * (stacks show it), and the node built-ins of the allow-list, in which what is random, timed or done on other threads
 * is replaced by the recorded globals or refused. (`url`, `util` and `zlib` can't be: this Deno finds them by their names
 * whatever a hook says. What they compute is done within the turn, callbacks included.)
 */
import { registerHooks } from "node:module";
import { isAllowedBuiltin } from "../../bundle/builtins.ts";
import type { Current } from "./stateful_current.ts";

/** Where the bundle is loaded from. */
export const BUNDLE_URL = "app:///bundle";
const REPLACED_URL = "app:///node/";

const REFUSE = `const refuse = (name, instead) => () => {
  throw new TypeError(name + " is not available in a stateful session" + (instead ? ": " + instead : ""));
};\n`;

/** A built-in with other members: all that it exports but those. */
const replaced = (name: string, members: Readonly<Record<string, string>>): string =>
  `import real from "node:${name}";\nexport * from "node:${name}";\n${REFUSE}` +
  Object.entries(members).map(([member, code]) => `export const ${member} = ${code};\n`).join("") +
  `export { self as default };\nconst self = { ...real, ${Object.keys(members).join(", ")} };\n`;

const refused = (names: readonly string[], instead = ""): Record<string, string> =>
  Object.fromEntries(
    names.map((name) => [name, `refuse(${JSON.stringify(name)}, ${JSON.stringify(instead)})`]),
  );

const TIMERS = [
  "setTimeout",
  "clearTimeout",
  "setImmediate",
  "clearImmediate",
  "setInterval",
  "clearInterval",
];

const RANDOM = `(size, callback) => {
  if (callback !== undefined) throw new TypeError("randomBytes with a callback is not available in a stateful session");
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size; at += 65536) crypto.getRandomValues(bytes.subarray(at, at + 65536));
  return bytes;
}`;

const RANDOM_INT = `(min, max) => {
  if (typeof max !== "number") [min, max] = [0, min];
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  return min + Math.floor(((high >>> 5) * 2 ** 26 + (low >>> 6)) / 2 ** 53 * (max - min));
}`;

/** Sources by the name of the built-in. */
const SOURCES: ReadonlyMap<string, string> = new Map([
  [
    "async_hooks",
    replaced("async_hooks", {
      executionAsyncId: "() => 0",
      triggerAsyncId: "() => 0",
      ...refused(["createHook", "executionAsyncResource"], "use AsyncLocalStorage"),
    }),
  ],
  ["buffer", replaced("buffer", { File: "globalThis.File" })],
  [
    "timers",
    TIMERS.map((name) => `export const ${name} = globalThis.${name};\n`).join("") +
    `export { self as default };\nconst self = { ${TIMERS.join(", ")} };\n`,
  ],
  [
    "timers/promises",
    `export const setTimeout = (ms, value) => new Promise((resolve) => globalThis.setTimeout(resolve, ms, value));
export const setImmediate = (value) => new Promise((resolve) => globalThis.setImmediate(resolve, value));
export async function* setInterval(ms, value) {
  for (;;) {
    await setTimeout(ms);
    yield value;
  }
}
export { self as default };\nconst self = { setTimeout, setImmediate, setInterval };\n`,
  ],
  [
    "crypto",
    replaced("crypto", {
      randomUUID: "() => crypto.randomUUID()",
      getRandomValues: "(view) => crypto.getRandomValues(view)",
      randomFillSync: "(view) => crypto.getRandomValues(view)",
      randomBytes: RANDOM,
      pseudoRandomBytes: "randomBytes",
      randomInt: RANDOM_INT,
      webcrypto: "crypto",
      subtle: "crypto.subtle",
      ...refused(["randomFill", "generateKey", "generateKeySync", "generateKeyPair", "generateKeyPairSync"]),
      ...refused([
        "generatePrime",
        "generatePrimeSync",
        "createDiffieHellman",
        "createECDH",
        "createSign",
        "sign",
      ]),
      ...refused(["publicEncrypt", "DiffieHellman", "DiffieHellmanGroup", "ECDH", "Sign"]),
      ...refused(["createDiffieHellmanGroup", "getDiffieHellman", "diffieHellman"]),
      ...refused(["checkPrime"], "use checkPrimeSync"),
      ...refused(["scrypt"], "use scryptSync"),
      ...refused(["pbkdf2"], "use pbkdf2Sync"),
      ...refused(["hkdf"], "use hkdfSync"),
    }),
  ],
]);

/**
 * Lets the bundle be imported from {@link BUNDLE_URL}, and nothing that is not allowed. What a handler imports would come
 * when the platform has loaded it, which no log has: the handler fails at once.
 */
export function recordImports(bundle: () => string, current: Current): void {
  registerHooks({
    resolve(specifier, context, next) {
      const program = current();
      if (program !== undefined) {
        const error = new TypeError(
          `a handler of a stateful session can't import "${specifier}": import it at the top of the module`,
        );
        program.fail(error);
        throw error;
      }
      const isOurs = specifier === BUNDLE_URL && context.parentURL?.startsWith("file:") === true;
      if (isOurs) return { url: BUNDLE_URL, format: "module", shortCircuit: true };
      const name = specifier.replace(/^node:/, "");
      if (isAllowedBuiltin(specifier)) {
        // What stands in for a built-in imports the real one.
        const isReplaced = SOURCES.has(name) && context.parentURL?.startsWith(REPLACED_URL) !== true;
        return isReplaced
          ? { url: REPLACED_URL + name, format: "module", shortCircuit: true }
          : next(specifier, context);
      }
      throw new TypeError(
        `a function can't import "${specifier}": only its bundle and pure node: modules are there`,
      );
    },
    load(url, context, next) {
      if (url === BUNDLE_URL) return { format: "module", source: bundle(), shortCircuit: true };
      const source = url.startsWith(REPLACED_URL) ? SOURCES.get(url.slice(REPLACED_URL.length)) : undefined;
      return source === undefined ? next(url, context) : { format: "module", source, shortCircuit: true };
    },
  });
}
