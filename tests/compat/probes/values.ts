/** Crypto, cloning, performance, Intl, WebAssembly, the language, errors, what globals there are. */
import { type Probes, rejection, thrown } from "./probe.ts";

const utf8 = new TextEncoder();
const hex = (buffer: ArrayBuffer): string => new Uint8Array(buffer).toHex();

/** (a, b) => a + b */
const ADD = Uint8Array.fromBase64("AGFzbQEAAAABBwFgAn9/AX8DAgEABwcBA2FkZAAACgkBBwAgACABags=");

class Point {
  constructor(readonly x: number) {}
}

export const values: Probes = {
  "crypto.randomUUID": () =>
    /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()),
  "crypto.getRandomValues": () => {
    const bytes = new Uint8Array(32);
    return [crypto.getRandomValues(bytes) === bytes, bytes.some((byte) => byte !== 0)];
  },
  "crypto.getRandomValues of kinds": () =>
    [
      new Int8Array(2),
      new Uint8ClampedArray(2),
      new Int16Array(2),
      new Uint32Array(2),
      new BigInt64Array(2),
      new BigUint64Array(2),
    ]
      .map((array) => crypto.getRandomValues(array) === array),
  "crypto.getRandomValues of a view": () => {
    const all = new Uint8Array(64);
    crypto.getRandomValues(all.subarray(8, 56));
    return [all.subarray(0, 8).every((byte) => byte === 0), all.subarray(56).every((byte) => byte === 0)];
  },
  "crypto.getRandomValues of floats": () =>
    thrown(() => crypto.getRandomValues(new Float32Array(1) as never)),
  "crypto.getRandomValues of no array": () => thrown(() => crypto.getRandomValues({} as never)),
  "crypto.getRandomValues without argument": () => thrown(() => (crypto.getRandomValues as () => void)()),
  "crypto.getRandomValues too long": () => thrown(() => crypto.getRandomValues(new Uint8Array(65_537))),
  "crypto digest": async () =>
    await Promise.all(
      ["SHA-1", "SHA-256", "SHA-384", "SHA-512"].map(async (name) =>
        hex(await crypto.subtle.digest(name, utf8.encode("abc")))
      ),
    ),
  "crypto hmac": async () => {
    const key = await crypto.subtle.importKey(
      "raw",
      utf8.encode("k"),
      { name: "HMAC", hash: "SHA-256" },
      true,
      ["sign", "verify"],
    );
    const signature = await crypto.subtle.sign("HMAC", key, utf8.encode("m"));
    return [
      hex(signature),
      await crypto.subtle.verify("HMAC", key, signature, utf8.encode("m")),
      await crypto.subtle.exportKey("jwk", key),
    ];
  },
  "crypto aes": async () => {
    const key = await crypto.subtle.importKey("raw", new Uint8Array(16), "AES-GCM", false, [
      "encrypt",
      "decrypt",
    ]);
    const iv = new Uint8Array(12);
    const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, utf8.encode("m"));
    return [
      hex(sealed),
      hex(await crypto.subtle.decrypt({ name: "AES-GCM", iv }, key, sealed)),
      await rejection(() => crypto.subtle.exportKey("raw", key)),
    ];
  },
  "crypto pbkdf2 and hkdf": async () => {
    const password = await crypto.subtle.importKey("raw", utf8.encode("p"), "PBKDF2", false, ["deriveBits"]);
    const secret = await crypto.subtle.importKey("raw", utf8.encode("p"), "HKDF", false, ["deriveBits"]);
    const salt = new Uint8Array(8);
    return [
      hex(
        await crypto.subtle.deriveBits(
          { name: "PBKDF2", hash: "SHA-256", salt, iterations: 10 },
          password,
          128,
        ),
      ),
      hex(await crypto.subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt, info: salt }, secret, 128)),
    ];
  },
  "crypto ecdsa": async () => {
    const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, [
      "sign",
      "verify",
    ]) as CryptoKeyPair;
    const by = { name: "ECDSA", hash: "SHA-256" };
    const signature = await crypto.subtle.sign(by, pair.privateKey, utf8.encode("m"));
    return [
      signature.byteLength,
      await crypto.subtle.verify(by, pair.publicKey, signature, utf8.encode("m")),
    ];
  },
  "crypto ed25519 and rsa": async () => {
    const ed = await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"]) as CryptoKeyPair;
    const signature = await crypto.subtle.sign("Ed25519", ed.privateKey, utf8.encode("m"));
    const rsa = await crypto.subtle.generateKey(
      { name: "RSA-OAEP", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" },
      true,
      ["encrypt", "decrypt"],
    );
    const sealed = await crypto.subtle.encrypt("RSA-OAEP", rsa.publicKey, utf8.encode("m"));
    return [
      await crypto.subtle.verify("Ed25519", ed.publicKey, signature, utf8.encode("m")),
      hex(await crypto.subtle.decrypt("RSA-OAEP", rsa.privateKey, sealed)),
    ];
  },
  "crypto unknown algorithm": () => rejection(() => crypto.subtle.digest("MD4", new Uint8Array())),
  "structuredClone": () =>
    structuredClone({
      map: new Map([["k", new Set([1])]]),
      date: new Date(0),
      pattern: /x/gi,
      big: 2n ** 70n,
      bytes: new Uint8Array([1]),
      error: Object.assign(new RangeError("m"), { stack: "s" }).message,
      sparse: [1, , 3],
      negative: -0,
      none: undefined,
    }),
  "structuredClone of cycles": () => {
    const a: Record<string, unknown> = {};
    a["self"] = a;
    const copy = structuredClone(a);
    return [copy["self"] === copy, copy === a];
  },
  "structuredClone of instances": () => {
    const copy = structuredClone(new Point(1));
    return [copy instanceof Point, copy];
  },
  "structuredClone of a function": () => thrown(() => structuredClone(() => {})),
  "structuredClone with a transfer": () => {
    const buffer = new ArrayBuffer(4);
    const copy = structuredClone(buffer, { transfer: [buffer] });
    return [buffer.byteLength, copy.byteLength, buffer.detached];
  },
  "structuredClone of errors": () => {
    const copy = structuredClone(new TypeError("m", { cause: 1 }));
    return [copy instanceof TypeError, copy.message, copy.cause];
  },
  "performance": () => {
    const mark = performance.mark("a", { detail: 1 });
    const measure = performance.measure("b", "a");
    const names = performance.getEntriesByType("mark").map((entry) => entry.name);
    performance.clearMarks();
    return [
      mark.name,
      mark.detail,
      measure.entryType,
      names,
      performance.now() > 0,
      performance.timeOrigin > 0,
      typeof performance.toJSON,
    ];
  },
  "Intl": () => [
    new Intl.NumberFormat("de-DE", { style: "currency", currency: "EUR" }).format(1234.5),
    new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long", timeZone: "Asia/Tokyo" }).format(
      0,
    ),
    new Intl.PluralRules("pl").select(3),
    new Intl.ListFormat("en").format(["a", "b", "c"]),
    new Intl.RelativeTimeFormat("fr").format(-1, "day"),
    ["z", "ä", "a"].sort(new Intl.Collator("sv").compare),
    [...new Intl.Segmenter("ja", { granularity: "word" }).segment("今日は晴れ")].length,
    "İ".toLocaleLowerCase("tr"),
  ],
  "time zone": () => new Date(0).getTimezoneOffset(),
  "locale": () => [Intl.DateTimeFormat().resolvedOptions().locale, navigator.language, navigator.languages],
  "Temporal": () => typeof (globalThis as { Temporal?: unknown }).Temporal,
  "WebAssembly": async () => {
    const { instance, module } = await WebAssembly.instantiate(ADD);
    const compiled = new WebAssembly.Module(ADD);
    const again = new WebAssembly.Instance(compiled);
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 2 });
    return [
      (instance.exports.add as (a: number, b: number) => number)(2, 3),
      WebAssembly.Module.exports(module),
      (again.exports.add as (a: number, b: number) => number)(4, 5),
      memory.grow(1),
      WebAssembly.validate(new Uint8Array([0])),
    ];
  },
  "WebAssembly.instantiateStreaming": async () => {
    const response = new Response(ADD, { headers: { "content-type": "application/wasm" } });
    const { instance } = await WebAssembly.instantiateStreaming(response);
    return (instance.exports.add as (a: number, b: number) => number)(20, 22);
  },
  "WebAssembly.compileStreaming of another type": () =>
    rejection(() => WebAssembly.compileStreaming(new Response(ADD))),
  "WebAssembly of garbage": () => rejection(() => WebAssembly.compile(new Uint8Array([0, 1, 2, 3]))),
  "eval and Function": () => [(0, eval)("1 + 1"), new Function("a", "return a * 2")(4)],
  "error stack": () => {
    const { stack = "" } = (function inner() {
      return new Error("m", { cause: "c" });
    })();
    const [first, second = ""] = stack.split("\n");
    return [first, /^ {4}at inner \(.+:\d+:\d+\)$/.test(second)];
  },
  "Error.captureStackTrace": () => {
    const target: { stack?: string } = {};
    Error.captureStackTrace(target);
    return typeof target.stack;
  },
  "Error.prepareStackTrace": () => {
    const before = Error.prepareStackTrace;
    Error.prepareStackTrace = (_, sites) => typeof sites[0]?.getLineNumber();
    const { stack } = new Error("m");
    if (before === undefined) Reflect.deleteProperty(Error, "prepareStackTrace");
    else Error.prepareStackTrace = before;
    return stack;
  },
  "DOMException": () => {
    const error = new DOMException("m", "AbortError");
    return [
      error.code,
      error instanceof Error,
      Object.prototype.toString.call(error),
      new DOMException().name,
    ];
  },
  "iterator helpers and sets": () => [
    [1, 2, 3].values().filter((n) => n > 1).toArray(),
    new Set([1, 2]).union(new Set([3])),
    Object.groupBy([1, 2, 3], (n) => n % 2 ? "odd" : "even"),
    [3, 1].toSorted(),
    "a\ud800".isWellFormed(),
  ],
  "WeakRef and FinalizationRegistry": () => [typeof new WeakRef({}).deref(), typeof FinalizationRegistry],
  "SharedArrayBuffer and Atomics": () => Atomics.add(new Int32Array(new SharedArrayBuffer(4)), 0, 2),
  "globalThis": () => [
    globalThis === self,
    typeof window,
    Object.prototype.toString.call(globalThis),
    typeof document,
    typeof importScripts,
    typeof require,
  ],
  "navigator": () => [
    typeof navigator,
    navigator.userAgent,
    typeof navigator.hardwareConcurrency,
    navigator.constructor.name,
  ],
  "console methods": () => Object.keys(console).sort(),
  "ImageData and images": () => [typeof ImageData, typeof createImageBitmap],
  "global names": () => Object.getOwnPropertyNames(globalThis).sort().join(" "),
};

declare const document: unknown;
declare const importScripts: unknown;
declare const require: unknown;
