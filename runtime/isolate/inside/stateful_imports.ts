/**
 * Imports of an app in an isolate of stateful sessions: its bundle, under an address that is the same at each load
 * (stacks show it), and the node built-ins of the allow-list, in which what is random, timed or done on other threads
 * is replaced by the recorded globals or refused. (`url`, `util` and `zlib` can't be: this Deno finds them by their
 * names whatever a hook says. Their work is done within the turn, callbacks included.)
 */
import { registerHooks } from "node:module";
import { isAllowedBuiltin } from "../../bundle/builtins.ts";
import type { Current } from "./stateful_current.ts";

/** Address that the bundle is loaded from. */
export const BUNDLE_URL = "app:///bundle";
const REPLACED_URL = "app:///node/";

const REFUSE = `const refuse = (name, instead) => () => {
  throw new TypeError(name + " is not available in a stateful session" + (instead ? ": " + instead : ""));
};\n`;

/** Returns the source of a built-in with other members: all that it exports but those. */
const replaced = (name: string, members: Readonly<Record<string, string>>): string =>
  `import real from "node:${name}";\nexport * from "node:${name}";\n${REFUSE}` +
  Object.entries(members).map(([member, code]) => `export const ${member} = ${code};\n`).join("") +
  `export { self as default };\nconst self = { ...real, ${Object.keys(members).join(", ")} };\n`;

const refused = (names: readonly string[], instead = ""): Record<string, string> =>
  Object.fromEntries(
    names.map((name) => [name, `refuse(${JSON.stringify(name)}, ${JSON.stringify(instead)})`]),
  );

/**
 * Returns source that has methods ask first: state that all sessions of an isolate share is changed by modules, while
 * they load, and by no session (module_state.ts).
 */
const asking = (name: string): string =>
  `const asking = (member, original) => function (...args) {
  globalThis[Symbol.for("sojourn.modules")].refuse(0, member, "node:${name}");
  return Reflect.apply(original, this, args);
};\n`;

const CHANNELS = `import real from "node:diagnostics_channel";
${asking("diagnostics_channel")}
const probe = real.channel(Symbol()), nobody = () => {};
probe.subscribe(nobody);
for (const prototype of [real.Channel.prototype, Object.getPrototypeOf(probe)]) {
  for (const name of ["subscribe", "unsubscribe", "bindStore", "unbindStore"]) {
    prototype[name] = asking("the subscribers of a channel by " + name, prototype[name]);
  }
}
probe.unsubscribe(nobody);
export * from "node:diagnostics_channel";
export { real as default };
`;

/** Source that passes on errors which node keeps to itself, as a catch clause does (module_state.ts, MF6). */
const TELL = `const tell = (error) => globalThis[Symbol.for("sojourn.modules")].caught(error);\n`;

/** Returns the source of a module with `throws` and its like, which take what the work throws. */
const asserts = (name: string): string =>
  `import real from "node:${name}";
${TELL}
const telling = (check) => function (work, ...rest) {
  const told = typeof work !== "function" ? work : () => {
    try {
      return work();
    } catch (error) {
      tell(error);
      throw error;
    }
  };
  return Reflect.apply(check, this, [told, ...rest]);
};
// Both modules have the same functions.
const isTold = Symbol.for("sojourn.told");
if (real[isTold] !== true) {
  const asserts = { throws: telling(real.throws), doesNotThrow: telling(real.doesNotThrow) };
  Object.assign(real.strict, asserts);
  Object.assign(real, asserts);
  Object.assign(real.Assert?.prototype ?? {}, asserts);
  for (const each of [real, real.strict]) Object.defineProperty(each, isTold, { value: true });
}
export const throws = real.throws, doesNotThrow = real.doesNotThrow;
export * from "node:${name}";
export { real as default };
`;

const STREAMS = `import real from "node:stream";
${asking("stream")}
${TELL}
const telling = (destroy) => function (error, done) {
  if (error) tell(error);
  return Reflect.apply(destroy, this, [error, done]);
};
const told = new Map();
for (const { prototype } of [real.Readable, real.Writable, real.Duplex]) {
  if (!Object.hasOwn(prototype, "destroy")) continue;
  const { destroy } = prototype;
  if (!told.has(destroy)) told.set(destroy, telling(destroy));
  prototype.destroy = told.get(destroy);
}
export const setDefaultHighWaterMark = real.setDefaultHighWaterMark =
  asking("the default high water mark", real.setDefaultHighWaterMark);
export * from "node:stream";
export { real as default };
`;

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

/** Sources of replaced built-ins, by their names. */
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
  ...["assert", "assert/strict"].map((name) => [name, asserts(name)] as const),
  ["diagnostics_channel", CHANNELS],
  ["stream", STREAMS],
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
    // These get their prototypes with the first use: later they could not.
    `import { createHash, createHmac, createVerify } from "node:crypto";
createHash("md5"), createHmac("md5", ""), createVerify("md5");\n` + replaced("crypto", {
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
 * Lets the bundle be imported from {@link BUNDLE_URL}, and nothing that is not allowed. A module that a handler imports
 * would come when the platform has loaded it, which no log has: the handler fails at once.
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
        // The source that stands in for a built-in imports the real one.
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
